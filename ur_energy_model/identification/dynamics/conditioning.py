"""Condition number of an arm's base parameters for a motion."""

from __future__ import annotations

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.dynamics.base_parameters import snapped_to_axis
from ur_energy_model.identification.dynamics.regrouping import FullRegressor, regroup
from ur_energy_model.identification.regression.filtered_motion import MOVING_SPEED
from ur_energy_model.identification.regression.resampling import resampled_runs
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

_RATE = 50.0
_BANDWIDTH = 8.0
_STRIDE = 5


class Conditioning:
    """Condition number of the stacked base regressor of a recording, part by part.

    Args:
        robot: the arm, n joints.
        gravity: in the base frame [3], m/s^2; upright by default.
    """

    def __init__(self, robot: RobotDescription, gravity: Array | None = None) -> None:
        upright = np.array([0.0, 0.0, -robot.controller_gravity])
        down = upright if gravity is None else snapped_to_axis(np.asarray(gravity, dtype=float))
        self._regressor = FullRegressor(robot, down)
        self._base = regroup(self._regressor).base
        self._gram = np.zeros((len(self._base), len(self._base)))

    def accumulate(self, part: Telemetry) -> None:
        """Add the motion of a part: measured where recorded, else the targets.

        Raises:
            RecordingError: the part has another number of joints.
        """
        kind = "actual" if "actual_q" in part and "actual_qd" in part else "target"
        names = (f"{kind}_q", f"{kind}_qd")
        if any(name not in part for name in names):
            return
        joints = part[names[0]].shape[1]
        if joints != self._regressor.robot.dof:
            raise RecordingError(
                part.info.source,
                f"has {joints} joints, a {self._regressor.robot.name} {self._regressor.robot.dof}",
                "import or record it again under the right robot name",
                field=names[0],
            )
        distinct = part.distinct()
        finite = np.isfinite(np.hstack([distinct[name] for name in names]))
        good = np.asarray(finite.all(axis=1))
        for run in resampled_runs(distinct, names, good, rate=_RATE, bandwidth=_BANDWIDTH):
            q, qd, qdd = run[names[0]], run[names[1]], run.derivative(names[1])
            thin = slice(None, None, _STRIDE)
            columns = self._regressor(q[thin], qd[thin], qdd[thin])[:, :, self._base]
            rows = columns[np.abs(qd[thin]) > MOVING_SPEED]
            self._gram += rows.T @ rows

    @property
    def number(self) -> float:
        """Condition number; infinite where the motion leaves a base parameter undetermined."""
        values = np.linalg.eigvalsh(self._gram)
        if values[-1] <= 0 or values[0] <= 1e-15 * values[-1]:
            return float("inf")
        return float(np.sqrt(values[-1] / values[0]))
