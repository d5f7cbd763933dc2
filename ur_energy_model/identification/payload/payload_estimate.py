"""PayloadEstimate: the result of a payload identification, and drives calibrated with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.payload_calibration import PayloadCalibration
from ur_energy_model.model.setup import Payload
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class PayloadEstimate:
    """The identified payload.

    Attributes:
        payload: mass, centre of mass (flange frame), physically possible inertia (uncertain).
        shown_mass: estimate without constraint [kg]; negative where the torque is lower than that
            of the bare links.
        mass_std: kg; includes correlated residuals and errors of links and torque constants.
        center_std: [3], m; NaN where the mass is too small for a centre of mass.
        torque_rms: residual per joint of the model with this payload and calibrated torque
            constants [n], N m, joint side; NaN for joints that did not move.
        misfit: that residual over the one of the model's own recordings, median over joints; NaN
            where the model has none.
        torque_constants: from links and payload together [n], N m/A, motor side.
        torque_constants_std: [n], N m/A.
        calibration: posterior of links and drives after this recording.
        samples: number of torque samples, each joint counted.
    """

    payload: Payload
    shown_mass: float
    mass_std: float
    center_std: Array
    torque_rms: Array
    misfit: float
    torque_constants: Array
    torque_constants_std: Array
    calibration: PayloadCalibration
    samples: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of `shown_mass` [kg]."""
        half = CONFIDENCE * self.mass_std
        return self.shown_mass - half, self.shown_mass + half


def with_torque_constants(model: EnergyModel, estimate: PayloadEstimate) -> EnergyModel:
    """The model with calibrated torque constants.

    Friction was identified in amperes and scales with them. The calibration of links and drives is
    kept for later payload identifications.
    """
    joints = []
    for joint, value, std in zip(
        model.joints, estimate.torque_constants, estimate.torque_constants_std, strict=True
    ):
        scale = float(value) / joint.torque_constant
        friction = replace(
            joint.friction,
            parameters={name: scale * number for name, number in joint.friction.parameters.items()},
        )
        covariance = joint.current_covariance.copy()
        if covariance.size and covariance[0, 0] > 0:
            factor = float(std / value**2) / np.sqrt(covariance[0, 0])
            covariance[0] *= factor
            covariance[:, 0] *= factor
        joints.append(
            replace(
                joint,
                torque_constant=float(value),
                friction=friction,
                current_covariance=covariance,
                std={**joint.std, "torque_constant": float(std)},
                source={**joint.source, "torque_constant": "known_payload"},
            )
        )
    return replace(
        model,
        joints=tuple(joints),
        payload_calibration=estimate.calibration.with_calibrated_drives(),
    )
