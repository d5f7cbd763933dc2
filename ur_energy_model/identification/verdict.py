"""Verdict on a recording: what it is good for, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ur_energy_model.identification.quality import (
    ENOUGH_SECONDS,
    ILL_CONDITIONED,
    Grade,
    JointQuality,
    Quality,
    RecordingQualityCheck,
    Use,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.bag.layout import JOINT_NAMES
from ur_energy_model.telemetry.plausibility import IMPOSSIBLE_SHARE, REASON, REMEDY, JointActivity
from ur_energy_model.telemetry.samples import Telemetry, repetition, typical_step


def assess(
    telemetry: Telemetry | Iterable[Telemetry], *, robot: RobotDescription | None = None
) -> Quality:
    """Quality of a recording, whole or in consecutive parts.

    Args:
        telemetry: the recording.
        robot: its arm, for the condition number; None for no condition number.

    Raises:
        MissingFieldError: neither positions nor currents were recorded.
    """
    inspector = RecordingQualityCheck(robot=robot)
    for part in [telemetry] if isinstance(telemetry, Telemetry) else telemetry:
        inspector.observe(part)
    return judge(inspector)


def judge(inspector: RecordingQualityCheck) -> Quality:
    """The quality of the recording that an inspector has observed."""
    return _QualityCheck(inspector).quality()


class _QualityCheck:
    """Judges the figures of one recording."""

    def __init__(self, found: RecordingQualityCheck) -> None:
        self.found = found
        steps = np.concatenate(found.steps) if found.steps else np.zeros(0)
        forward = steps[steps > 0]
        self.step = float(np.median(forward)) if len(forward) else float("nan")
        close = forward[forward < 1.5 * self.step] if len(forward) else forward
        self.irregular = bool(len(close)) and bool(np.std(close) > 0.02 * self.step)
        self.spacing = typical_step(steps) if self.irregular else self.step
        self.joints = self._joints()
        self.frozen, self.clipped = self._stuck()

    @property
    def condition(self) -> float:
        """Condition number of the base regressor; 1 if unknown."""
        conditioning = self.found.conditioning
        return 1.0 if conditioning is None else conditioning.number

    def _joints(self) -> tuple[JointQuality, ...]:
        found = self.found
        kind = "actual" if "actual_q" in found.fields else "target"
        seen = [found.extremes(name).low for name in (f"{kind}_q", "actual_current")]
        low = next((each for each in seen if each is not None), None)
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
        activity = found.activity or JointActivity(n)
        names: tuple[str, ...] = JOINT_NAMES
        if found.robot is not None:
            names = found.robot.joint_names
        elif n != len(names):
            names = tuple(f"joint_{j + 1}" for j in range(n))
        return tuple(
            JointQuality(
                name=names[j],
                travel=float(travel[j]),
                speed=float(speed[j]),
                torque=float(torque[j]),
                current=float(current[j]),
                moving=float(activity.moving[j]),
                reversals=int(activity.reversals[j]),
                temperature=(float(cold[j]), float(warm[j])),
            )
            for j in range(n)
        )

    def _stuck(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        still = max(20.0, 0.2 / self.step if np.isfinite(self.step) else 20.0)
        stuck = max(6.0, 0.002 * self.found.samples)
        channels = self.found.repeats.items()
        frozen = [label for label, repeats in channels if repeats.frozen(still)]
        clipped = [label for label, repeats in channels if repeats.clipped(stuck)]
        return tuple(frozen), tuple(clipped)

    def quality(self) -> Quality:
        """The verdict."""
        found = self.found
        seconds = 0.0 if found.activity is None else found.activity.seconds
        refusal = self._refusal(seconds)
        return Quality(
            source=found.info.source,
            simulated=found.info.simulated,
            simulator=found.offline_simulator.found,
            samples=found.samples,
            duration=seconds,
            rate=1 / self.spacing if self.spacing else float("nan"),
            irregular=self.irregular,
            gaps=found.gaps,
            lost=found.lost,
            repeated=found.repeated,
            joints=self.joints,
            frozen=self.frozen,
            clipped=self.clipped,
            not_finite=dict(found.not_finite),
            freedrive=found.share("freedrive"),
            not_running=found.share("not_running"),
            stopped=found.share("stopped"),
            reduced=found.share("reduced"),
            payloads=tuple(sorted(found.payloads)),
            missing=self._missing(),
            uses=tuple(self._uses(refusal)),
            condition_number=None if found.conditioning is None else found.conditioning.number,
            refusal=refusal,
            warnings=tuple(self._warnings(seconds)),
            visited=found.visited,
        )

    def _refusal(self, seconds: float) -> str | None:
        if not self.found.samples:
            return "holds no sample; record again"
        total = self.found.samples
        if self.found.impossible > IMPOSSIBLE_SHARE * total:
            return (
                f"{self.found.impossible} of {total} samples hold values that no such arm can have "
                f"({self.found.first_impossible}); record or import again"
            )
        if self.found.offline_simulator.found:
            return f"{REASON}; {REMEDY}"
        if seconds < 0.5:
            return f"covers {seconds:.2f} s without gaps; record at least {ENOUGH_SECONDS:.0f} s"
        currents = {f"actual_current_{j}" for j in range(len(self.joints))}
        if currents <= set(self.frozen):
            return "actual_current is frozen on every joint (a lost connection?); record again"
        return None

    def _missing(self) -> tuple[str, ...]:
        wanted = (
            "target_q",
            "target_qd",
            "target_qdd",
            "target_moment",
            "actual_q",
            "actual_qd",
            "actual_current",
            "joint_temperatures",
            "actual_robot_voltage",
            "actual_robot_current",
        )
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
            elif purpose == "bus_power" and all(j.activity == "unknown" for j in self.joints):
                yield Use(
                    purpose,
                    "limited",
                    "positions and speeds not recorded: energy of the whole arm only",
                )
            elif purpose == "bus_power" and all(j.activity == "idle" for j in self.joints):
                yield Use(purpose, "limited", "standstill: standby power only")
            elif purpose == "base_parameters" and self.condition > ILL_CONDITIONED:
                yield Use(
                    purpose,
                    "limited",
                    "the motion does not determine all combinations; "
                    "record one made by ur_energy excite",
                )
            else:
                # The controller's own torque and targets are exact, so any motion suffices.
                little = purpose == "setup_and_inertia" and exact
                yield Use(purpose, *self._motion_grade(little_is_enough=little))

    def _motion_grade(self, *, little_is_enough: bool) -> tuple[Grade, str]:
        wanted = {"enough", "little"} if little_is_enough else {"enough"}
        poor = [joint.name for joint in self.joints if joint.activity not in wanted]
        idle = [joint.name for joint in self.joints if joint.activity == "idle"]
        if not poor:
            return "good", "every joint moves enough"
        if len(idle) == len(self.joints):
            return "no", "no joint moves"
        parts = []
        if idle:
            parts.append(f"{', '.join(idle)} {'does' if len(idle) == 1 else 'do'} not move")
        if little := [name for name in poor if name not in idle]:
            parts.append(f"little motion of {', '.join(little)}")
        return "limited", "; ".join(parts)

    def _temperature_use(self) -> Use:
        spans = np.array([high - low for low, high in (j.temperature for j in self.joints)])
        widest = float(np.nanmax(spans)) if np.isfinite(spans).any() else 0.0
        if widest < 5:
            return Use(
                "temperature",
                "no",
                f"joints warm by {widest:.1f} degC only; combine a cold and a warm recording",
            )
        return Use("temperature", "good", f"joints warm by up to {widest:.1f} degC")

    def _warnings(self, seconds: float) -> Iterable[str]:
        found = self.found
        total = found.samples + found.lost
        if found.lost > 0.001 * total:
            yield (
                f"{found.lost} samples ({100 * found.lost / total:.1f} %) are missing in "
                f"{found.gaps} gaps"
            )
        if found.info.removed:
            yield f"{found.info.removed} more samples were deleted for the budget of the folder"
        yield from repetition(found.repeated)
        if found.impossible:
            yield (
                f"{found.impossible} samples with impossible values "
                f"({found.first_impossible}) are not used"
            )
        if found.not_finite:
            fields = ", ".join(found.not_finite)
            yield f"{fields} hold values that are not finite; those samples are not used"
        if self.frozen:
            yield f"{', '.join(self.frozen)} do not change for 0.2 s or more; check the recorder"
        if self.clipped:
            yield f"{', '.join(self.clipped)} stay at their limit; slower motions avoid that"
        if found.share("freedrive") > 0:
            yield f"{100 * found.share('freedrive'):.1f} % freedrive, which identifies no inertia"
        if found.share("not_running") > 0:
            yield f"{100 * found.share('not_running'):.1f} % with brakes on or power off"
        if found.share("stopped") > 0:
            yield f"{100 * found.share('stopped'):.1f} % in a safety stop"
        if found.share("reduced") > 0:
            yield f"{100 * found.share('reduced'):.1f} % with reduced safety limits (no stop)"
        if len(found.payloads) > 1:
            masses = ", ".join(f"{mass:g}" for mass in sorted(found.payloads))
            yield f"the payload changes within the recording ({masses} kg)"
        if 0.5 <= seconds < ENOUGH_SECONDS:
            yield f"only {seconds:.1f} s; more motion makes the model more exact"


_NEEDS: dict[str, tuple[str, ...]] = {
    "setup_and_inertia": ("target_moment",),
    "friction": ("actual_q", "actual_qd", "actual_current"),
    "bus_power": ("actual_current", "actual_robot_voltage", "actual_robot_current"),
    "temperature": ("actual_current", "joint_temperatures"),
    "payload": ("actual_q", "actual_qd", "actual_current"),
    "base_parameters": ("actual_q", "actual_qd", "actual_current"),
}
"""Fields that each purpose needs."""
