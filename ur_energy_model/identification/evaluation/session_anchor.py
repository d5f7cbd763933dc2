"""Friction scales of a recording's session, from its first motion, and the session as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ur_energy_model.energy.session.friction_anchor import MeasuredMotion, anchor_friction
from ur_energy_model.identification.dynamics.recording_dynamics import RecordingDynamics
from ur_energy_model.identification.recording import Recording
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.sessions import Session


def anchored_friction(
    model: EnergyModel, recording: Recording, setups: RecordingDynamics
) -> Session:
    """Friction scales of a recording, from the first seconds of its motion; standby the model's."""
    return anchor_friction(model, _motions(recording, setups))


def session_json(session: Session) -> dict[str, Any]:
    """Entry "session" of METRICS: the session that the comparison was anchored on."""
    return {
        "anchored": session.moving_seconds > 0 or session.still_seconds > 0,
        "friction_scale": session.friction_scale.tolist(),
        "friction_std": session.friction_std.tolist(),
        "standby": session.standby,
        "standby_std": session.standby_std,
        "still_seconds": session.still_seconds,
        "moving_seconds": session.moving_seconds,
    }


def _motions(
    recording: Recording, setups: RecordingDynamics
) -> Iterator[tuple[MeasuredMotion, ArmDynamics]]:
    for motion in recording.motions():
        for part, dynamics in setups.parts(motion):
            measured = part.q, part.qd, part.qdd, part.current, part.known_temperature
            yield MeasuredMotion(part.time, *measured), dynamics
