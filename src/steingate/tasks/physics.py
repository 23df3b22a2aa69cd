"""N simulations of one compiled MuJoCo model: bound state arrays, subsets, threads."""

from __future__ import annotations

from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int32]

NONE = int(mujoco.mjtStage.mjSTAGE_NONE)
VELOCITY = int(mujoco.mjtStage.mjSTAGE_VEL)
ACCELERATION = int(mujoco.mjtStage.mjSTAGE_ACC)


class Simulations:
    """A batch of simulations whose state rows are live arrays; threads do not change the results.

    Parameters
    ----------
    model : mujoco.MjModel
        The one compiled model.
    count : int
        Number of simulations.
    threads : int
        Threads that share the work.
    persistent : bool
        Keep one engine data structure per simulation, so that a step continues from the stages the last one
        computed.

    Attributes
    ----------
    qpos, qvel, ctrl, warmstart : (count, ...) live arrays; a write is the state at the next call
    state : (count, n) the complete integration state, of which the above are views
    columns : columns of ``state`` at which qpos, qvel, warmstart and ctrl start
    """

    def __init__(self, model: mujoco.MjModel, count: int, threads: int, *, persistent: bool = True) -> None:
        self.model = model
        self.batch = mujoco.batch.Batch(model, count, min(threads, count), persistent=persistent)
        self.qpos: Array = self.batch.bind("qpos")
        self.qvel: Array = self.batch.bind("qvel")
        self.ctrl: Array = self.batch.bind("ctrl")
        self.warmstart: Array = self.batch.bind("qacc_warmstart")
        self.state: Array = self.batch.state
        # columns of the state rows at which the four fields start
        self.columns: tuple[int, int, int, int] = (
            _column(self.state, self.qpos),
            _column(self.state, self.qvel),
            _column(self.state, self.warmstart),
            _column(self.state, self.ctrl),
        )

    def bind(self, name: str) -> npt.NDArray[Any]:
        """Return the live read-only (count, ...) array of a derived engine field.

        Parameters
        ----------
        name : str
            Field of ``mujoco.MjData``; must be bound before the call that computes it.
        """
        field: npt.NDArray[Any] = self.batch.bind(name)
        return field

    def step(self, substeps: int, ids: Ids | None = None, stage: int = NONE) -> None:
        """Advance simulations; derived fields lag one substep unless a stage is given.

        Parameters
        ----------
        substeps : int
            Engine steps.
        ids : int32 array or None
            Sorted simulations to advance; None for all.
        stage : int
            Stage computed at the new state: NONE, VELOCITY or ACCELERATION.
        """
        self.batch.step(ids, substeps, stage)

    def forward(self, ids: Ids | None = None) -> None:
        """Compute all derived fields at the present state.

        Parameters
        ----------
        ids : int32 array or None
            Sorted simulations; None for all.
        """
        self.batch.forward(ids)

    def reset(self, ids: Ids | None = None) -> None:
        """Set simulations to the model's default state, computing nothing.

        Parameters
        ----------
        ids : int32 array or None
            Sorted simulations; None for all.
        """
        self.batch.reset(ids, stage=NONE)


def _column(state: Array, field: Array) -> int:
    """Return the column of the state rows at which a view of them starts."""
    return (field.ctypes.data - state.ctypes.data) // state.itemsize
