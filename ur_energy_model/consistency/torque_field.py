# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What actual_current_as_torque of a recording contains: torques with or without gravity.

Since PolyScope 5.23 and 10.11 the controller reports "actual joint currents converted to
torques" (RTDE guide). By this name the field is the motor current times gear ratio and
torque constant, which contains the torque that holds the arm in gravity. The documentation
of ur_robot_driver calls it gravity-compensated. A recording of an arm that stands still in
gravity or moves decides: the field is compared with the motor currents where these were
recorded as well, else with the torque that the model of the arm needs for its motion
(`effort_unit`).

Torques with gravity are used as they are; to torques without gravity the gravity torque of
the model is added, with the payload that is set in the controller, which is the one that
the controller removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ur_energy_model import codec
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.effort_unit import (
    DECIDED,
    EffortEvidence,
    EffortMeaning,
    EffortUnit,
)
from ur_energy_model.consistency.sample_windows import SampleWindows
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, generic_models
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Mask

CURRENT_FIELD = "actual_current"
TORQUE_FIELD = "actual_current_as_torque"
STATED_FLAG = "--effort-unit"
"""Option of commands by which a user states what the field contains."""

JOINT_TORQUE = "joint_torque"
"""Column of joint torques with gravity, joint side, N m, once this is decided or stated."""
WITHOUT_GRAVITY_TORQUE = "joint_torque_without_gravity"
"""Column of joint torques without gravity, joint side, N m, once this is decided or stated."""
FIELD_OF_UNIT: Mapping[EffortUnit, str] = {
    "ampere": CURRENT_FIELD,
    "newton_metre": JOINT_TORQUE,
    "without_gravity": WITHOUT_GRAVITY_TORQUE,
}
"""Column in which efforts of a decided or stated meaning are used."""
MEANING_IN_WORDS: Mapping[EffortMeaning, str] = {
    "ampere": "motor currents in A",
    "newton_metre": "joint torques in N m",
    "without_gravity": "joint torques in N m without gravity",
    "external": "joint torques in N m without gravity and friction",
    "none": "neither motor currents in A nor joint torques in N m",
}

StatedUnit = Literal["auto", "ampere", "newton_metre", "without_gravity"]
"""What a user states about efforts; "auto" decides it from the samples."""
TorqueKind = Literal[
    "currents",
    "torque with gravity",
    "torque without gravity",
    "none of these",
    "undecided",
]
_KIND: Mapping[EffortMeaning, TorqueKind] = {
    "ampere": "currents",
    "newton_metre": "torque with gravity",
    "without_gravity": "torque without gravity",
    "external": "torque without gravity",
    "none": "none of these",
}


@dataclass(frozen=True)
class TorqueContent:
    """What actual_current_as_torque of a recording contains, as far as its samples show it.

    Attributes:
        kind: the content; "torque without gravity" also where it is not decided whether
            friction and inertia were removed as well.
        meaning: the decided meaning; None while none is.
        probability: probability of each meaning, 0 to 1.
        seconds: time of the samples that it rests on [s].
        compared_with: "currents" where motor currents were recorded beside it, else the
            "model" of the arm.
        evidence: the figures of the most loaded joint, in words.
    """

    kind: TorqueKind
    meaning: EffortMeaning | None
    probability: Mapping[EffortMeaning, float]
    seconds: float
    compared_with: Literal["currents", "model"]
    evidence: str

    @property
    def unit(self) -> EffortUnit | None:
        """Meaning in which the field can be used; None where none is decided."""
        return unit_of(self.meaning)

    def words(self) -> str:
        """The content and the figures that show it, as one clause."""
        if self.kind == "undecided":
            return f"what it contains is not decided ({self.evidence})"
        probability = 100.0 * sum(
            share
            for meaning, share in self.probability.items()
            if _KIND[meaning] == self.kind
        )
        doubt = "more than 99.9" if probability > 99.9 else f"{probability:.1f}"
        words = (
            f"it contains {self.kind} (probability {doubt} %, by the {self.compared_with}"
        )
        if self.compared_with == "model":
            words += " of the arm"
        words += f": {self.evidence})"
        if self.kind == "torque without gravity" and self.meaning == "external":
            words += "; friction was removed as well"
        elif self.kind == "torque without gravity" and self.meaning is None:
            words += "; whether friction is in it is not decided"
        return words

    def contradiction(
        self, stated: EffortUnit, statement: str, remedy: str
    ) -> Contradiction | None:
        """The contradiction to what a user states the field contains; None without one.

        Args:
            stated: the stated meaning.
            statement: the statement in words, as in `Contradiction`.
            remedy: what the user can do, as in `Contradiction`.
        """
        if self.kind == "undecided" or self.probability[stated] > 1.0 - DECIDED:
            return None
        return Contradiction(
            subject="effort_unit",
            stated=statement,
            shown=f"{TORQUE_FIELD} contains {self.kind}",
            evidence=self.evidence,
            remedy=remedy,
            refused=True,
        )

    def as_json(self) -> dict[str, Any]:
        """The content of `torque_field` in JSON output."""
        content: dict[str, Any] = codec.plain(self)
        return {**content, "words": self.words()}


def unit_of(meaning: EffortMeaning | None) -> EffortUnit | None:
    """Meaning as the unit of efforts that determine currents; None for others."""
    for unit in FIELD_OF_UNIT:
        if unit == meaning:
            return unit
    return None


class TorqueFieldCheck:
    """Collects what actual_current_as_torque of one recording shows, part by part."""

    def __init__(self) -> None:
        fields = ("actual_q", "actual_qd", TORQUE_FIELD, CURRENT_FIELD)
        self._windows = SampleWindows((*fields, "payload", "payload_cog"))

    def observe(self, part: Telemetry) -> None:
        """Add the next part; parts without the field or without motion show nothing."""
        needed = ("actual_q", "actual_qd", TORQUE_FIELD)
        if len(part) and all(name in part for name in needed):
            self._windows.add(part)

    def found(
        self, robot: RobotDescription, model: EnergyModel | None = None
    ) -> TorqueContent | None:
        """What the field contains; None where it was not recorded, or without a model.

        Args:
            robot: the arm.
            model: its model; None for the generic model of its type.
        """
        windows = [
            window
            for window in self._windows.windows()
            if TORQUE_FIELD in window and window["actual_q"].shape[1] == robot.dof
        ]
        if not windows:
            return None
        if model is None:
            if robot.source not in generic_models():
                return None
            model = generic_model(robot)
        beside_currents = any(CURRENT_FIELD in window for window in windows)
        evidence = EffortEvidence(model, robot, beside_currents=beside_currents)
        for window in windows:
            if not beside_currents or CURRENT_FIELD in window:
                _observe(evidence, window, beside_currents=beside_currents)
        verdict = evidence.verdict()
        kind: TorqueKind = "undecided"
        if verdict.meaning is not None:
            kind = _KIND[verdict.meaning]
        elif verdict.without_gravity:
            kind = "torque without gravity"
        return TorqueContent(
            kind=kind,
            meaning=verdict.meaning,
            probability=verdict.probability,
            seconds=evidence.seconds,
            compared_with="currents" if beside_currents else "model",
            evidence=evidence.words(),
        )


def _observe(
    evidence: EffortEvidence, window: Telemetry, *, beside_currents: bool
) -> None:
    """Add a window of a recording to the evidence; samples that are not finite are left out."""
    names = ["actual_q", "actual_qd", TORQUE_FIELD]
    if beside_currents:
        names.append(CURRENT_FIELD)
    values = np.hstack([window[name] for name in names])
    finite: Mask = np.asarray(np.isfinite(values).all(axis=1))
    good = window.select(finite)
    if not len(good):
        return
    evidence.observe(
        good.time,
        good["actual_q"],
        good["actual_qd"],
        good[TORQUE_FIELD],
        current=good[CURRENT_FIELD] if beside_currents else None,
        payload=declared_payload(good),
    )


def declared_payload(batch: Telemetry) -> Payload | None:
    """Payload that is set in the controller at the first sample that states one.

    Its inertia is left out: it has no gravity torque.
    """
    if "payload" not in batch or "payload_cog" not in batch:
        return None
    stated = np.column_stack([batch["payload"], batch["payload_cog"]])
    known = np.isfinite(stated).all(axis=1)
    if not known.any():
        return None
    mass, *center = stated[int(np.argmax(known))]
    return Payload(float(mass), np.array(center))
