"""Fit of the power model to several sessions of one arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.identification.friction.joint_estimate import JointEstimate
from ur_energy_model.identification.friction.torque_constants import with_torque_constant
from ur_energy_model.identification.power.power_fit import MODEL_ERROR, PowerFit, PowerFitResult
from ur_energy_model.typing import Array

_DEVIATION_SHARE = 0.8
"""A torque constant is updated where bus power lowers its deviation to this share or less."""
_ROUNDS = 4


def fit_sessions(
    powers: Sequence[PowerFit], kind: str, joints: tuple[JointEstimate, ...]
) -> tuple[tuple[JointEstimate, ...], PowerFitResult, Array]:
    """The power stage over several sessions, each with its own standby power.

    Args:
        powers: data of each session.
        kind: "physical" or "ecbot".
        joints: results of the previous stage, n joints.

    Returns:
        The joints, with torque constants that bus power determines better; the power fit, with the
        mean standby power of the sessions; the standby power of each session with bus power [W].
    """
    constant = np.array([joint.torque_constant for joint in joints])
    std = np.array([joint.torque_constant_std for joint in joints])
    known = [power for power in powers if power.samples]
    shifts = np.zeros(len(known))
    result = _merged(powers, known, shifts).fit(kind, constant, std)
    for _ in range(_ROUNDS if len(known) > 1 else 0):
        shifts = np.array([power.standby_shift(result) for power in known])
        shifts -= shifts.mean()
        result = _merged(powers, known, shifts).fit(kind, constant, std)
    standby = result.bus.standby + shifts
    if kind != "physical" or result.source != "bus_power":
        return joints, result, standby
    updated = list(joints)
    for j, joint in enumerate(joints):
        value, value_std = float(result.torque_constant[j]), float(result.torque_constant_std[j])
        if value_std < _DEVIATION_SHARE * std[j]:
            whole = float(np.hypot(value_std, MODEL_ERROR * value))
            updated[j] = with_torque_constant(joint, value, whole, "current and bus_power")
    return tuple(updated), result, standby


def _merged(powers: Sequence[PowerFit], known: Sequence[PowerFit], shifts: Array) -> PowerFit:
    """Data of all sessions, shifted to a common standby power."""
    total = PowerFit(powers[0].robot)
    for power in powers:
        if power not in known:
            total.merge(power)
    for power, shift in zip(known, shifts.tolist(), strict=True):
        total.merge(power.with_standby_shifted(shift) if shift else power)
    return total
