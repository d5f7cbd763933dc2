"""EcBot from bags: training and testing of both models, as the library's two functions.

Heredia, Schlette, Kjaergaard, EcBot, sec. III-D and IV-B. All samples count as recorded, standstill
included; testing predicts currents (or torques) and power from positions, speeds and accelerations
alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.dynamics.stated_setup import payload_told, stated_for
from ur_energy_model.identification.ecbot.dynamic_model import (
    DynamicColumns,
    DynamicModel,
    DynamicModelFit,
    Measured,
)
from ur_energy_model.identification.ecbot.errors import EcbotErrors
from ur_energy_model.identification.ecbot.power_model import FreePowerModel
from ur_energy_model.identification.evaluation.recorded_motion import (
    RecordedMotion,
    recorded_motions,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.runs import slices_between
from ur_energy_model.typing import Array

CUTOFF = 5.0
"""A quarter of the bandwidth of the accelerations [Hz]: test motions are sinusoids below 1 Hz."""
_SHOWN = 60.0
"""Time of the curves of a test [s]."""
_ROWS = 2000
"""Samples whose columns are computed at a time."""


@dataclass(frozen=True)
class EcbotTest:
    """Errors on one data set.

    Attributes:
        dynamics: of currents [A] or torques [N m], all joints.
        power: predicted from the motion alone [W].
        power_from_measured: predicted from measured currents or torques [W].
        time, measured_power, model_power: last stretch of the data [samples], s and W.
    """

    dynamics: EcbotErrors
    power: EcbotErrors
    power_from_measured: EcbotErrors
    time: Array
    measured_power: Array
    model_power: Array


class Ecbot:
    """Trained models of an arm.

    Args:
        robot: the arm, n joints.
        bags: training data.
        measured: what the arm measures; None takes torques where the bags have them and the robot
            file has no torque constants, else currents.

    Raises:
        UrEnergyError: unusable bags.
        IdentificationError: no samples with both motion and power.
    """

    def __init__(
        self,
        robot: RobotDescription,
        bags: Sequence[str | Path],
        measured: Measured | None = None,
    ) -> None:
        self.robot = robot
        info = next(iterate_bag(bags[0])).info
        first = next(recorded_motions(bags[0], CUTOFF), None)
        if first is None:
            raise IdentificationError(f"{bags[0]}: no motion; record the arm while it moves")
        stated = stated_for(info, payload_told(first.payload[0]), robot, None)
        self._columns = DynamicColumns(robot, stated.setup)
        if measured is None:
            sensors = (
                np.isfinite(first.torque).all() and not np.isfinite(robot.torque_constant).all()
            )
            measured = "torque" if sensors else "current"
        self.measured: Measured = measured
        self._power = FreePowerModel(robot.dof)
        fit = DynamicModelFit(self._columns, measured)
        powered = False
        for part in self._motions(bags):
            for rows in _pieces(part):
                columns = self._columns(part.q[rows], part.qd[rows], part.qdd[rows])
                fit.accumulate(columns, self._values(part)[rows])
            self._power.accumulate(part.time, part.qd, self._values(part), part.power)
            powered |= bool(np.isfinite(part.power).any())
        if not powered:
            raise IdentificationError(
                f"{bags[0]}: bus power was not recorded; record actual_robot_voltage and "
                "actual_robot_current"
            )
        self.samples = fit.samples
        """Number of training samples."""
        self.dynamics: DynamicModel = fit.fit()
        self.coefficients = self._power.fit()
        """Of the power model [4n + 1]."""

    def test(self, bags: Sequence[str | Path]) -> EcbotTest:
        """Errors on these bags."""
        dynamics, power, from_measured = (EcbotErrors(k) for k in (self.robot.dof, 1, 1))
        curves = np.zeros((0, 3))
        for part in self._motions(bags):
            values = self._values(part)
            estimate = np.concatenate([self.predict(part, rows) for rows in _pieces(part)])
            dynamics.accumulate(values, estimate)
            known = np.isfinite(part.power)
            motion = self._power.predict(self.coefficients, part.time, part.qd, estimate)
            direct = self._power.predict(self.coefficients, part.time, part.qd, values)
            for errors, found in ((power, motion), (from_measured, direct)):
                errors.accumulate(part.power[known, None], found[known, None])
            shown = np.column_stack([part.time, part.power, motion])
            curves = np.concatenate([curves, shown])
            curves = curves[curves[:, 0] > curves[-1, 0] - _SHOWN]
        time, measured_power, model_power = curves.T
        start = time[:1]
        return EcbotTest(dynamics, power, from_measured, time - start, measured_power, model_power)

    def predict(self, motion: RecordedMotion, rows: slice) -> Array:
        """Currents [samples, n], A, or torques, N m, of some samples from their motion alone."""
        columns = self._columns(motion.q[rows], motion.qd[rows], motion.qdd[rows])
        return np.asarray(np.einsum("sjc,jc->sj", columns, self.dynamics.coefficients))

    def _motions(self, bags: Sequence[str | Path]) -> Iterator[RecordedMotion]:
        for bag in bags:
            yield from recorded_motions(bag, CUTOFF)

    def _values(self, part: RecordedMotion) -> Array:
        return part.torque if self.measured == "torque" else part.current


def _pieces(part: RecordedMotion) -> Iterator[slice]:
    return slices_between(range(_ROWS, len(part), _ROWS), len(part))
