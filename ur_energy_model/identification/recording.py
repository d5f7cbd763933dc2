# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A bag read once: figures in memory, what further passes need in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction, refuse
from ur_energy_model.consistency.controller_constants import ControllerConstantsFit
from ur_energy_model.consistency.meter_readings import READING_FIELDS
from ur_energy_model.consistency.recording_check import RecordingCheck
from ur_energy_model.consistency.torque_field import TORQUE_FIELD, TorqueFieldCheck
from ur_energy_model.energy.matched_model import check_robot
from ur_energy_model.energy.powers import MEASURED_FIELDS
from ur_energy_model.energy.telemetry_checks import check_batch
from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.buffers import Buffer, TorqueBuffer, TorqueReference
from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    MotionStream,
    choose_cutoff,
    sample_period,
)
from ur_energy_model.identification.kept_parts import KeptParts, KeptTime
from ur_energy_model.identification.power_fit import PowerFit
from ur_energy_model.identification.power_structures import power_rows
from ur_energy_model.identification.quality import Quality
from ur_energy_model.identification.quality_check import RecordingQualityCheck
from ur_energy_model.identification.wall_fit import WallFit
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.bag.metadata import bag_hash
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import checked_clock
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate
from ur_energy_model.typing import Array, ClosedOnExit, Progress


@dataclass(frozen=True, eq=False, kw_only=True)
class SessionData(ClosedOnExit):
    """What the fits use of a session of the arm, recorded in a bag or as it was learned from.

    The end of a `with` block releases its memory and temporary files.

    Attributes:
        path: path as given by the user, or a name.
        info: what made the recording.
        cutoff: cut-off frequency of the narrow filter [Hz].
        rate: samples per second found [Hz].
        power: accumulated bus power.
        samples: number of samples read.
        duration: duration without gaps [s].
        warmth: lowest and highest joint temperatures [n, 2], degC; NaN where not
            recorded.
        controller_payload: payload that was set in the controller first, mass and centre
            [4], kg and m; NaN if unknown.
        payloads: distinct payload masses set in the controller [kg].
        kept: time that motions and samples cover, where the recording is longer; None
            where motions cover the whole recording and samples are not kept.
        motions: filtered motions, in order.
        samples_kept: samples as recorded, in parts; see `kept`.
        began: begin of the recording, by a clock or count that all sessions of a fit share; None
            where unknown.
        constants: torque constants that the controller states in it; None where they were
            not looked for.
        link_torques: torques of the links, of the last pass, by its payload; see
            `RecordingDynamics`.
    """

    path: Path
    info: RecordingInfo
    cutoff: float
    rate: float
    power: PowerFit
    samples: int
    duration: float
    warmth: Array
    controller_payload: Array
    payloads: tuple[float, ...]
    kept: KeptTime | None
    motions: Buffer[FilteredMotion] = field(repr=False)
    samples_kept: Buffer[Telemetry] = field(repr=False)
    _torque: TorqueBuffer = field(repr=False)
    began: float | None = None
    constants: ControllerConstants | None = None
    link_torques: dict[tuple[float, ...], Buffer[Array]] = field(
        default_factory=dict, repr=False
    )

    @property
    def rank(self) -> tuple[Any, ...]:
        """Place among the sessions of a fit: the longest first."""
        return (-self.samples, str(self.path))

    @property
    def torque_reference(self) -> TorqueReference:
        """Whether target_moment belongs to recorded targets or measured motion, or is missing."""
        return self._torque.reference

    def torque_telemetry(self) -> Iterator[Telemetry]:
        """target_moment and the motion it belongs to, as recorded (targets at a reduced rate)."""
        if self._torque.complete:
            return self._torque.telemetry(self.info, self.rate)
        return (replace(part, info=self.info) for part in self.samples_kept)

    def supply(self) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Samples with bus power while the brakes are released, batch by batch.

        They are the samples that the recording keeps, or all of the bag where it keeps
        none.

        Returns:
            Time [samples], s, speeds and currents of the joints [samples, n], rad/s and A,
            and bus power [samples], W.
        """
        samples: Iterable[Telemetry] = self.samples_kept
        if self.kept is None:
            samples = iterate_bag(self.path, MEASURED_FIELDS)
        for part in samples:
            rows = power_rows(part)
            if rows is not None:
                use = np.isin(rows.mode, BRAKES_RELEASED)
                yield rows.time[use], rows.qd[use], rows.current[use], rows.power[use]

    def close(self) -> None:
        """Release temporary files."""
        for buffer in (self.motions, self._torque, self.samples_kept):
            buffer.close()
        for torques in self.link_torques.values():
            torques.close()
        self.link_torques.clear()


@dataclass(frozen=True, eq=False, kw_only=True)
class Recording(SessionData):
    """What identification keeps of one bag.

    It can be pickled, so that bags are read where they are and fitted elsewhere.

    Attributes:
        sha256: hash of the bag.
        quality: verdict on the recording.
        controller_time: first and last controller time [s]; None if not recorded.
        host_time: first and last host time [ns]; None if not recorded.
        delay: delay of actual_q behind target_q [s], NaN if unknown.
        wall: readings of a power meter.
    """

    sha256: str
    quality: Quality
    controller_time: tuple[float, float]
    host_time: tuple[int, int] | None
    delay: float
    wall: WallFit

    def __getstate__(self) -> dict[str, Any]:
        """The recording without torques of its links, which are computed anew."""
        return {**self.__dict__, "link_torques": {}}

    @property
    def rank(self) -> tuple[Any, ...]:
        """Place among the recordings of a fit: the longest first, then by hash.

        It does not depend on the path.
        """
        return (-self.samples, self.sha256)

    def renamed(self, path: Path) -> Recording:
        """The recording under another path to the same bag."""
        source = str(path)
        info = replace(self.info, source=source)
        quality = replace(self.quality, source=source)
        return replace(self, path=path, info=info, quality=quality)

    def motion_only(self) -> Recording:
        """The recording without target_moment and samples."""
        return replace(self, _torque=TorqueBuffer(), samples_kept=Buffer())


# RTDE fields that identification and learning use.

FIELDS: tuple[str, ...] = (
    "target_q", "target_qd", "target_qdd", "target_moment", "target_current",
    "actual_q", "actual_qd", "actual_current", "joint_temperatures", "joint_mode",
    "actual_robot_voltage", "actual_robot_current", "actual_main_voltage", "actual_joint_voltage",
    "payload", "payload_cog", "payload_inertia",
    "robot_mode", "safety_mode", "speed_scaling", "target_speed_fraction", "actual_TCP_pose",
    *READING_FIELDS,
)  # fmt: skip
"""Fields that identification can use; the rest of a bag is not read."""
CURRENT = "actual_current"
TORQUE = TORQUE_FIELD
"""Measured effort of the joints: motor current, or joint torque where an arm measures
that."""
REQUIRED = ("actual_q", "actual_qd", CURRENT)
_LOOK_AHEAD = 60.0  # time from which the cut-off is chosen [s]


def read_recording(
    path: str | Path,
    robot: RobotDescription,
    *,
    effort: str = CURRENT,
    kept: KeptTime | None = None,
    enough: float = np.inf,
    progress: Progress | None = None,
) -> Recording:
    """Read a bag once.

    Args:
        path: folder of a bag, or an .mcap file.
        robot: the arm, n joints.
        effort: field that the filtered motions carry as their current: `CURRENT`, or
            `TORQUE`, joint side, N m, which needs no currents in the bag.
        kept: time of motions and of samples that is kept of a long recording; None keeps
            all motions and no samples.
        enough: time in motion after which the rest of the bag is not read [s].
        progress: called with the finished share and the current step.

    Raises:
        RecordingError: no such bag, empty, damaged, or values that are not finite.
        MissingFieldError: a field that identification needs is not in it.
        WrongRobotError: it was recorded on another robot.
        ContradictionError: its samples show another robot.
    """
    reading = _Reading(Path(path), robot, effort, kept)
    for batch in checked_clock(iterate_bag(path, reading.fields), Path(path)):
        if not len(batch):
            continue
        reading.add(batch)
        if progress is not None:
            words = f"reading {reading.path.name}: {reading.samples} samples"
            progress(float("nan"), words)
        if reading.moving >= enough:
            break
    return reading.finish()


class _Reading:
    """A bag that is being read, batch by batch.

    The first batches are held back until the cut-off of the filter can be chosen from
    them; then they pass the filter, too.

    Args:
        path: path of the bag.
        robot: the arm, n joints.
        effort: see `read_recording`.
        kept: see `read_recording`.
    """

    def __init__(
        self, path: Path, robot: RobotDescription, effort: str, kept: KeptTime | None
    ) -> None:
        self.path = path
        self.samples = 0
        self.moving = 0.0  # time in motion so far [s]
        self.fields = tuple(dict.fromkeys((*FIELDS, effort)))
        self._robot = robot
        self._effort = effort
        self._required = (*REQUIRED[:2], effort)
        self._info = RecordingInfo(source=str(path))
        self._duration = 0.0
        self._times: list[float] = []  # first and last
        self._stamps: list[int] = []  # first and last
        self._waiting: list[Telemetry] = []
        self._stream: MotionStream | None = None
        # Sums of speed times position error and of squared speed, whose ratio is the delay.
        self._products = 0.0
        self._squares = 0.0
        self._quality = RecordingQualityCheck()
        self._statements = RecordingCheck()
        self._content = TorqueFieldCheck() if effort == TORQUE else None
        self._power = PowerFit(robot)
        self._wall = WallFit()
        self._constants = ControllerConstantsFit(robot)
        self._parts = KeptParts(robot.dof, kept)
        self._torque = TorqueBuffer(np.inf if kept is None else kept.samples)

    def add(self, batch: Telemetry) -> None:
        """Add a batch with at least one sample.

        Raises:
            RecordingError: values that are not finite.
            MissingFieldError: a field that identification needs is not in it.
            WrongRobotError: it was recorded on another robot.
        """
        if self.samples == 0:
            self._info = batch.info
            check_robot(self.path, batch.info, self._robot)
        check_batch(self.path, batch, self._required, self._robot.dof)
        self.samples += len(batch)
        self._duration += batch.duration
        first = self._times[:1]
        self._times = [*first, float(batch.time[0]), float(batch.time[-1])]
        if batch.stamp is not None:
            begun = self._stamps[:1]
            self._stamps = [*begun, int(batch.stamp[0]), int(batch.stamp[-1])]
        fastest = np.abs(batch["actual_qd"]).max(axis=1)
        self.moving += batch.duration * float((fastest > MOVING_SPEED).mean())
        self._quality.observe(batch)
        self._statements.observe(batch)
        if self._content is not None:
            self._content.observe(batch)
        self._power.accumulate(batch)
        self._wall.accumulate(batch)
        self._torque.append(batch)
        if not self._constants.full:
            self._constants.accumulate(batch)
        self._add_to_delay(batch)
        self._filter(batch)

    def _add_to_delay(self, batch: Telemetry) -> None:
        """Add a batch to the delay of actual_q behind target_q."""
        if "target_q" not in batch or "target_qd" not in batch:
            return
        error = batch["target_q"] - batch["actual_q"]
        speed = batch["target_qd"]
        good = np.isfinite(error) & np.isfinite(speed)
        self._products += float((error * speed)[good].sum())
        self._squares += float(np.square(speed)[good].sum())

    def _filter(self, batch: Telemetry) -> None:
        """Filter the motions of a batch, or keep it until the cut-off can be chosen."""
        if self._effort != CURRENT:
            columns = {**batch.columns, CURRENT: batch[self._effort]}
            batch = replace(batch, columns=columns)
        if self._stream is not None:
            self._parts.add(batch, self._stream.process(batch))
            return
        self._waiting.append(batch)
        if batch.time[-1] - self._waiting[0].time[0] >= _LOOK_AHEAD:
            self._stream = self._started()

    def _started(self) -> MotionStream:
        """The filter of motions, its cut-off chosen from the first batches."""
        joined = concatenate(self._waiting)
        period = sample_period(joined.time)
        stream = MotionStream(self._robot.dof, choose_cutoff(joined), period)
        for early in self._waiting:
            self._parts.add(early, stream.process(early))
        self._waiting = []
        return stream

    def _torque_contradictions(self) -> tuple[Contradiction, ...]:
        """Evidence that measured torques, where they are used, do not contain gravity."""
        content = None if self._content is None else self._content.found(self._robot)
        if content is None:
            return ()
        found = content.contradiction(
            "newton_metre",
            f"{TORQUE} is to be the torque of the joints, gravity included",
            "use the measured currents (--from current)",
        )
        return () if found is None else (found,)

    def finish(self) -> Recording:
        """The recording, after the last batch.

        Raises:
            RecordingError: it has no samples.
            ContradictionError: its samples show another robot, or torques without gravity.
        """
        if self.samples == 0:
            raise RecordingError(self.path, "holds no samples", "record again")
        refuse(self.path, self._statements.contradictions(self._robot))
        refuse(self.path, self._torque_contradictions())
        stream = self._stream or self._started()
        parts = self._parts
        parts.add(None, stream.finish())
        self._wall.finish()
        quality = self._quality.quality()
        host_time = None
        if self._stamps:
            host_time = (self._stamps[0], self._stamps[-1])
        delay = float("nan")
        if self._squares > 0:
            delay = self._products / self._squares
        return Recording(
            path=self.path,
            sha256=bag_hash(self.path),
            info=self._info,
            quality=quality,
            payloads=quality.payloads,
            cutoff=stream.cutoff,
            rate=stream.rate,
            power=self._power,
            wall=self._wall,
            samples=self.samples,
            duration=self._duration,
            controller_time=(self._times[0], self._times[-1]),
            host_time=host_time,
            began=None if host_time is None else float(host_time[0]),
            delay=delay,
            warmth=parts.warmth,
            controller_payload=parts.controller_payload,
            constants=self._constants.result(),
            kept=parts.finish(),
            motions=parts.motions,
            samples_kept=parts.samples,
            _torque=self._torque,
        )
