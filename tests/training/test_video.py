"""Films: whole episodes, their numbers below each picture, and red where a step cost."""

import io
import subprocess

import numpy as np
import pytest
from imageio_ffmpeg import get_ffmpeg_exe
from rich.console import Console
from tests.training.probes import Walk
from tests.training.runs_of_probes import tiny

from steingate.cli.output import progress_bar
from steingate.envs.make import make_vec
from steingate.errors import InputError
from steingate.training.evaluate import load_player, play
from steingate.training.loop import train
from steingate.training.seeding import evaluation_seeds
from steingate.training.video import RED, EpisodeStatus, RecordingEnv, annotate, record_video


class Drawn(Walk):
    """A walk with pictures, which only cost to the right of 0.5."""

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
def test_a_film_shows_whole_episodes(player, tmp_path, suffix):
    seeds = evaluation_seeds(0, 2)
    lengths = play(envs(), player, seeds, False).length
    out = tmp_path / "sub" / f"film{suffix}"
    told = []
    frames = record_video(
        envs(), player, seeds, out, False, 1, progress=lambda *now: told.append(now), lengths=lengths
    )
    # The first observation, every step but the last, and the end for half a second.
    assert frames == lengths.sum() + 2 * 10
    shown = frames_of(out)
    assert len(shown) == frames
    assert shown[0].max() > 200
    assert shown[0].min() < 50
    assert told[-1] == (lengths.sum(), lengths.sum())
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {lengths.sum()}


def test_numbers_and_red_frames_are_those_of_the_episode(player):
    """Every third step is shown; a cost between two pictures reddens the later one."""
    seen = []
    filmed = RecordingEnv(envs(), lambda picture, numbers, over: seen.append((numbers, over)), 3)
    reference = Drawn()
    for seed in range(6):
        seen.clear()
        filmed.reset(seed=seed)
        reference.reset(seed=seed)
        rewards, costs, ended = [], [], False
        actions = np.random.default_rng(seed)
        while not ended:
            action = actions.uniform(-2, 2, 2)
            filmed.step(action[None])
            _, reward, terminated, truncated, info = reference.step(action)
            rewards.append(reward)
            costs.append(info["cost"])
            ended = terminated or truncated
        filmed.step(action[None])  # of the next episode: not shown
        steps = [numbers.step for numbers, _ in seen]
        assert steps[:-1] == list(range(0, len(costs), 3))
        assert (steps[-1], seen[-1][1]) == (len(costs), True)
        assert not any(over for _, over in seen[:-1])
        before = 0
        for numbers, _ in seen:
            assert numbers.cost == sum(costs[: numbers.step])
            assert numbers.ret == pytest.approx(sum(rewards[: numbers.step]))
            assert numbers.costly == any(costs[before : numbers.step])
            before = numbers.step


def test_the_true_return_is_shown_where_a_method_changes_the_reward():
    class Shaped:
        num_envs, single_observation_space, single_action_space, current_env = 1, None, None, None

        def step(self, actions):
            info = {"cost": np.array([0.0]), "original_reward": np.array([2.0])}
            return None, np.array([-9.0]), np.array([False]), np.array([False]), info

        def render(self):
            return (np.zeros((4, 4, 3), np.uint8),)

    seen = []
    filmed = RecordingEnv(Shaped(), lambda picture, numbers, over: seen.append(numbers), 1)
    filmed.step(None)
    assert seen == [EpisodeStatus(1, 0.0, 2.0)]


def test_costly_steps_are_framed_in_red_and_the_picture_stays():
    picture = np.full((240, 320, 3), 90, np.uint8)
    plain, red = (annotate(picture, EpisodeStatus(3, 1.0, 2.0, costly), 25.0) for costly in (False, True))
    assert plain.shape == red.shape == (262, 320, 3)
    np.testing.assert_array_equal(plain[:240], picture)
    np.testing.assert_array_equal(red[6:-30, 6:-6], picture[6:-8, 6:-6])
    for edge in (red[0], red[239], red[:240, 0], red[:240, -1], red[-1]):
        assert (edge == RED).all()
    assert not (plain == RED).all(axis=-1).any()
    # Another number is another strip, and the text stays on it.
    for numbers in (EpisodeStatus(4, 1.0, 2.0), EpisodeStatus(3, 2.0, 2.0), EpisodeStatus(3, 1.0, 9.0)):
        assert (annotate(picture, numbers, 25.0)[240:] != plain[240:]).any()
    wide = annotate(picture, EpisodeStatus(100_000, 12_345.0, -12_345.6), 1000.0)
    assert (wide[240:, -4:] == wide[-1, -1]).all()


def test_small_and_odd_pictures_become_readable_and_even():
    for shape in ((33, 64, 3), (65, 65, 4), (301, 399, 3)):
        height, width, _ = annotate(np.zeros(shape, np.uint8), EpisodeStatus(0, 0.0, 0.0), 25.0).shape
        assert width >= 240
        assert height % 2 == width % 2 == 0


def test_what_draws_unasked_is_filmed_and_what_does_not_draw_is_told(player, tmp_path):
    """Neither constructor takes a render_mode."""

    class Nothing(Walk):
        def render(self):
            return None

    seeds = evaluation_seeds(0, 1)
    made = make_vec(Drawn, 1, copy=False, render_mode="rgb_array")
    assert record_video(made, player, seeds, tmp_path / "film.gif", False) > 1
    for blind in (Walk, Nothing):
        made = make_vec(blind, 1, copy=False, render_mode="rgb_array")
        with pytest.raises(InputError, match=r"no pictures: let its render\(\) return an RGB array"):
            record_video(made, player, seeds, tmp_path / "none.gif", False)
    assert not (tmp_path / "none.gif").exists()


def test_films_have_two_formats(player, tmp_path):
    with pytest.raises(InputError, match=r"end the name with \.mp4 or \.gif"):
        record_video(None, player, [1], tmp_path / "film.avi", False, 1)


def test_a_gif_shows_fewer_frames_and_a_broken_film_leaves_no_file(player, tmp_path, monkeypatch):
    seeds = evaluation_seeds(0, 2)
    monkeypatch.setitem(Drawn.metadata, "render_fps", 100)
    lengths = play(envs(), player, seeds, False).length
    for suffix, every in ((".mp4", 3), (".gif", 7)):
        expected = sum(-(-length // every) + round(50 / every) for length in lengths)
        assert record_video(envs(), player, seeds, tmp_path / f"a{suffix}", False) == expected
    calls = []

    def stop():
        calls.append(1)
        if len(calls) > 6:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        record_video(envs(), player, seeds, tmp_path / "b.mp4", False, 1, stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gif", "a.mp4"]


def test_the_bar_has_a_total_and_is_for_terminals_alone():
    for terminal in (True, False):
        out = io.StringIO()
        console = Console(file=out, force_terminal=terminal, width=100, _environ={"TERM": "xterm"})
        with progress_bar(console) as update:
            update("rendering steps", 250, 1000)
        assert ("250/1000" in out.getvalue()) == terminal
        assert bool(out.getvalue()) == terminal
