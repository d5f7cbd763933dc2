"""The session of a recording: friction scales from its first motion, standby from standstill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.friction_anchor import MeasuredMotion, anchor_friction
from ur_energy_model.identification.comparison import Setups
from ur_energy_model.identification.power_columns import STANDSTILL_SPEED
from ur_energy_model.identification.recording import Recording
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.sessions import Session

Array = NDArray[np.float64]

_ENOUGH_STILL = 1.0
"""Standstill that tells standby power [s]."""
_BRAKED = 0.05
"""Sum of all joints' currents below which brakes hold the arm [A]."""
_CORRELATION_TIME = 1.0
"""Time over which deviations of the power at standstill stay the same [s]."""
_STANDBY_FLOOR = 0.2
"""Standard deviation of standby power within a session [W]."""


def anchor_session(model: EnergyModel, recording: Recording, setups: Setups) -> Session:
    """What a recording shows of its own session; the rest is as the model has it.

    Args:
        model: of the arm.
        recording: any motion; the first seconds of it are used.
        setups: of the recording.
    """
    session = anchor_friction(model, _motions(recording, setups))
    here = model.in_session(session)
    unexplained, duration = _unexplained(here, recording)
    seconds = float(duration.sum())
    if seconds < _ENOUGH_STILL:
        return session
    mean = float(unexplained @ duration) / seconds
    scatter = float(np.square(unexplained - mean) @ duration) / seconds
    std = np.hypot(_STANDBY_FLOOR, np.sqrt(scatter * min(1.0, _CORRELATION_TIME / seconds)))
    return replace(
        session,
        standby=max(mean, 0.0),
        standby_std=min(float(std), session.standby_std),
        still_seconds=seconds,
    )


def session_json(session: Session) -> dict[str, Any]:
    """The key "session" of METRICS: what the comparison was anchored on."""
    return {
        "anchored": session.moving_seconds > 0 or session.still_seconds > 0,
        "friction_scale": session.friction_scale.tolist(),
        "friction_std": session.friction_std.tolist(),
        "standby": session.standby,
        "standby_std": session.standby_std,
        "still_seconds": session.still_seconds,
        "moving_seconds": session.moving_seconds,
    }


def _motions(recording: Recording, setups: Setups) -> Iterator[tuple[MeasuredMotion, ArmDynamics]]:
    for motion in recording.motions():
        for part, dynamics in setups.parts(motion):
            known = bool(np.isfinite(part.temperature).all())
            temperature = part.temperature if known else None
            yield (
                MeasuredMotion(part.time, part.q, part.qd, part.qdd, part.current, temperature),
                dynamics,
            )


def _unexplained(model: EnergyModel, recording: Recording) -> tuple[Array, Array]:
    """Power at standstill that motors and drivers do not explain [samples], W; durations, s."""
    powers, durations = [np.zeros(0)], [np.zeros(0)]
    for time, speed, current, power in recording.supply():
        if len(time) < 2:
            continue
        still = (np.abs(speed) < STANDSTILL_SPEED).all(axis=1)
        still &= np.abs(current).sum(axis=1) > _BRAKED
        steps = np.diff(time, append=2 * time[-1] - time[-2])
        steps = np.where((steps > 0) & (steps < 3 * np.median(steps)), steps, 0.0)
        demand = model.joint_power(speed[still], current[still], standby=0.0, std=False).demand
        powers.append(power[still] - demand)
        durations.append(steps[still])
    return np.concatenate(powers), np.concatenate(durations)
