"""Verdict on a recording: what it is good for, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.identification.base_parameters import Conditioning
from ur_energy_model.identification.filtered_motion import RUNNING, freedrive_samples
from ur_energy_model.identification.quality import (
    ENOUGH_SECONDS,
    ILL_CONDITIONED,
    Grade,
    JointQuality,
    Quality,
    Use,
    VisitedPath,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import REDUCED, SAFETY_STOPS
from ur_energy_model.telemetry.bag.layout import JOINT_NAMES
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
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, repetition, typical_step
from ur_energy_model.typing import Array, Mask

_ENOUGH_STEPS = 100_000
_ENOUGH_PAYLOADS = 100
_LEAST_SECONDS = 0.5
_NOISY = ("actual_current", "actual_robot_current")
"""Channels whose noise never repeats a value for long on real hardware."""
_STATES: dict[str, tuple[tuple[str, ...], Callable[[Telemetry], Mask]]] = {
    "freedrive": (("target_qd", "target_qdd"), freedrive_samples),
    "not_running": (("robot_mode",), lambda part: part["robot_mode"] != RUNNING),
    "stopped": (("safety_mode",), lambda part: np.isin(part["safety_mode"], SAFETY_STOPS)),
    "reduced": (("safety_mode",), lambda part: part["safety_mode"] == REDUCED),
}
"""States whose share of the samples is reported: fields needed, and samples in it."""
_MISSED = (
    "target_q", "target_qd", "target_qdd", "target_moment", "actual_q", "actual_qd",
    "actual_current", "joint_temperatures", "actual_robot_voltage", "actual_robot_current",
)  # fmt: skip
"""Fields that some stage needs."""
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

    `robot`: its arm, for the condition number; None for no condition number.

    Raises:
        MissingFieldError: neither positions nor currents were recorded.
    """
    check = RecordingQualityCheck(robot=robot)
    for part in [telemetry] if isinstance(telemetry, Telemetry) else telemetry:
        check.observe(part)
    return check.quality()


@dataclass
class RecordingQualityCheck:
    """Gathers figures from consecutive parts of one recording, and judges them."""

    # Its arm, for the condition number; None for no condition number
    robot: RobotDescription | None = None
    _info: RecordingInfo = field(default_factory=RecordingInfo)
    _count: Counter[str] = field(default_factory=Counter)
    """Samples, gaps, samples lost and repeated, impossible ones, and those in _STATES."""
    _not_finite: Counter[str] = field(default_factory=Counter)
    _steps: list[Array] = field(default_factory=list)
    _extremes: dict[str, Extremes] = field(default_factory=dict)
    """By field; all recorded fields are in it."""
    _repeats: dict[str, Repeats] = field(default_factory=dict)
    _simulator: OfflineSimulatorCheck = field(default_factory=OfflineSimulatorCheck)
    _activity: JointActivity | None = None
    _first_impossible: str | None = None
    _payloads: set[float] = field(default_factory=set)
    _conditioning: Conditioning | None = None
    _visited: VisitedPath = field(default_factory=VisitedPath)

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
        if self.robot is not None and {"actual_q", "target_q"} & set(part.columns):
            if self._conditioning is None:
                down = self._info.gravity
                gravity = None if down is None else np.array(down)
                self._conditioning = Conditioning(self.robot, gravity)
            self._conditioning.accumulate(part)
        for name, values in part.columns.items():
            wide = values.reshape(len(part), -1)
            self._extremes[name].update(wide)
            if bad := int(np.count_nonzero(~np.isfinite(wide))):
                self._not_finite[name] += bad
            for k, channel in enumerate(wide.T if name in _NOISY else ()):
                label = name if values.ndim == 1 else f"{name}_{k}"
                self._repeats.setdefault(label, Repeats()).update(channel)
        self._simulator.update(part)
        speed = part.columns.get("actual_qd", part.columns.get("target_qd"))
        if speed is None and "actual_current" in part:
            speed = np.full_like(part["actual_current"], np.nan)
        if speed is not None:
            self._activity = self._activity or JointActivity(speed.shape[1])
            self._activity.update(part, np.nan_to_num(speed))
        for name, (needed, inside) in _STATES.items():
            if all(each in part for each in needed):
                self._count[name] += int(np.count_nonzero(inside(part)))
        if "payload" in part and len(self._payloads) < _ENOUGH_PAYLOADS:
            self._payloads |= {round(float(v), 3) for v in np.unique(part["payload"])}

    def quality(self) -> Quality:
        """The verdict on what was observed."""
        count, samples = self._count, self._count["samples"]
        steps = np.concatenate(self._steps) if self._steps else np.zeros(0)
        forward = steps[steps > 0]
        step = float(np.median(forward)) if len(forward) else float("nan")
        close = forward[forward < 1.5 * step] if len(forward) else forward
        irregular = bool(len(close)) and bool(np.std(close) > 0.02 * step)
        spacing = typical_step(steps) if irregular else step
        still = max(20.0, 0.2 / step if np.isfinite(step) else 20.0)
        frozen = tuple(label for label, each in self._repeats.items() if each.frozen(still))
        stuck = max(6.0, 0.002 * samples)
        clipped = tuple(label for label, each in self._repeats.items() if each.clipped(stuck))
        seconds = 0.0 if self._activity is None else self._activity.seconds
        joints = self._joints()
        refusal = self._refusal(seconds, joints, frozen)
        condition = None if self._conditioning is None else self._conditioning.number
        shares = {name: count[name] / max(1, samples) for name in _STATES}
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
            uses=tuple(
                Use(purpose, *self._use(purpose, joints, refusal, condition)) for purpose in _NEEDS
            ),
            condition_number=condition,
            refusal=refusal,
            warnings=tuple(self._warnings(seconds, shares, frozen, clipped)),
            visited=self._visited,
        )

    def _joints(self) -> tuple[JointQuality, ...]:
        def extremes(name: str) -> Extremes:
            return self._extremes.get(name, Extremes())

        kind = "actual" if "actual_q" in self._extremes else "target"
        seen = (extremes(name).low for name in (f"{kind}_q", "actual_current"))
        low = next((each for each in seen if each is not None), None)
        if low is None:
            return ()
        n, heat = len(low), extremes("joint_temperatures")
        activity = self._activity or JointActivity(n)
        names: tuple[str, ...] = JOINT_NAMES
        if self.robot is not None:
            names = self.robot.joint_names
        elif n != len(names):
            names = tuple(f"joint_{j + 1}" for j in range(n))
        table = {
            "travel": extremes(f"{kind}_q").span(n),
            "speed": extremes(f"{kind}_qd").largest(n),
            "torque": extremes("target_moment").span(n),
            "current": extremes("actual_current").largest(n),
            "moving": activity.moving,
        }
        nothing = np.full(n, np.nan)
        cold, warm = (nothing if each is None else each for each in (heat.low, heat.high))
        return tuple(
            JointQuality(
                name=names[j],
                **{key: float(column[j]) for key, column in table.items()},
                reversals=int(activity.reversals[j]),
                temperature=(float(cold[j]), float(warm[j])),
            )
            for j in range(n)
        )

    def _refusal(
        self, seconds: float, joints: tuple[JointQuality, ...], frozen: tuple[str, ...]
    ) -> str | None:
        total, impossible = self._count["samples"], self._count["impossible"]
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
            spans = np.array([joint.temperature[1] - joint.temperature[0] for joint in joints])
            widest = float(np.nanmax(spans)) if np.isfinite(spans).any() else 0.0
            if widest < 5:
                return (
                    "no",
                    f"joints warm by {widest:.1f} degC only; combine a cold and a warm recording",
                )
            return "good", f"joints warm by up to {widest:.1f} degC"
        if purpose == "bus_power" and activities <= {"unknown"}:
            return "limited", "positions and speeds not recorded: energy of the whole arm only"
        if purpose == "bus_power" and activities <= {"idle"}:
            return "limited", "standstill: standby power only"
        if purpose == "base_parameters" and (condition or 1.0) > ILL_CONDITIONED:
            return (
                "limited",
                "the motion does not determine all combinations; record one made by ur_energy "
                "excite",
            )
        # The controller's own torque and targets are exact, so any motion suffices.
        exact = {"target_q", "target_qd", "target_qdd"} <= set(self._extremes)
        little_suffices = purpose == "setup_and_inertia" and exact
        idle = [joint.name for joint in joints if joint.activity == "idle"]
        if len(idle) == len(joints) and joints:
            return "no", "no joint moves"
        enough = {"enough", "little"} if little_suffices else {"enough"}
        poor = [joint.name for joint in joints if joint.activity not in {*enough, "idle"}]
        parts = [f"{', '.join(idle)} {'does' if len(idle) == 1 else 'do'} not move"] if idle else []
        parts += [f"little motion of {', '.join(poor)}"] if poor else []
        return ("limited", "; ".join(parts)) if parts else ("good", "every joint moves enough")

    def _warnings(
        self,
        seconds: float,
        shares: dict[str, float],
        frozen: tuple[str, ...],
        clipped: tuple[str, ...],
    ) -> Iterator[str]:
        count, removed = self._count, self._info.removed
        share = count["lost"] / max(1, count["samples"] + count["lost"])
        masses = ", ".join(f"{mass:g}" for mass in sorted(self._payloads))
        table: tuple[tuple[object, str], ...] = (
            (
                share > 0.001,
                f"{count['lost']} samples ({100 * share:.1f} %) are missing in "
                f"{count['gaps']} gaps",
            ),
            (removed, f"{removed} more samples were deleted for the budget of the folder"),
            *((line, line) for line in repetition(count["repeated"])),
            (
                count["impossible"],
                f"{count['impossible']} samples with impossible values "
                f"({self._first_impossible}) are not used",
            ),
            (
                self._not_finite,
                f"{', '.join(self._not_finite)} hold values that are not finite; those samples "
                "are not used",
            ),
            (frozen, f"{', '.join(frozen)} do not change for 0.2 s or more; check the recorder"),
            (clipped, f"{', '.join(clipped)} stay at their limit; slower motions avoid that"),
            *(
                (shares[state], f"{100 * shares[state]:.1f} % {words}")
                for state, words in (
                    ("freedrive", "freedrive, which identifies no inertia"),
                    ("not_running", "with brakes on or power off"),
                    ("stopped", "in a safety stop"),
                    ("reduced", "with reduced safety limits (no stop)"),
                )
            ),
            (
                len(self._payloads) > 1,
                f"the payload changes within the recording ({masses} kg)",
            ),
            (
                _LEAST_SECONDS <= seconds < ENOUGH_SECONDS,
                f"only {seconds:.1f} s; more motion makes the model more exact",
            ),
        )
        return (line for applies, line in table if applies)
