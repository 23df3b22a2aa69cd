"""``steingate monitor``: anytime-valid bounds and drift detection for costs as they arrive."""

import json
import os
import signal
import subprocess
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from steingate.certificates.formatting import percent, rate, upper
from steingate.certificates.io import CostParser, read_costs
from steingate.certificates.violation import error_probability
from steingate.cli.output import print_rows, shift_rows, warn
from steingate.cli.parser import Parser, add_claim_options
from steingate.errors import InputError
from steingate.monitoring.episodes import COST
from steingate.monitoring.follow import FileFollower, Line, pipe
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.monitors import Monitors, by_name, restore_monitor
from steingate.monitoring.state import lock_state, read_state, write_state

EVENTS = ("certified", "unsafe", "drift")
INVALID = "invalid"  # event of a line that is not a cost
STATUS = {"certified": 0, "undecided": 1, "unsafe": 3, "drift": 4}
STYLES = {"certified": "green", "undecided": "yellow", "unsafe": "red", "drift": "red"}
ALARM_TIMEOUT = 60.0  # seconds


def monitor_arguments(parser: Parser) -> None:
    """Add the options of ``monitor``."""
    add = parser.add_argument
    add("file", metavar="FILE", help="one cost per line: numbers, CSV or JSON lines; - for standard input")
    add(
        "--limit",
        action="append",
        metavar="[NAME=]D",
        help="limit on the episode cost; repeatable with names",
    )
    add_claim_options(parser)
    add("--evidence", metavar="DIR", help="evidence bundle with limit, risk, confidence and calibration episodes")
    add("--cap", type=float, metavar="C", help="clip costs here for mean and CVaR (default: 4 x limit)")
    baseline_help = "violation rate without drift: a number, or a file of costs (default: risk)"
    add("--baseline", metavar="B", help=baseline_help)
    run_length_help = "mean episodes between false drift alarms (default: 10000)"
    add("--run-length", type=float, metavar="N", help=run_length_help)
    add("--column", metavar="C", help="column or key of the cost: a name, or the number of a CSV column")
    add("--follow", action="store_true", help="wait for new lines at the end of the file, until Ctrl-C")
    add("--until", choices=(*EVENTS, "decided"), help="stop at this event")
    add("--state", metavar="FILE", help="store the state here and continue from it")
    add("--rearm", action="store_true", help="restart the drift detector after an alarm")
    add("--new-policy", metavar="NAME", help="start anew for another policy; --state keeps the numbers before")
    add("--new-file", action="store_true", help="read FILE from its beginning although --state has read one")
    alarm_help = "shell command for unsafe, drift and invalid lines; STEINGATE_EVENT has the event"
    add("--alarm-command", metavar="CMD", help=alarm_help)
    add("--plot", metavar="FILE", help="plot bounds and alarms to FILE (.png, .svg or .pdf)")
    add("--json", action="store_true", help="print JSON at the end and nothing else")
    check_help = "exit with 0 if certified, 1 if undecided, 3 if unsafe, 4 on drift (otherwise always 0)"
    add("--check", action="store_true", help=check_help)


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
    if args.json:
        events = [event for each in by_name(monitors).values() for event in _events(each)]
        named = {"retest_triggers": [args.triggers[event] for event in events if event in args.triggers]}
        print(json.dumps({**monitors.to_dict(), **(named if args.evidence else {})}, allow_nan=False))
    else:
        print_monitors(monitors)
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
    names = [text.rpartition("=")[0] for text in limits]
    values = [_float("--limit", text.rpartition("=")[2]) for text in limits]
    settings = _settings(args)
    if names != [""]:
        if "" in names or len(set(names)) < len(names):
            raise InputError(f"The limits {', '.join(limits)} need different names, as in --limit speed=10.")
        if args.baseline is not None:
            settings["baseline"] = _float("--baseline", args.baseline)
        return Monitors(dict(zip(names, values, strict=True)), **settings)
    if args.calibration is not None:
        return Monitor.watch(args.calibration, limit=values[0], **settings)
    if args.baseline is None:
        return Monitor(values[0], **settings)
    try:
        baseline = float(args.baseline)
    except ValueError:
        return Monitor.watch(read_costs(args.baseline, args.column).costs, limit=values[0], **settings)
    return Monitor(values[0], **settings, baseline=baseline)


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


def _float(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name} must be a number, got {text!r}.") from None


class Session:
    """One run of the command: reads costs, updates the monitors, prints events, and stores the state."""

    def __init__(self, args: Namespace, monitors: Monitor | Monitors, source: dict[str, Any]) -> None:
        self.args, self.monitors = args, monitors
        self.reader = self._make_reader()
        self.console = Console(highlight=False)
        self.name = "-" if args.file == "-" else os.path.realpath(args.file)
        self.live = args.follow or self.name == "-"
        known = source if source.get("name") == self.name and self.name != "-" else {}
        # With a state, a last line without a newline is left for the next call: it may be incomplete.
        self.file = FileFollower(
            Path(args.file), known, grows=args.follow, torn=args.state is None, new_file=args.new_file, warn=warn
        )
        self.last_line: Line | None = None
        self.position: dict[str, Any] = {name: value for name, value in known.items() if name != "name"}
        self.saved: Any = None

    def run(self) -> None:
        """Read until the costs end or the event of ``--until`` has happened."""
        with self._live_table():
            for batch in pipe() if self.name == "-" else self.file:
                try:
                    done = self._update(batch)
                finally:
                    if batch:
                        self.save()
                self.console.file.flush()  # readers of a pipe see events at once
                if done:
                    return

    def save(self) -> None:
        """Write the state if ``--state`` is given and it has changed."""
        if self.last_line is not None and self.name != "-":
            self.position = self.file.position(self.last_line)
        now = (self.monitors.episodes, self.position)
        if self.args.state and self.saved != now:
            source = {"name": self.name, **self.position}
            write_state(self.args.state, {**self.monitors.state_dict(), "source": source})
            self.saved = now

    def _make_reader(self) -> CostParser:
        return CostParser(tuple(by_name(self.monitors)), self.args.column)

    @contextmanager
    def _live_table(self) -> Iterator[None]:
        if self.args.json or not self.console.is_terminal:
            yield
            return
        with Live(
            get_renderable=lambda: live_table(self.monitors),
            console=self.console, refresh_per_second=4, transient=True,
        ):  # fmt: skip
            yield

    def _read_header(self) -> None:
        """Read the names of the columns in the first line, which an earlier process has counted."""
        for batch in FileFollower(Path(self.args.file)):
            first = next((line for line in batch if line.text), None)
            if first is not None:
                self.reader.line(first.number, first.text)
                return

    def _update(self, batch: list[Line]) -> bool:
        """Add the costs of some lines; return whether to stop."""
        for line in batch:
            if self.last_line is None and line.number > 1:
                self._read_header()
            elif line.number == 1:  # the beginning of the file, or of the one that replaces it
                self.reader = self._make_reader()
            before = {name: _events(each) for name, each in by_name(self.monitors).items()}
            with _delay_interrupt():
                costs = self._costs(line)
                if costs is not None:
                    update = self.monitors.update
                    update(costs if isinstance(self.monitors, Monitors) else costs[COST])  # type: ignore[arg-type]
                self.last_line = line
            self._print_events(before)
            if self._finished():
                return True
        return self._finished()

    def _costs(self, line: Line) -> dict[str, float] | None:
        """Return the costs in a line; a line without, in a log that is followed, raises the alarm and is left out."""
        try:
            return self.reader.line(line.number, line.text)
        except InputError as error:
            if not self.live or not self.monitors.episodes:
                raise
            warn(f"steingate: {error} The line is not counted.")
            if self.args.alarm_command:
                for name, each in by_name(self.monitors).items():
                    trigger = self.args.triggers.get(INVALID, "")
                    _run_alarm_command(self.args.alarm_command, INVALID, name, each, str(error), trigger)
                    break
            return None

    def _finished(self) -> bool:
        until = self.args.until
        if until == "decided":
            return self.monitors.certified or self.monitors.unsafe
        return until is not None and bool(getattr(self.monitors, until))

    def _print_events(self, before: dict[str, list[str]]) -> None:
        for name, each in by_name(self.monitors).items():
            label = f"{name}: " if isinstance(self.monitors, Monitors) else ""
            for event in _events(each):
                if event in before[name]:
                    continue
                trigger = self.args.triggers.get(event, "")
                if not self.args.json:
                    text = f"episode {each.episodes}: {label}{event}{' - re-test trigger ' * bool(trigger)}{trigger}"
                    self.console.print(text, markup=False, soft_wrap=True)
                if event != "certified" and self.args.alarm_command:
                    _run_alarm_command(self.args.alarm_command, event, name, each, trigger=trigger)


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


def _run_alarm_command(
    command: str, event: str, name: str, monitor: Monitor, summary: str = "", trigger: str = ""
) -> None:
    """Run the command of the user; a failure is reported and the monitor continues."""
    variables = {
        "STEINGATE_EVENT": event,
        "STEINGATE_NAME": name,
        "STEINGATE_EPISODE": str(monitor.episodes),
        "STEINGATE_BOUND": f"{monitor.bound:.6g}",
        "STEINGATE_SUMMARY": summary or monitor.summary,
        "STEINGATE_TRIGGER": trigger,
    }
    env = {**os.environ, **variables}
    try:
        done = subprocess.run(command, shell=True, env=env, stdin=subprocess.DEVNULL, timeout=ALARM_TIMEOUT)
        problem = f"returned {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        problem = f"took longer than {ALARM_TIMEOUT:g} s and was stopped"
    if problem:
        warn(f"steingate: The alarm command {problem}; the monitor continues.")


def live_table(monitors: Monitor | Monitors) -> Table:
    """Return a table with one row per cost."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("cost", "episodes", "violations", "bound", "risk", "p", "drift", "state"):
        table.add_column(name, justify="left" if name in ("cost", "state") else "right", no_wrap=True)
    for name, each in by_name(monitors).items():
        drift = f"{each.detector.evidence:.3g} / {each.run_length:g}"
        numbers = (f"{each.bound:.4f}", f"{each.budget:g}", f"{each.p_value:.2g}", drift)
        table.add_row(escape(name), str(each.episodes), str(each.violations), *numbers, _status(each))
    return table


def print_monitors(monitors: Monitor | Monitors) -> None:
    """Print all numbers of the monitors."""
    for index, (name, each) in enumerate(by_name(monitors).items()):
        if index:
            print()
        label = f" of {escape(name)}" if isinstance(monitors, Monitors) else ""
        print_rows(f"[bold]Monitor{label}[/bold]: {_status(each)}", _rows(each), each.summary)


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


def _status(monitor: Monitor) -> str:
    return f"[bold {STYLES[monitor.status]}]{monitor.status.upper()}[/]"
