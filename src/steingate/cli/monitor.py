"""``steingate monitor``: watch episode costs as they come; say when a policy is safe, unsafe or changing."""

import json
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

from steingate.cli.cost_lines import Line, Reader, follow, pipe
from steingate.cli.monitor_display import Display, show
from steingate.cli.monitor_options import fresh, resumed
from steingate.cli.parser import Parser
from steingate.monitoring.episodes import COST
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.several import Monitors
from steingate.monitoring.state import read_state, write_state

UNDECIDED, UNSAFE, DRIFT = 1, 3, 4
EVENTS = ("certified", "unsafe", "drift")
PATIENCE = 60.0  # seconds that an alarm command may take
_HELP = "exit with 0 when certified, 1 when undecided, 3 when unsafe, 4 on drift (otherwise always 0)"


def add_arguments(parser: Parser) -> None:
    """Declare the options of ``monitor``."""
    add = parser.add_argument
    add("file", metavar="FILE", help="one cost per line: numbers, CSV or JSON lines; - is standard input")
    add("--limit", action="append", metavar="[NAME=]D", help="episode-cost limit; with names, several")
    add("--budget", type=float, metavar="E", help="largest accepted share over the limit (default: 0.1)")
    add("--delta", type=float, metavar="P", help="probability of a wrong statement (default: 0.05)")
    add("--cap", type=float, metavar="C", help="mean and CVaR count costs up to here (default: 4 x limit)")
    add("--baseline", metavar="B", help="for drift: a share, or a file of costs (default: the budget)")
    add("--run-length", type=float, metavar="N", help="episodes between false drift alarms (default: 10000)")
    add("--column", metavar="C", help="column or key to read: a name, or a CSV column from 1")
    add("--follow", action="store_true", help="wait for more at the end of the file; Ctrl-C ends it")
    add("--until", choices=(*EVENTS, "decided"), help="end as soon as this is known")
    add("--state", metavar="FILE", help="keep the state here, and go on from it")
    add(
        "--rearm",
        action="store_true",
        help="start the drift detector again after an alarm in the state",
    )
    add(
        "--alarm-command",
        metavar="CMD",
        help="shell command for unsafe and drift; it sees STEINGATE_EVENT",
    )
    add("--plot", metavar="FILE", help="draw bound, tail and alarms to FILE (.png, .svg or .pdf)")
    add("--json", action="store_true", help="print the numbers as JSON at the end and nothing else")
    add("--check", action="store_true", help=_HELP)


def run(args: Namespace) -> int:
    """Watch until the costs end or enough is known, and return the exit status."""
    state = read_state(args.state) if args.state and Path(args.state).exists() else None
    monitor = resumed(args, state) if state is not None else fresh(args)
    if args.rearm:
        monitor.rearm()
    source = (state or {}).get("source", {})
    watch = _Watch(args, monitor, source)
    try:
        watch.run()
    finally:
        watch.save()
    if args.plot:
        from steingate.report.monitor_figure import save_monitor_figure

        save_monitor_figure(monitor, args.plot)
    if args.json:
        print(json.dumps(monitor.summary(), allow_nan=False))
    else:
        show(monitor)
    return _status(monitor) if args.check else 0


def _status(monitor: Monitor | Monitors) -> int:
    if monitor.unsafe:
        return UNSAFE
    if monitor.drift:
        return DRIFT
    return 0 if monitor.certified else UNDECIDED


class _Watch:
    """One run of the command: what has been read, and what has been said about it."""

    def __init__(self, args: Namespace, monitor: Monitor | Monitors, source: dict[str, Any]) -> None:
        self.args, self.monitor = args, monitor
        self.parts = dict(monitor) if isinstance(monitor, Monitors) else {COST: monitor}
        self.reader = Reader(tuple(self.parts), args.column)
        self.name = "-" if args.file == "-" else os.path.realpath(args.file)
        known = source if source.get("name") == self.name and self.name != "-" else {}
        self.offset, self.lines = int(known.get("offset", 0)), int(known.get("lines", 0))
        self.saved = -1
        if self.offset:
            self._reread_heading()

    def run(self) -> None:
        with Display(self.monitor, quiet=self.args.json) as display:
            for batch in self._batches():
                try:
                    ended = self._take(batch, display)
                finally:
                    if batch:
                        self.save()
                display.refresh()
                if ended:
                    return

    def save(self) -> None:
        """Write the state, if it is wanted and has changed."""
        if self.args.state and self.saved != self.monitor.episodes:
            place = {"name": self.name, "offset": self.offset, "lines": self.lines}
            write_state(self.args.state, {**self.monitor.to_dict(), "source": place})
            self.saved = self.monitor.episodes

    def _batches(self) -> Iterator[list[Line]]:
        if self.args.file == "-":
            return pipe()
        # A line without an end may still be in the making; counted now, its rest would be taken for another.
        return follow(
            Path(self.args.file), self.offset, self.lines, self.args.follow, torn=self.args.state is None
        )

    def _reread_heading(self) -> None:
        for batch in follow(Path(self.args.file)):
            first = next((line for line in batch if line.text), None)
            if first is not None:
                self.reader.costs(first)
                return

    def _take(self, batch: list[Line], display: Display) -> bool:
        """Count the costs of some lines; true when what was waited for has come."""
        for line in batch:
            costs = self.reader.costs(line)
            before = {name: _events(part) for name, part in self.parts.items()}
            with _undisturbed():
                if costs is not None:
                    self._count(costs)
                self.offset, self.lines = line.end, line.number
            self._tell(before, display)
            if self._enough():
                return True
        return self._enough()

    def _count(self, costs: dict[str, float]) -> None:
        if isinstance(self.monitor, Monitors):
            self.monitor.update(costs)
        else:
            self.monitor.update(costs[COST])

    def _enough(self) -> bool:
        monitor, until = self.monitor, self.args.until
        if until == "decided":
            return monitor.certified or monitor.unsafe
        return until is not None and bool(getattr(monitor, until))

    def _tell(self, before: dict[str, set[str]], display: Display) -> None:
        for name, part in self.parts.items():
            for event in EVENTS:
                if event in _events(part) - before[name]:
                    label = f"{name}: " if isinstance(self.monitor, Monitors) else ""
                    display.event(f"episode {part.episodes}: {label}{event}")
                    if event != "certified" and self.args.alarm_command:
                        _alarm(self.args.alarm_command, event, name, part)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Put Ctrl-C off until a line has been counted, so that it is counted whole or not at all."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    pressed: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)

    usual = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if pressed:
        raise KeyboardInterrupt


def _events(monitor: Monitor) -> set[str]:
    happened = (monitor.certified, monitor.unsafe, monitor.detector.alarm)
    return {event for event, true in zip(EVENTS, happened, strict=True) if true}


def _alarm(command: str, event: str, name: str, monitor: Monitor) -> None:
    """Run the user's command; its failure is reported and stops nothing."""
    about = {
        "STEINGATE_EVENT": event,
        "STEINGATE_NAME": name,
        "STEINGATE_EPISODE": str(monitor.episodes),
        "STEINGATE_BOUND": f"{monitor.bound:.6g}",
        "STEINGATE_SENTENCE": monitor.sentence,
    }
    try:
        done = subprocess.run(
            command, shell=True, env={**os.environ, **about}, stdin=subprocess.DEVNULL, timeout=PATIENCE
        )
        problem = f"ended with status {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        problem = f"took longer than {PATIENCE:g} s and was ended"
    if problem:
        print(f"steingate: The alarm command {problem}; the monitor goes on.", file=sys.stderr)
