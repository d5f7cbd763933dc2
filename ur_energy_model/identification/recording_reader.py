"""One bag, read once: filters, quality check and power stage see every batch as it passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.powers import FIELDS as ENERGY_FIELDS
from ur_energy_model.energy.telemetry_checks import check_batch, check_robot
from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.filtered_motion import (
    FilteredMotion,
    MotionStream,
    choose_cutoff,
    merged_ranges,
    sample_period,
)
from ur_energy_model.identification.parts import LENGTH, KeptTime, Segment, SegmentSelector
from ur_energy_model.identification.power_fit import PowerFit
from ur_energy_model.identification.quality import RecordingQualityCheck
from ur_energy_model.identification.recording import Buffer, Recording, TorqueBuffer
from ur_energy_model.identification.verdict import judge
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import checked_clock
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate
from ur_energy_model.typing import Progress

# RTDE fields that identification and learning use.

FIELDS: tuple[str, ...] = (
    "target_q", "target_qd", "target_qdd", "target_moment", "target_current",
    "actual_q", "actual_qd", "actual_current", "joint_temperatures", "joint_mode",
    "actual_robot_voltage", "actual_robot_current", "actual_main_voltage",
    "payload", "payload_cog", "payload_inertia",
    "robot_mode", "safety_mode", "speed_scaling", "target_speed_fraction",
)  # fmt: skip
"""Fields that identification can use; the rest of a bag is not read."""
SAMPLE_FIELDS: tuple[str, ...] = (*ENERGY_FIELDS, "target_moment")
"""Fields of the samples that are kept as recorded."""

# What a reader keeps of the parts of a recording: filtered motions, and samples as recorded.


class KeptParts:
    """Gathers batches and the motions filtered from them into parts.

    Args:
        dof: number of joints.
        limit: time to keep; None for all motions and no samples.

    Attributes:
        motions, samples: what is kept, complete after `finish`.
        told_payload: first payload told to the controller, mass and centre [4]; NaN if unknown.
    """

    def __init__(self, dof: int, limit: KeptTime | None) -> None:
        self.motions: Buffer[FilteredMotion] = Buffer()
        self.samples: Buffer[Telemetry] = Buffer()
        self.told_payload = np.full(4, np.nan)
        self._dof, self._begun = dof, False
        self._pools = (
            None
            if limit is None
            else (SegmentSelector(limit.motions), SegmentSelector(limit.samples))
        )
        self._waiting: list[Telemetry] = []
        self._filtered: list[FilteredMotion] = []

    def add(self, batch: Telemetry | None, motions: Sequence[FilteredMotion]) -> None:
        """Add a batch, None at the end, and the motions that it completed."""
        if motions and not self._begun:
            self.told_payload, self._begun = motions[0].payload[0], True
        if self._pools is None:
            for motion in motions:
                self.motions.append(motion)
            return
        self._filtered += motions
        if batch is not None:
            columns = {name: batch[name] for name in SAMPLE_FIELDS if name in batch}
            self._waiting.append(
                Telemetry(batch.time, columns, batch.info, batch.gaps, batch.stamp)
            )
        if sum(part.duration for part in self._waiting) > LENGTH:
            self._complete()

    def finish(self) -> None:
        """Choose among the parts and write those kept into the buffers."""
        if self._pools is None:
            return
        self._complete()
        filtered, recorded = self._pools
        for part in filtered.finished():
            for motion in part.motions:
                self.motions.append(motion)
        for part in recorded.finished():
            if part.samples is not None:
                self.samples.append(part.samples)

    @property
    def covered(self) -> KeptTime | None:
        """Time kept of motions and samples; None without a limit."""
        if self._pools is None:
            return None
        filtered, recorded = self._pools
        return KeptTime(filtered.kept, recorded.kept)

    def _complete(self) -> None:
        """Put what is waiting into the pools as one part."""
        assert self._pools is not None
        filtered, recorded = self._pools
        motions = tuple(self._filtered)
        if motions:
            filtered.add(Segment(self._dof, motions, None))
        if self._waiting:
            recorded.add(Segment(self._dof, motions, concatenate(self._waiting)))
        self._waiting, self._filtered = [], []


CURRENT, TORQUE = "actual_current", "actual_current_as_torque"
"""Measured effort of the joints: motor current, or joint torque where an arm measures that."""
REQUIRED = ("actual_q", "actual_qd", CURRENT)
_LOOK_AHEAD = 60.0
"""Time from which the cut-off is chosen [s]."""


def read_recording(
    path: str | Path,
    robot: RobotDescription,
    *,
    effort: str = CURRENT,
    kept: KeptTime | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Read a bag once.

    Args:
        path: of the bag.
        robot: the arm.
        effort: field that the filtered motions carry as their current: `CURRENT`, or `TORQUE`,
            joint side, N m, which needs no currents in the bag.
        kept: time of motions and of samples that is kept of a long recording; None keeps all
            motions and no samples.
        progress: called with NaN and a text.

    Raises:
        RecordingError: no such bag, empty, damaged, or values that are not finite.
        MissingFieldError: a field that identification needs is not in it.
        WrongRobotError: it was recorded on another robot.
    """
    return _Reader(Path(path), robot, effort, kept).read(progress)


class _Reader:
    """State of reading one bag."""

    def __init__(
        self, path: Path, robot: RobotDescription, effort: str, kept: KeptTime | None
    ) -> None:
        self.path, self.robot, self.effort, self.kept = path, robot, effort, kept
        self._inspector = RecordingQualityCheck()
        self._power = PowerFit(robot)
        self._parts = KeptParts(robot.dof, kept)
        self._torque = TorqueBuffer(np.inf if kept is None else kept.samples)
        self._lag = PositionDelay()
        self._warmth = np.full((robot.dof, 2), np.nan)

    def read(self, progress: Progress | None) -> Recording:
        first: list[Telemetry] = []
        stream: MotionStream | None = None
        samples, duration = 0, 0.0
        info = RecordingInfo(source=str(self.path))
        for batch in checked_clock(iterate_bag(self.path, self._fields), self.path):
            if not len(batch):
                continue
            if samples == 0:
                info = batch.info
                check_robot(self.path, info, self.robot)
            check_batch(self.path, batch, self._required, self.robot.dof)
            samples += len(batch)
            duration += batch.duration
            self._accumulate(batch)
            batch = self._with_effort(batch)
            if stream is None:
                first.append(batch)
                if batch.time[-1] - first[0].time[0] >= _LOOK_AHEAD:
                    stream = self._started_stream(first)
            else:
                self._keep(batch, stream.process(batch))
            if progress is not None:
                progress(float("nan"), f"reading {self.path.name}: {samples} samples")
        if samples == 0:
            raise RecordingError(self.path, "holds no samples", "record again")
        stream = stream or self._started_stream(first)
        self._keep(None, stream.finish())
        self._parts.finish()
        return Recording(
            path=self.path,
            info=info,
            quality=judge(self._inspector),
            cutoff=stream.cutoff,
            rate=stream.rate,
            power=self._power,
            samples=samples,
            duration=duration,
            delay=self._lag.value,
            warmth=self._warmth,
            told_payload=self._parts.told_payload,
            kept=self._parts.covered,
            _motion=self._parts.motions,
            _torque=self._torque,
            _samples=self._parts.samples,
        )

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*FIELDS, self.effort)))

    @property
    def _required(self) -> tuple[str, ...]:
        return (*REQUIRED[:2], self.effort)

    def _with_effort(self, batch: Telemetry) -> Telemetry:
        """The batch with the wanted effort in place of the current."""
        if self.effort == CURRENT:
            return batch
        return replace(batch, columns={**batch.columns, CURRENT: batch[self.effort]})

    def _accumulate(self, batch: Telemetry) -> None:
        """Everything that takes the batch as recorded."""
        self._inspector.observe(batch)
        self._power.accumulate(batch)
        self._torque.append(batch)
        self._lag.accumulate(batch)

    def _started_stream(self, first: list[Telemetry]) -> MotionStream:
        """The filter of motions, its cut-off chosen from the first batches, which pass it too."""
        joined = concatenate(first)
        period = sample_period(joined.time)
        # The fits take target_moment from the torques where it belongs to recorded targets.
        moment = self.kept is None or self._torque.reference != "target"
        stream = MotionStream(self.robot.dof, choose_cutoff(joined), period, moment=moment)
        for batch in first:
            self._keep(batch, stream.process(batch))
        return stream

    def _keep(self, batch: Telemetry | None, motions: list[FilteredMotion]) -> None:
        for motion in motions:
            self._warmth = merged_ranges(self._warmth, motion.temperature_range)
        self._parts.add(batch, motions)


class PositionDelay:
    """Delay of actual_q behind target_q, by least squares on target_qd."""

    def __init__(self) -> None:
        self._products, self._squares = 0.0, 0.0

    def accumulate(self, batch: Telemetry) -> None:
        """Add a batch; nothing if it has no targets."""
        if "target_q" not in batch or "target_qd" not in batch:
            return
        error, speed = batch["target_q"] - batch["actual_q"], batch["target_qd"]
        good = np.isfinite(error) & np.isfinite(speed)
        self._products += float((error * speed)[good].sum())
        self._squares += float(np.square(speed)[good].sum())

    @property
    def value(self) -> float:
        """Delay [s]; NaN without motion."""
        return self._products / self._squares if self._squares > 0 else float("nan")
