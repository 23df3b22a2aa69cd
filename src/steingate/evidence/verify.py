"""Verification of a bundle: every hash and every statistic is computed again. Needs NumPy alone; runs no code of it."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isclose
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from steingate.errors import InputError, RunError, SteingateError, needs
from steingate.escaping import printable
from steingate.evidence.argument import claim_sentence
from steingate.evidence.files import SCHEMA_VERSION, compare_sums, parse_object, read_folder, sha256
from steingate.evidence.plan import Plan
from steingate.evidence.statistics import EpisodeTable, summarize
from steingate.monitoring.wealth import delta_for_test
from steingate.policies.policy import Policy
from steingate.policies.zoo import run_folder
from steingate.training.seeding import evaluation_seeds

_TOLERANCE = 1e-9  # relative; other processors and versions of NumPy round sums differently


@dataclass(frozen=True)
class Verification:
    """Result of :func:`verify_bundle`."""

    path: Path
    problems: tuple[str, ...]  # one sentence for each thing that does not match
    claim: str  # of the bundle, in one sentence; to be believed only without problems
    digest: str  # SHA-256 of SHA256SUMS: names the whole bundle
    replayed: int = 0  # number of episodes that were played again

    @property
    def ok(self) -> bool:
        """Whether everything matches."""
        return not self.problems

    def __str__(self) -> str:
        if self.problems:
            return "\n".join((f"{self.path} does not verify:", *(f"- {text}" for text in self.problems)))
        again = f" {self.replayed} episodes were played again, bit for bit." if self.replayed else ""
        return f"{self.path} verifies: all hashes and statistics match.{again}\n{self.claim}\nDigest: {self.digest}"


@dataclass(frozen=True, eq=False)
class Bundle:
    """Parsed content of a bundle."""

    evidence: dict[str, Any]
    plan: Plan
    table: EpisodeTable
    policy: Policy


def verify_bundle(
    path: str | PathLike[str], *, digest: str | None = None, replay: int = 0, first: int = 1, env: Any = None,
    trust_code: bool = False,
) -> Verification:  # fmt: skip
    """Compute every hash and statistic of a bundle again; RunError if the folder is no bundle, or too large.

    Parameters
    ----------
    path
        The folder.
    digest
        Digest that the bundle is expected to have: from a signature, for example.
    replay, first
        Play this many episodes again, from number ``first`` = 1, 2, ... of the test, and compare them bit for bit.
        Needs the extra ``train``.
    env, trust_code
        For the replay, as for :func:`steingate.evaluate`.

    Examples
    --------
    >>> found = steingate.evidence.verify_bundle("bundle")  # doctest: +SKIP
    >>> found.ok, found.problems  # doctest: +SKIP
    (True, ())
    """
    folder = run_folder(path)
    files, problems = read_folder(folder)
    problems += compare_sums(files)
    found = sha256(files.get("SHA256SUMS", b""))
    if digest is not None and digest.lower() != found:
        problems.append(f"The digest of the bundle is {found}, not the expected one.")
    claim, played, bundle = "", 0, None
    try:
        bundle = parse(files)
        claim = printable(bundle.evidence["claim"]["sentence"], 500)
        problems += _inconsistencies(bundle, files)
    except KeyError as error:
        problems.append(f"The bundle has no {printable(error, 80)}.")
    except (SteingateError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        problems.append(printable(error, 300))
    if replay and bundle is not None and not problems:
        problems, played = replay_episodes(folder, bundle, first, replay, env, trust_code)
    return Verification(folder, tuple(problems), claim, found, played)


def parse(files: Mapping[str, bytes]) -> Bundle:
    """Return the parsed files of a bundle; KeyError, ValueError or SteingateError if one cannot be used."""
    evidence = parse_object(files, "evidence.json")
    if evidence.get("schema_version") != SCHEMA_VERSION:
        raise RunError(f"evidence.json has schema version {evidence.get('schema_version')!r}, not {SCHEMA_VERSION}.")
    try:
        policy = Policy.load(io.BytesIO(files["policy.npz"]))
    except ValueError:
        raise RunError("policy.npz is damaged, or not an exported policy.") from None
    table = EpisodeTable.from_csv(files["episodes.csv"])
    return Bundle(evidence, Plan.from_toml(files["plan.toml"], "plan.toml"), table, policy)


def read_bundle(path: str | PathLike[str]) -> Bundle:
    """Return the content of a bundle that verifies; RunError if it does not."""
    found = verify_bundle(path)
    if not found.ok:
        raise RunError(f"The bundle {path} does not verify: {found.problems[0]}")
    return parse(read_folder(Path(path))[0])


def replay_episodes(
    folder: Path, bundle: Bundle, first: int, count: int, env: Any = None, trust_code: bool = False
) -> tuple[list[str], int]:
    """Return a sentence for each of ``count`` episodes from number ``first`` that differs, and how many were played."""
    table, total = bundle.table, len(bundle.table.seed)
    if not 1 <= first <= total or count < 1:
        raise InputError(f"There is no episode {first} to replay: the test has 1 to {total}.")
    with needs("Playing episodes again", "train"):
        from steingate.algorithms.base import EnvParams
        from steingate.training.config_file import load_run_config
        from steingate.training.environment import make_envs
        from steingate.training.play import bundled_player, play
    cfg = load_run_config(folder, env, trust_code)
    player = bundled_player(cfg, bundle.policy, bundle.evidence)
    envs = make_envs(cfg, params=EnvParams(player.cost_budget_fraction))
    seeds = table.seed[first - 1 : first - 1 + count]
    try:
        played = play(envs, player, seeds.tolist(), False)
    finally:
        envs.close()
    assert played.truncated is not None
    again = EpisodeTable(seeds, np.maximum(played.cost, 0.0), played.ret, played.length, played.truncated)
    lines = zip(table.lines()[first : first + count], again.lines()[1:], strict=True)  # equal texts are equal bits
    problems = [
        f"Episode {number} differs when it is played again: it is {new}, not {old}."
        for number, (old, new) in enumerate(lines, first)
        if old != new
    ]
    return problems, len(seeds)


def _inconsistencies(bundle: Bundle, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield a sentence for each entry of ``evidence.json`` that the other files do not confirm."""
    evidence, plan, table = bundle.evidence, bundle.plan, bundle.table
    test = evidence["test"]
    for name, stored in evidence["files"].items():
        if name not in files or stored != sha256(files[name]):
            yield f"The SHA-256 of {printable(name, 80)} in evidence.json is not that of the file."
    for name in ("plan.toml", "episodes.csv", "policy.npz", "contract.json", "config.json"):
        if name not in evidence["files"]:
            yield f"evidence.json does not name {name}."
    times = [plan.created, *(datetime.fromisoformat(str(test[name])) for name in ("started", "finished"))]
    if times != sorted(times):
        yield "The plan is younger than the episodes."
    number = test["number"]
    if type(number) is not int or not 1 <= number <= 10**6:
        raise RunError(f"The number of the evaluation is {number!r}.")
    seeds = evaluation_seeds(test["seed"], len(table.seed), number)
    if table.seed.tolist() != seeds:
        yield f"The seeds of the episodes are not those of evaluation {number} of the run."
    result = summarize(table, plan, delta_for_test(number, plan.delta), str(evidence["result"]["failure"]))
    yield from _differences(evidence["result"], result, "result")
    yield from _differences(evidence["plan"], plan.to_dict(), "plan")
    if not result["planned_end"]:
        yield "The test did not end when the plan says."
    claim, environment = evidence["claim"], str(evidence["claim"]["environment"])
    own: dict[str, Any] = {"limit": plan.limit, "budget": plan.budget, "confidence": 1.0 - plan.delta}
    own |= {"established": result["certified"], "sentence": claim_sentence(plan, environment, result)}
    yield from _differences({name: claim[name] for name in own}, own, "claim")
    if evidence["policy"]["sha256"] != bundle.policy.sha256:
        yield "policy.npz holds another policy than the one that was tested."
    contract, config = (parse_object(files, name) for name in ("contract.json", "config.json"))
    if contract["observation"]["shape"] != [bundle.policy.obs_dim]:
        yield "contract.json has observations of another shape than the policy."
    if config["identity"] != evidence["training"]["identity"] or config["config"]["env"] != environment:
        yield "config.json belongs to another run."


def _differences(stored: Any, found: Any, name: str) -> Iterator[str]:
    """Yield a sentence for each value of ``stored`` that differs from the one ``found`` again."""
    if isinstance(stored, dict) and isinstance(found, dict):
        for key in {**found, **stored}:
            yield from _differences(stored.get(key), found.get(key), f"{name}.{printable(key, 40)}")
        return
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in (stored, found)):
        same = isclose(stored, found, rel_tol=_TOLERANCE, abs_tol=1e-12)
    else:
        same = stored == found and type(stored) is type(found)
    if not same:
        before, now = (printable(repr(value), 200) for value in (stored, found))
        yield f"{name} is {before}, but the files of the bundle give {now}."
