"""Videos: whole episodes, their numbers below each frame, and red where a step had a cost."""

import subprocess

import numpy as np
import pytest
from imageio_ffmpeg import get_ffmpeg_exe
from tests.training.probes import Walk
from tests.training.runs_of_probes import tiny

from steingate.envs.make import make_vec
from steingate.errors import InputError
from steingate.training.play import load_player, play
from steingate.training.runner import train
from steingate.training.seeding import evaluation_seeds
from steingate.training.video import RED, EpisodeStatus, RecordingEnv, annotate, record_video


class Drawn(Walk):
    """A walk with pictures, which only costs to the right of 0.5."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012
    render_mode = "rgb_array"

    def step(self, action):
        obs, reward, terminated, truncated, _ = super().step(action)
        return obs, reward, terminated, truncated, {"cost": float(self.x > 0.5)}

    def render(self):
        frame = np.zeros((33, 64, 3), np.uint8)
        frame[:, int(np.clip(32 + 8 * self.x, 0, 63))] = 255
        return frame


@pytest.fixture(scope="module")
def player(tmp_path_factory):
    run = train(tiny(tmp_path_factory.mktemp("runs")), quiet=True)
    return load_player(run, print, "last")


def envs():
    return make_vec(Drawn, 1, copy=False)


def frames_of(path, width=256, height=132 + 22):
    command = [get_ffmpeg_exe(), "-loglevel", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3)


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_a_video_shows_whole_episodes(player, tmp_path, suffix):
    seeds = evaluation_seeds(0, 2)
    lengths = play(envs(), player, seeds, False).length
    out = tmp_path / "sub" / f"video{suffix}"
    frames = record_video(envs(), player, seeds, out, False, 1)
    # The first observation, every step but the last, and the end for half a second.
    assert frames == lengths.sum() + 2 * 10
    shown = frames_of(out)
    assert len(shown) == frames
    assert shown[0].max() > 200
    assert shown[0].min() < 50


def test_the_numbers_are_those_of_the_episode():
    """Every third step is shown; a cost between two frames makes the later one red."""
    seen = []
    recorder = RecordingEnv(envs(), lambda frame, status, ended: seen.append((status, ended)), 3)
    reference = Drawn()
    for seed in range(6):
        seen.clear()
        recorder.reset(seed=seed)
        reference.reset(seed=seed)
        rewards, costs, over = [], [], False
        actions = np.random.default_rng(seed)
        while not over:
            action = actions.uniform(-2, 2, 2)
            recorder.step(action[None])
            _, reward, terminated, truncated, info = reference.step(action)
            rewards.append(reward)
            costs.append(info["cost"])
            over = terminated or truncated
        recorder.step(action[None])  # of the next episode: not shown
        assert [status.step for status, _ in seen] == [*range(0, len(costs), 3), len(costs)]
        assert [ended for _, ended in seen] == [False] * (len(seen) - 1) + [True]
        before = 0
        for status, _ in seen:
            assert status.cost == sum(costs[: status.step])
            assert status.ret == pytest.approx(sum(rewards[: status.step]))
            assert status.costly == any(costs[before : status.step])
            before = status.step


def test_costly_frames_have_a_red_border_and_the_strip_shows_the_numbers():
    frame = np.full((240, 320, 3), 90, np.uint8)
    plain, red = (annotate(frame, EpisodeStatus(3, 1.0, 2.0, costly), 25.0) for costly in (False, True))
    assert plain.shape == red.shape == (262, 320, 3)
    np.testing.assert_array_equal(plain[:240], frame)
    np.testing.assert_array_equal(red[6:-30, 6:-6], frame[6:-8, 6:-6])
    for edge in (red[0], red[239], red[:240, 0], red[:240, -1], red[-1]):
        assert (edge == RED).all()
    assert not (plain == RED).all(axis=-1).any()
    for status in (EpisodeStatus(4, 1.0, 2.0), EpisodeStatus(3, 2.0, 2.0), EpisodeStatus(3, 1.0, 9.0)):
        assert (annotate(frame, status, 25.0)[240:] != plain[240:]).any()
    wide = annotate(frame, EpisodeStatus(100_000, 12_345.0, -12_345.6), 1000.0)
    assert (wide[240:, -4:] == wide[-1, -1]).all()  # the text ends before the right edge
    for shape in ((33, 64, 3), (65, 65, 4), (301, 399, 3)):
        height, width, _ = annotate(np.zeros(shape, np.uint8), EpisodeStatus(), 25.0).shape
        assert width >= 240
        assert height % 2 == width % 2 == 0


def test_environments_without_pictures_and_other_formats_are_refused(player, tmp_path):
    """Neither constructor takes a render_mode."""

    class Nothing(Walk):
        def render(self):
            return None

    seeds = evaluation_seeds(0, 1)
    made = make_vec(Drawn, 1, copy=False, render_mode="rgb_array")
    assert record_video(made, player, seeds, tmp_path / "video.gif", False) > 1
    for blind in (Walk, Nothing):
        made = make_vec(blind, 1, copy=False, render_mode="rgb_array")
        with pytest.raises(InputError, match=r"no pictures: let its render\(\) return an RGB array"):
            record_video(made, player, seeds, tmp_path / "none.gif", False)
    with pytest.raises(InputError, match=r"end the name with \.mp4 or \.gif"):
        record_video(None, player, [1], tmp_path / "video.avi", False, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["video.gif"]


def test_frame_rates_follow_the_format_and_an_interrupted_video_leaves_no_file(player, tmp_path, monkeypatch):
    seeds = evaluation_seeds(0, 2)
    monkeypatch.setitem(Drawn.metadata, "render_fps", 100)
    lengths = play(envs(), player, seeds, False).length
    for suffix, every in ((".mp4", 3), (".gif", 7)):
        expected = sum(-(-length // every) + round(50 / every) for length in lengths)
        assert record_video(envs(), player, seeds, tmp_path / f"a{suffix}", False) == expected
    calls = iter(range(6))
    (tmp_path / "mine").touch()
    (tmp_path / ".b.mp4.part").symlink_to(tmp_path / "mine")  # by somebody who expects that name

    def stop():
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        record_video(envs(), player, seeds, tmp_path / "b.mp4", False, 1, stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.mp4.part", "a.gif", "a.mp4", "mine"]
    assert (tmp_path / "mine").read_bytes() == b""


def test_a_file_that_cannot_be_written_is_not_an_error_of_the_environment(player, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"The video cannot be written to .*: File name too long"):
        record_video(envs(), player, [1], tmp_path / f"{'x' * 260}.mp4", False, 1)
    monkeypatch.setattr("imageio_ffmpeg.get_ffmpeg_exe", lambda: "/bin/false")  # as when the disk is full
    with pytest.raises(InputError, match="The video cannot be written to"):
        record_video(envs(), player, [1, 2, 3], tmp_path / "x.mp4", False, 1)
