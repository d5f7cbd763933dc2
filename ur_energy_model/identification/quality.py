"""Is this recording fit for fitting? A verdict in plain words, with the figures behind it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.channel_statistics import (
    Extremes,
    JointActivity,
    Proportion,
    Repeats,
)
from ur_energy_model.identification.reference_motion import RUNNING, freedrive
from ur_energy_model.telemetry.samples import Array, RecordingInfo, Telemetry

Grade = Literal["good", "limited", "no"]
Activity = Literal["idle", "little", "enough"]

NOMINAL_VOLTAGE = 48.0
"""The maker's offline simulator reports exactly this bus voltage, always."""
_NOISY = ("actual_current", "actual_robot_current")
"""Channels that real hardware never repeats for long."""
_IDLE_TRAVEL = 0.01
_IDLE_SECONDS = 0.3
_ENOUGH_SPEED = 0.3
_ENOUGH_TRAVEL = 0.2
_ENOUGH_SECONDS = 5.0


@dataclass(frozen=True)
class Use:
    """What a recording is good for.

    Attributes:
        purpose: "setup_and_inertia", "friction", "bus_power", "temperature" or "payload".
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
        travel: range of positions [rad].
        speed: largest speed [rad/s].
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
        """Idle (as good as never moved), little, or enough to identify friction."""
        if self.travel < _IDLE_TRAVEL or self.moving < _IDLE_SECONDS:
            return "idle"
        enough = (
            self.travel > _ENOUGH_TRAVEL
            and self.speed > _ENOUGH_SPEED
            and self.moving > _ENOUGH_SECONDS / 2
            and self.reversals >= 1
        )
        return "enough" if enough else "little"


@dataclass(frozen=True)
class Quality:
    """Verdict on one recording.

    Attributes:
        source: bag or file.
        simulated: made by this package's simulated controller.
        simulator: fingerprint of the maker's offline simulator, whose currents are not measured.
        samples, duration: number, and time covered without gaps [s].
        rate: samples per second found [Hz].
        irregular: the time step varies by more than 2 % of its median (a recorder's doing).
        gaps, lost: stretches missing, samples missing.
        joints: excitation per joint.
        frozen, clipped: names of channels (with joint index) that stand still or hit a limit.
        not_finite: number of values that are not finite, by field.
        freedrive: share of samples in freedrive.
        not_running: share of samples with the brakes on or the arm off.
        stopped: share of samples in a safety mode other than normal.
        payloads: distinct payload masses told to the controller [kg].
        missing: fields that some step needs and the recording lacks.
        uses: what it is good for.
        refusal: why identification must refuse it, or None.
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
    joints: tuple[JointQuality, ...]
    frozen: tuple[str, ...]
    clipped: tuple[str, ...]
    not_finite: dict[str, int]
    freedrive: float
    not_running: float
    stopped: float
    payloads: tuple[float, ...]
    missing: tuple[str, ...]
    uses: tuple[Use, ...]
    refusal: str | None
    warnings: tuple[str, ...]

    def require_usable(self) -> None:
        """Refuse a recording that would make a wrong model.

        Raises:
            IdentificationError: says why and what to do.
        """
        if self.refusal is not None:
            raise IdentificationError(f"{self.source}: {self.refusal}")


def assess(telemetry: Telemetry | Iterable[Telemetry]) -> Quality:
    """Quality of a recording, whole or in consecutive parts.

    Raises:
        MissingFieldError: neither actual_q nor target_q is there.
    """
    inspector = Inspector()
    for part in [telemetry] if isinstance(telemetry, Telemetry) else telemetry:
        inspector.add(part)
    return inspector.quality()


@dataclass
class Inspector:
    """Gathers what a verdict needs from consecutive parts of one recording."""

    info: RecordingInfo = field(default_factory=RecordingInfo)
    fields: set[str] = field(default_factory=set)
    samples: int = 0
    gaps: int = 0
    lost: int = 0
    _steps: list[Array] = field(default_factory=list)
    _extremes: dict[str, Extremes] = field(default_factory=dict)
    _repeats: dict[str, Repeats] = field(default_factory=dict)
    _proportion: Proportion = field(default_factory=Proportion)
    _activity: JointActivity | None = None
    _not_finite: dict[str, int] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _payloads: set[float] = field(default_factory=set)
    _last_time: float | None = None

    def add(self, part: Telemetry) -> None:
        """Take in the next part."""
        if not len(part):
            return
        if "actual_q" not in part:
            part.require("target_q", purpose="judging a recording")
        self.info, self.fields = part.info, self.fields | set(part.columns)
        self.samples += len(part)
        self.gaps += len(part.gaps)
        self.lost += part.lost
        self._time(part)
        for name, values in part.columns.items():
            wide = values.reshape(len(part), -1)
            self._extremes.setdefault(name, Extremes()).add(wide)
            bad = int(np.count_nonzero(~np.isfinite(wide)))
            if bad:
                self._not_finite[name] = self._not_finite.get(name, 0) + bad
        for name in _NOISY:
            if name in part:
                values = part[name].reshape(len(part), -1)
                self._repeats.setdefault(name, Repeats()).add(values)
        if "actual_current" in part and "target_current" in part:
            self._proportion.add(part["actual_current"], part["target_current"])
        speed = part["actual_qd"] if "actual_qd" in part else part.columns.get("target_qd")
        if speed is not None:
            if self._activity is None:
                self._activity = JointActivity.of(speed.shape[1])
            self._activity.add(part, np.nan_to_num(speed))
        self._states(part)

    def _time(self, part: Telemetry) -> None:
        steps = np.diff(part.time)
        if len(steps) and sum(map(len, self._steps)) < 100_000:
            self._steps.append(steps)

    def _states(self, part: Telemetry) -> None:
        def count(name: str, flags: NDArray[np.bool_]) -> None:
            self._counts[name] = self._counts.get(name, 0) + int(np.count_nonzero(flags))

        if "target_qd" in part and "target_qdd" in part:
            count("freedrive", freedrive(part))
        if "robot_mode" in part:
            count("not_running", part["robot_mode"] != RUNNING)
        if "safety_mode" in part:
            count("stopped", part["safety_mode"] != 1)
        if "payload" in part and len(self._payloads) < 100:
            self._payloads |= {round(float(v), 3) for v in np.unique(part["payload"])}

    def quality(self) -> Quality:
        """The verdict on everything added so far."""
        return _Verdict(self).quality()

    def extremes(self, name: str) -> Extremes:
        """Extremes of a channel; empty where it was not recorded."""
        return self._extremes.get(name, Extremes())

    def share(self, name: str) -> float:
        """Share of samples in a state."""
        return self._counts.get(name, 0) / max(1, self.samples)


class _Verdict:
    """Turns gathered figures into words."""

    def __init__(self, found: Inspector) -> None:
        self.found = found
        steps = np.concatenate(found._steps) if found._steps else np.zeros(0)
        forward = steps[steps > 0]
        self.step = float(np.median(forward)) if len(forward) else float("nan")
        close = forward[forward < 1.5 * self.step] if len(forward) else forward
        self.irregular = bool(len(close)) and bool(np.std(close) > 0.02 * self.step)
        self.joints = self._joints()
        self.frozen, self.clipped = self._stuck()

    def _joints(self) -> tuple[JointQuality, ...]:
        found = self.found
        kind = "actual" if "actual_q" in found.fields else "target"
        low = found.extremes(f"{kind}_q").low
        if low is None:
            return ()
        n = len(low)
        travel = found.extremes(f"{kind}_q").span(n)
        speed = found.extremes(f"{kind}_qd").largest(n)
        torque = found.extremes("target_moment").span(n)
        current = found.extremes("actual_current").largest(n)
        heat = found.extremes("joint_temperatures")
        nothing = np.full(n, np.nan)
        cold = nothing if heat.low is None else heat.low
        warm = nothing if heat.high is None else heat.high
        activity = found._activity or JointActivity.of(n)
        return tuple(
            JointQuality(
                travel=float(travel[j]), speed=float(speed[j]), torque=float(torque[j]),
                current=float(current[j]), moving=float(activity.moving[j]),
                reversals=int(activity.reversals[j]),
                temperature=(float(cold[j]), float(warm[j])),
            )
            for j in range(n)
        )  # fmt: skip

    def _stuck(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        frozen, clipped = [], []
        for name, repeats in self.found._repeats.items():
            assert repeats.longest is not None
            assert repeats.at_limit is not None
            single = len(repeats.longest) == 1
            for k, longest in enumerate(repeats.longest):
                label = name if single else f"{name}_{k}"
                still = max(20, 0.2 / self.step if np.isfinite(self.step) else 20)
                if longest >= still:
                    frozen.append(label)
                elif repeats.at_limit[k] >= max(6, 0.002 * self.found.samples):
                    clipped.append(label)
        return tuple(frozen), tuple(clipped)

    @property
    def simulator(self) -> bool:
        """Whether the recording carries the fingerprint of the maker's offline simulator."""
        voltage = self.found.extremes("actual_robot_voltage")
        if voltage.low is None or voltage.high is None:
            return self.found._proportion.exact
        fixed = bool(voltage.low[0] == NOMINAL_VOLTAGE == voltage.high[0])
        return fixed and self.found._proportion.exact

    def quality(self) -> Quality:
        found = self.found
        seconds = 0.0 if found._activity is None else found._activity.seconds
        refusal = self._refusal(seconds)
        return Quality(
            source=found.info.source,
            simulated=found.info.simulated,
            simulator=self.simulator,
            samples=found.samples,
            duration=seconds,
            rate=1 / self.step if self.step else float("nan"),
            irregular=self.irregular,
            gaps=found.gaps,
            lost=found.lost,
            joints=self.joints,
            frozen=self.frozen,
            clipped=self.clipped,
            not_finite=dict(found._not_finite),
            freedrive=found.share("freedrive"),
            not_running=found.share("not_running"),
            stopped=found.share("stopped"),
            payloads=tuple(sorted(found._payloads)),
            missing=self._missing(),
            uses=tuple(self._uses(refusal)),
            refusal=refusal,
            warnings=tuple(self._warnings(seconds)),
        )

    def _refusal(self, seconds: float) -> str | None:
        if not self.found.samples:
            return "holds no sample; record again"
        if self.simulator:
            return (
                "comes from the maker's offline simulator (actual_current is an exact multiple of "
                "target_current, bus voltage exactly 48 V): nothing was measured; record a real arm"
            )
        if seconds < 0.5:
            return f"covers {seconds:.2f} s without gaps; record at least {_ENOUGH_SECONDS:.0f} s"
        currents = {f"actual_current_{j}" for j in range(len(self.joints))}
        if currents <= set(self.frozen):
            return "actual_current is frozen on every joint (a lost connection?); record again"
        return None

    def _missing(self) -> tuple[str, ...]:
        wanted = (
            "target_q", "target_qd", "target_qdd", "target_moment", "actual_q", "actual_qd",
            "actual_current", "joint_temperatures", "actual_robot_voltage", "actual_robot_current",
        )  # fmt: skip
        return tuple(name for name in wanted if name not in self.found.fields)

    def _uses(self, refusal: str | None) -> Iterable[Use]:
        exact = {"target_q", "target_qd", "target_qdd"} <= self.found.fields
        for purpose, needs in _NEEDS.items():
            lacking = [name for name in needs if name not in self.found.fields]
            if refusal is not None:
                yield Use(purpose, "no", refusal)
            elif lacking:
                yield Use(purpose, "no", f"{', '.join(lacking)} not recorded")
            elif purpose == "temperature":
                yield self._temperature_use()
            elif purpose == "bus_power" and all(j.activity == "idle" for j in self.joints):
                yield Use(purpose, "limited", "standstill: standby power and nothing else")
            else:
                # The controller's own torque and targets are exact, so any motion will do there.
                little = purpose == "setup_and_inertia" and exact
                yield Use(purpose, *self._motion_grade(little_is_enough=little))

    def _motion_grade(self, *, little_is_enough: bool) -> tuple[Grade, str]:
        wanted = {"enough", "little"} if little_is_enough else {"enough"}
        poor = [j + 1 for j, joint in enumerate(self.joints) if joint.activity not in wanted]
        idle = [j + 1 for j, joint in enumerate(self.joints) if joint.activity == "idle"]
        if not poor:
            return "good", "every joint moves enough"
        if len(idle) == len(self.joints):
            return "no", "no joint moves"
        parts = []
        if idle:
            parts.append(f"joint {_listed(idle)} does not move")
        if set(poor) - set(idle):
            parts.append(f"little motion of joint {_listed(sorted(set(poor) - set(idle)))}")
        return "limited", "; ".join(parts)

    def _temperature_use(self) -> Use:
        spans = np.array([high - low for low, high in (j.temperature for j in self.joints)])
        widest = float(np.nanmax(spans)) if np.isfinite(spans).any() else 0.0
        if widest < 5:
            return Use("temperature", "no", f"joints warm by {widest:.1f} degC only; "
                       "combine a cold and a warm recording")  # fmt: skip
        return Use("temperature", "good", f"joints warm by up to {widest:.1f} degC")

    def _warnings(self, seconds: float) -> Iterable[str]:
        found = self.found
        total = found.samples + found.lost
        if found.lost > 0.001 * total:
            yield f"{found.lost} samples ({100 * found.lost / total:.1f} %) are missing in " \
                  f"{found.gaps} gaps"  # fmt: skip
        if found._not_finite:
            fields = ", ".join(found._not_finite)
            yield f"{fields} hold values that are not finite; those samples are left out"
        if self.frozen:
            yield f"{', '.join(self.frozen)} stand still for 0.2 s or more; check the recorder"
        if self.clipped:
            yield f"{', '.join(self.clipped)} stay at their limit; slower motions avoid that"
        if found.share("freedrive") > 0:
            yield f"{100 * found.share('freedrive'):.1f} % freedrive, which identifies no inertia"
        if found.share("not_running") > 0:
            yield f"{100 * found.share('not_running'):.1f} % with brakes on or power off"
        if found.share("stopped") > 0:
            yield f"{100 * found.share('stopped'):.1f} % in a safety stop"
        if len(found._payloads) > 1:
            masses = ", ".join(f"{mass:g}" for mass in sorted(found._payloads))
            yield f"the payload changes within the recording ({masses} kg)"
        if 0.5 <= seconds < _ENOUGH_SECONDS:
            yield f"only {seconds:.1f} s; more motion makes the model surer"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


_NEEDS: dict[str, tuple[str, ...]] = {
    "setup_and_inertia": ("target_moment",),
    "friction": ("actual_q", "actual_qd", "actual_current"),
    "bus_power": ("actual_current", "actual_robot_voltage", "actual_robot_current"),
    "temperature": ("actual_current", "joint_temperatures"),
    "payload": ("actual_q", "actual_qd", "actual_current"),
}
"""Fields that each purpose cannot do without."""
