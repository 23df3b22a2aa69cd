"""An allowance that the certificate sets: tighter while episodes exceed the limit too often, then looser.

What is watched: the costs of the episodes since the last change, in blocks. A block with more than the
budget over the limit shrinks the share by a factor, unless returns still grow from block to block: a policy
that is learning gets safer by itself, and one that is tightened before it has learnt never will. That is
borne while the mean cost is well within the limit. Blocks
within the budget add up until the certificate opens on all of them, which gives some of the share back. A
certificate opens only well below what it certifies, so the share comes to rest at about half the budget.

Exploration fades the same way: each block without growth lowers the largest deviation that actions may have,
down to an end. A policy that explores less is safer, and closer to what it will be without noise. What noise
does is not mended by a tighter allowance, so while exploration is k times its end, the share only shrinks for
k times as much risk; in between it holds. Steps shrink with exploration: a policy that has learnt what there
is to learn otherwise moves on by a whole trust region an epoch, wherever the noise of a few episodes points.

Why it cannot run away: one move per block, by a fixed factor, between two ends; a share that is too tight
makes the episodes safe, so that the certificate opens and undoes it.
"""

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import NamedTuple

import numpy as np

from steingate.certificates.certificate import Certificate
from steingate.errors import InputError, require_between, require_positive
from steingate.gates.base import Array, Decision, Episodes, Gate, Log, Mode, Ruling, gate_log


@dataclass(frozen=True)
class Pace:
    """How the share moves; it never leaves [``floor``, 1]."""

    start: float = 0.6
    floor: float = 0.1  # below it the price of what exceeds the allowance drowns the reward
    tighten: float = 0.94  # factor after a block with too much risk
    loosen: float = 1.05  # factor when the certificate opens
    settled: float = 1.02  # the same once exploration has ended
    block: int = 128  # episodes between two looks
    growth: float = 1.0  # standard errors by which a block's return must exceed the one before to be growth
    patience: float = 0.5  # share of the limit up to which the mean cost of a growing policy is borne
    fade: float = 0.95  # factor on the largest deviation of actions after a block without growth
    quiet: float = 0.4  # where that ends

    def __post_init__(self) -> None:
        require_positive(self, "start", "floor", "tighten", "loosen", "settled", "block", "fade", "quiet")
        require_between(self, 0.0, inf, "growth", "patience")
        require_between(self, 0.0, 1.0, "fade", "quiet")
        if not self.floor <= self.start <= 1.0:
            raise InputError(f"start is {self.start!r}: it must be between floor ({self.floor!r}) and 1.")
        if not self.tighten < 1.0 < min(self.loosen, self.settled):
            raise InputError(
                f"tighten is {self.tighten!r}, loosen {self.loosen!r} and settled {self.settled!r}: the "
                "first must be below 1, the others above."
            )


class Allowed(NamedTuple):
    """The gate's memory: the share, the episodes since it changed, and the block that is being filled."""

    share: float
    costs: Array  # of the blocks since the last change; all within the budget
    block_cost: Array
    block_return: Array
    before: float = -inf  # mean return of the block before
    before_variance: float = 0.0  # of that mean
    noise: float = 1.0  # largest deviation of actions
    worth: float = 0.0  # size of a return


def allowance_gate(certificate: Certificate, pace: Pace | None = None, first: float = 1.0) -> Gate[Allowed]:
    """Return the gate that always improves and moves ``Decision.budget``, the share of the allowance.

    After every ``pace.block`` episodes

    - a block whose mean risk exceeds the certificate's budget (or k times that, while exploration is
      k times its end) tightens, unless its mean return exceeds the block before by ``pace.growth`` standard
      errors while its mean cost is within ``pace.patience`` limits;
    - one within the budget joins those since the last that was not, and the share loosens if the
      certificate opens on all of them: by ``pace.loosen``, and by ``pace.settled`` once exploration has
      ended;
    - without that growth, ``Decision.noise`` fades, from ``first``, and ``Decision.part`` with it, as its
      square root: the trust region in proportion.

    Returns are compared as they are earned, so their unit does not matter, and nothing depends on how many
    steps are planned. ``Decision.worth`` is the mean size of returns, smoothed over about ten epochs.
    ``gate/bound`` is the certificate's bound in the epochs that end a block.
    """
    pace = pace or Pace()
    none, quiet = np.zeros(0), min(pace.quiet, first)

    def init() -> Allowed:
        return Allowed(pace.start, none, none, none, noise=first)

    def look(seen: Allowed) -> tuple[Allowed, Log]:
        block, returns = seen.block_cost, seen.block_return
        mean, variance = float(returns.mean()), float(returns.var()) / len(returns)
        error = sqrt(variance + seen.before_variance)
        grows = mean - seen.before > pace.growth * error
        held = grows and float(block.mean()) <= pace.patience * certificate.limit
        risk = certificate.evaluate(block).empirical_risk
        within = risk <= certificate.budget
        costs = np.concatenate([seen.costs, block]) if within else block
        result = certificate.evaluate(costs)
        share, kept = seen.share, costs if within else none
        if risk > certificate.budget * (seen.noise / quiet) and not held:
            share = max(share * pace.tighten, pace.floor)
        elif within and result.safe:
            looser = pace.loosen if seen.noise > quiet else pace.settled
            share, kept = min(share * looser, 1.0), none
        noise = seen.noise if grows else max(seen.noise * pace.fade, quiet)
        log = {
            "gate/bound": result.bound,
            "gate/empirical_risk": result.empirical_risk,
            "gate/grows": float(grows),
        }
        return Allowed(share, kept, none, none, mean, variance, noise, seen.worth), log

    def decide(state: Allowed, episodes: Episodes) -> Ruling[Allowed]:
        seen = state._replace(
            block_cost=np.concatenate([state.block_cost, np.maximum(episodes.cost, 0.0)]),
            block_return=np.concatenate([state.block_return, episodes.ret]),
        )
        if len(episodes.ret):
            size = float(np.abs(episodes.ret).mean())
            seen = seen._replace(worth=size if state.worth == 0.0 else 0.9 * state.worth + 0.1 * size)
        log: Log = {"gate/bound": nan, "gate/empirical_risk": nan, "gate/grows": nan}
        if len(seen.block_cost) >= pace.block:
            seen, log = look(seen)
        known, part = float(len(seen.costs) + len(seen.block_cost)), sqrt(seen.noise / first)
        now = {"share": seen.share, "noise": seen.noise, "part": part, "worth": seen.worth, "known": known}
        log |= gate_log(Mode.IMPROVE, episodes, budget=certificate.budget, **now)
        told = Decision(Mode.IMPROVE, inf, budget=seen.share, noise=seen.noise, part=part, worth=seen.worth)
        return Ruling(told, seen, log)

    return Gate(init, decide)
