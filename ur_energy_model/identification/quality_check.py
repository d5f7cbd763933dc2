# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The check of a recording, whole or in parts: figures of its samples, and the verdict on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.recording_check import RecordingCheck
from ur_energy_model.consistency.torque_field import TorqueFieldCheck
from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.energy.wall import RecordedMeter
from ur_energy_model.identification.base_parameters import Conditioning
from ur_energy_model.identification.filtered_motion import NO_MOTION
from ur_energy_model.identification.quality import (
    ENOUGH_SECONDS,
    ILL_CONDITIONED,
    Grade,
    JointQuality,
    Quality,
    Use,
)
from ur_energy_model.identification.visited_path import VisitedPath
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import REDUCED, RUNNING, SAFETY_STOPS
from ur_energy_model.telemetry.bag.messages import JOINT_NAMES
from ur_energy_model.telemetry.gaps import typical_step
from ur_energy_model.telemetry.plausibility import (
    ANY_ARM,
    IMPOSSIBLE_SHARE,
    REASON,
    REMEDY,
    Extremes,
    JointActivity,
    OfflineSimulatorCheck,
    Repeats,
    possible,
)
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, repetition
from ur_energy_model.telemetry.usable_samples import freedrive_samples, usable_samples
from ur_energy_model.typing import Array, Mask

_ENOUGH_STEPS = 100_000  # number of time steps from which the rate is computed
_ENOUGH_PAYLOADS = 100  # largest number of distinct payloads that are kept
_LEAST_SECONDS = 0.5  # recordings that cover less are refused [s]
_FROZEN_TIME = 0.2  # a noisy channel that repeats a value for longer is frozen [s]
_FROZEN_COUNT = 20.0  # and at least for this number of samples
_CLIPPED_COUNT = 6.0  # least number of samples in a row at a limit of a clipped channel
_CLIPPED_SHARE = 0.002  # and at least this share of all samples
_IRREGULAR = 0.02  # scatter of an irregular time step, relative to its median
_WARMING = 5.0  # rise of a joint's temperature that shows its effect on friction [K]
_NOISY = ("actual_current", "actual_robot_current")
"""Channels whose noise never repeats a value for long on real hardware."""


def _not_running(part: Telemetry) -> Mask:
    """Samples [samples] with brakes on or power off."""
    return np.asarray(part["robot_mode"] != RUNNING)


def _stopped(part: Telemetry) -> Mask:
    """Samples [samples] in a safety stop."""
    return np.isin(part["safety_mode"], SAFETY_STOPS)


def _reduced(part: Telemetry) -> Mask:
    """Samples [samples] with reduced safety limits."""
    return np.asarray(part["safety_mode"] == REDUCED)


class _State(NamedTuple):
    """A state of the arm whose share of the samples is reported.

    Attributes:
        needed: fields that show the state.
        samples: returns the samples of a part that are in the state [samples].
        words: words for the state in a warning, after its share of the samples.
    """

    needed: tuple[str, ...]
    samples: Callable[[Telemetry], Mask]
    words: str


_STATES: dict[str, _State] = {
    "freedrive": _State(
        ("target_qd", "target_qdd"),
        freedrive_samples,
        "freedrive, which identifies no inertia",
    ),
    "not_running": _State(("robot_mode",), _not_running, "with brakes on or power off"),
    "stopped": _State(("safety_mode",), _stopped, "in a safety stop"),
    "reduced": _State(("safety_mode",), _reduced, "with reduced safety limits (no stop)"),
}
"""The states by the name of their share in `Quality`."""
_MISSED = (
    "target_q", "target_qd", "target_qdd", "target_moment", "actual_q", "actual_qd",
    "actual_current", "joint_temperatures", "actual_robot_voltage", "actual_robot_current",
)  # fmt: skip
"""Fields that some stage of the identification needs."""
_CURRENTS = ("actual_q", "actual_qd", "actual_current")
_NEEDS: dict[str, tuple[str, ...]] = {
    "setup_and_inertia": ("target_moment",),
    "friction": _CURRENTS,
    "bus_power": ("actual_current", "actual_robot_voltage", "actual_robot_current"),
    "temperature": ("actual_current", "joint_temperatures"),
    "payload": _CURRENTS,
    "base_parameters": _CURRENTS,
}
"""Fields that each purpose needs."""


def assess(
    telemetry: Telemetry | Iterable[Telemetry], *, robot: RobotDescription | None = None
) -> Quality:
    """Quality of a recording, whole or in consecutive parts.

    Args:
        telemetry: the recording, or consecutive parts of it.
        robot: the arm that the recording states. Samples are compared with it, and it is
            needed for the condition number; None without these two.

    Raises:
        MissingFieldError: neither positions nor currents were recorded.
    """
    check = RecordingQualityCheck(robot=robot)
    for part in [telemetry] if isinstance(telemetry, Telemetry) else telemetry:
        check.observe(part)
    return check.quality()


class RecordingQualityCheck:
    """Collects statistics of consecutive parts of one recording, and assesses its quality.

    Args:
        robot: the arm that the recording states. Samples are compared with it, and it is
            needed for the condition number; None without these two.
    """

    def __init__(self, robot: RobotDescription | None = None) -> None:
        self.robot = robot
        self._info = RecordingInfo()
        # Numbers of samples, gaps, lost, repeated and impossible samples, and of samples in
        # each of _STATES.
        self._count: Counter[str] = Counter()
        self._not_finite: Counter[str] = Counter()  # number of values, by field
        self._steps: list[Array] = []  # steps of time [samples - 1] of each part [s]
        self._extremes: dict[str, Extremes] = {}  # extremes of every recorded field
        self._repeats: dict[str, Repeats] = {}  # repeats of fields in _NOISY, by channel
        self._simulator = OfflineSimulatorCheck()
        self._activity: JointActivity | None = None
        self._first_impossible: str | None = None
        self._payloads: set[float] = set()
        self._conditioning: Conditioning | None = None
        self._visited = VisitedPath()
        self._statements = RecordingCheck()
        self._torque_field = TorqueFieldCheck()
        self._meter = RecordedMeter()

    def observe(self, part: Telemetry) -> None:
        """Add the next part.

        Raises:
            MissingFieldError: neither positions nor currents were recorded.
        """
        if not len(part):
            return
        if not {"actual_q", "target_q", "actual_current"} & set(part.columns):
            part.require("actual_q", purpose="judging a recording without currents")
        self._info = part.info
        for name in part.columns:
            self._extremes.setdefault(name, Extremes())
        self._count += Counter(samples=len(part), repeated=part.repeated)
        limits = ANY_ARM if self.robot is None else rated_limits(self.robot)
        part, impossible, first = possible(part, limits)
        if self._first_impossible is None and first is not None:
            self._first_impossible = f"{first.field}_{first.index} = {first.value:.4g}"
        self._count["impossible"] += int(np.count_nonzero(impossible))
        if not len(part):
            return
        self._count += Counter(gaps=len(part.gaps), lost=part.lost)
        if len(part) > 1 and sum(map(len, self._steps)) < _ENOUGH_STEPS:
            self._steps.append(np.diff(part.time))
        self._visited.observe(part)
        self._meter.observe(part)
        if self.robot is not None:
            self._statements.observe(part)
            self._torque_field.observe(part)
            self._add_to_conditioning(part, self.robot)
        self._add_to_channels(part)
        self._simulator.update(part)
        self._add_to_activity(part)
        for name, state in _STATES.items():
            if set(state.needed) <= set(part.columns):
                self._count[name] += int(np.count_nonzero(state.samples(part)))
        if "payload" in part and len(self._payloads) < _ENOUGH_PAYLOADS:
            masses = np.unique(part["payload"]).tolist()
            self._payloads |= {round(mass, 3) for mass in masses}

    def _add_to_conditioning(self, part: Telemetry, robot: RobotDescription) -> None:
        """Add a part to the condition number, in the mounting that the recording states."""
        if not {"actual_q", "target_q"} & set(part.columns):
            return
        if self._conditioning is None:
            gravity = None
            if self._info.gravity is not None:
                gravity = np.array(self._info.gravity)
            self._conditioning = Conditioning(robot, gravity)
        self._conditioning.accumulate(part)

    def _add_to_channels(self, part: Telemetry) -> None:
        """Add a part to the extremes and repeated values of its channels."""
        for name, values in part.columns.items():
            channels = values.reshape(len(part), -1)
            self._extremes[name].update(channels)
            bad = int(np.count_nonzero(~np.isfinite(channels)))
            if bad:
                self._not_finite[name] += bad
            if name in _NOISY:
                for k, channel in enumerate(channels.T):
                    label = name if values.ndim == 1 else f"{name}_{k}"
                    self._repeats.setdefault(label, Repeats()).update(channel)

    def _add_to_activity(self, part: Telemetry) -> None:
        """Add a part to the times in motion; without speeds no joint moves in it."""
        speed = part.columns.get("actual_qd", part.columns.get("target_qd"))
        if speed is None and "actual_current" in part:
            speed = np.full_like(part["actual_current"], np.nan)
        if speed is None:
            return
        if self._activity is None:
            self._activity = JointActivity(speed.shape[1])
        usable = usable_samples(part)[:, None]
        self._activity.update(part, np.nan_to_num(speed) * usable)

    def quality(self) -> Quality:
        """The quality of the parts so far."""
        count = self._count
        samples = self._count["samples"]
        steps = np.concatenate([np.zeros(0), *self._steps])
        step, irregular = _step(steps)
        spacing = typical_step(steps) if irregular else step
        frozen, clipped = self._stuck_channels(step)
        seconds = 0.0 if self._activity is None else self._activity.seconds
        joints = self._joints()
        contradictions = self._contradictions()
        refusal = self._refusal(seconds, joints, frozen, contradictions)
        torque_field = None
        if self.robot is not None:
            torque_field = self._torque_field.found(self.robot)
        condition = None if self._conditioning is None else self._conditioning.number
        shares = {name: count[name] / max(1, samples) for name in _STATES}
        uses = [
            Use(purpose, *self._use(purpose, joints, refusal, condition))
            for purpose in _NEEDS
        ]
        warnings = [each.words() for each in contradictions if not each.refused]
        warnings += self._warnings(seconds, joints, shares, frozen, clipped)
        return Quality(
            source=self._info.source,
            simulated=self._info.simulated,
            simulator=self._simulator.found,
            samples=samples,
            duration=seconds,
            rate=1 / spacing if spacing else float("nan"),
            irregular=irregular,
            gaps=count["gaps"],
            lost=count["lost"],
            repeated=count["repeated"],
            joints=joints,
            frozen=frozen,
            clipped=clipped,
            not_finite=dict(self._not_finite),
            **shares,
            payloads=tuple(sorted(self._payloads)),
            missing=tuple(name for name in _MISSED if name not in self._extremes),
            uses=tuple(uses),
            condition_number=condition,
            refusal=refusal,
            contradictions=contradictions,
            torque_field=torque_field,
            warnings=tuple(warnings),
            visited=self._visited,
        )

    def _stuck_channels(self, step: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the channels that are frozen, and of the channels that are clipped.

        Args:
            step: median step of time [s]; NaN where it is unknown.
        """
        still = _FROZEN_COUNT
        if np.isfinite(step):
            still = max(still, _FROZEN_TIME / step)
        stuck = max(_CLIPPED_COUNT, _CLIPPED_SHARE * self._count["samples"])
        channels = self._repeats.items()
        frozen = tuple(label for label, each in channels if each.frozen(still))
        clipped = tuple(label for label, each in channels if each.clipped(stuck))
        return frozen, clipped

    def _joints(self) -> tuple[JointQuality, ...]:
        """Excitation of the joints; none where neither positions nor currents were recorded."""
        kind = "actual" if "actual_q" in self._extremes else "target"
        low = self._extremes_of(f"{kind}_q").low
        if low is None:
            low = self._extremes_of("actual_current").low
        if low is None:
            return ()
        n = len(low)
        travel = self._extremes_of(f"{kind}_q").span(n)
        speed = self._extremes_of(f"{kind}_qd").largest(n)
        torque = self._extremes_of("target_moment").span(n)
        current = self._extremes_of("actual_current").largest(n)
        temperature = self._extremes_of("joint_temperatures")
        nothing = np.full(n, np.nan)
        coldest = nothing if temperature.low is None else temperature.low
        warmest = nothing if temperature.high is None else temperature.high
        activity = self._activity or JointActivity(n)
        joints = [
            JointQuality(
                name=name,
                travel=float(travel[j]),
                speed=float(speed[j]),
                torque=float(torque[j]),
                current=float(current[j]),
                moving=float(activity.moving[j]),
                reversals=int(activity.reversals[j]),
                temperature=(float(coldest[j]), float(warmest[j])),
            )
            for j, name in enumerate(self._joint_names(n))
        ]
        return tuple(joints)

    def _extremes_of(self, name: str) -> Extremes:
        """Extremes of a field; without values where it was not recorded."""
        return self._extremes.get(name, Extremes())

    def _joint_names(self, n: int) -> tuple[str, ...]:
        """Names of the n joints: from the robot file, else as in messages, else numbers from 1."""
        if self.robot is not None:
            return self.robot.joint_names[:n]
        if n == len(JOINT_NAMES):
            return tuple(JOINT_NAMES)
        return tuple(f"joint_{j + 1}" for j in range(n))

    def _contradictions(self) -> tuple[Contradiction, ...]:
        """Statements about the recording (arm, unit, meter) that its samples contradict."""
        self._meter.finish()
        return (*self._statements.contradictions(self.robot), *self._meter.contradictions)

    def _refusal(
        self,
        seconds: float,
        joints: tuple[JointQuality, ...],
        frozen: tuple[str, ...],
        contradictions: tuple[Contradiction, ...],
    ) -> str | None:
        """Why identification refuses the recording, with a remedy; None where it does not."""
        total = self._count["samples"]
        impossible = self._count["impossible"]
        if not total:
            return "holds no sample; record again"
        if impossible > IMPOSSIBLE_SHARE * total:
            return (
                f"{impossible} of {total} samples hold values that no such arm can have "
                f"({self._first_impossible}); record or import again"
            )
        if self._simulator.found:
            return f"{REASON}; {REMEDY}"
        if seconds < _LEAST_SECONDS:
            return f"covers {seconds:.2f} s without gaps; record at least {ENOUGH_SECONDS:.0f} s"
        if {f"actual_current_{j}" for j in range(len(joints))} <= set(frozen):
            return "actual_current is frozen on every joint (a lost connection?); record again"
        for contradiction in contradictions:
            if contradiction.refused:
                return contradiction.words()
        return None

    def _use(
        self,
        purpose: str,
        joints: tuple[JointQuality, ...],
        refusal: str | None,
        condition: float | None,
    ) -> tuple[Grade, str]:
        """How suitable the recording is for a purpose, and why."""
        lacking = [name for name in _NEEDS[purpose] if name not in self._extremes]
        if refusal is not None or lacking:
            return "no", refusal or f"{', '.join(lacking)} not recorded"
        activities = {joint.activity for joint in joints}
        if purpose == "temperature":
            ranges = np.array([joint.temperature for joint in joints]).reshape(-1, 2)
            spans = np.ptp(ranges, axis=1)  # NaN where no temperature was recorded
            widest = float(spans[np.isfinite(spans)].max(initial=0.0))
            if widest >= _WARMING:
                return "good", f"joints warm by up to {widest:.1f} degC"
            text = f"joints warm by {widest:.1f} degC only; combine a cold and a warm recording"
            return "no", text
        if purpose == "bus_power" and activities <= {"unknown"}:
            return (
                "limited",
                "positions and speeds not recorded: energy of the whole arm only",
            )
        if purpose == "bus_power" and activities <= {"idle"}:
            return "limited", "standstill: standby power only"
        if activities == {"idle"}:
            return "no", NO_MOTION
        if purpose == "base_parameters" and (condition or 1.0) > ILL_CONDITIONED:
            text = "the motion does not determine all combinations; record one made by ur_energy"
            return "limited", f"{text} excite"
        # The controller's own torque and targets are exact, so any motion suffices.
        exact = {"target_q", "target_qd", "target_qdd"} <= set(self._extremes)
        little_suffices = purpose == "setup_and_inertia" and exact
        idle = [joint.name for joint in joints if joint.activity == "idle"]
        enough = {"enough", "little"} if little_suffices else {"enough"}
        poor = [joint.name for joint in joints if joint.activity not in {*enough, "idle"}]
        parts = []
        if idle:
            parts.append(f"{', '.join(idle)} hardly moved")
        if poor:
            parts.append(f"little motion of {', '.join(poor)}")
        if parts:
            return "limited", "; ".join(parts)
        return "good", "every joint moves enough"

    def _warnings(
        self,
        seconds: float,
        joints: tuple[JointQuality, ...],
        shares: dict[str, float],
        frozen: tuple[str, ...],
        clipped: tuple[str, ...],
    ) -> list[str]:
        """Warnings for the user, one line each; contradictions are not among them.

        Args:
            seconds: time covered without gaps [s].
            joints: excitation of the joints.
            shares: share of the samples in each of _STATES.
            frozen: channels that do not change.
            clipped: channels that stay at a limit.
        """
        count = self._count
        warnings = []
        share = count["lost"] / max(1, count["samples"] + count["lost"])
        if share > 0.001:
            warnings.append(
                f"{count['lost']} samples ({100 * share:.1f} %) are missing in "
                f"{count['gaps']} gaps"
            )
        removed = self._info.removed
        if removed:
            warnings.append(
                f"{removed} more samples were deleted for the budget of the folder"
            )
        warnings += repetition(count["repeated"])
        if count["impossible"]:
            warnings.append(
                f"{count['impossible']} samples with impossible values "
                f"({self._first_impossible}) are not used"
            )
        if self._not_finite:
            warnings.append(
                f"{', '.join(self._not_finite)} hold values that are not finite; those samples "
                "are not used"
            )
        if frozen:
            warnings.append(
                f"{', '.join(frozen)} do not change for {_FROZEN_TIME:g} s or more; check the "
                "recorder"
            )
        if clipped:
            warnings.append(
                f"{', '.join(clipped)} stay at their limit; slower motions avoid that"
            )
        for name, state in _STATES.items():
            if shares[name]:
                warnings.append(f"{100 * shares[name]:.1f} % {state.words}")
        if {joint.activity for joint in joints} == {"idle"}:
            warnings.append(NO_MOTION)
        if len(self._payloads) > 1:
            masses = ", ".join(f"{mass:g}" for mass in sorted(self._payloads))
            warnings.append(f"the payload changes within the recording ({masses} kg)")
        if _LEAST_SECONDS <= seconds < ENOUGH_SECONDS:
            warnings.append(
                f"only {seconds:.1f} s; more motion makes the model more exact"
            )
        return warnings


def _step(steps: Array) -> tuple[float, bool]:
    """Median step of time [s], NaN without samples, and whether the steps are irregular.

    Args:
        steps: all steps, gaps included [steps], s.
    """
    forward = steps[steps > 0]
    step = float(np.median(forward)) if len(forward) else float("nan")
    close = forward[forward < 1.5 * step]  # without gaps
    irregular = bool(len(close)) and bool(np.std(close) > _IRREGULAR * step)
    return step, irregular
