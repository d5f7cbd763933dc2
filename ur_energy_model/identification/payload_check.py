"""Check of the payload set in the controller while the arm was identified.

target_moment contains the payload set in the controller, the currents the actual one. A wrong
setting biases torque constants and friction: with 1 kg on the wrists of a UR5e and none set, their
torque constants come out a third too small. The payload is therefore identified once more from the
currents, with torque constants as uncertain as those of the arm's type and unknown friction. Motors
of one size are alike in an arm, so joints that the payload hardly loads determine the torque
constants of those that it loads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.dynamics import RecordingDynamics
from ur_energy_model.identification.filtered_motion import FilteredMotion, ParallelFilter
from ur_energy_model.identification.payload import PayloadFit, size_prior
from ur_energy_model.identification.payload_columns import PayloadColumns
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.torque_constants import ARM_SPREAD, JOINT_SPREAD
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload

Fitted = TypeVar("Fitted")

IDENTIFIED = "identify"
"""In place of a payload: identify it from the currents where they contradict the set one."""
_ROUNDS = 3
_LONGEST = 60.0
"""Motion of a recording that the check uses [s]; more adds hardly any information."""
_LEAST_SHARE = 0.015
"""Smallest difference that is reported, relative to the mass of all links: with free torque
constants, errors of the published links appear as a payload of this size (seen on a UR10e)."""


@dataclass(frozen=True)
class PayloadCheck:
    """Payload that a model was identified with, and the one identified from the currents.

    Attributes:
        source: the recording.
        told_mass: set in the controller or given by the user [kg].
        mass, std: identified, without constraint [kg].
        least: smallest difference that counts [kg].
        payload: identified, physically possible.
    """

    source: str
    told_mass: float
    mass: float
    std: float
    least: float
    payload: Payload

    @property
    def contradicts(self) -> bool:
        """Whether the currents contradict the payload that was set."""
        return abs(self.mass - self.told_mass) > max(CONFIDENCE * self.std, self.least)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for the user where the payloads contradict each other."""
        if not self.contradicts:
            return ()
        half = CONFIDENCE * self.std
        return (
            f"{self.source}: the currents show a payload of {max(self.mass, 0.0):.2f} kg "
            f"({self.mass - half:.2f} to {self.mass + half:.2f} kg with 95 % confidence) where the "
            f"model was identified with {self.told_mass:.2f} kg; torque constants and friction "
            "are then biased: give the right mass with --payload, or use --payload identify",
        )


def check_payload(
    model: EnergyModel, robot: RobotDescription, recording: Recording, own: RecordingDynamics
) -> tuple[PayloadCheck, ...]:
    """Identified payload of a recording and the one that its torques were computed with.

    Nothing for recordings with a changing payload or too little motion, and for arms without
    torque constants in the robot file.

    Args:
        model: identified from the recording, perhaps with others.
        robot: the arm, n joints.
        recording: that it was identified from.
        own: setups of the recording, as used for the currents.
    """
    motions = _first_motions(recording)
    known = np.isfinite(robot.torque_constant).all()
    if not known or not motions or len(recording.quality.payloads) > 1:
        return ()
    constant = np.array([joint.torque_constant for joint in model.joints])
    alike = robot.torque_constant[:, None] == robot.torque_constant
    columns = PayloadColumns(model, robot, model.setup.gravity)
    spread = (ARM_SPREAD, JOINT_SPREAD)
    prior = size_prior(columns, constant / robot.torque_constant, alike, spread)
    setup, _ = own.setup_and_delay(motions[0].payload[0])
    fit = PayloadFit(model, robot, setup.gravity, calibration=prior, friction_change=1.0)
    try:
        found = fit.estimate(motions, ParallelFilter(recording.cutoff))
    except IdentificationError:
        return ()
    check = PayloadCheck(
        source=str(recording.path),
        told_mass=(setup.payload if own.carried is None else own.carried).mass,
        mass=found.shown_mass,
        std=found.mass_std,
        least=_LEAST_SHARE * float(columns.masses.sum()),
        payload=found.payload,
    )
    return (check,)


def fit_with_payload(
    fit: Callable[[Payload | None], Fitted],
    check: Callable[[Fitted, Payload | None], tuple[PayloadCheck, ...]],
    payload: Payload | str | None,
) -> tuple[Fitted, Payload | None, tuple[PayloadCheck, ...]]:
    """A fit with the given payload, or with the identified one where it contradicts the set one.

    Friction and torque constants depend on the payload and the payload on them, so the two are
    identified in turn, a few times.

    Args:
        fit: fits with a payload other than the set one, or with None for the set one.
        check: checks a fit.
        payload: given, IDENTIFIED, or None for the one set in the controller.

    Returns:
        the fit, the payload that replaces the set one, and the checks of that fit.
    """
    carried = payload if isinstance(payload, Payload) else None
    found = fit(carried)
    checks = check(found, carried)
    for _ in range(_ROUNDS if payload == IDENTIFIED else 0):
        if not any(entry.contradicts for entry in checks):
            break
        carried = min(checks, key=lambda entry: entry.std).payload
        found = fit(carried)
        checks = check(found, carried)
    return found, carried, checks


def _first_motions(recording: Recording) -> list[FilteredMotion]:
    """The first motions of a recording, about _LONGEST seconds."""
    out: list[FilteredMotion] = []
    lasted = 0.0
    for motion in recording.motions():
        out.append(motion)
        lasted += float(motion.time[-1] - motion.time[0])
        if lasted > _LONGEST:
            break
    return out
