"""Gaps that a trajectory can close: joints and speeds that ordinary work has not shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.experiment.periodic_motion import sample_period
from ur_energy_model.learning.history import NEEDS, Need, need_from_json
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.trajectory.fourier import FourierTrajectory
from ur_energy_model.typing import Array

_RATE = 100.0
_OF_A_JOINT = ("speed", "load", "acceleration")


@dataclass(frozen=True)
class SpeedGap:
    """Speeds of a joint that a trajectory is to show.

    Attributes:
        joint: index from 0.
        low, high: joint speed [rad/s].
    """

    joint: int
    low: float
    high: float

    def seconds_of(self, trajectory: FourierTrajectory) -> float:
        """Time that one run of a trajectory spends within the speeds [s]."""
        qd = sample_period(trajectory, _RATE)[2]
        speed = np.abs(qd[:, self.joint])
        inside = (speed >= self.low) & (speed <= self.high)
        return float(inside.mean()) * trajectory.period * trajectory.repetitions


def needs_of(model: EnergyModel, path: str | Path) -> tuple[Need, ...]:
    """What a learned model lacks, as stated in it.

    Args:
        model: as read.
        path: of its file, for the error.

    Raises:
        InputError: the model does not say it.
    """
    try:
        return tuple(need_from_json(entry) for entry in model.provenance[NEEDS])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(
            path,
            "does not say what it lacks",
            "give a model that was learned (ur_energy learn, or the estimator with learn:=on)",
        ) from error


def gaps_among(
    needs: Sequence[Need], robot: RobotDescription, path: str | Path
) -> tuple[SpeedGap, ...]:
    """The gaps among needs that a motion of single joints closes.

    Args:
        needs: of the arm.
        robot: the arm, n joints; speeds beyond 0.9 of its limits are left out.
        path: of the model, for the error.

    Raises:
        InputError: there is none, or a joint is not the arm's.
    """
    out = []
    for need in needs:
        if need.what not in _OF_A_JOINT or need.joint is None:
            continue
        if not 0 <= need.joint < robot.dof:
            raise InputError(path, f"is not a model of {robot.name}", "give the arm's own model")
        most = 0.9 * float(robot.max_velocity[need.joint])
        low, high = need.speed_range or (0.0, most)
        out.append(SpeedGap(need.joint, min(low, 0.8 * most), min(high, most)))
    if not out:
        raise InputError(
            path,
            "lacks nothing that a trajectory could show",
            "go on with ordinary work, or leave --for-gap out for a trajectory of all joints",
        )
    return tuple(out)


def states_within(
    gaps: Sequence[SpeedGap], work: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array]:
    """Typical states q, qd, qdd [samples, n] with the speeds of the joints within their gaps."""
    q, qd, qdd = work
    qd = qd.copy()
    for gap in gaps:
        speed = qd[:, gap.joint]
        share = np.abs(speed) / max(float(np.abs(speed).max()), 1e-9)
        qd[:, gap.joint] = np.sign(speed) * (gap.low + share * (gap.high - gap.low))
    return q, qd, qdd


def shown(
    gaps: Sequence[SpeedGap], trajectory: FourierTrajectory, robot: RobotDescription
) -> list[dict[str, Any]]:
    """What one run of a trajectory shows of each gap, for its file and for JSON output."""
    return [
        {
            "joint": robot.joint_names[gap.joint],
            "speed_range": [gap.low, gap.high],
            "seconds": gap.seconds_of(trajectory),
        }
        for gap in gaps
    ]
