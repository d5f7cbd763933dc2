"""The payload an arm really carries, from its motor currents.

The model turns currents into joint torque: torque constant times current, less friction and motor
inertia, is what links and payload ask for; what the bare links do not explain is the payload.
So a payload that the controller was never told of is identified (Machines 2024, 12(9), 595, sec. 5,
does it as loaded minus unloaded; here the model stands in for the unloaded run), and a known one
calibrates the drives. What else may differ between model and recording is estimated along:
payload_columns.py says what and why, payload_priors.py how far links and drives are known,
payload_solver.py how it is solved.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification.dynamics.physical_consistency import possible_inertia
from ur_energy_model.identification.friction.current_regression import SHORTEST_MOTION
from ur_energy_model.identification.payload.payload_columns import BODY, STATIC, PayloadColumns
from ur_energy_model.identification.payload.payload_estimate import PayloadEstimate
from ur_energy_model.identification.payload.payload_priors import another_recording, stated_prior
from ur_energy_model.identification.payload.payload_solver import PayloadSolution, PayloadSolver
from ur_energy_model.identification.regression.blocked_gram import BlockedGram
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.identification.regression.gram_matrices import joint_gram_matrices
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.inertial_parameters import tensor_of
from ur_energy_model.model.payload_calibration import PayloadCalibration
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload
from ur_energy_model.typing import Array

_ROUNDS = 6
_CONVERGED = 1e-3
"""Change of mass [kg] and first moments [kg m] between rounds that ends them."""
_SHORTEST = 3
"""Samples that two derivatives take."""
_ONE_SIDED_FRICTION = 0.01
"""Share of a torque constant that currents cannot tell from load friction which is not the same
both ways of power flow, assumed."""
_LEAST_MASS = 0.01
_SEEN = 3.0
"""Standard deviations of mass from which a centre of mass is told."""


class PayloadFit:
    """Estimates the payload of one recording with an identified model.

    Args:
        model: of the arm, identified from recordings with known or no payload.
        robot: the arm, n joints.
        gravity: in the base frame [3], m/s^2, of this recording.
        known_mass: payload mass, where it is known [kg]; then the drives are calibrated.
        empty: nothing but what counts as the empty flange is there; then, too, they are calibrated.
        calibration: what recordings before this one told; by default the model's, if it has any.
        friction_change: how much friction may differ from the model's, as a share of it; by default
            what temperatures say.

    Raises:
        InputError: a known mass that is not positive.
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

        Friction depends on the load, which depends on the payload: the fit is repeated with the
        payload found until the mass stays.

        Args:
            motions: of one recording; gone through several times.
            narrow: filter for model and measurement alike, the recording's.

        Raises:
            IdentificationError: too little motion.
        """
        payload = np.zeros(BODY)
        payload[0] = self._mass or 0.0
        for _ in range(_ROUNDS):
            blocks, joints, temperature = self._grams(motions, payload, narrow)
            change = self._columns.friction_change(temperature)
            if self._friction_change is not None:
                change = np.full_like(change, self._friction_change)
            prior = self._prior(blocks)
            solver = PayloadSolver(self._columns, blocks, joints, prior, change, self._mass)
            solution = solver.solve()
            moved = float(np.abs(solution.payload - payload)[:STATIC].max())
            payload = solution.payload
            if moved < _CONVERGED:
                break
        return self._result(solution, int(blocks[:, joints, -1, -1].sum()))

    def _prior(self, blocks: Array) -> PayloadCalibration:
        if self._calibration is not None:
            return another_recording(self._calibration)
        total, bare = blocks.sum(axis=0), self._columns.bare
        weight = np.sqrt(total[:, bare, bare] / np.maximum(total[:, -1, -1], 1.0))
        return stated_prior(self._columns, self.model.joints, weight, empty=self._empty)

    def _grams(
        self, motions: Iterable[FilteredMotion], payload: Array, narrow: NarrowFilter | None
    ) -> tuple[Array, list[int], Array]:
        """Gram matrices of the columns [blocks, n, width, width], the joints that moved for long
        enough, mean joint temperatures [n].
        """  # noqa: D205
        grams = BlockedGram()
        warmth, samples = np.zeros(self._columns.dof), 0
        moving = np.zeros(self._columns.dof)
        for motion in motions:
            warmth, samples = warmth + motion.temperature.sum(axis=0), samples + len(motion)
            if len(motion) < _SHORTEST:
                continue
            step = 1 if narrow is None else narrow.inside(motion).step or 1
            period = step * float(motion.time[1] - motion.time[0])
            rows = self._columns.rows(motion, payload)
            for gram, duration in joint_gram_matrices(motion, rows, narrow, moving_only=True):
                grams.accumulate(gram, duration)
                moving += period * gram[:, -1, -1]
        joints = [int(j) for j in np.flatnonzero(moving >= SHORTEST_MOTION)]
        if not joints:
            raise IdentificationError(
                f"no joint moves for {SHORTEST_MOTION:g} s, clear of standstill, which payload "
                "identification needs; record a motion of all joints (ur_energy excite)"
            )
        return grams.blocks, joints, warmth / samples

    def _result(self, solution: PayloadSolution, samples: int) -> PayloadEstimate:
        values, covariance = solution.payload, solution.payload_covariance
        mass, mass_std = float(values[0]), float(np.sqrt(covariance[0, 0]))
        center, center_std = np.zeros(3), np.full(3, np.nan)
        inertia = np.zeros((3, 3))
        if mass > max(_LEAST_MASS, _SEEN * mass_std):
            center = values[1:4] / mass
            slopes = np.concatenate([-center[:, None], np.eye(3)], axis=1) / mass
            center_std = np.sqrt(np.diag(slopes @ covariance[:4, :4] @ slopes.T))
            offset = mass * ((center @ center) * np.eye(3) - np.outer(center, center))
            inertia = possible_inertia(tensor_of(values[4:]) - offset)
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
        joints = self.model.joints
        own = [j.gear_ratio * j.torque_constant * j.current_residual for j in joints]
        known = [value / usual for value, usual in zip(rms, own, strict=True) if usual > 0]
        known = [value for value in known if np.isfinite(value)]
        return float(np.median(known)) if known else float("nan")
