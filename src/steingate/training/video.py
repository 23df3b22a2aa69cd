"""Videos of a trained policy, without a display."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from steingate.errors import InputError, MissingExtraError
from steingate.training.environment import TrainerEnv
from steingate.training.evaluate import Player, play

_CODES = {
    # H.264 that every browser plays
    ".mp4": ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-f", "mp4"],
    # 256 colours for the whole film, and without dithering: only what has moved is stored
    ".gif": [
        "-vf", "split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none:diff_mode=rectangle",
        "-loop", "0", "-f", "gif",
    ],
}  # fmt: skip
FORMATS = tuple(_CODES)
GIF_FPS = 15.0  # about what a GIF shows; each frame of one is a picture of its own


@runtime_checkable
class FilmedEnv(TrainerEnv, Protocol):
    """A vector environment made for rendering."""

    metadata: dict[str, Any]

    def render(self) -> Any:
        """Return one picture for each environment."""
        ...


class Filmed:
    """A vector environment of one that hands a frame of every step to ``show``."""

    def __init__(self, envs: FilmedEnv, show: Callable[[np.ndarray], None], every: int) -> None:
        self.envs = envs
        self.num_envs = envs.num_envs
        self.single_observation_space = envs.single_observation_space
        self.single_action_space = envs.single_action_space
        self.at_work = envs.at_work
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

    def close(self) -> None:
        """Let go of the environment."""
        self.envs.close()

    def _frame(self) -> None:
        self._show(np.asarray(self.envs.render()[0]))


def film(
    envs: FilmedEnv,
    player: Player,
    seeds: list[int],
    out: str | Path,
    sample: bool,
    every: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[int], None] = lambda frames: None,
) -> int:
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
        Show one frame in so many steps; None shows each in a video and about fifteen a second in a GIF.
    stop
        Asked before every step; it may raise to end the film.
    tell
        Hears how many frames there are so far.
    """
    target = Path(out)
    if target.suffix.lower() not in FORMATS:
        raise InputError(f"A video cannot be written to {str(out)!r}: end the name with .mp4 or .gif.")
    rate = float(envs.metadata.get("render_fps") or 30)
    if every is None:
        every = max(1, round(rate / GIF_FPS)) if target.suffix.lower() == ".gif" else 1
    shown = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _coder(target, rate / every) as add:

            def show(frame: np.ndarray) -> None:
                nonlocal shown
                shown += 1
                tell(shown)
                add(
                    np.ascontiguousarray(
                        frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2], np.uint8
                    )
                )

            play(Filmed(envs, show, every), player, seeds, sample, stop)
    except OSError as error:
        raise InputError(f"The video cannot be written to {target}: {error.strerror or error}.") from error
    return shown


@contextmanager
def _coder(target: Path, fps: float) -> Iterator[Callable[[np.ndarray], None]]:
    """Pipe frames of even size into ffmpeg; the file appears when it is whole."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError as error:
        raise MissingExtraError("steingate render", "train") from error
    partial = target.with_name(f".{target.name}.part")
    coder: subprocess.Popen[bytes] | None = None

    def add(frame: np.ndarray) -> None:
        nonlocal coder
        if coder is None:
            size = f"{frame.shape[1]}x{frame.shape[0]}"
            source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", f"{fps:g}", "-i", "-"]
            result = ["-an", *_CODES[target.suffix.lower()], str(partial)]
            command = [get_ffmpeg_exe(), "-y", "-loglevel", "error", *source, *result]
            # A session of its own: Ctrl-C is for this process, which then ends the other.
            coder = subprocess.Popen(
                command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        assert coder.stdin is not None
        coder.stdin.write(frame.tobytes())

    try:
        try:
            yield add
        finally:
            said = coder.communicate()[1] if coder is not None else b""
        if coder is not None and coder.returncode:
            lines = said.decode(errors="replace").strip().splitlines()
            raise OSError(lines[-1] if lines else f"ffmpeg ended with status {coder.returncode}")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
