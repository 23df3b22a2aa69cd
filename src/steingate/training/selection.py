"""Certified-checkpoint selection: training episodes rank the candidates, tests on fresh episodes certify them."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from steingate.algorithms.base import EnvParams, Params
from steingate.algorithms.common.episodes import cvar
from steingate.errors import RunError
from steingate.monitoring.state import as_count, as_real
from steingate.policies.normalizer import Stats
from steingate.runs import certified_checkpoint
from steingate.storage.checkpoint import Checkpoint
from steingate.training.certification import (
    CertificationTest,
    certification_report,
    certify_checkpoint,
    delta_for_test,
    min_episodes,
)
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv, make_envs, set_params
from steingate.training.play import make_player, play, stored_player
from steingate.training.seeding import Purpose, certification_seed
from steingate.training.stop import RolloutStoppedError

if TYPE_CHECKING:
    from steingate.training.logging.run_writer import RunWriter

MAX_CANDIDATES = 6
RETURN_EPISODES = 100  # to estimate the return of the certified policy without the bias of its selection
MIN_EPISODES = 8  # to rank a candidate; if an epoch finished fewer, earlier ones are included
TAIL = 0.2  # fraction of worst episodes in the risk
_AFTER_FAILURE, _AFTER_SUCCESS = 0.8, 1.2  # factors on a tested candidate's risk for the new ``max_risk``
_FINAL_FRACTION = 0.1  # steps of the final tests, as a fraction of the training steps
_MIN_FINAL_TESTS, _MAX_FINAL_TESTS = 3, 5  # the first three are made whatever they cost


class Candidate(NamedTuple):
    """A policy and statistics of its training episodes."""

    epoch: int  # policy updates before it
    risk: float  # mean cost of the worst fifth of its training episodes, divided by the limit
    ret: float  # their mean return
    ret_error: float  # standard error of the mean return
    length: int  # of the longest episode, in steps
    policy: Params
    stats: Stats
    cost_budget_fraction: float  # of the environments


class SelectionState(NamedTuple):
    """State of the selection; part of every checkpoint."""

    candidates: tuple[Candidate, ...] = ()  # untested ones, by increasing risk
    max_risk: float = 1.0  # candidates with a larger risk are not tested
    tests: int = 0  # number of tests so far, which decides the delta of the next one
    steps: int = 0  # environment steps of all tests
    best: tuple[Candidate, CertificationTest] | None = None  # the certified one with the highest return
    closest: CertificationTest | None = None  # the failed test with the smallest bound
    final_tests: int = 0  # number of tests at the end of training, also before it was extended
    report: dict[str, Any] | None = None  # content of certification.json after the last test


def make_candidate(
    epoch: int, episodes: np.ndarray, policy: Params, stats: Stats, cost_budget_fraction: float, limit: float
) -> Candidate:
    """Return a candidate from its training episodes, rows of (return, cost, length), oldest first."""
    ret, cost, length = np.asarray(episodes, np.float64).T
    # For a limit of 0, any cost is a violation.
    risk = cvar(cost, TAIL)[0] / limit if limit > 0.0 else float(np.mean(cost > 0.0)) / TAIL
    error = float(ret.std()) / len(ret) ** 0.5
    params, longest = _sorted(policy), int(length.max())
    return Candidate(epoch, float(risk), float(ret.mean()), error, longest, params, stats, cost_budget_fraction)


def add_candidate(candidates: tuple[Candidate, ...], new: Candidate) -> tuple[Candidate, ...]:
    """Return the Pareto front of risk and return with a new candidate, by increasing risk.

    Of candidates with risk > 1 only the least risky is included, and only if there is no other. If there are more than
    ``MAX_CANDIDATES``, the one whose return is closest to its neighbor's is removed.
    """
    front: list[Candidate] = []
    for one in sorted((*candidates, new), key=lambda c: (c.risk, -c.ret, c.epoch)):
        if not front or one.ret > front[-1].ret:
            front.append(one)
    front = [one for one in front if one.risk <= 1.0] or front[:1]
    while len(front) > MAX_CANDIDATES:
        gaps = [after.ret - before.ret for before, after in pairwise(front[:-1])]
        del front[1 + int(np.argmin(gaps))]
    return tuple(front)


def next_candidate(selection: SelectionState) -> Candidate | None:
    """Return the best candidate with risk <= ``max_risk``, if its return beats the certified one."""
    allowed = [one for one in selection.candidates if one.risk <= selection.max_risk]
    head = max(allowed, key=lambda one: one.ret, default=None)
    if head is None or (selection.best is not None and head.ret <= selection.best[0].ret + head.ret_error):
        return None
    return head


def add_test(selection: SelectionState, candidate: Candidate, test: CertificationTest, steps: int) -> SelectionState:
    """Return the selection after a test of a candidate, which is removed from the candidates."""
    selection = selection._replace(
        candidates=tuple(one for one in selection.candidates if one.epoch != candidate.epoch),
        tests=selection.tests + 1, steps=selection.steps + steps,
    )  # fmt: skip
    if test.certified:
        if selection.best is None or test.mean_return > selection.best[1].mean_return:
            selection = selection._replace(best=(candidate, test))
        return selection._replace(max_risk=max(selection.max_risk, min(1.0, _AFTER_SUCCESS * candidate.risk)))
    if selection.closest is None or test.bound < selection.closest.bound:
        selection = selection._replace(closest=test)
    return selection._replace(max_risk=min(selection.max_risk, _AFTER_FAILURE * candidate.risk))


def selection_from_tree(tree: Any, params: Callable[[Any], Params]) -> SelectionState:
    """Return the selection stored in a checkpoint; ``params`` converts the parameters of a policy."""

    def candidate(values: list[Any]) -> Candidate:
        one = Candidate(*values)
        fraction = as_real(one.cost_budget_fraction)
        return one._replace(policy=_sorted(params(one.policy)), stats=Stats(*one.stats), cost_budget_fraction=fraction)

    candidates, max_risk, tests, steps, best, closest, final_tests, report = tree
    if report is not None and not (as_count(report["epoch"]) >= 0 and report["finished"] in (True, False)):
        raise ValueError("its certification is damaged")
    return SelectionState(
        tuple(map(candidate, candidates)), max_risk, as_count(tests), as_count(steps),
        None if best is None else (candidate(best[0]), CertificationTest(*best[1])),
        None if closest is None else CertificationTest(*closest), as_count(final_tests), report,
    )  # fmt: skip


def _sorted(policy: Params) -> Params:
    """Return the parameters in sorted order, so that equal policies give equal files."""
    return {name: policy[name] for name in sorted(policy)}


class CertifiedCheckpointSelector:
    """Tests candidates in its own environments with its own random streams; training is not affected.

    Half of ``certify.delta`` is for tests during training, half for those at its end; test k of either gets 6 / (pi
    k)^2 of it, so that with probability at least 1 - ``certify.delta`` every certificate of the run is right.
    Certified policies and ``certification.json`` are written to ``files``. ``stop`` is called before every step of a
    test; if it returns true, ``RolloutStoppedError`` is raised.
    """

    def __init__(self, cfg: RunConfig, files: "RunWriter", stop: Callable[[], bool]) -> None:
        self.cfg, self._files, self._stop = cfg, files, stop
        self._envs: TrainerEnv | None = None

    def close(self) -> None:
        """Close the environments."""
        if self._envs is not None:
            self._envs.close()

    def consider(self, selection: SelectionState, new: Candidate, epochs: int) -> SelectionState:
        """Add a candidate after ``epochs`` epochs, and test the most promising one if the steps suffice."""
        selection = selection._replace(candidates=add_candidate(selection.candidates, new))
        head, settings, number = next_candidate(selection), self.cfg.certify, selection.tests + 1
        allowed = settings.max_step_fraction * epochs * self.cfg.steps_per_epoch
        if head is None or selection.steps + self._min_episodes(number) * head.length > allowed:
            return selection
        selection, _ = self._test(selection, head, Purpose.TEST, number, settings.max_episodes)
        best, tests = selection.best and selection.best[1], [selection.closest] if selection.closest else []
        ledger = selection.tests, selection.final_tests
        selection = selection._replace(report=certification_report(self.cfg, epochs, best, tests, False, ledger))
        self._files.write_certification(selection.report)
        return selection

    def finish(self, before: SelectionState, last: Candidate | None, epochs: int) -> SelectionState:
        """Test the last policy, and others if needed; return the state with the final report and number of tests.

        The results are not part of the training state, so that an extended run equals one that was longer from the
        start. ``last`` is None if no training episode has finished.
        """
        if before.report is not None and before.report["finished"] and before.report["epoch"] == epochs:
            return before
        earlier, allowed = before.final_tests, _FINAL_FRACTION * epochs * self.cfg.steps_per_epoch
        selection, tests, candidate = before, list[CertificationTest](), last
        while candidate is not None and len(tests) < _MAX_FINAL_TESTS:
            number = earlier + len(tests) + 1
            left, needed = allowed - (selection.steps - before.steps), self._min_episodes(number)
            if len(tests) >= _MIN_FINAL_TESTS and needed * candidate.length > left:
                break
            most = min(max(int(left / candidate.length), 4 * needed), self.cfg.certify.max_episodes)
            selection, test = self._test(selection, candidate, Purpose.FINAL_TEST, number, most)
            tests.append(test)
            candidate = next_candidate(selection)
            if candidate is None and selection.best is None and selection.candidates:
                candidate = selection.candidates[0]  # the least risky, whatever its return
        if before.best is not None:
            self._files.save_certified(*before.best)
        others = [*tests, selection.closest] if selection.closest else tests
        failure = "" if last is not None else "no episode ended during training"
        best, ledger = self._files.saved_test(), (before.tests, earlier + len(tests))
        fresh = None if best is None else self._estimate()
        report = certification_report(self.cfg, epochs, best, others, True, ledger, failure, fresh)
        return before._replace(final_tests=ledger[1], report=report)

    def _estimate(self) -> dict[str, Any] | None:
        """Return means over episodes of the certified policy that did not select it; None if they fail."""
        best = cast(Checkpoint, certified_checkpoint(self._files.run.path))
        player, limit = stored_player(self.cfg, best), 10 * self.cfg.episode_length
        seeds = [certification_seed(self.cfg.seed, Purpose.RETURN, best.epoch, i) for i in range(RETURN_EPISODES)]
        self._envs = self._envs or make_envs(self.cfg)
        set_params(self._envs, EnvParams(player.cost_budget_fraction))
        try:
            found = play(self._envs, player, seeds, False, self._stop, max_steps=limit)
        except RunError:
            return None
        return {
            "episodes": len(seeds),
            "return": float(found.ret.mean()),
            "return_error": float(found.ret.std(ddof=1)) / len(seeds) ** 0.5,
            "cost": float(found.cost.mean()),
            "violations": int((found.cost > self.cfg.cost_limit).sum()),
            "seeds": seeds,
        }

    def _delta(self, number: int) -> float:
        return delta_for_test(number, 0.5 * self.cfg.certify.delta)

    def _min_episodes(self, number: int) -> int:
        """Return the smallest number of episodes that test ``number`` needs."""
        return min_episodes(self.cfg.certify.budget, self._delta(number))

    def _test(
        self, selection: SelectionState, candidate: Candidate, purpose: Purpose, number: int, max_episodes: int
    ) -> tuple[SelectionState, CertificationTest]:
        """Test a candidate and save the best policy; a failed test must not end the training."""
        cfg, delta, epoch, steps = self.cfg, self._delta(number), candidate.epoch, 0
        try:
            self._envs = self._envs or make_envs(cfg)
            player = make_player(cfg, epoch, candidate.policy, candidate.stats, candidate.cost_budget_fraction)
            seeds = partial(certification_seed, cfg.seed, purpose, number)
            test, steps = certify_checkpoint(
                self._envs, player, budget=cfg.certify.budget, delta=delta, seeds=seeds, max_episodes=max_episodes,
                longest=candidate.length, stop=self._stop,
            )  # fmt: skip
        except RolloutStoppedError:
            raise
        except Exception as error:
            failure = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            test = CertificationTest(epoch, 0, 0, 0.0, 0.0, 1.0, delta, False, f"of an error ({failure})")
        test = test._replace(purpose=int(purpose), number=number, sha256=self._files.policy_sha256(candidate))
        selection = add_test(selection, candidate, test, steps)
        if selection.best is not None:
            self._files.save_certified(*selection.best)
        return selection, test
