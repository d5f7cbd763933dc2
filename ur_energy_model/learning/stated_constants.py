# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The torque constants that the controller states while an arm works, and exchanged joints.

Stated constants of one arm stay the same over years. If the constant of a joint differs
in a session, the joint was exchanged or calibrated anew, and earlier data of this joint
are no longer valid. Exchanges happen between sessions, with the power off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from ur_energy_model.codec import built
from ur_energy_model.consistency.controller_constants import (
    ConstantsData,
    ControllerConstantsFit,
)
from ur_energy_model.model.controller_constants import (
    ANOTHER_ARM_CHANCE,
    ControllerConstants,
)
from ur_energy_model.model.drive_errors import BusErrorLayout
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Indices

LEAST_CHANGE = 0.01
"""Least relative change of an exchanged joint: two motors of one type seldom differ by less."""
_CERTAIN = 0.01
"""Relative standard deviation below which a constant of a session is compared: one of a joint that
has hardly been loaded yet comes from a few seconds of one motion."""
_CONFIRMED = 2  # windows of a session in a row that show the same exchange


@dataclass(frozen=True)
class ExchangedJoint:
    """A joint whose stated torque constant is another one than in the sessions before.

    Attributes:
        joint: number of the joint.
        before: joint torque per ampere in earlier sessions (gear ratio times torque
            constant), N m/A.
        now: joint torque per ampere in this session, N m/A.
        std: standard deviation of the relative change.
    """

    joint: int
    before: float
    now: float
    std: float

    @property
    def change(self) -> float:
        """Relative change of the torque constant."""
        return self.now / self.before - 1.0


class StatedConstants:
    """Follows the stated constants of an arm with n joints from session to session.

    Args:
        robot: the arm.
        before: constants that were known before the first session; None if none were.
    """

    def __init__(
        self, robot: RobotDescription, before: ControllerConstants | None = None
    ) -> None:
        self.robot = robot
        self.before = ControllerConstants.unknown(robot.dof) if before is None else before
        self._fit = ControllerConstantsFit(robot)
        # windows in a row that showed an exchange, by joint
        self._seen = np.zeros(robot.dof)

    def observe(self, window: Telemetry) -> None:
        """Use the samples of a window; memory is bounded."""
        if not self._fit.full:
            self._fit.accumulate(window)

    @property
    def session(self) -> ControllerConstants:
        """Constants of this session."""
        return self._fit.result()

    @property
    def known(self) -> ControllerConstants:
        """Constants of all sessions together."""
        return ControllerConstants.joined([self.before, self.session], self.robot.dof)

    def exchanged(self) -> list[ExchangedJoint]:
        """Joints that were exchanged before this session; their earlier constants are forgotten.

        A joint is returned once, after `_CONFIRMED` windows that show the same exchange.
        """
        if not self.before.known.any():
            return []
        session = self.session
        relative, deviation = session.difference(self.before)
        limit = -float(ndtri(0.5 * ANOTHER_ARM_CHANCE / self.robot.dof))
        with np.errstate(invalid="ignore"):
            certain = session.std < _CERTAIN * session.torque_per_ampere
            least = np.maximum(limit * deviation, LEAST_CHANGE)
            differs = certain & (np.abs(relative) > least)
        self._seen = np.where(differs, self._seen + 1.0, 0.0)
        joints = np.flatnonzero(self._seen >= _CONFIRMED)
        found = []
        for joint in joints.tolist():
            before = float(self.before.torque_per_ampere[joint])
            now = float(session.torque_per_ampere[joint])
            found.append(ExchangedJoint(joint, before, now, float(deviation[joint])))
        self.before = _without(self.before, joints)
        self._seen[joints] = 0.0
        return found

    def start_session(self) -> None:
        """The samples that follow are of another session."""
        self.before = self.known
        self._fit = ControllerConstantsFit(self.robot)
        self._seen = np.zeros(self.robot.dof)

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue."""
        return {
            "before": self.before,
            "session": self._fit.data,
            "seen": self._seen,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from what `saved` gave."""
        self.before = built(ControllerConstants, saved["before"])
        data = built(ConstantsData, saved["session"])
        self._fit = ControllerConstantsFit(self.robot, data)
        self._seen = np.array(saved["seen"])


def _without(constants: ControllerConstants, joints: Indices) -> ControllerConstants:
    """The constants, unknown for some joints."""
    unknown = np.isin(np.arange(len(constants.std)), joints)
    return replace(
        constants,
        torque_per_ampere=np.where(unknown, np.nan, constants.torque_per_ampere),
        std=np.where(unknown, np.inf, constants.std),
    )


def with_new_joints(
    model: EnergyModel, kind: EnergyModel, joints: Sequence[int]
) -> EnergyModel:
    """A model in which some joints belong to another arm of the type.

    Args:
        model: model of the arm with its former joints.
        kind: model of the arm type, which holds for any joint in these places.
        joints: numbers of the exchanged joints.
    """
    n = model.dof
    new = np.isin(np.arange(n), joints)
    all_joints = list(model.joints)
    for joint in joints:
        all_joints[joint] = kind.joints[joint]
    # Resistances and back-EMF constants of the new joints have the errors of the type.
    columns = BusErrorLayout(n)
    changed = np.zeros(columns.size, dtype=bool)
    changed[columns.resistance] = new
    changed[columns.back_emf] = new
    before = model.bus.errors.reshape(-1, columns.size)
    of_kind = kind.bus.errors.reshape(-1, columns.size)
    own_errors = np.where(changed, 0.0, before)
    new_errors = np.where(changed, of_kind, 0.0)
    errors = np.concatenate([own_errors, new_errors])
    own_torque = np.where(new, 0.0, model.torque_constant_errors)
    new_torque = np.where(new, kind.torque_constant_errors, 0.0)
    torque = np.concatenate([own_torque, new_torque])
    bus = replace(model.bus, errors=errors, torque_errors=torque)
    stated = model.controller_constants
    if stated is not None:
        stated = _without(stated, np.flatnonzero(new))
    return replace(
        model,
        joints=tuple(all_joints),
        bus=bus,
        controller_constants=stated,
        payload_calibration=None,
    )
