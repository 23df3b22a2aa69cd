"""Algorithms with one mistake each."""

from dataclasses import dataclass
from typing import NamedTuple

from steingate.algorithms.base import GateOutput, Objective, OnPolicyAlgorithm
from steingate.algorithms.trpo import TRPO


class Holding(NamedTuple):
    seen: object


@dataclass(frozen=True)
class NoMethods(OnPolicyAlgorithm):
    pass


class Undecorated(TRPO):
    foo: int = 3


@dataclass(frozen=True)
class NoDefault(OnPolicyAlgorithm):
    foo: int

    init = decide = update = lambda self, *_: None


@dataclass(frozen=True)
class OnlyObjective(TRPO):
    def decide(self, context, state, episodes):
        return Objective()


@dataclass(frozen=True)
class NoObjective(TRPO):
    def decide(self, context, state, episodes):
        return state, Objective()


@dataclass(frozen=True)
class SetInState(TRPO):
    def init(self, context, policy):
        return Holding({1, 2})


@dataclass(frozen=True)
class FunctionInState(TRPO):
    def decide(self, context, state, episodes):
        return {"f": [len]}, GateOutput(Objective())


@dataclass(frozen=True)
class TextInMetrics(TRPO):
    def decide(self, context, state, episodes):
        return state, GateOutput(Objective(), {"Gate/Phase": "warm-up"})


@dataclass(frozen=True)
class OneMessage(TRPO):
    def decide(self, context, state, episodes):
        return state, GateOutput(Objective(), messages="hello")


@dataclass(frozen=True)
class OnlyPolicy(TRPO):
    def update(self, context, state, policy, batch, objective):
        return policy


@dataclass(frozen=True)
class OtherShapes(TRPO):
    def update(self, context, state, policy, batch, objective):
        return state, {"w": policy["w"]}, {}


@dataclass(frozen=True)
class TextInLoss(TRPO):
    def update(self, context, state, policy, batch, objective):
        return state, policy, {"Loss/Kind": "none"}
