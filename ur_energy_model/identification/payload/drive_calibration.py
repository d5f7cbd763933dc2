"""Torque constants calibrated with a known payload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.identification.payload.payload_estimate import PayloadEstimate
from ur_energy_model.model.energy_model import EnergyModel


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
