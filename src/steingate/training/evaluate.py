"""Evaluation of a policy: whole episodes on fresh seeds, and the bound on its violation probability.

The evaluations of a run are counted in its ``evaluations.jsonl``. If each had the same confidence, repeating until one
is good would find a certificate for any policy. The k-th therefore gets 6 delta / (pi k)^2 and episodes of its own, so
that with probability at least 1 - delta the bounds of all evaluations hold.
"""

import json
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from steingate.algorithms.base import EnvParams, Episodes
from steingate.algorithms.common.episodes import cvar
from steingate.certificates.formatting import percent, policy_name, verdict, violations_text
from steingate.certificates.shift import ShiftRadius, shift_radius
from steingate.certificates.violation import certify, clopper_pearson_lower
from steingate.errors import InputError, RunError
from steingate.monitoring.episodes import update_until_decided
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.wealth import delta_for_test
from steingate.policies.load import Which
from steingate.policies.zoo import run_folder
from steingate.runs import content_digest, read_evidence
from steingate.settings import too_deep
from steingate.storage.files import open_no_link, read_regular, try_lock, writing
from steingate.training.certification import ignored_seeds
from steingate.training.environment import make_envs
from steingate.training.logging.rows import negative_cost_warning
from steingate.training.play import Player, load_player, play
from steingate.training.seeding import evaluation_seeds

TAIL = 0.1  # fraction of worst episodes in the CVaR
FILE = "evaluations.jsonl"
_MAX_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Result of :func:`evaluate`: episodes of one policy; episode i was started with ``seeds[i]``."""

    number: int  # which evaluation of the run this is
    which: str  # "certified" or "last"
    epoch: int  # policy updates before this policy
    step: int  # and environment steps of training
    sampled: bool  # whether actions were sampled, instead of taking their mean
    seeds: tuple[int, ...]  # reset seeds
    episodes: Episodes
    limit: float  # on the cost of an episode
    risk: float  # accepted violation probability
    confidence: float  # of the bound
    joint_confidence: float  # of the bounds of all evaluations of the run together
    bound: float  # upper bound on P(cost > limit): exact, or a monitor's if it decided the number of episodes
    certified: bool  # whether these episodes certify P(cost > limit) <= risk
    failure: str = ""  # why they certify nothing, if they are no sample of episodes
    sha256: str = ""  # of the policy's arrays

    @property
    def worst(self) -> int:
        """Index of the episode with the highest cost."""
        return int(np.argmax(self.episodes.cost))

    @property
    def violations(self) -> int:
        """Number of episodes with cost > limit."""
        return int(np.sum(self.episodes.cost > self.limit))

    @property
    def violation_rate(self) -> float:
        """Fraction of the episodes with cost > limit."""
        return self.violations / len(self.episodes.cost)

    @property
    def shift(self) -> ShiftRadius | None:
        """How much the distribution of the episodes may change with the risk still certified; else None."""
        return shift_radius(self.bound, self.risk) if self.certified else None

    def __str__(self) -> str:
        counts, confidence = (self.violations, len(self.episodes.cost)), floor(1000 * self.confidence) / 1000
        known = violations_text(*counts, self.limit, self.bound, confidence)
        outcome: bool | None = self.certified
        if self.failure:
            advice = f"They certify nothing: {self.failure}."
        elif self.certified:
            advice = "Next: export it (steingate export), and monitor it where it acts (steingate monitor)."
        elif clopper_pearson_lower(*counts, self.confidence) > self.risk:
            advice = "Train longer, or accept a higher risk (--risk)."
        else:
            outcome = None
            advice = "Too few episodes to tell: give more (--episodes), or as many as needed (--until-certified)."
        joint = f"Evaluation {self.number} of this run; all together have {percent(self.joint_confidence)} confidence."
        return verdict(outcome, self.risk, known, self.policy, advice, joint)

    @property
    def policy(self) -> str:
        """The policy in words, such as "the last policy (step 1,000,000), without exploration noise"."""
        return policy_name(self.which, self.step, self.sampled)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON types."""
        cost, ret, worst = self.episodes.cost, self.episodes.ret, self.worst
        claim = ("epoch", "step", "limit", "risk", "confidence", "joint_confidence")
        outcome = ("violations", "violation_rate", "bound", "certified")
        return {
            "number": self.number,
            "policy": self.which,
            "actions": "sampled" if self.sampled else "mean",
            "episodes": len(cost),
            **{name: getattr(self, name) for name in claim + outcome},
            "shift": None if self.shift is None else self.shift._asdict(),
            "return": {"mean": float(ret.mean()), "std": float(ret.std())},
            "cost": {"mean": float(cost.mean()), "std": float(cost.std())},
            "length": {"mean": float(self.episodes.length.mean())},
            "cvar": {"tail": TAIL, "cost": cvar(cost, TAIL)[0]},
            "worst": {"seed": self.seeds[worst], "cost": float(cost[worst]), "return": float(ret[worst])},
            "sentence": str(self),
        }


def evaluate(
    path: str | PathLike[str], episodes: int = 100, *, seed: int = 0, sample: bool = False, policy: Which | None = None,
    limit: float | None = None, risk: float | None = None, confidence: float | None = None,
    until_certified: bool = False, env: Any = None, trust_code: bool = False,
    warn: Callable[[str], None] = warnings.warn, stop: Callable[[], bool] = lambda: False,
) -> Evaluation:  # fmt: skip
    """Play whole episodes with a policy of a run, and bound its violation probability P(cost > limit).

    Parameters
    ----------
    path, episodes
        The run folder, the run, or a name of ``steingate zoo``; and the number of episodes.
    seed, sample
        Seed of the episodes, which differ from those of training, of its tests and of earlier evaluations; and whether
        to sample actions as in training, instead of taking the mean.
    policy
        ``"certified"`` or ``"last"``; by default the certified one, else the last with a warning.
    limit, risk, confidence
        Cost limit, accepted violation probability, and confidence that the bounds of all evaluations of this run have
        together; by default those of the run.
    until_certified
        Stop as soon as an anytime-valid monitor certifies the policy or shows that it is unsafe, after at most
        ``episodes``. The bound is then the monitor's.
    env, trust_code
        The environment, if it was given as a Python object or has moved; and whether to import the code that a run from
        another machine names (environment, algorithm, cost or risk function).
    warn, stop
        Called with warnings, and before every step; ``stop`` may raise to end the evaluation.

    Examples
    --------
    >>> print(steingate.evaluate("runs/allowance/SafetyPointGoal1-v0/seed-0", 100))  # doctest: +SKIP
    """
    if episodes < 1:
        raise InputError(f"episodes must be at least 1, got {episodes}.")
    player = load_player(path, warn, policy, env, trust_code)
    ledger, before = ledger_of(run_folder(path), player.sha256)
    cfg, lines = player.cfg, len(read_evaluations(ledger))
    number = before + lines + 1
    seeds = evaluation_seeds(seed, episodes, number)
    limit = cfg.cost_limit if limit is None else limit
    risk = cfg.certify.budget if risk is None else risk
    joint = 1.0 - cfg.certify.delta if confidence is None else confidence
    if not 0.0 < joint < 1.0:
        raise InputError(f"confidence must be between 0 and 1, got {joint}.")
    delta = delta_for_test(number, round(1.0 - joint, 15))
    monitor = Monitor(limit, risk, delta)
    played, failure = play_episodes(player, seeds, sample, stop, monitor if until_certified else None)
    if (played.cost < 0.0).any():
        warn(negative_cost_warning(cfg, played.cost))
    if until_certified:
        bound, certified = monitor.bound, monitor.certified and not monitor.unsafe
    else:
        exact = certify(np.maximum(played.cost, 0.0), limit, risk, 1.0 - delta)
        bound, certified = exact.bound, exact.certified
    found = Evaluation(
        number, player.which, player.epoch, player.epoch * cfg.steps_per_epoch, sample,
        tuple(seeds[: len(played.cost)]), played, limit, risk, 1.0 - delta, joint, bound, certified and not failure,
        failure, player.sha256,
    )  # fmt: skip
    record = {"sha256": found.sha256, "seed": seed, "until_certified": until_certified, **found.to_dict()}
    add_evaluation(ledger, lines, {"time": datetime.now(UTC).isoformat(timespec="seconds"), **record})
    return found


def play_episodes(
    player: Player, seeds: Sequence[int], sample: bool, stop: Callable[[], bool], monitor: Monitor | None = None
) -> tuple[Episodes, str]:
    """Play one episode per seed, or until the monitor has decided; return them and why they are no sample, if so."""
    groups: list[Episodes] = []
    marks: list[list[int]] = []
    with closing(make_envs(player.cfg, params=EnvParams(player.cost_budget_fraction))) as envs:
        for first in range(0, len(seeds), envs.num_envs):
            marks.append([])
            groups.append(play(envs, player, seeds[first : first + envs.num_envs], sample, stop, marks=marks[-1]))
            if monitor is not None:
                update_until_decided(monitor, np.maximum(groups[-1].cost, 0.0).tolist())
                if monitor.certified or monitor.unsafe:
                    break
    count = len(seeds) if monitor is None else monitor.episodes
    cost, ret, length, truncated = (
        np.concatenate([getattr(each, name) for each in groups])[:count]
        for name in ("cost", "ret", "length", "truncated")
    )
    return Episodes(cost, ret, length, truncated=truncated), ignored_seeds(marks)


def ledger_of(run: Path, sha256: str) -> tuple[Path, int]:
    """Return the folder of the ledger of a policy, and how many evaluations were before its first line.

    It is the run folder. An evidence bundle must not change and is itself an evaluation: its ledger is in the user's
    state folder.
    """
    evidence = read_evidence(run)
    if evidence is None:
        return run, 0
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "steingate" / "evaluations" / sha256, int(evidence["test"]["number"])


def read_evaluations(run: Path) -> list[dict[str, Any]]:
    """Return the evaluations of a run in order; RunError if a line was changed or removed.

    Each line holds the digest of the line before it. The rest of a line that a crash cut off is ignored.
    """
    file, found, before = run / FILE, list[dict[str, Any]](), ""
    content = read_regular(file, _MAX_BYTES) if file.exists() else b""
    for number, text in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), 1):
        try:
            line = json.loads(text)
            intact = (line["number"], line["before"]) == (number, before) and not too_deep(line)
            intact = intact and line["digest"] == content_digest(line)
        except (ValueError, LookupError, TypeError, RecursionError):
            intact = False
        if not intact:
            raise RunError(
                f"{file} was changed: line {number} is not the one that was written there. Restore the file; "
                "without it, earlier evaluations cannot be counted."
            )
        found.append(line)
        before = line["digest"]
    return found


def add_evaluation(run: Path, earlier: int, content: dict[str, Any]) -> None:
    """Append an evaluation; ``earlier`` is the number of lines when it began, which decided its confidence."""
    file = run / FILE
    with writing(run):
        run.mkdir(parents=True, exist_ok=True)
    with writing(file), open_no_link(file, "ab+") as stream:
        if not try_lock(stream):
            raise RunError(f"{file} is in use by another evaluation; start this one again.")
        lines, complete = read_evaluations(run), read_regular(file, _MAX_BYTES).rfind(b"\n") + 1
        if len(lines) != earlier:
            raise RunError(f"Another evaluation of {run} has ended since this one began; start this one again.")
        line = {**content, "number": earlier + 1, "before": lines[-1]["digest"] if lines else ""}
        line["digest"] = content_digest(line)
        stream.truncate(complete)  # without the rest of a line cut by a crash
        stream.write(json.dumps(line).encode() + b"\n")
