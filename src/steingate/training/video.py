"""Videos of a trained policy, rendered without a display."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from steingate.algorithms.base import EnvParams
from steingate.envs.wrappers import VectorEnvWrapper
from steingate.errors import InputError, needs
from steingate.storage.files import temporary_path
from steingate.tasks.catalog import TASKS
from steingate.training.environment import TrainerEnv, make_envs
from steingate.training.play import Player, play

Frame = npt.NDArray[np.uint8]

_ENCODERS = {
    # H.264 in the pixel format that every browser plays
    ".mp4": ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-crf", "20", "-f", "mp4"],
    # one palette for the whole video and no dithering, so that only changed rectangles are stored
    ".gif": [
        "-vf", "split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none:diff_mode=rectangle",
        "-loop", "0", "-f", "gif",
    ],
}  # fmt: skip
FPS = {".mp4": 30.0, ".gif": 15.0}  # default frames per second, approximately
_HOLD = 0.5  # seconds for which the last frame of an episode is shown

RED = (214, 40, 40)
_DARK, _WHITE, _GRAY = (28, 38, 48), (255, 255, 255), (160, 172, 184)
_font = cache(ImageFont.load_default)
_MIN_WIDTH = 240  # smaller frames are enlarged, so that the text below them can be read


class EpisodeStatus(NamedTuple):
    """Running totals of an episode; ``costly`` tells whether a step since the last frame had a cost."""

    step: int = 0
    cost: float = 0.0
    ret: float = 0.0
    costly: bool = False


class RecordingEnv(VectorEnvWrapper):
    """Wrapper of a vector environment of one that passes (frame, status, end of episode) to ``show``.

    At the end of an episode the last frame is shown again with the final totals, because the environment has already
    been reset by then.
    """

    def __init__(self, envs: Any, show: Callable[[Frame, EpisodeStatus, bool], None], every: int) -> None:
        super().__init__(envs)
        self.single_observation_space = envs.single_observation_space
        self._show, self._every = show, every

    def reset(self, **options: Any) -> Any:
        """Start an episode and show its first frame."""
        result = self.envs.reset(**options)
        self._status, self._ended = EpisodeStatus(), False
        self._render()
        return result

    def step(self, actions: Any) -> Any:
        """Step and show; steps after the end of the episode are not shown."""
        result = self.envs.step(actions)
        if self._ended:
            return result
        _, reward, terminated, truncated, info = result
        step, cost, ret, costly = self._status
        step_cost, step_reward = float(info["cost"][0]), float(info.get("original_reward", reward)[0])
        self._status = EpisodeStatus(step + 1, cost + step_cost, ret + step_reward, costly or step_cost > 0.0)
        self._ended = bool(terminated[0] or truncated[0])
        if self._ended:
            self._show(self._frame, self._status, True)
        elif self._status.step % self._every == 0:
            self._render()
        return result

    def _render(self) -> None:
        frame: Any = None
        with suppress(NotImplementedError):
            frame = self.envs.render()[0]
        if np.ndim(frame) != 3:
            raise InputError(
                "The environment gives no pictures: let its render() return an RGB array, as Gymnasium's "
                'render_mode "rgb_array" does.'
            )
        self._frame: Frame = np.asarray(frame)
        self._show(self._frame, self._status, False)
        self._status = self._status._replace(costly=False)


def film_episodes(
    player: Player, seeds: list[int], out: str | Path, sample: bool = False, size: int = 480, camera: str = "fixed",
    **recording: Any,
) -> None:  # fmt: skip
    """Make the environment of a policy and call ``record_video``; native tasks have ``size`` pixels per side."""
    options: dict[str, Any] = {"render_mode": "rgb_array"}
    if player.cfg.env.removeprefix("steingate/") in TASKS:
        options |= {"width": size, "height": size, "camera": camera}
    envs = make_envs(player.cfg, num_envs=1, params=EnvParams(player.cost_budget_fraction), **options)
    with closing(envs):
        record_video(envs, player, seeds, out, sample, **recording)


def record_video(
    envs: Any, player: Player, seeds: list[int], out: str | Path, sample: bool, every: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:  # fmt: skip
    """Write one episode per seed to an MP4 or GIF file; return the number of frames.

    A strip below each frame shows the step, the running cost and the return. Frames are outlined in red if a step since
    the last frame had a cost. The last frame of an episode is shown for half a second.

    Parameters
    ----------
    envs : a vector environment of one, made for rendering
    player, seeds, sample, stop : as in ``steingate.training.play.play``
    out : the file; its suffix decides the format
    every : show one frame every so many steps; by default about 30 per second in a video and 15 in a GIF
    """
    target = Path(out)
    suffix = target.suffix.lower()
    if suffix not in _ENCODERS:
        raise InputError(f"A video cannot be written to {str(out)!r}: end the name with .mp4 or .gif.")
    rate = float(envs.metadata.get("render_fps") or 30)
    every = every or max(1, round(rate / FPS[suffix]))
    hold = max(1, round(_HOLD * rate / every))
    frames = 0

    def show(frame: Frame, status: EpisodeStatus, ended: bool) -> None:
        nonlocal frames
        annotated = annotate(frame, status, player.cfg.cost_limit)
        for _ in range(hold if ended else 1):
            frames += 1
            write(annotated)

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _encoder(target, rate / every) as write:
            play(cast(TrainerEnv, RecordingEnv(envs, show, every)), player, seeds, sample, stop)
    except OSError as error:
        raise InputError(f"The video cannot be written to {target}: {error.strerror or error}.") from error
    return frames


@contextmanager
def _encoder(target: Path, fps: float) -> Iterator[Callable[[Frame], None]]:
    """Pipe frames of even size into ffmpeg; the file is renamed to its final name when it is complete."""
    with needs("steingate render", "train"):
        from imageio_ffmpeg import get_ffmpeg_exe
    partial, process = temporary_path(target), None

    def write(frame: Frame) -> None:
        nonlocal process
        if process is None:
            size = f"{frame.shape[1]}x{frame.shape[0]}"
            source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", f"{fps:g}", "-i", "-", "-an"]
            result = [*_ENCODERS[target.suffix.lower()], str(partial)]
            command, pipe = [get_ffmpeg_exe(), "-y", "-loglevel", "error", *source, *result], subprocess.PIPE
            # In a session of its own, Ctrl-C reaches only this process, which then ends ffmpeg.
            process = subprocess.Popen(command, stdin=pipe, stderr=pipe, start_new_session=True)
        try:
            process.stdin.write(frame.tobytes())  # type: ignore[union-attr]
        except OSError as error:  # called by the environment, which is not the cause
            raise InputError(f"The video cannot be written to {target}: {error.strerror or error}.") from error

    try:
        partial.touch()  # before any episode is played
        try:
            yield write
        finally:
            errors = process.communicate()[1] if process is not None else b""
        if process is not None and process.returncode:
            lines = errors.decode(errors="replace").strip().splitlines()
            raise OSError(lines[-1] if lines else f"ffmpeg ended with status {process.returncode}")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def annotate(frame: Frame, status: EpisodeStatus, limit: float) -> Frame:
    """Return a frame with a strip of numbers below it, outlined in red if a step had a cost.

    Height and width are even, as video formats require.

    Examples
    --------
    >>> annotate(np.zeros((120, 240, 3), np.uint8), EpisodeStatus(7, 2.0, 0.5), 25.0).shape
    (142, 240, 3)
    """
    frame = np.asarray(frame, np.uint8)[..., :3]
    factor = -(-_MIN_WIDTH // frame.shape[1])
    frame = frame.repeat(factor, axis=0).repeat(factor, axis=1)
    height, width = (side // 2 * 2 for side in frame.shape[:2])
    size = max(width // 32, 10)
    background, names = (RED, _WHITE) if status.costly else (_DARK, _GRAY)
    strip = Image.new("RGB", (width, (2 * size + 3) // 2 * 2), background)
    draw, font, middle = ImageDraw.Draw(strip), _font(size), strip.height / 2
    cost = f"{status.cost:.4g} of {limit:.4g}"
    texts = ((0.025, "step", f"{status.step}"), (0.29, "cost", cost), (0.70, "return", f"{status.ret:.1f}"))
    for place, name, value in texts:
        draw.text((place * width, middle), name, font=font, fill=names, anchor="lm")
        after = place * width + draw.textlength(f"{name} ", font=font)
        draw.text((after, middle), value, font=font, fill=_WHITE, anchor="lm")
    result = np.concatenate([frame[:height, :width], np.asarray(strip)])
    if status.costly:
        rim = max(width // 80, 3)
        for edge in (np.s_[:rim], np.s_[height - rim : height], np.s_[:height, :rim], np.s_[:height, -rim:]):
            result[edge] = RED
    return result
