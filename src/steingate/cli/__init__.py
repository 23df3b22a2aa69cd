"""The ``steingate`` command: a table of commands, each a module that is imported only when it is called.

A command module has ``add_arguments(parser)`` and ``run(args) -> int`` (the exit status). One whose options
depend on others takes ``add_arguments(parser, argv)`` and has ``refuse(option, known, argv)``, the sentence
about an option that is not there. To add a command, write the module and add its line to ``COMMANDS``.
"""

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from steingate import __version__
from steingate.cli.parser import Parser
from steingate.errors import InputError, SteingateError, nearest

COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("steingate.cli.train", "one training run with live progress"),
    "resume": ("steingate.cli.resume", "go on with a run from its last checkpoint"),
    "evaluate": ("steingate.cli.evaluate", "run a trained policy: return, cost, tail and certificate"),
    "render": ("steingate.cli.render", "a video of a trained policy"),
    "bench": ("steingate.cli.bench", "a grid of runs, on this machine or on a Ray cluster"),
    "report": ("steingate.cli.report", "one page, tables and a figure from run folders"),
    "dashboard": ("steingate.cli.dashboard", "the same page, live, on 127.0.0.1"),
    "certify": ("steingate.cli.certify", "the certificate of a list of episode costs"),
    "monitor": ("steingate.cli.monitor", "watch episode costs as they come: certified, unsafe, drifting"),
    "plan": ("steingate.cli.plan", "how many episodes a budget needs, and what n episodes can certify"),
    "algos": ("steingate.cli.algos", "the algorithms, one line each"),
    "envs": ("steingate.cli.envs", "the native tasks, one line each"),
    "doctor": ("steingate.cli.doctor", "what is installed and works here, and a ten-second self-test"),
    "completion": ("steingate.cli.completion", "a script that completes commands and options in your shell"),
}

USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 2 after one sentence on stderr when the user has to act."""
    try:
        status = _dispatch(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:  # it is None when the caller closed it
            sys.stdout.flush()
        return status
    except SteingateError as error:
        print(f"steingate: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (a pager, head) has left; what is still buffered must not complain at exit.
        _silence_output()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            raise
        _silence_output()
        print(
            f"steingate: The output cannot be written ({error.strerror}); make room for it.", file=sys.stderr
        )
        return USAGE


def _silence_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
