"""Write docs/reference/commands.md from the parsers: ``python docs/make_commands_page.py``."""

from pathlib import Path

from steingate.algorithms import METHODS
from steingate.cli import COMMANDS, load_command

PAGE = Path(__file__).parent / "reference" / "commands.md"
HEAD = """# Commands

Written by `python docs/make_commands_page.py` from the program itself; do not edit by hand.

`steingate COMMAND --help` says the same. Mistakes are one sentence and exit status 2; Ctrl-C ends with 130.
"""


def page() -> str:
    """Return the page."""
    return HEAD + "".join(section(name) for name in COMMANDS)


def section(name: str) -> str:
    """Return what one command does and takes, by subject."""
    _, parser = load_command(name)
    lines = [f"\n## steingate {name}\n", f"{parser.description}\n"]
    for group in parser._action_groups:
        rows = []
        for action in group._group_actions:
            if action.dest == "help":
                continue
            takes = "" if action.nargs == 0 else f" {action.metavar or action.dest}"
            names = ", ".join(action.option_strings) + takes
            text = (action.help or "").replace("%%", "%").replace("%(default)s", str(action.default))
            rows.append(f"| `{names.strip()}` | {text.replace('|', chr(92) + '|')} |")
        if rows:
            title = {"positional arguments": "", "options": ""}.get(group.title or "", group.title)
            lines += [*([f"**{title}**\n"] if title else []), "| | |", "|---|---|", *rows, ""]
    if name == "train":
        lines.append(
            "The settings above are those of `steingate`. Every other method has its own "
            "([algorithms](../algorithms.md)): " + ", ".join(f"`{method}`" for method in METHODS) + ".\n"
        )
    if parser.epilog:
        lines.append(f"```text\n{parser.epilog.strip()}\n```\n")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
