"""The policy a run delivers: candidates are tried while training and at its end, the best is kept."""

from collections.abc import Callable
from functools import partial

from steingate.algorithms.common.base import Algorithm
from steingate.errors import RunError
from steingate.runs import certified_checkpoint, load_certification, write_certification
from steingate.training.assemble import make_envs
from steingate.training.candidates import (
    FEWEST,
    Candidate,
    Kept,
    Trial,
    added,
    after_trial,
    judged,
    promising,
)
from steingate.training.certification_test import clean_episodes, delta_of, try_policy
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv
from steingate.training.logging.run_writer import RunWriter
from steingate.training.play import make_player
from steingate.training.rollout import RolloutStoppedError
from steingate.training.seeding import Purpose, certification_seed
from steingate.training.state import TrainState
from steingate.training.verdict import make_verdict

_AT_END = 0.1  # steps of the tests at the end, as a share of the training's; the first ones are made anyway
_ALWAYS, _MOST = 3, 5  # tests at the end


class Keeper:
    """Tries candidates in environments and with random numbers of its own, so training stays what it is.

    Half of ``certify.delta`` is for tests while training, half for those at its end; the k-th of either gets
    6 / (pi k)^2 of it. All that a resumed run needs to go on the same way is in ``TrainState.kept``.

    Parameters
    ----------
    cfg, algo
        The run.
    files
        Where the certified policy and the verdict go.
    stop
        Asked before every step of a test; true abandons it with ``RolloutStoppedError``.
    """

    def __init__(self, cfg: RunConfig, algo: Algorithm, files: RunWriter, stop: Callable[[], bool]) -> None:
        self.cfg, self.settings = cfg, cfg.certify
        self._algo, self._files, self._stop = algo, files, stop
        self._envs: TrainerEnv | None = None

    def close(self) -> None:
        """Let go of the environments."""
        if self._envs is not None:
            self._envs.close()

    def after(self, state: TrainState, following: TrainState) -> Kept:
        """Return what is kept after an epoch, in which ``state`` collected and ``following`` came out.

        The candidate is the policy that collected, because its episodes are known. It is tried as soon as it
        promises more than the certified one and the steps that tests may take suffice.
        """
        if not self.settings.keep or following.finished == state.finished:
            return state.kept
        new = _candidate(state, following, self.cfg.cost_limit)
        kept = state.kept._replace(shortlist=added(state.kept.shortlist, new))
        head = promising(kept)
        delta = delta_of(kept.tests + 1, 0.5 * self.settings.delta)
        if head is None or not self._affordable(kept, head, delta, following.epoch):
            return kept
        trial, steps = self._try(head, Purpose.TEST, kept.tests + 1, delta, self.settings.episodes)
        kept = after_trial(kept, head, trial, steps)
        if kept.best is not None:
            self._files.save_certified(*kept.best)
        ends = (load_certification(self._files.run.path) or {}).get("ends", 0)
        trials = [] if kept.closest is None else [kept.closest]
        best = None if kept.best is None else kept.best[1]
        verdict = make_verdict(self.cfg, following.epoch, best, trials, False, ends)
        write_certification(self._files.run, verdict)
        return kept

    def finish(self, state: TrainState) -> str:
        """Try the last policy, and better or safer ones if need be; write the verdict, return its sentence.

        What is found here goes to the folder and not into the state: a run that is made longer goes on as if
        it had been longer from the start.
        """
        if not self.settings.keep:
            return ""
        folder = self._files.run
        before = load_certification(folder.path) or {}
        if before.get("finished") and before.get("epoch") == state.epoch:
            return str(before["sentence"])
        ends = int(before.get("ends", 0))
        trials: list[Trial] = []
        kept = state.kept
        if state.finished:
            trials, kept = self._last_tests(state, ends)
        for best in (kept.best, state.kept.best):
            if best is not None:
                self._files.save_certified(*best)
        if kept.closest is not None:
            trials.append(kept.closest)
        best_trial = self._delivered()
        why = "" if state.finished else "no episode ended during training, so there was none to test"
        verdict = make_verdict(
            self.cfg, state.epoch, best_trial, trials, True, ends + kept.tests - state.kept.tests, why
        )
        write_certification(folder, verdict)
        return str(verdict["sentence"])

    def _last_tests(self, state: TrainState, ends: int) -> tuple[list[Trial], Kept]:
        kept, trials, allowed = state.kept, [], _AT_END * state.epoch * self.cfg.steps_per_epoch
        candidate: Candidate | None = judged(
            state.epoch, state.window[-FEWEST:], state.policy, state.stats, state.budget, self.cfg.cost_limit
        )
        for number in range(1, _MOST + 1):
            if candidate is None:
                break
            delta = delta_of(ends + number, 0.5 * self.settings.delta)
            used = kept.steps - state.kept.steps
            needed = clean_episodes(self.settings.budget, delta)
            if number > _ALWAYS and used + needed * candidate.length > allowed:
                break
            most = min(max(int((allowed - used) / candidate.length), 4 * needed), self.settings.episodes)
            trial, steps = self._try(candidate, Purpose.FINAL_TEST, ends + number, delta, most)
            kept = after_trial(kept, candidate, trial, steps)
            trials.append(trial)
            candidate = promising(kept)
            if candidate is None and kept.best is None and kept.shortlist:
                candidate = kept.shortlist[0]  # the least risky, whatever its return
        return trials, kept

    def _affordable(self, kept: Kept, head: Candidate, delta: float, epochs: int) -> bool:
        needed = clean_episodes(self.settings.budget, delta) * head.length
        return kept.steps + needed <= self.settings.share * epochs * self.cfg.steps_per_epoch

    def _try(
        self, candidate: Candidate, purpose: Purpose, number: int, delta: float, episodes: int
    ) -> tuple[Trial, int]:
        player = make_player(self.cfg, candidate.epoch, candidate.policy, candidate.stats, candidate.budget)
        try:
            if self._envs is None:
                self._envs = make_envs(self.cfg, self._algo)
            return try_policy(
                self._envs,
                player,
                budget=self.settings.budget,
                delta=delta,
                seeds=partial(certification_seed, self.cfg.seed, purpose, number),
                episodes=episodes,
                longest=candidate.length,
                stop=self._stop,
            )
        except RolloutStoppedError:
            raise
        except Exception as error:  # a test that fails must not take the training with it
            why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            return Trial(candidate.epoch, 0, 0, 0.0, 0.0, 1.0, delta, False, f"of an error ({why})"), 0

    def _delivered(self) -> Trial | None:
        """Return the test of the policy in the folder, the best of all that were certified."""
        try:
            found = certified_checkpoint(self._files.run.path)
            return None if found is None else Trial(**found.tree["trial"])
        except (RunError, KeyError, TypeError):
            return None


def _candidate(state: TrainState, following: TrainState, limit: float) -> Candidate:
    """Return the policy that collected an epoch, with the statistics it saw, judged by its episodes."""
    episodes = following.window[-max(following.finished - state.finished, FEWEST) :]
    return judged(state.epoch, episodes, state.policy, following.stats, state.budget, limit)
