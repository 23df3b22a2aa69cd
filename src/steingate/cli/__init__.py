"""The ``steingate`` command line: a table of commands whose modules are imported when they are called.

The module of a command has ``NAME(args)``, which returns the exit status, and ``NAME_arguments(parser)``, which adds
its options. To add a command, write both functions and add a line to ``COMMANDS``.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from types import FrameType
from typing import Any, NoReturn

from steingate import __version__
from steingate.cli.parser import Parser
from steingate.errors import InputError, SteingateError, nearest, needs
from steingate.escaping import for_terminal

COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("train", "train a policy"),
    "resume": ("train", "continue a training run from its last checkpoint"),
    "evaluate": ("evaluate", "evaluate a trained policy: return, cost, violation rate and its exact bound"),
    "compare": ("evaluate", "which of two trained policies violates the limit less often"),
    "evidence": ("evidence", "test a policy by a plan and write an evidence bundle; verify one"),
    "render": ("render", "write a video of a trained policy"),
    "export": ("evaluate", "export a trained policy to NumPy or ONNX"),
    "bench": ("bench", "train a grid of runs, on this machine or on a Ray cluster"),
    "report": ("report", "write a page, tables and figures from run folders"),
    "archive": ("report", "pack finished runs into one file from which reports can be made"),
    "dashboard": ("report", "serve the report page on 127.0.0.1 and refresh it"),
    "certify": ("certify", "bound the violation probability from a list of episode costs"),
    "monitor": ("monitor", "monitor episode costs as they arrive: certified, unsafe, drift"),
    "plan": ("certify", "number of episodes that a certificate needs"),
    "demo": ("render", "film and evidence of a certified policy, without training"),
    "zoo": ("listing", "list the certified policies that are part of the package"),
    "algos": ("listing", "list the algorithms"),
    "envs": ("listing", "list the native tasks"),
    "doctor": ("doctor", "show versions, what this machine offers, and run a short self-test"),
}
NEED_TRAIN = ("train", "resume", "evaluate", "compare", "evidence", "render", "bench")  # commands; need the extra train
USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE


def command() -> NoReturn:
    """Run the command of this process and exit; signals and a closed output leave no traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a background job ignores SIGINT
        signal.signal(signal.SIGINT, _interrupt)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be valid text
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
    """Run one command and return its exit status; errors print one sentence and return 2."""
    try:
        status = _dispatch(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:  # it is None when the caller closed it
            sys.stdout.flush()
        return status
    except SteingateError as error:
        sentence = str(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader, a pager for example, has exited; buffered output must not raise at exit
        _silence_output()
        return BROKEN_PIPE
    except MemoryError as error:
        sentence = f"Out of memory ({error or 'allocation failed'}); use smaller sizes or files."
    except OSError as error:
        reason = error.strerror or str(error)
        if error.filename is not None:
            sentence = f"Cannot access {error.filename}: {reason}."
        else:
            _silence_output()
            sentence = f"Cannot write the output: {reason}."
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(f"steingate: {for_terminal(sentence)}", file=sys.stderr)
    return USAGE


def load_command(name: str, argv: Sequence[str] = ()) -> tuple[Callable[[Any], int], Parser]:
    """Return the function of a command and its parser."""
    module_name, summary = COMMANDS[name]
    module = import_module(f"steingate.cli.{module_name}")
    parser = Parser(f"steingate {name}", f"{summary[0].upper()}{summary[1:]}.", argv)
    getattr(module, f"{name}_arguments", lambda parser: None)(parser)  # some commands have no options
    return getattr(module, name), parser


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        width = max(map(len, COMMANDS)) + 2
        lines = [f"  {name:<{width}}{summary}" for name, (_, summary) in COMMANDS.items()]
        print("usage: steingate COMMAND [options]", "", *lines, "", sep="\n")
        print("Run steingate COMMAND --help for the options of a command, steingate --version for the version.")
        return 0
    name = argv[0]
    if name in ("-V", "--version"):
        print(f"steingate {__version__}")
        return 0
    if name not in COMMANDS:
        kind = "option" if name.startswith("-") else "command"
        raise InputError(f"There is no {kind} {name!r}{nearest(name, COMMANDS)}; run steingate --help.")
    with needs(f"The command {name}", "train" if name in NEED_TRAIN else None):
        run, parser = load_command(name, argv[1:])
        args = parser.parse()
        return 0 if args is None else run(args)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt`` once; a second Ctrl-C during cleanup ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


def _silence_output() -> None:
    sink = os.open(os.devnull, os.O_WRONLY)
    with suppress(AttributeError, OSError, ValueError):
        os.dup2(sink, sys.stdout.fileno())
