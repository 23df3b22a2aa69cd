"""Reading recordings: the four schemas, and one sentence for what is not one."""

from pathlib import Path

import numpy as np
import pytest
from tests.parity.recordings import read_recording, step_index

from steingate.errors import InputError

DATA = Path(__file__).parents[2] / "data" / "envs"


@pytest.mark.parametrize(
    ("name", "kind", "env_id"),
    [
        ("nav_SafetyPointGoal1-v0", "nav", "SafetyPointGoal1-v0"),
        ("vel_SafetyAntVelocity-v1", "vel", "SafetyAntVelocity-v1"),
        ("stats_SafetyCarGoal2-v0", "stats", "SafetyCarGoal2-v0"),
        ("layouts", "layouts", ""),
    ],
)
def test_kinds_are_told_apart(name, kind, env_id):
    recording = read_recording(DATA / f"{name}.npz")
    assert (recording.name, recording.kind, recording.env_id) == (name, kind, env_id)


def test_steps_lead_from_row_to_row():
    recording = read_recording(DATA / "nav_SafetyPointGoal1-v0.npz")
    index = step_index(recording)
    lengths = recording["ep_len"]
    assert len(index.number) == lengths.sum()
    assert len(recording["row_qpos"]) == lengths.sum() + len(lengths)
    for episode, length in enumerate(lengths):
        own = index.episode == episode
        assert index.before[own].tolist() == list(
            range(index.starts[episode], index.starts[episode] + length)
        )
        assert index.number[own].tolist() == list(range(1, length + 1))
    np.testing.assert_array_equal(index.after, index.before + 1)
    # Time restarts with every episode and otherwise grows by one control period.
    np.testing.assert_allclose(recording["row_time"][index.after] - recording["row_time"][index.before], 0.02)
    assert np.all(recording["row_time"][index.starts] == 0.0)


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_recording(tmp_path / "absent.npz")
    for content in (b"", b"not a zip archive", b"PK\x03\x04 broken"):
        path = tmp_path / "broken.npz"
        path.write_bytes(content)
        with pytest.raises(InputError, match="broken"):
            read_recording(path)
    np.save(tmp_path / "plain.npy", np.zeros(3))
    with pytest.raises(InputError, match="plain"):
        read_recording(tmp_path / "plain.npy")
    np.savez(tmp_path / "objects.npz", seed=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="objects"):
        read_recording(tmp_path / "objects.npz")


def test_incomplete_recordings_are_refused(tmp_path):
    with np.load(DATA / "nav_SafetyPointCircle1-v0.npz") as file:
        arrays = dict(file)
    path = tmp_path / "cut.npz"
    np.savez(path, **{name: array for name, array in arrays.items() if name != "step_cost"})
    with pytest.raises(InputError, match="'step_cost' is missing"):
        read_recording(path)
    np.savez(path, **arrays | {"step_reward": arrays["step_reward"][:-1]})
    with pytest.raises(InputError, match="'step_reward' has"):
        read_recording(path)
    np.savez(path, **arrays | {"meta": np.array("{not json")})
    with pytest.raises(InputError, match="meta"):
        read_recording(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(InputError, match="no recording"):
        read_recording(path)
