"""The texts of a bundle, and the outline of a safety argument.

The outline has the elements of the Goal Structuring Notation in the order of the stages of AMLAS, which AMLAS-RL adapts
to reinforcement learning. The texts are in ``texts.toml``.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from steingate.certificates.formatting import number, percent, upper
from steingate.escaping import for_markdown, printable
from steingate.evidence.plan import Plan

_ROLES = ("author", "reviewer", "approval")


class Element(NamedTuple):
    """An element of the argument."""

    id: str
    parent: str  # id of the element that it supports, or that it belongs to
    text: str
    open: str  # what a human has to add


@cache
def texts() -> dict[str, Any]:
    """Return the content of ``texts.toml``."""
    return tomllib.loads((files("steingate.evidence") / "texts.toml").read_text(encoding="utf-8"))


def _words(plan: Plan, environment: str, result: Mapping[str, Any]) -> dict[str, str]:
    return {
        "environment": printable(environment, 100),
        "domain": plan.domain or "not described in the plan.",
        "limit": number(plan.limit),
        "budget": percent(plan.budget),
        "confidence": percent(1.0 - plan.delta),
        "violations": f"{result['violations']:,}",
        "episodes": f"{result['episodes']:,}",
        "bound": upper(result["bound"]),
        "error": f"{result['error_probability']:.3g}",
    }


def claim_sentence(plan: Plan, environment: str, result: Mapping[str, Any]) -> str:
    """Return the claim in one sentence, or that it is not established."""
    template: str = texts()["claim" if result["certified"] else "no_claim"]
    return template.format(**_words(plan, environment, result))


def statements(plan: Plan, environment: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return method, assumptions, what is not shown, and re-test triggers: entries of ``evidence.json``.

    The ``event`` of a trigger is that of ``steingate monitor``, or empty.
    """
    own = texts()["monitored" if plan.until_certified else "fixed"]
    words = _words(plan, environment, result) | {"end": own["end"]}
    triggers = [(event, text.format(**words)) for event, text in texts()["triggers"]]
    return {
        "method": {"name": own["name"], "text": f"{own['text']} {texts()['ledger']}"},
        "assumptions": [text.format(**words) for text in texts()["assumptions"]],
        "not_shown": [text.format(**words) for text in texts()["not_shown"]],
        "retest_triggers": [{"id": f"T{i}", "event": e, "text": text} for i, (e, text) in enumerate(triggers, 1)],
    }


def _elements(evidence: Mapping[str, Any], plan: Plan) -> list[Element]:
    """Return the elements of the argument, parents before children."""
    claim, test = evidence["claim"], evidence["test"]
    words = _words(plan, claim["environment"], evidence["result"]) | {
        "sentence": claim["sentence"],
        "method": evidence["method"]["name"],
        "policy": evidence["policy"]["sha256"][:16],
        "algo": printable(evidence["training"]["algo"], 100),
        "created": plan.created.isoformat(),
        **{name: str(test[name]) for name in ("started", "finished", "number")},
    }
    elements = []
    for row in texts()["argument"]:
        element = Element(*row)
        elements.append(element._replace(text=element.text.format(**words)))
        if element.id == "S2":
            elements += [Element(f"A{i}", "S2", text, "") for i, text in enumerate(evidence["assumptions"], 1)]
    return elements


def argument_markdown(evidence: Mapping[str, Any], plan: Plan) -> str:
    """Return ``argument.md``: the argument as a nested list, triggers, monitoring plan, open points, signatures."""
    elements = _elements(evidence, plan)
    depth = {"": -1}
    outline = []
    for each in elements:
        depth[each.id] = depth[each.parent] + 1
        todo = f" *Open: {each.open}*" if each.open else ""
        outline.append(f"{'  ' * depth[each.id]}- **{each.id}** {for_markdown(each.text)}{todo}")
    open_points = [f"**{each.id}** {each.open}" for each in elements if each.open]
    open_points += [f"contract.json: give {text}." for text in evidence["open_points"]]
    open_points += ["Have argument and evidence reviewed independently."]
    parts = (
        ("# Safety argument: outline", [for_markdown(evidence["claim"]["sentence"]), "", texts()["disclaimer"], "",
         "To complete and sign it, copy this file out of the bundle: a changed file does not verify."]),
        ("## Argument", outline),
        ("## Not shown", [f"- {for_markdown(text)}" for text in evidence["not_shown"]]),
        ("## Re-test triggers", [f"- **{each['id']}** {each['text']}" for each in evidence["retest_triggers"]]),
        ("## Monitoring plan", [f"    {evidence['monitoring']}", "",
         "Count all episodes of operation, in order. The alarms of this command name the trigger."]),
        ("## Open points", [f"- [ ] {text}" for text in open_points]),
        ("## Questions of standards that this helps to answer", _table(("standard", "question", "where"),
         texts()["standards"])),
        ("## Signatures", ["Digest of the bundle (`steingate evidence verify` prints it): ______________", "",
         *_table(("role", "name", "date", "signature"), [(role, "", "", "") for role in _ROLES])]),
    )  # fmt: skip
    return "\n\n".join(f"{title}\n\n" + "\n".join(lines) for title, lines in parts) + "\n"


def _table(head: tuple[str, ...], rows: list[Any]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
