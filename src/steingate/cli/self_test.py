"""The self-test of ``steingate doctor``: small pieces of work whose right results are known."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from time import perf_counter
from typing import Any

from steingate.errors import MissingExtraError, install_command

TASK = "SafetyPointCircle1-v0"
_SMALL: dict[str, Any] = {
    "num_envs": 2,
    "steps_per_epoch": 1200,
    "hidden": "16,16",
    "critic_passes": 2,
    "algo": "cpo",
}


class WrongError(Exception):
    """A part of the self-test had another result than it must have."""


@dataclass(frozen=True)
class Outcome:
    """What became of one part."""

    name: str
    status: str  # ok, failed or skipped
    seconds: float
    note: str


def attempt(name: str, test: Callable[[], str], extra: str) -> Outcome:
    """Run one part; whatever it raises is a failure, but for packages of an extra that is not installed."""
    start = perf_counter()
    try:
        status, note = "ok", test()
    except (ModuleNotFoundError, MissingExtraError) as error:
        missing = error.name or "optional packages"
        status = "skipped" if extra else "failed"
        note = f"no {missing}: {install_command(extra)}" if extra else f"no {missing}, which is always needed"
    except Exception as error:  # the point is to tell any of them
        status, note = "failed", f"{type(error).__name__}: {error}"
    return Outcome(name, status, perf_counter() - start, note)


def certificate() -> str:
    """Certify 29 harmless episodes: the exact bound is 1 - 0.05^(1/29)."""
    from steingate import Certificate

    found = Certificate.preset("confident", limit=25.0).evaluate([3.0] * 29)
    _require(isclose(found.bound, 1.0 - 0.05 ** (1 / 29), rel_tol=1e-12), f"the bound is {found.bound!r}")
    _require(found.safe, "the gate is shut")
    return f"29 harmless episodes: risk at most {found.bound:.4f}"


def monitor() -> str:
    """Watch harmless episodes until they are certified."""
    from steingate import Monitor

    watch = Monitor(limit=25, budget=0.1, delta=0.05)
    while not watch.certified and watch.episodes < 100:
        watch.update(3.0)
    _require(watch.episodes == 36, f"certified at episode {watch.episodes} instead of 36")
    return "certified at episode 36"


def simulation() -> str:
    """Step a task twice from the same seed."""
    import numpy as np

    from steingate.envs.make import make_vec

    sums = []
    for _ in range(2):
        envs = make_vec(TASK, 2)
        obs, _ = envs.reset(seed=0)
        total = obs.copy()
        for step in range(50):
            obs, *_ = envs.step(np.full((2, 2), 0.5 if step % 2 else 1.0))
            total += obs
        envs.close()
        sums.append(total)
    _require(bool(np.isfinite(sums[0]).all()), "an observation is not finite")
    _require(bool(np.array_equal(*sums)), "the same seed gave other observations")
    return "same seed, same observations"


def picture() -> str:
    """Draw a task without a display."""
    import gymnasium

    env = gymnasium.make(f"steingate/{TASK}", render_mode="rgb_array", width=160, height=120)
    env.reset(seed=0)
    frame = env.render()
    env.close()
    _require(getattr(frame, "shape", None) == (120, 160, 3), "the frame has another shape")
    _require(int(frame.max()) > int(frame.min()), "the frame is empty")  # type: ignore[union-attr]
    return "160 x 120 pixels"


def training() -> str:
    """Train two epochs at once, and one after the other: the policies are equal, bit for bit."""
    import numpy as np

    from steingate import load, train
    from steingate.training.loop import resume

    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, epochs in (("whole", 2), ("parts", 1)):
            steps = 1200 * epochs
            run = train(env=TASK, total_steps=steps, out=str(Path(folder) / name), quiet=True, **_SMALL)
            paths.append(run.path)
        resume(paths[1], quiet=True, total_steps=2400)
        whole, parts = (load(path, "last").policy for path in paths)
    same = [np.array_equal(a, b) for a, b in zip(whole.weights, parts.weights, strict=True)]
    _require(all(same), "a resumed run differs from an unbroken one")
    return "a resumed run equals an unbroken one"


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise WrongError(otherwise)


TESTS: dict[str, tuple[Callable[[], str], str]] = {
    "certificate": (certificate, ""),
    "monitor": (monitor, ""),
    "simulation": (simulation, "envs"),
    "picture": (picture, "envs"),
    "training": (training, "train"),
}
