"""Foreign environments behind the same VectorEnv protocol as the native tasks.

A foreign environment is anything with ``reset(seed=...) -> (obs, info)`` and a ``step`` that returns either
Gymnasium's five values with ``info["cost"]`` or the six values ``(obs, reward, cost, terminated, truncated,
info)``. A cost function ``cost(obs, action, next_obs, info) -> float`` replaces whatever cost the environment
gives; it sees observations and actions as the environment itself does.

The environments are stepped one after the other in this process, or by several processes at once (see
:mod:`steingate.envs.worker_pool`), with the same results. Seeds are handed on as they are (modulo 2**32,
which is all that older generators take), and the reset at the end of an episode gives no seed, so the
environment's own stream goes on. A run that starts each epoch from a reset with new seeds therefore repeats itself exactly
whenever the environment depends on nothing but its seed and its actions.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from steingate.envs.foreign import Cost, OneEnv
from steingate.envs.worker_pool import Here, Order, Workers
from steingate.envs.worker_speed import worth_of_processes
from steingate.errors import InputError, SteingateError
from steingate.tasks.inputs import checked_seeds


class ForeignVectorEnv(VectorEnv[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]):
    """N environments of somebody else's making, seen as one native batch.

    Observations are flat float64 vectors; actions flat Boxes, or choices of a Discrete space.
    ``info["cost"]`` holds the cost of every step, also of those that end an episode. An environment that ends
    is reset in the same step; its last observation is then its row of ``info["final_obs"]`` (rows valid where
    ``info["_final_obs"]``), its last info is in ``info["final_info"]``.

    Parameters
    ----------
    factory : makes one environment
    num_envs : number of environments
    name : how messages call the environment
    cost : cost of a transition, for environments that give none or another one
    max_episode_steps : truncate after so many steps; without it the environment decides alone
    copy : False returns the observation buffer itself, overwritten by the next step
    workers : processes that step them; 1 for this one alone, None to measure what is faster
    order : how to tell another process what to make; None if that is not possible
    cores : processors that may be used; all by default

    Attributes
    ----------
    notes : what the user should know about who steps the environments, one sentence each
    """

    _crew: Here | Workers | None = None  # nobody yet, if making it fails

    def __init__(
        self,
        factory: Callable[[], Any],
        num_envs: int,
        *,
        name: str,
        cost: Cost | None = None,
        max_episode_steps: int | None = None,
        copy: bool = True,
        workers: int | None = 1,
        order: Order | None = None,
        cores: int | None = None,
    ) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers is {workers}: a positive number is expected, or none to measure.")

        def one() -> OneEnv:
            return OneEnv(factory(), name, cost, max_episode_steps)

        self.name, self.num_envs = name, num_envs
        self.notes: list[str] = []
        first = self._first(one, workers, order, cores)
        self.max_episode_steps = first.max_episode_steps
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {**getattr(first.env, "metadata", {}), "autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = getattr(first.env, "render_mode", None)
        self._copy = copy
        self._observations = np.zeros((num_envs, *self.single_observation_space.shape))

    def _first(
        self, one: Callable[[], OneEnv], workers: int | None, order: Order | None, cores: int | None
    ) -> OneEnv:
        """Decide who steps the environments, and return one of them, or one that is closed already."""
        if self.num_envs > 1 and workers != 1:
            first = one()
            count, note = worth_of_processes(first, self.num_envs, workers, order is not None, cores)
            first.close()
            if note:
                self.notes.append(note)
            if count > 1 and order is not None:
                try:
                    self._crew = Workers(order, self.name, self.num_envs, count)
                    return first
                except (SteingateError, OSError) as error:
                    self.notes.append(f"All environments are stepped in one process: {error}")
        here = Here(one, self.num_envs)
        self._crew = here
        return here.envs[0]

    @property
    def envs(self) -> list[Any]:
        """The environments themselves; none where other processes have them."""
        return [one.env for one in self._crew.envs] if isinstance(self._crew, Here) else []

    @property
    def workers(self) -> int:
        """How many processes step the environments."""
        return self._team.processes

    @property
    def at_work(self) -> int | None:
        """Which environment has been called last."""
        return self._team.at_work

    @property
    def _team(self) -> Here | Workers:
        assert self._crew is not None
        return self._crew

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Start new episodes and return what they show; an integer seed means ``seed + i`` for row i."""
        infos: dict[str, Any] = {}
        seeds = [None if one is None else one % 2**32 for one in checked_seeds(seed, self.num_envs)]
        for i, (obs, info) in enumerate(self._team.reset(seeds, options)):
            self._observations[i] = obs
            infos = self._add_info(infos, info, i)
        return self._returned(), infos

    def step(
        self, actions: ArrayLike
    ) -> tuple[
        NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Step every environment once and reset those that ended."""
        given = self._checked(actions)
        rewards, costs = np.zeros(self.num_envs), np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, dtype=np.bool_)
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        infos: dict[str, Any] = {}
        final_infos: dict[str, Any] = {}
        final_obs = np.zeros_like(self._observations)
        for i, told in enumerate(self._team.step(given)):
            self._observations[i], rewards[i], costs[i], terminated[i], truncated[i], info, final = told
            infos = self._add_info(infos, info, i)
            if final is not None:
                final_infos = self._add_info(final_infos, {**info, "cost": costs[i]}, i)
                final_obs[i] = final
        infos["cost"] = costs
        infos["_cost"] = np.ones(self.num_envs, dtype=np.bool_)
        ended = terminated | truncated
        if ended.any():
            infos["final_obs"], infos["_final_obs"] = final_obs, ended
            infos["final_info"], infos["_final_info"] = final_infos, ended.copy()
        return self._returned(), rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...]:
        """Return one frame per environment, as the environments draw themselves."""
        return tuple(self._team.render())

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return the whole state, if the environments have ``snapshot`` and ``restore`` themselves."""
        states = self._team.snapshot()
        state: dict[str, NDArray[Any]] = {
            "elapsed": np.array([elapsed for _, elapsed in states], dtype=np.int64),
            "observations": self._observations.copy(),
        }
        for i, (parts, _) in enumerate(states):
            state.update({f"env{i}/{key}": value for key, value in parts.items()})
        return state

    def restore(self, snapshot: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the observations that were current at a snapshot after going back to it."""
        elapsed = snapshot["elapsed"]
        if elapsed.shape != (self.num_envs,):
            raise InputError(
                f"This snapshot holds {elapsed.size} environments: {self.num_envs} are expected."
            )
        starts = [f"env{i}/" for i in range(self.num_envs)]
        parts = [
            {key.removeprefix(start): value for key, value in snapshot.items() if key.startswith(start)}
            for start in starts
        ]
        self._team.restore([(own, int(steps)) for own, steps in zip(parts, elapsed, strict=True)])
        self._observations[:] = snapshot["observations"]
        return self._observations.copy()

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments, and end the processes that step them."""
        if self._crew is not None:
            self._crew.close()

    def _checked(self, actions: ArrayLike) -> NDArray[Any]:
        """Return one action for each environment, or say what is wrong with them."""
        space = self.single_action_space
        given = np.asarray(actions)
        choice = isinstance(space, Discrete)
        given = given if choice and np.issubdtype(given.dtype, np.integer) else np.asarray(given, np.float64)
        if given.shape != self.action_space.shape:
            raise InputError(
                f"Actions for {self.name!r} have shape {given.shape} instead of {self.action_space.shape}."
            )
        if isinstance(space, Discrete):
            low, high = int(space.start), int(space.start + space.n) - 1
            wrong = (given < low) | (given > high) | (given != np.floor(given))
            if wrong.any():
                i = int(wrong.argmax())
                raise InputError(
                    f"The action for environment {i} of {self.name!r} is {given[i].item()}: "
                    f"a whole number from {low} to {high} is expected."
                )
            return given.astype(np.int64)
        bad = ~np.isfinite(given).all(axis=1)
        if bad.any():
            raise InputError(
                f"The action for environment {int(bad.argmax())} of {self.name!r} is not finite."
            )
        return given

    def _returned(self) -> NDArray[np.float64]:
        """Return the observations, copied unless the caller asked for the buffer."""
        return self._observations.copy() if self._copy else self._observations
