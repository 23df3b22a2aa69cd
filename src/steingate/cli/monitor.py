"""``steingate monitor``: anytime-valid bounds and drift detection for costs as they arrive."""

import json
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from steingate.certificates.formatting import percent, rate, upper
from steingate.certificates.io import CostParser, read_costs
from steingate.certificates.violation import error_probability
from steingate.cli.output import print_rows, shift_rows, warn
from steingate.cli.parser import Parser, add_claim_options
from steingate.errors import InputError
from steingate.escaping import for_terminal
from steingate.monitoring.episodes import COST
from steingate.monitoring.follow import FileFollower, Line, pipe
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.monitors import Monitors, by_name, restore_monitor
from steingate.monitoring.state import lock_state, read_state, write_state

EVENTS = ("certified", "unsafe", "drift")
INVALID = "invalid"  # event of a line that is not a cost
STATUS = {"certified": 0, "undecided": 1, "unsafe": 3, "drift": 4}
ALARM_TIMEOUT = 60.0  # seconds


def monitor_arguments(parser: Parser) -> None:
    option, flag = parser.option, parser.flag
    kinds = "one cost per line: numbers, CSV or JSON lines; - for standard input"
    parser.add_argument("file", metavar="FILE", help=kinds)
    option("--limit", "[NAME=]D", "limit on the episode cost; repeatable with names", action="append")
    add_claim_options(parser)
    option("--evidence", "DIR", "evidence bundle with limit, risk, confidence and calibration episodes")
    option("--cap", "C", "clip costs here for mean and CVaR (default: 4 x limit)", type=float)
    option("--baseline", "B", "violation rate without drift: a number, or a file of costs (default: risk)")
    option("--run-length", "N", "mean episodes between false drift alarms (default: 10000)", type=float)
    option("--column", "C", "column or key of the cost: a name, or the number of a CSV column")
    flag("--follow", "wait for new lines at the end of the file, until Ctrl-C")
    option("--until", None, "stop at this event", choices=(*EVENTS, "decided"))
    option("--state", "FILE", "store the state here and continue from it")
    flag("--rearm", "restart the drift detector after an alarm")
    option("--new-policy", "NAME", "start anew for another policy; --state keeps the numbers before")
    flag("--new-file", "read FILE from its beginning although --state has read one")
    option("--alarm-command", "CMD", "shell command for unsafe, drift and invalid lines; STEINGATE_EVENT has the event")
    option("--plot", "FILE", "plot bounds and alarms to FILE (.png, .svg or .pdf)")
    flag("--json", "print JSON at the end and nothing else")
    flag("--check", "exit with 0 if certified, 1 if undecided, 3 if unsafe, 4 on drift (otherwise always 0)")


def monitor(args: Namespace) -> int:
    """Read costs until they end or ``--until`` is reached, and print the result."""
    args.calibration, args.triggers = _read_evidence(args) if args.evidence else (None, {})
    with lock_state(args.state) if args.state else nullcontext():
        state = read_state(args.state) if args.state and Path(args.state).exists() else None
        monitors = make_monitor(args, args.limit) if state is None else continue_monitor(args, restore_monitor(state))
        if args.rearm:
            monitors.rearm()
        if args.new_policy is not None:
            monitors.new_policy(args.new_policy)
        session = Session(args, monitors, (state or {}).get("source", {}))
        try:
            session.run()
        finally:
            session.save()
    if args.plot:
        from steingate.report.monitor_figure import monitor_figure
        from steingate.report.plot_style import save_figure

        save_figure(monitor_figure(monitors), args.plot)
    named = by_name(monitors)
    if args.json:
        content = monitors.to_dict()
        if args.evidence:
            events = [event for each in named.values() for event in _events(each)]
            content["retest_triggers"] = [args.triggers[event] for event in events if event in args.triggers]
        print(json.dumps(content, allow_nan=False))
    else:
        for index, (name, each) in enumerate(named.items()):
            print("\n" * (index > 0), end="")
            label = f" of {name}" if isinstance(monitors, Monitors) else ""
            print_rows(f"Monitor{label}: {each.status.upper()}", _rows(each), each.summary)
    return STATUS[monitors.status] if args.check else 0


def _read_evidence(args: Namespace) -> tuple[Any, dict[str, str]]:
    """Take the claim from an evidence bundle; return its episode costs, and the re-test trigger of each event."""
    if any(value is not None for value in (args.limit, args.risk, args.confidence, args.baseline)):
        raise InputError("--evidence brings limit, risk, confidence and baseline: leave out these options.")
    from steingate.evidence.verify import read_bundle

    bundle = read_bundle(args.evidence)
    args.limit, args.risk, args.confidence = [repr(bundle.plan.limit)], bundle.plan.budget, 1.0 - bundle.plan.delta
    if not bundle.evidence["claim"]["established"]:
        warn(f"The claim of {args.evidence} is not established.")
    triggers = bundle.evidence["retest_triggers"]
    return bundle.table.cost, {each["event"]: f"{each['id']}: {each['text']}" for each in triggers if each["event"]}


def make_monitor(args: Namespace, limits: list[str]) -> Monitor | Monitors:
    """Return a new monitor, or several if the limits have names."""
    if not limits:
        raise InputError("Give --limit D, or --state of an earlier run.")
    settings, baseline, calibration = _settings(args), args.baseline, args.calibration
    if baseline is not None:
        try:
            settings["baseline"] = float(baseline)
        except ValueError:
            calibration = read_costs(baseline, args.column).costs
    names = [text.rpartition("=")[0] for text in limits]
    try:
        values = [float(text.rpartition("=")[2]) for text in limits]
    except ValueError:
        raise InputError(f"--limit must be a number, or NAME=NUMBER, got {', '.join(limits)}.") from None
    if names == [""]:
        if calibration is None:
            return Monitor(values[0], **settings)
        return Monitor.watch(calibration, limit=values[0], **settings)
    if "" in names or len(set(names)) < len(names):
        raise InputError(f"The limits {', '.join(limits)} need different names, as in --limit speed=10.")
    if calibration is not None:
        raise InputError("--baseline must be a number if the limits have names.")
    return Monitors(dict(zip(names, values, strict=True)), **settings)


def continue_monitor(args: Namespace, stored: Monitor | Monitors) -> Monitor | Monitors:
    """Return a stored monitor; options that contradict it are an error."""
    old, prefix = by_name(stored), "{}=" if isinstance(stored, Monitors) else ""
    same = [prefix.format(name) + repr(each.limit) for name, each in old.items()]
    new = by_name(make_monitor(args, args.limit or same))
    if set(new) != set(old):
        raise InputError(f"{args.state} monitors other costs; use another --state.")
    has_baseline = args.baseline is not None or args.calibration is not None
    given = sorted({"limit", *_settings(args), *(["baseline"] if has_baseline else [])})
    for key, each in old.items():
        for name in given:
            before, now = getattr(each, name), getattr(new[key], name)
            if before != now:
                raise InputError(
                    f"{args.state} was made with {name} {before:g}, not {now:g}; use another --state or the "
                    "same options."
                )
    return stored


def _settings(args: Namespace) -> dict[str, Any]:
    delta = None if args.confidence is None else error_probability(args.confidence)
    given = {"budget": args.risk, "delta": delta, "cap": args.cap, "run_length": args.run_length}
    return {name: value for name, value in given.items() if value is not None}


class Session:
    """One run of the command: reads costs, updates the monitors, prints events, and stores the state."""

    def __init__(self, args: Namespace, monitors: Monitor | Monitors, source: dict[str, Any]) -> None:
        self.args, self.monitors, self.named = args, monitors, by_name(monitors)
        self.reader = CostParser(tuple(self.named), args.column)
        self.clear = "\r\x1b[2K" if sys.stdout.isatty() and not args.json else ""  # clears the line of a terminal
        self.name = "-" if args.file == "-" else os.path.realpath(args.file)
        known = source if source.get("name") == self.name and self.name != "-" else {}
        # With a state, a last line without a newline is left for the next call: it may be incomplete.
        self.file = FileFollower(
            Path(args.file), known, grows=args.follow, torn=args.state is None, new_file=args.new_file, warn=warn
        )
        self.last_line: Line | None = None
        self.position: dict[str, Any] = {name: value for name, value in known.items() if name != "name"}
        self.saved: Any = None

    def run(self) -> None:
        """Read until the costs end or the event of ``--until`` has happened; a terminal shows the state meanwhile."""
        try:
            for batch in pipe() if self.name == "-" else self.file:
                done = self._update(batch)
                if batch:
                    self.save()
                if done:
                    return
                if self.clear:
                    state = ", ".join(f"{name} {each.status}" for name, each in self.named.items())
                    text = for_terminal(f"{self.monitors.episodes} episodes: {state}")
                    print(f"{self.clear}{text}", end="", flush=True)
        finally:
            print(self.clear, end="")

    def save(self) -> None:
        """Write the state if ``--state`` is given and it has changed."""
        if self.last_line is not None and self.name != "-":
            self.position = self.file.position(self.last_line)
        now = (self.monitors.episodes, self.position)
        if self.args.state and self.saved != now:
            source = {"name": self.name, **self.position}
            write_state(self.args.state, {**self.monitors.state_dict(), "source": source})
            self.saved = now

    def _update(self, batch: list[Line]) -> bool:
        """Add the costs of some lines; return whether to stop."""
        for line in batch:
            if self.last_line is None and line.number > 1:
                self._read_header()
            elif line.number == 1:  # the beginning of the file, or of the one that replaces it
                self.reader = CostParser(tuple(self.named), self.args.column)
            before = {name: _events(each) for name, each in self.named.items()}
            with _delay_interrupt():
                self._count(line)
                self.last_line = line
            for name, each in self.named.items():
                for event in _events(each):
                    if event not in before[name]:
                        self._announce(event, name, each)
            if self._finished():
                return True
        return self._finished()

    def _read_header(self) -> None:
        """Read the names of the columns in the first line, which an earlier process has counted."""
        for batch in FileFollower(Path(self.args.file)):
            first = next((line for line in batch if line.text), None)
            if first is not None:
                self.reader.line(first.number, first.text)
                return

    def _count(self, line: Line) -> None:
        """Count the costs in a line; a line without, in a log that is followed, raises the alarm and is left out."""
        try:
            costs: Any = self.reader.line(line.number, line.text)
        except InputError as error:
            if not (self.args.follow or self.name == "-") or not self.monitors.episodes:
                raise
            warn(f"steingate: {error} The line is not counted.")
            self._alarm(INVALID, *next(iter(self.named.items())), str(error))
        else:
            if costs is not None:
                self.monitors.update(costs if isinstance(self.monitors, Monitors) else costs[COST])

    def _finished(self) -> bool:
        until = self.args.until
        if until == "decided":
            return self.monitors.certified or self.monitors.unsafe
        return until is not None and bool(getattr(self.monitors, until))

    def _announce(self, event: str, name: str, monitor: Monitor) -> None:
        """Print an event of a monitor and raise the alarm if it is a bad one."""
        if not self.args.json:
            label = f"{name}: " if isinstance(self.monitors, Monitors) else ""
            trigger = f" - re-test trigger {self.args.triggers[event]}" if event in self.args.triggers else ""
            text = for_terminal(f"episode {monitor.episodes}: {label}{event}{trigger}")
            print(f"{self.clear}{text}", flush=True)
        if event != "certified":
            self._alarm(event, name, monitor, monitor.summary)

    def _alarm(self, event: str, name: str, monitor: Monitor, summary: str) -> None:
        """Run the command of the user, if there is one; a failure is reported and the monitor continues."""
        if not self.args.alarm_command:
            return
        variables = {
            "STEINGATE_EVENT": event,
            "STEINGATE_NAME": name,
            "STEINGATE_EPISODE": str(monitor.episodes),
            "STEINGATE_BOUND": f"{monitor.bound:.6g}",
            "STEINGATE_SUMMARY": summary,
            "STEINGATE_TRIGGER": self.args.triggers.get(event, ""),
        }
        options: dict[str, Any] = {"env": {**os.environ, **variables}, "stdin": subprocess.DEVNULL}
        try:
            done = subprocess.run(self.args.alarm_command, shell=True, timeout=ALARM_TIMEOUT, **options)
            problem = f"returned {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            problem = f"took longer than {ALARM_TIMEOUT:g} s and was stopped"
        if problem:
            warn(f"steingate: The alarm command {problem}; the monitor continues.")


@contextmanager
def _delay_interrupt() -> Iterator[None]:
    """Delay Ctrl-C until a line has been counted, so that the stored state is consistent."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    received: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if received:
        raise KeyboardInterrupt


def _events(monitor: Monitor) -> list[str]:
    return [event for event in EVENTS if getattr(monitor, event)]


def _rows(monitor: Monitor) -> list[tuple[str, str, str]]:
    detector, limit = monitor.detector, f"{monitor.limit:g}"
    observed = rate(monitor.violations / max(monitor.episodes, 1))
    alarm = f"evidence; alarm at {monitor.run_length:,.0f}"
    drift = f"{alarm}; usual violation rate {percent(float(f'{monitor.baseline:.3g}'))}{_alarms(detector.alarms)}"
    p_value = f"of P(cost > {limit}) > {percent(monitor.budget)}; certified at {monitor.delta:g} or less"
    rows = [
        ("episodes", str(monitor.episodes), f"largest cost {monitor.max_cost:g}"),
        ("violations", str(monitor.violations), f"{observed} of the episodes cost more than {limit}"),
        ("bound", upper(monitor.bound), f"on P(cost > {limit}); accepted risk {percent(monitor.budget)}"),
        ("p-value", f"{monitor.p_value:.3g}", p_value),
        ("mean cost", f"{monitor.mean_bound:.4g}", f"bound; costs are clipped at {monitor.cap:g}"),
        ("CVaR 10%", f"{monitor.cvar_bound():.4g}", "bound on the mean cost of the worst tenth, clipped"),
        ("drift", f"{detector.evidence:.3g}", drift),
    ]
    costs = monitor.cost_detector
    if costs.calibration:
        note = f"{alarm}; compared with {sum(costs.calibration.values()):,} calibration costs{_alarms(costs.alarms)}"
        rows.append(("drift of all costs", f"{costs.evidence:.3g}", note))
    if monitor.certified:
        recent = f"on P(cost > {limit}) in the last {min(200, monitor.episodes)} episodes"
        rows[3:3] = [("bound now", upper(monitor.bound_now()), recent), *shift_rows(monitor.shift, monitor.budget)]
    return rows


def _alarms(episodes: list[int]) -> str:
    return f"; alarms at episodes {', '.join(map(str, episodes))}" if episodes else ""
