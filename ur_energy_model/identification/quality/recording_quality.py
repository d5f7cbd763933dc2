"""Quality of a recording: figures, uses and verdict."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

from ur_energy_model.errors import IdentificationError

Grade = Literal["good", "limited", "no"]
Activity = Literal["idle", "little", "enough", "unknown"]

_IDLE_TRAVEL = 0.01
_IDLE_SECONDS = 0.3
_ENOUGH_SPEED = 0.3
_ENOUGH_TRAVEL = 0.2
ENOUGH_SECONDS = 5.0
"""Recordings shorter than this get a warning [s]."""
ILL_CONDITIONED = 3000.0
"""Condition number from which base parameters are not determined (good motions reach 150)."""


@dataclass(frozen=True)
class Use:
    """Suitability of a recording for one purpose.

    Attributes:
        purpose: "setup_and_inertia", "friction", "bus_power", "temperature",
            "payload" or "base_parameters".
        grade: "good", "limited" or "no".
        reason: why, in plain words.
    """

    purpose: str
    grade: Grade
    reason: str


@dataclass(frozen=True)
class JointQuality:
    """Excitation of one joint.

    Attributes:
        travel: range of positions [rad], NaN without.
        speed: largest speed [rad/s], NaN without.
        torque: range of target_moment [N m], NaN without.
        current: largest current [A], NaN without.
        moving: time above 0.01 rad/s [s].
        reversals: changes of direction.
        temperature: lowest and highest temperature [degC], NaN without.
    """

    travel: float
    speed: float
    torque: float
    current: float
    moving: float
    reversals: int
    temperature: tuple[float, float]

    @property
    def activity(self) -> Activity:
        """Idle, little motion, or enough to identify friction; unknown without positions."""
        if math.isnan(self.travel):
            return "unknown"
        if self.travel < _IDLE_TRAVEL or self.moving < _IDLE_SECONDS:
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
        simulated: made by this package's simulated controller.
        simulator: has the fingerprint of the manufacturer's offline simulator, whose currents are
            not measured.
        samples, duration: number, and time covered without gaps [s].
        rate: samples per second found [Hz].
        irregular: the time step varies by more than 2 % of its median (due to the recorder).
        gaps, lost: numbers of gaps and of missing samples.
        repeated: number of samples left out because the recording has them twice.
        joints: excitation per joint.
        frozen, clipped: names of channels (with joint index) that do not change or hit a limit.
        not_finite: number of values that are not finite, by field.
        freedrive: share of samples in freedrive.
        not_running: share of samples with the brakes on or the arm off.
        stopped: share of samples in a safety stop.
        reduced: share of samples in safety mode reduced (the arm works with lower limits).
        payloads: distinct payload masses told to the controller [kg].
        missing: fields that some stage needs but were not recorded.
        uses: what it is good for.
        condition_number: of the base regressor over the motion; None if the robot is unknown.
        refusal: why identification refuses it, or None.
        warnings: for the user, one line each.
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

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        if self.refusal is not None:
            return f"not usable: {self.refusal}"
        made = "simulated; " if self.simulated else ""
        parts = [
            f"{words} {', '.join(purposes)}"
            for grade, words in (("good", "good for"), ("limited", "of limited use for"))
            if (purposes := [u.purpose.replace("_", " ") for u in self.uses if u.grade == grade])
        ]
        return made + ("; ".join(parts) or "good for nothing here")

    def as_dict(self) -> dict[str, Any]:
        """All attributes, ready for JSON."""
        out = dataclasses.asdict(self)
        for entry, joint in zip(out["joints"], self.joints, strict=True):
            entry["activity"] = joint.activity
        return {**out, "verdict": self.verdict}

    def require_usable(self) -> None:
        """Refuse a recording that would give a wrong model.

        Raises:
            IdentificationError: with reason and remedy.
        """
        if self.refusal is not None:
            raise IdentificationError(f"{self.source}: {self.refusal}")
