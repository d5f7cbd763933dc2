# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Quality of a recording: what it is good for, what is wrong with it, and its motion.

These are the records; `identification.quality_check` fills them from samples.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Literal

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.torque_field import TorqueContent
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.filtered_motion import SHORTEST_MOTION
from ur_energy_model.identification.visited_path import VisitedPath

Grade = Literal["good", "limited", "no"]
Activity = Literal["idle", "little", "enough", "unknown"]

_IDLE_TRAVEL = 0.01  # range of positions of a joint that hardly moves [rad]
_ENOUGH_SPEED = 0.3  # largest speed from which a joint shows its friction [rad/s]
_ENOUGH_TRAVEL = 0.2  # range of positions from which a joint shows its friction [rad]
ENOUGH_SECONDS = 5.0  # recordings shorter than this get a warning [s]
ILL_CONDITIONED = 3000.0
"""Condition number of the regressor above which the base parameters are not determined; motions
of `ur_energy excite` reach about 150."""


@dataclass(frozen=True)
class Use:
    """Suitability of a recording for one purpose.

    Attributes:
        purpose: "setup_and_inertia", "friction", "bus_power", "temperature", "payload" or
            "base_parameters".
        grade: how well the recording suits the purpose.
        reason: reason for the grade, in plain words.
    """

    purpose: str
    grade: Grade
    reason: str


@dataclass(frozen=True)
class JointQuality:
    """Excitation of one joint.

    Attributes:
        name: name of the joint.
        travel: range of positions [rad], NaN if not recorded.
        speed: largest speed [rad/s], NaN if not recorded.
        torque: range of target_moment, joint side [N m], NaN if not recorded.
        current: largest motor current [A], NaN if not recorded.
        moving: time faster than 0.01 rad/s with brakes released and without freedrive
            [s].
        reversals: number of changes of direction.
        temperature: lowest and highest temperature [degC], NaN if not recorded.
    """

    name: str
    travel: float
    speed: float
    torque: float
    current: float
    moving: float
    reversals: int
    temperature: tuple[float, float]

    @property
    def activity(self) -> Activity:
        """Idle (it hardly moved), little motion, or enough to identify friction.

        Unknown without positions.
        """
        if math.isnan(self.travel):
            return "unknown"
        if self.travel < _IDLE_TRAVEL or self.moving < SHORTEST_MOTION:
            return "idle"
        enough = (
            self.travel > _ENOUGH_TRAVEL
            and self.speed > _ENOUGH_SPEED
            and self.moving > ENOUGH_SECONDS / 2
            and self.reversals >= 1
        )
        return "enough" if enough else "little"


@dataclass(frozen=True)
class Quality:
    """Verdict on one recording.

    Attributes:
        source: bag or file.
        simulated: whether this package's simulated controller made the recording.
        simulator: whether it is from the manufacturer's offline simulator, which has no
            real currents.
        samples: number of samples.
        duration: time covered without gaps [s].
        rate: samples per second, from the recorded times [Hz].
        irregular: whether the standard deviation of the time step exceeds 2 % of its
            median (due to the recorder).
        gaps: number of gaps.
        lost: number of missing samples.
        repeated: number of samples left out because the recording has them twice.
        joints: excitation per joint.
        frozen: channels (with joint index) that do not change.
        clipped: channels (with joint index) that stay at a limit.
        not_finite: number of values that are not finite, by field.
        freedrive: share of samples in freedrive.
        not_running: share of samples with the brakes on or the arm off.
        stopped: share of samples in a safety stop.
        reduced: share of samples in safety mode reduced (the arm works with lower
            limits).
        payloads: distinct payload masses set in the controller [kg].
        missing: fields that some stage of the identification needs but that were not
            recorded.
        uses: suitability for each purpose.
        condition_number: condition number of the regressor of the base parameters; None
            if the robot is unknown.
        refusal: why identification refuses the recording, or None.
        warnings: warnings for the user, one line each.
        contradictions: statements about the recording that the samples contradict.
        torque_field: what actual_current_as_torque contains; None where it was not recorded
            or the robot is unknown.
        visited: joint angles that the motion passes through.
    """

    source: str
    simulated: bool
    simulator: bool
    samples: int
    duration: float
    rate: float
    irregular: bool
    gaps: int
    lost: int
    repeated: int
    joints: tuple[JointQuality, ...]
    frozen: tuple[str, ...]
    clipped: tuple[str, ...]
    not_finite: dict[str, int]
    freedrive: float
    not_running: float
    stopped: float
    reduced: float
    payloads: tuple[float, ...]
    missing: tuple[str, ...]
    uses: tuple[Use, ...]
    condition_number: float | None
    refusal: str | None
    warnings: tuple[str, ...]
    contradictions: tuple[Contradiction, ...] = ()
    torque_field: TorqueContent | None = None
    visited: VisitedPath = field(default_factory=VisitedPath)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        if self.refusal is not None:
            return f"not usable: {self.refusal}"
        parts = ["simulated"] if self.simulated else []
        good = self._purposes("good")
        limited = self._purposes("limited")
        if good:
            parts.append(f"good for {good}")
        if limited:
            parts.append(f"of limited use for {limited}")
        if not good and not limited:
            parts.append("good for nothing here")
        return "; ".join(parts)

    def _purposes(self, grade: Grade) -> str:
        """Purposes with this grade, separated by commas."""
        purposes = [use.purpose for use in self.uses if use.grade == grade]
        return ", ".join(purposes).replace("_", " ")

    def as_dict(self) -> dict[str, Any]:
        """All attributes but `visited`, ready for JSON."""
        out = dataclasses.asdict(self)
        del out["visited"]
        out["contradictions"] = [each.as_json() for each in self.contradictions]
        torque = self.torque_field
        out["torque_field"] = None if torque is None else torque.as_json()
        for entry, joint in zip(out["joints"], self.joints, strict=True):
            entry["activity"] = joint.activity
        return {**out, "verdict": self.verdict}

    def require_usable(self) -> None:
        """Refuse a recording that would give a wrong model.

        Raises:
            IdentificationError: the recording cannot be used.
        """
        if self.refusal is not None:
            raise IdentificationError(f"{self.source}: {self.refusal}")
