"""Writing a bundle: fresh episodes of a run's policy by a plan that is older than they are."""

import hashlib
import importlib.util
import warnings
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import steingate
from steingate.errors import InputError, RunError
from steingate.evidence.argument import argument_markdown, claim_sentence, statements
from steingate.evidence.contract import contract
from steingate.evidence.files import SCHEMA_VERSION, sha256, sums, to_json
from steingate.evidence.page import page
from steingate.evidence.plan import Plan, now
from steingate.evidence.statistics import EpisodeTable, summarize
from steingate.monitoring.wealth import delta_for_test
from steingate.policies.export import npz_bytes
from steingate.policies.load import Which, load_policy
from steingate.policies.zoo import run_folder
from steingate.runs import read_config
from steingate.storage.files import read_regular, replace_file, writing
from steingate.training.config_file import load_run_config, machine, versions
from steingate.training.evaluate import evaluate
from steingate.training.play import load_player

SEED = 0  # of the episodes; they differ from those of every other evaluation of the run
_MAX_PLAN_BYTES = 1 << 16


def write_bundle(
    run: str | PathLike[str], out: str | PathLike[str], plan: Plan | str | PathLike[str] | None = None, *,
    policy: Which | None = None, onnx: bool | None = None, env: Any = None, trust_code: bool = False,
    warn: Callable[[str], None] = warnings.warn, stop: Callable[[], bool] = lambda: False,
) -> Path:  # fmt: skip
    """Test a policy of a run on fresh episodes and write the evidence bundle; return its folder.

    The test is one of the evaluations of the run, with error probability and seeds of its own (``evaluations.jsonl``).

    Parameters
    ----------
    run
        The run folder, the run, or a name of ``steingate zoo``.
    out
        Folder of the bundle: new, empty, or with nothing but the ``plan.toml`` to use.
    plan
        The plan, or its file. By default that in ``out``; without one, a plan with limit, budget and delta of the run
        is written before the test.
    policy, env, trust_code, warn, stop
        As for :func:`steingate.evaluate`.
    onnx
        Write ``policy.onnx`` too; by default if the extra ``onnx`` is installed.

    Examples
    --------
    >>> steingate.evidence.write_bundle("runs/allowance/SafetyPointGoal1-v0/seed-0", "bundle")  # doctest: +SKIP
    """
    out = Path(out)
    plan = _fix_plan(run, out, plan, env, trust_code)
    started = now()
    if plan.created > started:
        raise RunError(
            f"The plan was created at {plan.created}, after this test begins: it must be older than the episodes."
        )
    found = evaluate(
        run, plan.episodes, seed=SEED, policy=policy, limit=plan.limit, risk=plan.budget, confidence=1.0 - plan.delta,
        until_certified=plan.until_certified, env=env, trust_code=trust_code, warn=warn, stop=stop,
    )  # fmt: skip
    finished, played = now(), found.episodes
    which: Which = "certified" if found.which == "certified" else "last"
    tested = load_policy(run, which, lambda _: None)  # the evaluation has given the warnings
    player = load_player(run, lambda _: None, which, env, trust_code)
    if not tested.sha256 == player.sha256 == found.sha256:
        raise RunError(f"{run} changed during the test: another policy was tested than the one that is stored now.")
    record = read_config(run_folder(run))
    config = record["config"] = {**record["config"], "out": "runs"}
    tested.about["run"] = f"{config['algo']}/{config['env']}/seed-{config['seed']}"
    assert played.truncated is not None
    seeds, cost = np.array(found.seeds, np.int64), np.maximum(played.cost, 0.0)
    table = EpisodeTable(seeds, cost, played.ret, played.length, played.truncated)
    result = summarize(table, plan, delta_for_test(found.number, plan.delta), found.failure)
    interface = contract(tested, config["env"], config["env_options"])
    files = {
        "plan.toml": plan.to_toml().encode(),
        "episodes.csv": "\n".join((*table.lines(), "")).encode(),
        "config.json": to_json(record),
        "contract.json": to_json(interface),
        "policy.npz": npz_bytes(tested),
    }
    if onnx or (onnx is None and importlib.util.find_spec("onnx") is not None):
        from steingate.policies.onnx import onnx_file

        files["policy.onnx"] = onnx_file(tested)
    environment = config["env"]
    evidence = {
        "schema_version": SCHEMA_VERSION,
        "steingate": steingate.__version__,
        "claim": {
            "sentence": claim_sentence(plan, environment, result),
            "established": result["certified"], "environment": environment,
            "limit": plan.limit, "budget": plan.budget, "confidence": 1.0 - plan.delta,
        },
        "plan": plan.to_dict(),
        "test": {
            "started": started.isoformat(), "finished": finished.isoformat(),
            "number": found.number, "seed": SEED, "actions": "mean",
            "versions": versions(), "code_sha256": code_digest(), "machine": machine(),
        },
        "result": result,
        **statements(plan, environment, result),
        "policy": {
            "sha256": found.sha256, "which": found.which, "epoch": found.epoch, "step": found.step,
            "onnx": "policy.onnx" if "policy.onnx" in files else None,
        },
        "training": {
            "run": tested.about["run"], "certification": tested.about["certification"],
            **{name: config[name] for name in ("algo", "seed", "total_steps")},
            **{name: record.get(name) for name in ("identity", "started", "versions", "machine")},
        },
        "replay": {
            "command": "steingate evidence verify DIR --replay 1 --first NUMBER",
            "cost_budget_fraction": player.cost_budget_fraction,
        },
        "monitoring": "steingate monitor COSTS --evidence DIR --follow --state monitor.json",
        "open_points": interface["unknown"],
        "files": {name: sha256(content) for name, content in files.items()},
    }  # fmt: skip
    files["evidence.json"] = to_json(evidence)
    files["argument.md"] = argument_markdown(evidence, plan).encode()
    files["evidence.html"] = page(evidence, plan, table).encode()
    files["SHA256SUMS"] = sums(files)
    for name, content in files.items():
        replace_file(out / name, content)
    return out


def _fix_plan(
    run: str | PathLike[str], out: Path, plan: Plan | str | PathLike[str] | None, env: Any, trust_code: bool
) -> Plan:
    """Return the plan, after writing it to the folder of the bundle."""
    if out.exists() and not (out.is_dir() and {path.name for path in out.iterdir()} <= {"plan.toml"}):
        raise InputError(f"{out} exists: give a new folder, or an empty one.")
    if plan is None and (out / "plan.toml").exists():
        plan = out / "plan.toml"
    if plan is None:
        cfg = load_run_config(run_folder(run), env, trust_code)
        domain = f"Episodes of {cfg.env} as in training"
        plan = Plan(cfg.cost_limit, cfg.certify.budget, cfg.certify.delta, domain=domain)
    elif not isinstance(plan, Plan):
        plan = Plan.from_toml(read_regular(Path(plan), _MAX_PLAN_BYTES), str(plan))
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    replace_file(out / "plan.toml", plan.to_toml().encode())
    return plan


def code_digest() -> str:
    """Return the SHA-256 of all source files of this package, by name."""
    root, total = Path(steingate.__file__).parent, hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        total.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes())
    return total.hexdigest()
