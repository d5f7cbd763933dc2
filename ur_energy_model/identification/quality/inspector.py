"""Figures of a recording that its quality is judged by."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.energy.rated_limits import rated_limits
from ur_energy_model.identification.dynamics.conditioning import Conditioning
from ur_energy_model.identification.quality.recording_quality import VisitedPath
from ur_energy_model.identification.regression.usable_samples import RUNNING, freedrive_samples
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.channel_statistics import Extremes, JointActivity, Repeats
from ur_energy_model.telemetry.modes import REDUCED, SAFETY_STOPS
from ur_energy_model.telemetry.offline_simulator import OfflineSimulatorCheck
from ur_energy_model.telemetry.plausibility import ANY_ARM, possible
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array, Mask

_ENOUGH_STEPS = 100_000
_ENOUGH_PAYLOADS = 100
_NOISY = ("actual_current", "actual_robot_current")
"""Channels whose noise never repeats a value for long on real hardware."""


@dataclass
class Inspector:
    """Gathers figures from consecutive parts of one recording.

    Attributes:
        info: what made the recording.
        robot: its arm, for the condition number; None for no condition number.
        fields: names of the recorded fields.
        samples, gaps, lost, repeated: numbers so far.
        steps: of time, about the first 100 000 [s].
        repeats: of the noisy channels, by name.
        offline_simulator: check for the fingerprint of the manufacturer's simulator.
        activity: of the joints, None without speeds.
        not_finite: number of values by field.
        impossible: number of samples with values that no such arm can have; they are not used.
        first_impossible: the first such value, with its field.
        payloads: masses told to the controller [kg], at most 100.
        conditioning: of the motion, None without a robot.
        visited: joint angles that it passes through.
    """

    info: RecordingInfo = field(default_factory=RecordingInfo)
    robot: RobotDescription | None = None
    fields: set[str] = field(default_factory=set)
    samples: int = 0
    gaps: int = 0
    lost: int = 0
    repeated: int = 0
    steps: list[Array] = field(default_factory=list)
    _extremes: dict[str, Extremes] = field(default_factory=dict)
    repeats: dict[str, Repeats] = field(default_factory=dict)
    offline_simulator: OfflineSimulatorCheck = field(default_factory=OfflineSimulatorCheck)
    activity: JointActivity | None = None
    not_finite: dict[str, int] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    impossible: int = 0
    first_impossible: str | None = None
    payloads: set[float] = field(default_factory=set)
    conditioning: Conditioning | None = None
    visited: VisitedPath = field(default_factory=VisitedPath)

    def observe(self, part: Telemetry) -> None:
        """Add the next part.

        Raises:
            MissingFieldError: neither positions nor currents were recorded.
        """
        if not len(part):
            return
        if not {"actual_q", "target_q", "actual_current"} & set(part.columns):
            part.require("actual_q", purpose="judging a recording without currents")
        self.info, self.fields = part.info, self.fields | set(part.columns)
        self.samples += len(part)
        self.repeated += part.repeated
        limits = ANY_ARM if self.robot is None else rated_limits(self.robot)
        part, impossible, first = possible(part, limits)
        self.impossible += int(np.count_nonzero(impossible))
        if self.first_impossible is None and first is not None:
            self.first_impossible = f"{first.field}_{first.index} = {first.value:.4g}"
        if not len(part):
            return
        self.gaps += len(part.gaps)
        self.lost += part.lost
        if len(part) > 1 and sum(map(len, self.steps)) < _ENOUGH_STEPS:
            self.steps.append(np.diff(part.time))
        self._observe_motion(part)
        self.visited.observe(part)
        for name, values in part.columns.items():
            wide = values.reshape(len(part), -1)
            self._extremes.setdefault(name, Extremes()).update(wide)
            bad = int(np.count_nonzero(~np.isfinite(wide)))
            if bad:
                self.not_finite[name] = self.not_finite.get(name, 0) + bad
        for name in _NOISY:
            if name in part:
                for k, values in enumerate(part[name].reshape(len(part), -1).T):
                    label = name if part[name].ndim == 1 else f"{name}_{k}"
                    self.repeats.setdefault(label, Repeats()).update(values)
        self.offline_simulator.update(part)
        speed = part["actual_qd"] if "actual_qd" in part else part.columns.get("target_qd")
        if speed is None and "actual_current" in part:
            speed = np.full_like(part["actual_current"], np.nan)
        if speed is not None:
            if self.activity is None:
                self.activity = JointActivity.empty(speed.shape[1])
            self.activity.update(part, np.nan_to_num(speed))
        self._count_states(part)

    def _observe_motion(self, part: Telemetry) -> None:
        if self.robot is None or not {"actual_q", "target_q"} & set(part.columns):
            return
        if self.conditioning is None:
            down = self.info.gravity
            self.conditioning = Conditioning(self.robot, None if down is None else np.array(down))
        self.conditioning.accumulate(part)

    def _count_states(self, part: Telemetry) -> None:
        def count(name: str, flags: Mask) -> None:
            self._counts[name] = self._counts.get(name, 0) + int(np.count_nonzero(flags))

        if "target_qd" in part and "target_qdd" in part:
            count("freedrive", freedrive_samples(part))
        if "robot_mode" in part:
            count("not_running", part["robot_mode"] != RUNNING)
        if "safety_mode" in part:
            count("stopped", np.isin(part["safety_mode"], SAFETY_STOPS))
            count("reduced", part["safety_mode"] == REDUCED)
        if "payload" in part and len(self.payloads) < _ENOUGH_PAYLOADS:
            self.payloads |= {round(float(v), 3) for v in np.unique(part["payload"])}

    def extremes(self, name: str) -> Extremes:
        """Extremes of a channel; empty if it was not recorded."""
        return self._extremes.get(name, Extremes())

    def share(self, name: str) -> float:
        """Share of samples in a state."""
        return self._counts.get(name, 0) / max(1, self.samples)
