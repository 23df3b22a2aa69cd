"""Videos of a trained policy, without a display."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from steingate.errors import InputError, MissingExtraError
from steingate.training.evaluate import Player, play

FORMATS = (".mp4", ".gif")


class Filmed:
    """A vector environment of one that hands a frame of every step to ``show``."""

    def __init__(self, envs: Any, show: Callable[[np.ndarray], None], every: int) -> None:
        self.envs = envs
        self.num_envs = envs.num_envs
        self.single_action_space = envs.single_action_space
        self._show = show
        self._every = every
        self._count = 0
        self._over = False

    def reset(self, **options: Any) -> Any:
        """Start an episode and show where it starts."""
        answer = self.envs.reset(**options)
        self._count, self._over = 0, False
        self._frame()
        return answer

    def step(self, actions: Any) -> Any:
        """Step and show; what follows the end of the episode is not shown."""
        answer = self.envs.step(actions)
        self._over = self._over or bool(answer[2][0] or answer[3][0])
        if not self._over:
            self._count += 1
            if self._count % self._every == 0:
                self._frame()
        return answer

    def _frame(self) -> None:
        self._show(np.asarray(self.envs.render()[0]))


def film(envs: Any, player: Player, seeds: list[int], out: str | Path, sample: bool, every: int) -> int:
    """Write the episodes of ``seeds``, one after the other, to an MP4 or GIF file; return how many frames.

    Parameters
    ----------
    envs
        A vector environment of one, made for rendering.
    player
        Who acts.
    seeds
        One per episode.
    out
        The file; its suffix decides the format.
    sample
        Draw actions instead of taking the mean.
    every
        Show one frame in so many steps.
    """
    target = Path(out)
    if target.suffix.lower() not in FORMATS:
        raise InputError(f"A video cannot be written to {str(out)!r}: end the name with .mp4 or .gif.")
    try:
        import imageio
    except ImportError as error:
        raise MissingExtraError("render", "train") from error
    fps = envs.metadata.get("render_fps") or 30
    shown = 0
    # GIF viewers slow down whatever asks for less than 20 ms a frame.
    if target.suffix.lower() == ".gif":
        timing = {"duration": max(1000.0 * every / fps, 20.0), "loop": 0}
    else:
        timing = {"fps": fps / every, "macro_block_size": 1, "quality": 8}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with imageio.get_writer(str(target), **timing) as writer:

            def show(frame: np.ndarray) -> None:
                nonlocal shown
                shown += 1
                height, width = frame.shape[0] // 2 * 2, frame.shape[1] // 2 * 2  # the codec wants even sizes
                writer.append_data(frame[:height, :width])

            play(Filmed(envs, show, every), player, seeds, sample)
    except OSError as error:
        raise InputError(f"The video cannot be written to {target}: {error.strerror or error}.") from error
    return shown
