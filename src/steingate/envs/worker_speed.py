"""Whether several processes step foreign environments faster than one: a short measurement."""

import os
import sys
import time
from statistics import median
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from steingate.envs.foreign import OneEnv

STEPS, SECONDS = 30, 0.3  # the measurement ends with the first of them
MESSAGE = 2e-4  # seconds that a question to one process and its answer cost; see benchmarks/bench_workers.py
GAIN = 1.3  # how many times faster several processes must be to be worth starting


def worth_of_processes(
    env: OneEnv, num_envs: int, wanted: int | None, possible: bool, cores: int | None = None
) -> tuple[int, str]:
    """Return how many processes are to step the environments, and a sentence about it for the user.

    Parameters
    ----------
    env
        One of them, which is used for the measurement.
    num_envs
        How many there are.
    wanted
        As many as the user wants; None measures.
    possible
        Whether another process can be told what to make.
    cores
        Processors that may be used; all by default.
    """
    windows = sys.platform == "win32"
    count = min(num_envs, wanted or cores or usable_cores())
    if count < 2:
        return 1, ""
    refused = "on Windows" if windows else "for an environment that other processes cannot find by name"
    advice = "" if windows else "; put it into a file and give env='./FILE.py:NAME' to use several"
    if wanted is None:
        seconds = seconds_of_step(env)
        if seconds is None or gain(seconds, num_envs, count) < GAIN:
            return 1, ""
        if windows or not possible:
            return 1, f"A step takes {seconds * 1e3:.2g} ms, in one process {refused}{advice}."
        return count, f"A step takes {seconds * 1e3:.2g} ms: {count} processes step the environments."
    if windows or not possible:
        return 1, f"workers={wanted} has no effect {refused}{advice}."
    return count, ""


def gain(seconds: float, num_envs: int, count: int) -> float:
    """Return how many times faster ``count`` processes are expected to make a step of all environments.

    >>> gain(1e-6, 8, 2) < 1 < gain(1e-3, 8, 2) < 2
    True
    """
    return num_envs * seconds / (-(-num_envs // count) * seconds + count * MESSAGE)


def seconds_of_step(env: OneEnv) -> float | None:
    """Return the median time of a step under random actions; None if the environment fails.

    What is wrong with it will be said when it is used.
    """
    rng = np.random.default_rng(0)
    space = env.action_space
    times: list[float] = []
    try:
        env.reset(0)
        end = time.perf_counter() + SECONDS
        while len(times) < STEPS and (len(times) < 3 or time.perf_counter() < end):
            if isinstance(space, Discrete):
                action: Any = space.start + rng.integers(space.n)
            else:
                action = rng.uniform(space.low, space.high)
            began = time.perf_counter()
            env.step(action)
            times.append(time.perf_counter() - began)
    except Exception:
        return None
    return median(times)


def usable_cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
