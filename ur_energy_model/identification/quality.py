"""Quality of a recording: its figures, uses and problems, and the motion it shares with others."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

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

Motion = Literal["fitted", "same motion again", "held out", "unknown"]
"""Relation of a recording's motion to those that a model was fitted to."""
MOTION_WORDS: dict[Motion, str] = {
    "fitted": "the model was fitted to this recording: its errors in other motions may be larger",
    "same motion again": "the same motion again that the model was fitted to: its errors in other "
    "motions may be larger",
    "held out": "another motion than the model was fitted to",
    "unknown": "the model does not name the motions it was fitted to",
}
_FINEST, _COARSEST, _MOST_POSES = 0.1, 0.2, 200
_PATH_PERIOD = 0.05
_TOLERANCE = 0.02
"""Distance of a repeated path to the fitted one [rad]."""
_REPEATED_SHARE = 0.9
"""Share of a recording's poses on a fitted path that makes it the same motion. Recordings of a
UR10e that repeat one another have 1.0, others 0.3 at most."""


@dataclass
class VisitedPath:
    """Joint angles that an arm passed through, coarsely, until a minute or so of ever new ones.

    What follows is left out: with fewer or coarser poses, other motions in the same space would
    pass for this one.
    """

    # Largest angle of any joint from a pose of the path to the nearest of `poses` [rad]
    within: float = _FINEST
    poses: Array = field(default_factory=lambda: np.zeros((0, 0)))  # [poses, n], rad; at most 200
    _last: float = -1.0

    def observe(self, part: Telemetry) -> None:
        """Add consecutive samples; those without positions are left out."""
        q = part.columns.get("target_q", part.columns.get("actual_q"))
        if q is None:
            return
        period = np.floor(part.time / _PATH_PERIOD)
        used = np.diff(period, prepend=self._last) != 0
        self._last = float(period[-1])
        used &= np.isfinite(q).all(axis=1)
        if len(self.poses) < _MOST_POSES or self.within < _COARSEST:
            self._add(q[used])
        while len(self.poses) > _MOST_POSES and self.within < _COARSEST:
            poses, self.within = self.poses, 2.0 * self.within
            self.poses = poses[:0]
            self._add(poses)
        self.poses = self.poses[:_MOST_POSES]

    def _add(self, q: Array) -> None:
        """Keep poses [samples, n] farther than `within` from those that are kept."""
        new = list(self.poses)
        away = self.distance(q)
        while len(far := np.flatnonzero(away > self.within)):
            q, away = q[far[0] :], away[far[0] :]
            new.append(q[0].round(2))
            away = np.minimum(away, np.abs(q - q[0]).max(axis=1))
        self.poses = np.array(new).reshape(-1, q.shape[1])

    def distance(self, q: Array) -> Array:
        """Largest angle of any joint to the nearest of `poses` [samples], rad.

        `q`: joint angles [samples, n], rad.
        """
        if not len(self.poses) or q.shape[1] != self.poses.shape[1]:
            return np.full(len(q), np.inf)
        return np.asarray(np.abs(q[:, None] - self.poses).max(axis=2).min(axis=1))

    def as_json(self) -> dict[str, Any]:
        """For the provenance of a model; `from_json` reads it."""
        return {"within": self.within, "joint_angles": self.poses.tolist()}

    @classmethod
    def from_json(cls, content: Any) -> VisitedPath | None:
        """From a model file; None where that has none."""
        try:
            poses = np.array(content["joint_angles"], dtype=np.float64)
            return cls(float(content["within"]), poses) if poses.ndim == 2 else None
        except (KeyError, TypeError, ValueError):
            return None


def motion_of(path: VisitedPath, sha256: str, fitted: Iterable[Mapping[str, Any]]) -> Motion:
    """Relation of a recording to those that a model was fitted to.

    `fitted`: entries "bags" of the model's provenance; those of older models have no path, and only
    their hash counts.
    """
    entries = [entry for entry in fitted if isinstance(entry, Mapping)]
    if not entries:
        return "unknown"
    if sha256 in (entry.get("sha256") for entry in entries):
        return "fitted"
    known = [VisitedPath.from_json(entry.get("visited")) for entry in entries]
    if None in known or not len(path.poses):
        return "held out"
    on_any = np.zeros(len(path.poses), dtype=bool)
    for other in known:
        if other is not None:
            on_any |= other.distance(path.poses) <= other.within + _TOLERANCE
    return "same motion again" if on_any.mean() >= _REPEATED_SHARE else "held out"


@dataclass(frozen=True)
class Use:
    """Suitability of a recording for one purpose."""

    # "setup_and_inertia", "friction", "bus_power", "temperature", "payload" or
    # "base_parameters"
    purpose: str
    grade: Grade  # "good", "limited" or "no"
    reason: str  # why, in plain words


@dataclass(frozen=True)
class JointQuality:
    """Excitation of one joint."""

    name: str  # of the joint
    travel: float  # range of positions [rad], NaN without
    speed: float  # largest speed [rad/s], NaN without
    torque: float  # range of target_moment [N m], NaN without
    current: float  # largest current [A], NaN without
    moving: float  # time above 0.01 rad/s [s]
    reversals: int  # changes of direction
    temperature: tuple[float, float]  # lowest and highest temperature [degC], NaN without

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
    """Verdict on one recording."""

    source: str  # bag or file
    simulated: bool  # made by this package's simulated controller
    # Has the fingerprint of the manufacturer's offline simulator, whose currents are not
    # measured
    simulator: bool
    # Number, and time covered without gaps [s]
    samples: int
    duration: float
    rate: float  # samples per second found [Hz]
    irregular: bool  # the time step varies by more than 2 % of its median (due to the recorder)
    # Numbers of gaps and of missing samples
    gaps: int
    lost: int
    repeated: int  # number of samples left out because the recording has them twice
    joints: tuple[JointQuality, ...]  # excitation per joint
    # Names of channels (with joint index) that do not change or hit a limit
    frozen: tuple[str, ...]
    clipped: tuple[str, ...]
    not_finite: dict[str, int]  # number of values that are not finite, by field
    freedrive: float  # share of samples in freedrive
    not_running: float  # share of samples with the brakes on or the arm off
    stopped: float  # share of samples in a safety stop
    reduced: float  # share of samples in safety mode reduced (the arm works with lower limits)
    payloads: tuple[float, ...]  # distinct payload masses set in the controller [kg]
    missing: tuple[str, ...]  # fields that some stage needs but were not recorded
    uses: tuple[Use, ...]  # what it is good for
    # Of the base regressor over the motion; None if the robot is unknown
    condition_number: float | None
    refusal: str | None  # why identification refuses it, or None
    warnings: tuple[str, ...]  # for the user, one line each
    visited: VisitedPath = field(default_factory=VisitedPath)  # joint angles that it passes through

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
        """All attributes but `visited`, ready for JSON."""
        out = dataclasses.asdict(self)
        del out["visited"]
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
