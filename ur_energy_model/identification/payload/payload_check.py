"""Whether an arm carried the payload that its controller was told of while it was identified.

target_moment holds the payload that the controller was told of, the currents the one that was
there. A wrong one goes into torque constants and friction: where 1 kg hangs on the wrists of a
UR5e and none was told, their torque constants come out a third too small. So the payload is
identified from the currents once more, with the torque constants free as far as those of the
arm's type spread and friction free altogether. Motors of one size are alike in an arm, so a joint
whose torque the payload hardly changes tells the torque constants of one where it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.dynamics.recording_dynamics import RecordingDynamics
from ur_energy_model.identification.friction.torque_constants import ARM_SPREAD, JOINT_SPREAD
from ur_energy_model.identification.payload.payload_columns import PayloadColumns
from ur_energy_model.identification.payload.payload_fit import PayloadFit
from ur_energy_model.identification.payload.payload_priors import size_prior
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload

Fitted = TypeVar("Fitted")

IDENTIFIED = "identify"
"""In place of a payload: find it from the currents where they rule out the one told."""
_ROUNDS = 3
_LONGEST = 120.0
"""Motion of a recording that the check looks at [s]: more of it tells hardly more."""
_LEAST_SHARE = 0.015
"""Smallest difference that the user is warned of, over the weight of all links: errors of that size
of published links pass for a payload where torque constants are free, as a UR10e shows."""


@dataclass(frozen=True)
class PayloadCheck:
    """Payload that a model was identified with, and payload that the currents show.

    Attributes:
        source: the recording.
        told_mass: kg, as told to the controller or given by the user.
        mass, std: identified, kg; the mass may come out below zero.
        least: smallest difference that counts [kg].
        payload: identified, as a body that can exist.
    """

    source: str
    told_mass: float
    mass: float
    std: float
    least: float
    payload: Payload

    @property
    def contradicts(self) -> bool:
        """Whether the currents rule out the payload told."""
        return abs(self.mass - self.told_mass) > max(CONFIDENCE * self.std, self.least)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for the user where told and identified payload contradict each other."""
        if not self.contradicts:
            return ()
        half = CONFIDENCE * self.std
        return (
            f"{self.source}: the currents show a payload of {max(self.mass, 0.0):.2f} kg "
            f"({self.mass - half:.2f} to {self.mass + half:.2f} kg with 95 % confidence) where the "
            f"model was identified with {self.told_mass:.2f} kg; torque constants and friction "
            "are off then: give the right mass with --payload, or use --payload identify",
        )


def check_payloads(
    model: EnergyModel,
    robot: RobotDescription,
    recordings: Sequence[Recording],
    setups: Sequence[RecordingDynamics],
) -> tuple[PayloadCheck, ...]:
    """Payload of each recording beside the one its torques were computed with.

    Recordings whose payload changes are left out, and so are those with too little motion; arms
    whose robot file has no torque constants are not checked.

    Args:
        model: identified from the recordings.
        robot: the arm, n joints.
        recordings: that it was identified from.
        setups: of the recordings, with what the currents were fitted with.
    """
    if not np.isfinite(robot.torque_constant).all():
        return ()
    constant = np.array([joint.torque_constant for joint in model.joints])
    alike = robot.torque_constant[:, None] == robot.torque_constant
    columns = PayloadColumns(model, robot, model.setup.gravity)
    spread = (ARM_SPREAD, JOINT_SPREAD)
    prior = size_prior(columns, constant / robot.torque_constant, alike, spread)
    out = []
    for recording, own in zip(recordings, setups, strict=True):
        if len(recording.quality.payloads) > 1:
            continue
        motions = _first(recording)
        if not motions:
            continue
        setup, _ = own.setup_and_delay(motions[0].payload[0])
        fit = PayloadFit(model, robot, setup.gravity, calibration=prior, friction_change=1.0)
        try:
            found = fit.estimate(motions, NarrowFilter(recording.cutoff))
        except IdentificationError:
            continue
        out.append(
            PayloadCheck(
                source=str(recording.path),
                told_mass=(setup.payload if own.carried is None else own.carried).mass,
                mass=found.shown_mass,
                std=found.mass_std,
                least=_LEAST_SHARE * float(columns.masses.sum()),
                payload=found.payload,
            )
        )
    return tuple(out)


def fit_with_payload(
    fit: Callable[[Payload | None], Fitted],
    check: Callable[[Fitted, Payload | None], tuple[PayloadCheck, ...]],
    payload: Payload | str | None,
) -> tuple[Fitted, Payload | None, tuple[PayloadCheck, ...]]:
    """A fit with the payload given, or with the one identified where the told one is ruled out.

    Friction and torque constants depend on the payload and the payload on them, so both are found
    in turn, a few times.

    Args:
        fit: fits with a payload that is not the one told, or with None for the one told.
        check: checks a fit.
        payload: given, IDENTIFIED, or None to believe what the controller was told.

    Returns:
        the fit, the payload in place of the told one, and the checks of that fit.
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


def _first(recording: Recording) -> list[FilteredMotion]:
    """Motions until they have lasted long enough."""
    out: list[FilteredMotion] = []
    lasted = 0.0
    for motion in recording.motions():
        out.append(motion)
        lasted += float(motion.time[-1] - motion.time[0])
        if lasted > _LONGEST:
            break
    return out
