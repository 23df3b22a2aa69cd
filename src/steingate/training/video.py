"""Videos of a trained policy, without a display."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from steingate.errors import InputError, MissingExtraError
from steingate.training.environment import TrainerEnv
from steingate.training.overlay import Numbers, Picture, annotate
from steingate.training.play import Player, play

_CODES = {
    # H.264 that every browser plays
    ".mp4": ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-crf", "20", "-f", "mp4"],
    # 256 colors for the whole film, and without dithering: only what has moved is stored
    ".gif": [
        "-vf", "split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none:diff_mode=rectangle",
        "-loop", "0", "-f", "gif",
    ],
}  # fmt: skip
FORMATS = tuple(_CODES)
# About what is shown in a second, where no more is asked for: drawing takes nearly all of the time.
FPS = {".mp4": 30.0, ".gif": 15.0}
_HOLD = 0.5  # seconds for which the end of an episode stands


@runtime_checkable
class FilmedEnv(TrainerEnv, Protocol):
    """A vector environment made for rendering."""

    metadata: dict[str, Any]

    def render(self) -> Any:
        """Return one picture for each environment."""
        ...


class Filmed:
    """A vector environment of one that hands pictures, their numbers and whether they end it to ``show``.

    An episode ends with its last picture once more, under the numbers that it ended with: the environment
    itself has by then gone on to the next one.
    """

    def __init__(self, envs: FilmedEnv, show: Callable[[Picture, Numbers, bool], None], every: int) -> None:
        self.envs = envs
        self.num_envs = envs.num_envs
        self.single_observation_space = envs.single_observation_space
        self.single_action_space = envs.single_action_space
        self.at_work = envs.at_work
        self._show = show
        self._every = every
        self._over = False
        self._now = Numbers(0, 0.0, 0.0)
        self._picture: Picture = np.zeros((2, 2, 3), np.uint8)

    def reset(self, **options: Any) -> Any:
        """Start an episode and show where it starts."""
        answer = self.envs.reset(**options)
        self._now, self._over = Numbers(0, 0.0, 0.0), False
        self._frame()
        return answer

    def step(self, actions: Any) -> Any:
        """Step and show; what follows the end of the episode is not shown."""
        answer = self.envs.step(actions)
        if self._over:
            return answer
        _, reward, terminated, truncated, info = answer
        before, cost = self._now, float(info["cost"][0])
        ret = before.ret + float(info.get("original_reward", reward)[0])
        self._now = Numbers(before.step + 1, before.cost + cost, ret, before.costly or cost > 0.0)
        self._over = bool(terminated[0] or truncated[0])
        if self._over:
            self._show(self._picture, self._now, True)
        elif self._now.step % self._every == 0:
            self._frame()
        return answer

    def close(self) -> None:
        """Let go of the environment."""
        self.envs.close()

    def _frame(self) -> None:
        try:
            picture = self.envs.render()[0]
        except NotImplementedError:
            picture = None
        if np.ndim(picture) != 3:
            raise InputError(
                "The environment gives no pictures: let its render() return an RGB array, as Gymnasium's "
                'render_mode "rgb_array" does.'
            )
        self._picture = np.asarray(picture)
        self._show(self._picture, self._now, False)
        self._now = self._now._replace(costly=False)


def film(
    envs: FilmedEnv,
    player: Player,
    seeds: list[int],
    out: str | Path,
    sample: bool,
    every: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[int, int | None], None] = lambda steps, total: None,
    lengths: Sequence[int] | None = None,
) -> int:
    """Write the episodes of ``seeds``, one after the other, to an MP4 or GIF file; return how many frames.

    Below each picture stand the step, the running cost and the return; steps that cost are framed in red,
    also those between two pictures. The end of an episode stands for half a second.

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
        Show one frame in so many steps; None shows about 30 a second in a video and 15 in a GIF.
    stop
        Asked before every step; it may raise to end the film.
    tell
        Hears after each frame how many steps are done, and of how many if that is known.
    lengths
        How long the episodes are, where that is known; else the environment's own limit is the estimate.
    """
    target = Path(out)
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"A video cannot be written to {str(out)!r}: end the name with .mp4 or .gif.")
    rate = float(envs.metadata.get("render_fps") or 30)
    if every is None:
        every = max(1, round(rate / FPS[suffix]))
    hold = max(1, round(_HOLD * rate / every))
    left = _expected_lengths(envs, len(seeds), lengths)
    shown = done = 0  # frames, and steps of the episodes that have ended
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _coder(target, rate / every) as add:

            def show(picture: Picture, numbers: Numbers, over: bool) -> None:
                nonlocal shown, done
                frame = annotate(picture, numbers, player.cfg.cost_limit)
                for _ in range(hold if over else 1):
                    shown += 1
                    add(frame)
                if over and left:
                    left[0] = numbers.step
                tell(done + numbers.step, done + sum(left) if left else None)
                if over:
                    done += numbers.step
                    del left[:1]

            play(Filmed(envs, show, every), player, seeds, sample, stop)
    except OSError as error:
        raise InputError(f"The video cannot be written to {target}: {error.strerror or error}.") from error
    return shown


def _expected_lengths(envs: FilmedEnv, episodes: int, lengths: Sequence[int] | None) -> list[int]:
    """Return how long each episode will be at most; nothing where nobody knows."""
    if lengths is not None:
        return [int(length) for length in lengths]
    longest = getattr(envs, "max_episode_steps", None)
    return [int(longest)] * episodes if longest else []


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
