"""What a run says at its end: which policy is certified and by which episodes, or that none is and why."""

from collections.abc import Sequence
from typing import Any

from steingate.certificates.words import at_most
from steingate.monitoring.sentence import percent
from steingate.training.candidates import Trial
from steingate.training.config import RunConfig

LAST, EARLIER = "last", "earlier"


def make_verdict(
    cfg: RunConfig,
    epoch: int,
    best: Trial | None,
    trials: Sequence[Trial],
    finished: bool,
    ends: int,
    why: str = "",
) -> dict[str, Any]:
    """Return the verdict about a run as JSON types; ``sentence`` is it in words.

    Parameters
    ----------
    cfg
        The run.
    epoch
        Epochs so far.
    best
        The test of the best certified policy.
    trials
        Tests that tell something else: of the last policy, and of the closest to a certificate.
    finished
        Whether training is at its end.
    ends
        Tests made at ends of training so far.
    why
        Why nothing could be tested.
    """
    failed = [trial for trial in trials if not trial.certified]
    closest = min(failed, key=lambda trial: trial.bound, default=None) if best is None else None
    last = next((trial for trial in trials if trial.epoch == epoch), None) if finished else None
    which = None if best is None else LAST if finished and best.epoch == epoch else EARLIER
    told = {
        "certified": best is not None,
        "finished": finished,
        "which": which,
        "epoch": epoch,
        "step": epoch * cfg.steps_per_epoch,
        "limit": cfg.cost_limit,
        "budget": cfg.certify.budget,
        "delta": cfg.certify.delta,
        "policy": _numbers(cfg, best),
        "last": _numbers(cfg, last),
        "closest": _numbers(cfg, closest),
        "ends": ends,
        "why": why,
    }
    return {**told, "sentence": _sentence(cfg, best, which, last, closest, finished, why)}


def _numbers(cfg: RunConfig, trial: Trial | None) -> dict[str, Any] | None:
    if trial is None:
        return None
    return {
        "epoch": trial.epoch,
        "step": trial.epoch * cfg.steps_per_epoch,
        "episodes": trial.episodes,
        "over": trial.over,
        "return": trial.ret if trial.episodes else None,
        "cost": trial.cost if trial.episodes else None,
        "bound": trial.bound,
        "certified": trial.certified,
        "why": trial.why,
    }


def _sentence(
    cfg: RunConfig,
    best: Trial | None,
    which: str | None,
    last: Trial | None,
    closest: Trial | None,
    finished: bool,
    why: str,
) -> str:
    limit, budget, sure = f"{cfg.cost_limit:g}", percent(cfg.certify.budget), percent(1.0 - cfg.certify.delta)
    if best is not None:
        step = f"{best.epoch * cfg.steps_per_epoch:,}"
        name = f"the last policy (step {step})" if which == LAST else f"the policy of step {step}"
        text = (
            f"Certified: {name} cost more than {limit} in {_count(best)}, so with {sure} confidence it does "
            f"in at most {at_most(best.bound)} of its episodes ({budget} is allowed); "
            f"mean return {best.ret:.4g}"
        )
        if not finished:
            return f"{text}; training has not ended."
        if which == LAST or last is None:
            return f"{text}."
        if last.certified:
            return f"{text}, while the last policy is certified too but returns {last.ret:.4g}."
        return f"{text}; the last policy is not certified, it {_failure(last, limit)}."
    start = f"No policy is certified to cost more than {limit} in at most {budget} of its episodes"
    if closest is None:
        return f"{start}: {why or 'none has been tested yet'}."
    name = "the last one" if last is closest else f"that of step {closest.epoch * cfg.steps_per_epoch:,}"
    advice = "train longer, or with a lower cost_limit" if finished else "training has not ended"
    return f"{start}: the closest, {name}, {_failure(closest, limit, sure)}; {advice}."


def _count(trial: Trial) -> str:
    return f"{trial.over} of {trial.episodes} fresh episodes"


def _failure(trial: Trial, limit: str, sure: str = "") -> str:
    if trial.why:
        return f"could not be tested to the end because {trial.why}"
    bound = f" (with {sure} confidence at most {at_most(trial.bound)})" if sure and trial.bound < 1.0 else ""
    return f"cost more than {limit} in {_count(trial)}{bound}"
