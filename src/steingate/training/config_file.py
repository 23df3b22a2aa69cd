"""``config.json`` of a run folder: writing it, and reading it back with a check that nobody edited it."""

import os
import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path
from typing import Any

from steingate.envs.make import EnvName, add_to_path, env_name, import_folder
from steingate.errors import InputError, RunError
from steingate.runs import RunFolder, deciding, digest, read_config, write_config
from steingate.storage.checkpoint import checkpoint_files, latest_checkpoint
from steingate.storage.files import read_regular
from steingate.training.config import RunConfig, read_stored
from steingate.trust import outside_code, require_trust, seal

_PACKAGES = ("steingate", "numpy", "scipy", "jax", "jaxlib", "numba", "gymnasium", "mujoco")


def write_run_config(run: RunFolder, cfg: RunConfig, learner: dict[str, str], notes: Sequence[str] = ()) -> None:
    """Write ``config.json``, over a run that never finished an epoch; RunError if the folder holds one that did."""
    old = checkpoint_files(run.checkpoints)
    rows = read_regular(run.progress).count(b"\n") - 1 if run.progress.exists() else 0
    if rows > 0 or any(epoch > 0 for epoch, _ in old):
        advice = f"continue it with `steingate resume {run.path}`" if run.config.exists() else f"restore {run.config}"
        raise RunError(f"{run.path} already holds a run: {advice}, or choose another --out.")
    for path in (*(path for _, path in old), run.certified, run.certification):
        path.unlink(missing_ok=True)
    order, color = cfg.algo.info.order, cfg.algo.info.color
    record = {
        "config": cfg.to_dict(),
        "env_folder": import_folder(cfg.env),
        "identity": cfg.identity,
        "plot_style": {"name": cfg.algo.name, "order": order if isfinite(order) else None, "color": color},
        "versions": versions(),
        "machine": machine(),
        "learner": learner,
        "notes": list(notes),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_config(run, {**record, "seal": seal(record)})


def version_warnings(run: RunFolder) -> list[str]:
    """Return a warning for each package whose version differs from the one the run was started with."""
    before = read_config(run.path).get("versions")
    return [
        f"This run was started with {name} {before[name]} and continues with {now}: results may differ."
        for name, now in versions().items()
        if isinstance(before, dict) and before.get(name, now) != now
    ]


@cache
def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the packages that results depend on."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def machine() -> dict[str, Any]:
    """Return facts about this machine that results may depend on."""
    return {"platform": platform.platform(), "cores": os.cpu_count(), "byte_order": sys.byteorder}


def load_run_config(path: str | Path, env: Any = None, trust_code: bool = False, log: bool = False) -> RunConfig:
    """Return the configuration of a run folder; RunError if it was edited, or names code that is not trusted.

    ``env`` is the environment, if it was given as a Python object or has moved. With ``log`` the run continues, and its
    log goes to the Weights & Biases project that the record names.
    """
    record = read_config(path)
    settings, folder = record.get("config"), record.get("env_folder")
    if not isinstance(settings, dict):
        raise RunError(f"{path}/config.json has no table 'config', so it was not written by steingate train.")
    identity = record.get("identity")
    try:
        require_trust(path, record, trust_code, ("env",) * (env is not None) + ("wandb",) * (not log))
    except RunError:
        # An edit breaks the seal of an own run; its own digest shows that without an import.
        if identity not in (digest(settings, steps=False), digest(settings, steps=True)):
            raise _edit_error(path, settings, identity) from None
        raise
    if env is None and isinstance(folder, str) and str(settings.get("env")) in outside_code(settings):
        add_to_path(folder)
    try:
        cfg = read_stored(settings, f"{path}/config.json")
    except InputError as error:
        raise RunError(str(error)) from error
    if identity not in (cfg.identity, digest(settings, cfg.algo.depends_on_total_steps)):
        raise _edit_error(path, settings, identity)
    return cfg if env is None else replace(cfg, env=EnvName(cfg.env, env if callable(env) else env_name(env)))


def _edit_error(path: str | Path, settings: dict[str, Any], identity: Any) -> RunError:
    """Return the error that names the settings that differ from those in the newest checkpoint."""
    changes = []
    with suppress(RunError):
        newest = latest_checkpoint(RunFolder(Path(path)).checkpoints)
        if newest is not None and isinstance(newest.tree.get("config"), dict):
            changes = _changes(deciding(settings), deciding(newest.tree["config"]))
    changes += ["its identity is missing"] if identity is None else []
    what = ", ".join(changes) or "its settings do not match its identity"
    return RunError(
        f"{path}/config.json was changed after the run was started: {what}; restore it, or train anew. "
        f"Only the number of steps may grow, by steingate resume {path} --total-steps N."
    )


def require_same_certify(run: RunFolder, before: dict[str, Any]) -> None:
    """Raise RunError if the settings of certification differ from those in a checkpoint: its tests used those."""
    changes = _changes(read_config(run.path)["config"].get("certify"), before.get("certify"), "certify")
    if changes:
        raise RunError(
            f"{run.config} was changed after the run was started: {', '.join(changes)}; restore it. "
            f"For another risk or confidence use `steingate evaluate {run.path} --risk P --confidence P`."
        )


def _changes(now: Any, before: Any, name: str = "") -> list[str]:
    """Return a phrase for each setting that differs."""
    if isinstance(now, dict) and isinstance(before, dict):
        prefix = f"{name}." if name and name != "algorithm" else ""
        return [text for key in {**now, **before} for text in _changes(now.get(key), before.get(key), prefix + key)]
    return [] if now == before else [f"{name} is {now!r:.60}, but was {before!r:.60}"]
