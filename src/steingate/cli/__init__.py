"""The ``steingate`` command: a table of commands, each a module that is imported only when it is called.

A command module has ``add_arguments(parser)`` and ``run(args) -> int`` (the exit status). One whose options
depend on others takes ``add_arguments(parser, argv)`` and has ``refuse(option, known, argv)``, the sentence
about an option that is not there. To add a command, write the module and add its line to ``COMMANDS``.
"""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from types import FrameType
from typing import Any, NoReturn

from steingate import __version__
from steingate.cli.parser import Parser
from steingate.errors import InputError, SteingateError, nearest, needs

COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("steingate.cli.train", "one training run with live progress"),
    "resume": ("steingate.cli.resume", "go on with a run from its last checkpoint"),
    "evaluate": ("steingate.cli.evaluate", "run a trained policy: return, cost, tail and certificate"),
    "render": ("steingate.cli.render", "a video of a trained policy"),
    "export": ("steingate.cli.export", "a trained policy for a machine that has NumPy alone, or ONNX"),
    "bench": ("steingate.cli.bench", "a grid of runs, on this machine or on a Ray cluster"),
    "report": ("steingate.cli.report", "one page, tables and a figure from run folders"),
    "keep": ("steingate.cli.archive", "small copies of runs, from which every report can be made again"),
    "dashboard": ("steingate.cli.dashboard", "the same page, live, on 127.0.0.1"),
    "certify": ("steingate.cli.certify", "the certificate of a list of episode costs"),
    "monitor": ("steingate.cli.monitor", "watch episode costs as they come: certified, unsafe, drifting"),
    "plan": ("steingate.cli.plan", "how many episodes a budget needs, and what n episodes can certify"),
    "algos": ("steingate.cli.algos", "the algorithms, one line each"),
    "envs": ("steingate.cli.envs", "the native tasks, one line each"),
    "doctor": ("steingate.cli.doctor", "what is installed and works here, and a ten-second self-test"),
    "completion": ("steingate.cli.completion", "a script that completes commands and options in your shell"),
}

TRAINING = ("train", "resume", "evaluate", "render", "bench")  # commands that need the extra train

USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE


def command() -> NoReturn:
    """Run the command of this process and end it; neither signals nor a lost output leave a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a background job ignores it
        signal.signal(signal.SIGINT, _interrupt)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name of a file need not be text
    try:
        status = main()
    except KeyboardInterrupt:
        status = INTERRUPTED
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except (OSError, ValueError):
            _silence_output()
    sys.exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 2 after one sentence on stderr when the user has to act."""
    try:
        status = _dispatch(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:  # it is None when the caller closed it
            sys.stdout.flush()
        return status
    except SteingateError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (a pager, head) has left; what is still buffered must not complain at exit.
        _silence_output()
        return BROKEN_PIPE
    except MemoryError as error:
        return _complain(f"There is not enough memory ({error or 'no room'}): choose smaller sizes or files.")
    except OSError as error:
        reason = error.strerror or str(error)
        if error.filename is not None:
            return _complain(f"The system refuses {error.filename} ({reason}).")
        _silence_output()
        return _complain(f"The output cannot be written ({reason}); make room for it.")


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt`` once: the next Ctrl-C, when things are being cleaned up, just ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


def _complain(sentence: str) -> int:
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(f"steingate: {sentence}", file=sys.stderr)
    return USAGE


def _silence_output() -> None:
    sink = os.open(os.devnull, os.O_WRONLY)
    for stream in (
        sys.stdout,
        sys.__stdout__,
    ):  # the first may be a live display's
        try:
            os.dup2(sink, stream.fileno())  # type: ignore[union-attr]
            return
        except (AttributeError, OSError, ValueError):
            continue


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(_overview())
        return 0
    if argv[0] in ("-V", "--version"):
        print(f"steingate {__version__}")
        return 0
    name = argv[0]
    if name not in COMMANDS:
        kind = "option" if name.startswith("-") else "command"
        raise InputError(f"There is no {kind} {name!r}{nearest(name, COMMANDS)}; run steingate --help.")
    with needs(f"steingate {name}", "train" if name in TRAINING else None):
        command, parser = load_command(name, argv[1:])
        args = parser.parse(argv[1:], getattr(command, "refuse", None))
        return 0 if args is None else int(command.run(args))


def load_command(name: str, argv: Sequence[str] = ()) -> tuple[Any, Parser]:
    """Return the module of a command and the parser of its options, for these arguments."""
    module, summary = COMMANDS[name]
    command = import_module(module)
    parser = Parser(prog=f"steingate {name}", description=f"{summary[0].upper()}{summary[1:]}.")
    if hasattr(command, "refuse"):
        command.add_arguments(parser, argv)
    else:
        command.add_arguments(parser)
    return command, parser


def _overview() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: steingate COMMAND [options]",
            "",
            *lines,
            "",
            "steingate COMMAND --help explains one command; steingate --version prints the version.",
        ]
    )
