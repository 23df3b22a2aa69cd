"""``steingate completion``: a script for bash, zsh or fish, written from the options of the commands."""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

from steingate.cli import COMMANDS, load_command

HOW = """to use it, once:
  steingate completion bash > ~/.local/share/bash-completion/completions/steingate
  steingate completion zsh > ~/.zfunc/_steingate        with fpath+=~/.zfunc before compinit in ~/.zshrc
  steingate completion fish > ~/.config/fish/completions/steingate.fish
"""


@dataclass(frozen=True)
class Option:
    """One option of a command, or (without names) its arguments."""

    names: tuple[str, ...]
    text: str = ""
    takes: str = ""  # what its value is called; empty for a switch
    values: tuple[str, ...] = ()  # those known beforehand


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``completion``."""
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help=", ".join(SCRIPTS))
    parser.epilog = HOW


def run(args: argparse.Namespace) -> int:
    """Print the script and return 0."""
    print(SCRIPTS[args.shell](known_options()))
    return 0


def known_options() -> dict[str, list[Option]]:
    """Return the options of every command that can be loaded; those of ``train`` for all algorithms."""
    found: dict[str, list[Option]] = {}
    for name in COMMANDS:
        try:
            lines = [["--algo", algo] for algo in _methods()] if name == "train" else [[]]
            options = {
                option.names: option for line in lines for option in options_of(load_command(name, line)[1])
            }
        except ModuleNotFoundError:  # of an extra that is not installed
            options = {}
        found[name] = list(options.values())
    return found


def options_of(parser: argparse.ArgumentParser) -> list[Option]:
    """Return the options of one parser, its positional arguments as an option without names."""
    found = []
    for action in parser._actions:
        takes = "" if action.nargs == 0 else str(action.metavar or action.dest)
        text = "" if action.help is None else action.help.replace("%%", "%")
        if "%(default)s" in text:
            text = text.replace("%(default)s", str(action.default))
        option = Option(tuple(action.option_strings), text, takes)
        found.append(replace(option, values=_values(action, takes)))
    return found


def _values(action: argparse.Action, takes: str) -> tuple[str, ...]:
    if action.choices is not None:
        return tuple(map(str, action.choices))
    if takes.startswith("{"):
        return tuple(takes.strip("{}").split(","))
    known: dict[str, Callable[[], Iterable[str]]] = {
        "algo": _methods,
        "names": _methods,
        "env": _tasks,
        "preset": _presets,
        "grid": _grids,
    }
    try:
        return tuple(known[action.dest]()) if action.dest in known else ()
    except ModuleNotFoundError:
        return ()


@cache
def _methods() -> list[str]:
    from steingate.algorithms import METHODS

    return list(METHODS)


def _tasks() -> list[str]:
    from steingate.tasks.catalog import TASKS

    return list(TASKS)


def _presets() -> list[str]:
    from steingate.certificates.presets import PRESETS

    return list(PRESETS)


def _grids() -> list[str]:
    from steingate.experiments.grid import BUILT_IN

    return list(BUILT_IN)


def bash(commands: dict[str, list[Option]]) -> str:
    """Return the script for bash; where it knows nothing, bash completes file names."""
    lines = ["_steingate() {", '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"']
    lines += ["  local words=", "  if [ $COMP_CWORD = 1 ]; then", f'    words="{" ".join(commands)}"']
    lines += ["  else", '    case "${COMP_WORDS[1]} $prev" in']
    valued: dict[tuple[str, ...], list[str]] = {}
    for name, options in commands.items():
        for option in options:
            if option.takes:
                valued.setdefault(option.values, []).extend(f'"{name} {word}"' for word in option.names)
    lines += [
        f'      {"|".join(keys)}) words="{" ".join(words)}" ;;' for words, keys in valued.items() if keys
    ]
    lines += ["      *)", '        case "${COMP_WORDS[1]} $cur" in']
    for name, options in commands.items():
        words = " ".join(word for option in options for word in option.names)
        lines.append(f'          "{name} -"*) words="{words}" ;;')
        values = " ".join(value for option in options if not option.names for value in option.values)
        if values:
            lines.append(f'          "{name} "*) words="{values}" ;;')
    lines += ["        esac ;;", "    esac", "  fi", '  COMPREPLY=($(compgen -W "$words" -- "$cur"))', "}"]
    return "\n".join([*lines, "complete -o default -F _steingate steingate"])


def zsh(commands: dict[str, list[Option]]) -> str:
    """Return the script for zsh."""
    lines = [
        "#compdef steingate",
        "_steingate() {",
        "  if (( CURRENT == 2 )); then",
        "    local -a commands=(",
    ]
    lines += [f"      {_quoted(f'{name}:{_zsh(COMMANDS[name][1])}')}" for name in commands]
    lines += ["    )", "    _describe command commands", "    return", "  fi"]
    lines += ["  local command=$words[2]", "  shift words; (( CURRENT-- ))", "  case $command in"]
    for name, options in commands.items():
        lines.append(f"    {name}) _arguments -S \\")
        for option in options:
            action = f"({' '.join(map(_zsh, option.values))})" if option.values else "_files"
            value = f":{_zsh(option.takes)}:{action}" if option.takes else ""
            specs = [f"{word}[{_zsh(option.text)}]{value}" for word in option.names] or [f"*{value}"]
            lines += [f"      {_quoted(spec)} \\" for spec in specs]
        lines.append("      ;;")
    return "\n".join([*lines, "  esac", "}", "compdef _steingate steingate"])


def fish(commands: dict[str, list[Option]]) -> str:
    """Return the script for fish."""
    none = "complete -c steingate -n __fish_use_subcommand -f"
    lines = [f"{none} -a {name} -d {_quoted(COMMANDS[name][1])}" for name in commands]
    for name, options in commands.items():
        here = f"complete -c steingate -n '__fish_seen_subcommand_from {name}'"
        for option in options:
            words = [f"-{'s' if len(word) == 2 else 'l'} {word.lstrip('-')}" for word in option.names]
            parts = [here, *words, *(["-r"] if option.takes and words else [])]
            parts += [f"-a {_quoted(' '.join(option.values))}"] if option.values else []
            if words or option.values:
                lines.append(" ".join([*parts, "-d", _quoted(option.text)]))
    return "\n".join(lines)


def _zsh(text: str) -> str:
    """Return text whose signs mean nothing to ``_arguments``."""
    for sign in "\\[]:":
        text = text.replace(sign, f"\\{sign}")
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
