"""One bag, read once: filters, quality check and power stage get every batch as it passes."""

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
from ur_energy_model.identification.recording import Buffer, Recording, TorqueBuffer
from ur_energy_model.identification.verdict import RecordingQualityCheck
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

    `effort`: field that the filtered motions carry as their current: `CURRENT`, or `TORQUE`, joint
    side, N m, which needs no currents in the bag. `kept`: time of motions and of samples that is
    kept of a long recording; None keeps all motions and no samples.

    Raises:
        RecordingError: no such bag, empty, damaged, or values that are not finite.
        MissingFieldError: a field that identification needs is not in it.
        WrongRobotError: it was recorded on another robot.
    """
    path, first, stream = Path(path), list[Telemetry](), None
    fields, required = tuple(dict.fromkeys((*FIELDS, effort))), (*REQUIRED[:2], effort)
    check, power, parts = RecordingQualityCheck(), PowerFit(robot), KeptParts(robot.dof, kept)
    torque = TorqueBuffer(np.inf if kept is None else kept.samples)
    samples, duration, info = 0, 0.0, RecordingInfo(source=str(path))
    products, squares = 0.0, 0.0  # of speed with position error, whose ratio is the delay

    def started() -> MotionStream:
        """The filter of motions, its cut-off chosen from the first batches, which pass it too."""
        joined = concatenate(first)
        # The fits take target_moment from the torques where it belongs to recorded targets.
        moment = kept is None or torque.reference != "target"
        new = MotionStream(
            robot.dof, choose_cutoff(joined), sample_period(joined.time), moment=moment
        )
        for early in first:
            parts.add(early, new.process(early))
        return new

    for batch in checked_clock(iterate_bag(path, fields), path):
        if not len(batch):
            continue
        if samples == 0:
            info = batch.info
            check_robot(path, info, robot)
        check_batch(path, batch, required, robot.dof)
        samples += len(batch)
        duration += batch.duration
        check.observe(batch)
        power.accumulate(batch)
        torque.append(batch)
        if "target_q" in batch and "target_qd" in batch:
            error, speed = batch["target_q"] - batch["actual_q"], batch["target_qd"]
            good = np.isfinite(error) & np.isfinite(speed)
            products += float((error * speed)[good].sum())
            squares += float(np.square(speed)[good].sum())
        if effort != CURRENT:
            batch = replace(batch, columns={**batch.columns, CURRENT: batch[effort]})
        if stream is not None:
            parts.add(batch, stream.process(batch))
        else:
            first.append(batch)
            if batch.time[-1] - first[0].time[0] >= _LOOK_AHEAD:
                stream = started()
        if progress is not None:
            progress(float("nan"), f"reading {path.name}: {samples} samples")
    if samples == 0:
        raise RecordingError(path, "holds no samples", "record again")
    stream = stream or started()
    parts.add(None, stream.finish())
    return Recording(
        path=path,
        info=info,
        quality=check.quality(),
        cutoff=stream.cutoff,
        rate=stream.rate,
        power=power,
        samples=samples,
        duration=duration,
        delay=products / squares if squares > 0 else float("nan"),
        warmth=parts.warmth,
        controller_payload=parts.controller_payload,
        kept=parts.finish(),
        _motion=parts.motions,
        _torque=torque,
        _samples=parts.samples,
    )


class KeptParts:
    """Gathers batches and the motions filtered from them, whole or in parts that are selected.

    `limit`: time to keep; None for all motions and no samples.

    Attributes:
        motions, samples: what is kept, complete after `finish`.
        controller_payload: first payload set there, mass and centre [4]; NaN if unknown.
        warmth: lowest and highest joint temperatures of all motions [n, 2], degC.
    """

    def __init__(self, dof: int, limit: KeptTime | None) -> None:
        self.motions: Buffer[FilteredMotion] = Buffer()
        self.samples: Buffer[Telemetry] = Buffer()
        self.controller_payload, self.warmth = np.full(4, np.nan), np.full((dof, 2), np.nan)
        self._dof, self._begun = dof, False
        self._limit = limit
        if limit is not None:
            self._filtered = SegmentSelector(limit.motions)
            self._recorded = SegmentSelector(limit.samples)
        self._batches: list[Telemetry] = []
        self._motions: list[FilteredMotion] = []

    def add(self, batch: Telemetry | None, motions: Sequence[FilteredMotion]) -> None:
        """Add a batch, None at the end, and the motions that it completed."""
        if motions and not self._begun:
            self.controller_payload, self._begun = motions[0].payload[0], True
        for motion in motions:
            self.warmth = merged_ranges(self.warmth, motion.temperature_range)
            if self._limit is None:
                self.motions.append(motion)
        if self._limit is None:
            return
        self._motions += motions
        if batch is not None:
            columns = {name: batch[name] for name in SAMPLE_FIELDS if name in batch}
            self._batches.append(replace(batch, columns=columns))
        if sum(part.duration for part in self._batches) > LENGTH:
            self._complete()

    def finish(self) -> KeptTime | None:
        """Write the selected parts into the buffers; time kept of both, None without a limit."""
        if self._limit is None:
            return None
        self._complete()
        for part in self._filtered.finished():
            for motion in part.motions:
                self.motions.append(motion)
        for part in self._recorded.finished():
            if part.samples is not None:
                self.samples.append(part.samples)
        return KeptTime(self._filtered.kept, self._recorded.kept)

    def _complete(self) -> None:
        """Offer the gathered batches and motions for selection, as one part."""
        motions = tuple(self._motions)
        if motions:
            self._filtered.add(Segment(self._dof, motions, None))
        if self._batches:
            self._recorded.add(Segment(self._dof, motions, concatenate(self._batches)))
        self._batches, self._motions = [], []
