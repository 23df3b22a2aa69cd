"""The monitor that the options of ``steingate monitor`` ask for, new or from its state."""

from argparse import Namespace
from typing import Any

from steingate.certificates.costs import read_costs
from steingate.errors import InputError
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.several import FORMAT as SEVERAL
from steingate.monitoring.several import Monitors


def fresh(args: Namespace) -> Monitor | Monitors:
    """Return a new monitor, or several when the limits have names."""
    if not args.limit:
        raise InputError("A limit is missing: give --limit D, or the --state of an earlier run.")
    names = [text.rpartition("=")[0] for text in args.limit]
    settings = _settings(args)
    if names == [""]:
        settings["limit"] = _float("--limit", args.limit[0])
        return _one(args, settings)
    if "" in names or len(set(names)) < len(names):
        raise InputError(f"The limits {', '.join(args.limit)} need different names, as in --limit speed=10.")
    limits = {
        name: _float("--limit", text.rpartition("=")[2]) for name, text in zip(names, args.limit, strict=True)
    }
    if args.baseline is not None:
        settings["baseline"] = _float("--baseline", args.baseline)
    return Monitors(limits, **settings)


def _one(args: Namespace, settings: dict[str, Any]) -> Monitor:
    if args.baseline is None:
        return Monitor(**settings)
    try:
        return Monitor(**settings, baseline=float(args.baseline))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
    return Monitor.watch(read_costs(args.baseline, args.column), **settings)


def _settings(args: Namespace) -> dict[str, Any]:
    given = {name: getattr(args, name) for name in ("budget", "delta", "cap", "run_length")}
    return {name: value for name, value in given.items() if value is not None}


def resumed(args: Namespace, state: dict[str, Any]) -> Monitor | Monitors:
    """Return the stored monitor, after checking that the options do not ask for another one."""
    several = state.get("format") == SEVERAL
    monitor = Monitors.from_dict(state) if several else Monitor.from_dict(state)
    old = _parts(monitor)
    if args.limit:
        new = _parts(fresh(args))
    elif isinstance(monitor, Monitor):
        new = _parts(_one(args, {"limit": monitor.limit, **_settings(args)}))
    else:
        new = _parts(Monitors({name: part.limit for name, part in old.items()}, **_settings(args)))
    if set(new) != set(old):
        raise InputError(f"{args.state} watches other costs than the options name: use another --state.")
    names = {"limit", *_settings(args), *(["baseline"] if args.baseline is not None else [])}
    for key, part in old.items():
        for name in sorted(names):
            before, now = getattr(part, name), getattr(new[key], name)
            if before != now:
                raise InputError(
                    f"{args.state} was made with {name} {before:g}, not {now:g}: use another --state, "
                    "or the same options."
                )
    return monitor


def _parts(monitor: Monitor | Monitors) -> dict[str, Monitor]:
    return dict(monitor) if isinstance(monitor, Monitors) else {"": monitor}


def _float(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name} {text!r} is not a number.") from None
