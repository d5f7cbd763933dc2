"""The payload of an arm from its motor currents.

Torque constant times current, less friction and the torque of the motor's inertia, is the torque of
links and payload; what the bare links do not explain is the payload. Machines 2024, 12(9), 595,
sec. 5, takes the difference between a loaded and an unloaded run; here the model replaces the
unloaded run, and a known payload calibrates the drives. Other differences between model and
recording are estimated as well: payload_columns.py names them and their causes, payload_priors.py
gives the priors of links and drives, payload_solver.py solves.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification.dynamics.physical_consistency import possible_inertia
from ur_energy_model.identification.friction.unmoved_joint import SHORTEST_MOTION
from ur_energy_model.identification.payload.loaded_motion import LoadedMotions
from ur_energy_model.identification.payload.payload_columns import PayloadColumns
from ur_energy_model.identification.payload.payload_estimate import PayloadEstimate
from ur_energy_model.identification.payload.payload_priors import another_recording, stated_prior
from ur_energy_model.identification.payload.payload_solver import PayloadSolution, PayloadSolver
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.identification.regression.gram_matrices import BlockedGram
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.inertial_parameters import (
    COUNT,
    FIRST_MOMENT,
    MASS,
    TENSOR,
    point_tensor,
    tensor_of,
)
from ur_energy_model.model.payload_calibration import PayloadCalibration
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload
from ur_energy_model.typing import Array

_STATIC = slice(MASS, FIRST_MOMENT.stop)
_ROUNDS = 6
_CONVERGED = 1e-3
"""Change of mass [kg] and first moments [kg m] between rounds at which the fit has converged."""
_ONE_SIDED_FRICTION = 0.01
"""Relative error of a torque constant that currents cannot distinguish from load friction that
depends on the direction of power flow, assumed."""
_LEAST_MASS = 0.01
_SIGNIFICANT = 3.0
"""Least mass for which a centre of mass is given, in standard deviations."""


class PayloadFit:
    """Estimates the payload of one recording with an identified model.

    Args:
        model: of the arm, identified from recordings with known or no payload.
        robot: the arm, n joints.
        gravity: in the base frame [3], m/s^2, of this recording.
        known_mass: payload mass, where it is known [kg]; calibrates the drives.
        empty: the flange counts as empty; calibrates the drives.
        calibration: from earlier recordings; the model's where None.
        friction_change: relative deviation of friction from the model's; from the temperatures
            where None.

    Raises:
        InputError: the known mass is not positive.
    """

    def __init__(
        self,
        model: EnergyModel,
        robot: RobotDescription,
        gravity: Array,
        *,
        known_mass: float | None = None,
        empty: bool = False,
        calibration: PayloadCalibration | None = None,
        friction_change: float | None = None,
    ) -> None:
        if known_mass is not None and not 0 < known_mass < 1000:
            raise InputError("--known-payload", f"{known_mass:g} kg", "give a mass above zero")
        self.model, self._empty = model, empty
        self._mass = 0.0 if empty else known_mass
        self._calibration = model.payload_calibration if calibration is None else calibration
        self._friction_change = friction_change
        self._columns = PayloadColumns(model, robot, gravity)

    def estimate(
        self, motions: Iterable[FilteredMotion], narrow: NarrowFilter | None = None
    ) -> PayloadEstimate:
        """Payload from filtered motion.

        Friction depends on the load and thus on the payload, so the fit is repeated with the
        payload found until it converges.

        Args:
            motions: of one recording; iterated several times.
            narrow: the recording's filter, for model and measurement alike.

        Raises:
            IdentificationError: too little motion.
        """
        payload = np.zeros(COUNT)
        payload[MASS] = self._mass or 0.0
        loaded = LoadedMotions(self._columns, motions, narrow)
        for _ in range(_ROUNDS):
            blocks, joints, temperature, duration = self._grams(loaded, payload)
            change = self._columns.friction_change(temperature)
            if self._friction_change is not None:
                change = np.full_like(change, self._friction_change)
            prior = self._prior(blocks)
            solver = PayloadSolver(
                self._columns, blocks, joints, prior, change, duration, self._mass
            )
            solution = solver.solve()
            moved = float(np.abs(solution.payload - payload)[_STATIC].max())
            payload = solution.payload
            if moved < _CONVERGED:
                break
        return self._result(
            solution, int(blocks[:, joints, self._columns.one, self._columns.one].sum())
        )

    def _prior(self, blocks: Array) -> PayloadCalibration:
        if self._calibration is not None:
            return another_recording(self._calibration)
        bare, one = self._columns.bare, self._columns.one
        total = blocks.sum(axis=0)
        weight = np.sqrt(total[:, bare, bare] / np.maximum(total[:, one, one], 1.0))
        return stated_prior(self._columns, self.model.joints, weight, empty=self._empty)

    def _grams(
        self, motions: LoadedMotions, payload: Array
    ) -> tuple[Array, list[int], Array, float]:
        """Normal equations of a recording.

        Returns:
            Gram matrices of the columns [blocks, n, width, width]; joints that moved long enough;
            mean joint temperatures [n], degC; time from the first to the last motion [s].
        """
        grams, one = BlockedGram(), self._columns.one
        temperature, samples = np.zeros(self._columns.dof), 0
        moving, duration = np.zeros(self._columns.dof), 0.0
        for motion in motions:
            temperature += motion.temperature
            samples += motion.samples
            duration = motion.elapsed
            for gram, duration in motion.gram_matrices(payload):
                grams.accumulate(gram, duration)
                moving += motion.period * gram[:, one, one]
        joints = [int(j) for j in np.flatnonzero(moving >= SHORTEST_MOTION)]
        if not joints:
            raise IdentificationError(
                f"payload identification needs {SHORTEST_MOTION:g} s of motion, and no joint moves "
                "that long; record a motion of all joints (ur_energy excite)"
            )
        return grams.blocks, joints, temperature / samples, duration

    def _result(self, solution: PayloadSolution, samples: int) -> PayloadEstimate:
        values, covariance = solution.payload, solution.payload_covariance
        mass, mass_std = float(values[MASS]), float(np.sqrt(covariance[MASS, MASS]))
        center, center_std = np.zeros(3), np.full(3, np.nan)
        inertia = np.zeros((3, 3))
        if mass > max(_LEAST_MASS, _SIGNIFICANT * mass_std):
            center = values[FIRST_MOMENT] / mass
            slopes = np.concatenate([-center[:, None], np.eye(3)], axis=1) / mass
            center_std = np.sqrt(np.diag(slopes @ covariance[_STATIC, _STATIC] @ slopes.T))
            inertia = possible_inertia(tensor_of(values[TENSOR]) - point_tensor(mass, center))
        calibration = solution.calibration
        gain = calibration.torque_gain
        constant = self._columns.torque_constant / gain
        return PayloadEstimate(
            payload=Payload(max(mass, 0.0), center, inertia),
            shown_mass=mass,
            mass_std=mass_std,
            center_std=center_std,
            torque_rms=solution.rms,
            misfit=self._misfit(solution.rms),
            torque_constants=constant,
            torque_constants_std=constant
            * np.hypot(calibration.torque_gain_std / gain, _ONE_SIDED_FRICTION),
            calibration=calibration,
            samples=samples,
        )

    def _misfit(self, rms: Array) -> float:
        """Median of the joints' residuals [n], N m, over those of the model's own recordings."""
        joints = self.model.joints
        usual = np.array([j.gear_ratio * j.torque_constant * j.current_residual for j in joints])
        known = (usual > 0) & np.isfinite(rms)
        return float(np.median(rms[known] / usual[known])) if known.any() else float("nan")
