# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A bag read once: figures in memory, what further passes need in memory or on disk."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from ur_energy_model.consistency.contradiction import refuse
from ur_energy_model.consistency.controller_constants import ControllerConstantsFit
from ur_energy_model.consistency.controller_torque import TARGET_RATE
from ur_energy_model.consistency.meter_readings import READING_FIELDS
from ur_energy_model.consistency.recording_check import RecordingCheck
from ur_energy_model.energy.powers import FIELDS as ENERGY_FIELDS
from ur_energy_model.energy.powers import MEASURED_FIELDS
from ur_energy_model.energy.telemetry_checks import PAYLOAD, check_batch, check_robot
from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    MotionStream,
    choose_cutoff,
    merged_ranges,
    sample_period,
)
from ur_energy_model.identification.power_fit import PowerFit
from ur_energy_model.identification.power_structures import power_rows
from ur_energy_model.identification.quality import Quality, RecordingQualityCheck
from ur_energy_model.identification.wall_fit import WallFit
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.bag.metadata import bag_hash
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import checked_clock
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate
from ur_energy_model.telemetry.usable_samples import usable_samples
from ur_energy_model.typing import Array, Indices, Progress

# Buffers that keep samples of a recording for further passes, in memory or a temporary
# file.

_TARGETS = ("target_q", "target_qd", "target_qdd", "target_moment")
_ACTUALS = ("actual_q", "actual_qd", "target_moment")
_ENOUGH_TARGETS = 3000  # noise-free samples of target_moment that suffice
_MOST_TARGETS = 12_000  # samples above which every second one is dropped
_BLOCK_ROWS = 20_000  # rows of target_moment that are read back together

IN_MEMORY = 1_000_000  # bytes kept in memory before a temporary file is used

TorqueReference = Literal["none", "target", "actual"]
Item = TypeVar("Item")


class Buffer(Generic[Item]):
    """Arrays, motions or samples, written once and read back in order any number of times.

    The temporary file has no name and is deleted with the object. Pickled, a buffer
    carries what it holds.

    Args:
        most: bytes kept in memory before the file is used; 0 for all of them.
    """

    def __init__(self, most: int = IN_MEMORY) -> None:
        self.most = most
        self._sizes: list[int] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=most)  # noqa: SIM115

    def append(self, item: Item) -> None:
        """Append an item."""
        self._file.seek(0, 2)
        self._sizes.append(self._file.write(pickle.dumps(item, pickle.HIGHEST_PROTOCOL)))

    def __iter__(self) -> Iterator[Item]:
        offset = 0
        for size in self._sizes:
            self._file.seek(offset)
            yield pickle.loads(self._file.read(size))  # written by this object
            offset += size

    def __getstate__(self) -> dict[str, Any]:
        self._file.seek(0)
        return {"sizes": self._sizes, "items": self._file.read()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        Buffer.__init__(self)
        self._file.write(saved["items"])
        self._sizes = saved["sizes"]

    def close(self) -> None:
        """Release the memory or file; the buffer is empty afterwards."""
        self._file.close()
        self._sizes = []


class TorqueBuffer:
    """target_moment with the motion it belongs to and the payload set in the controller.

    Args:
        longest: time of measured motion that is kept [s]; 0 for targets only.
        most: samples of targets that are kept. Targets are free of noise, and are kept
            at a lower rate the longer the recording is.
    """

    def __init__(self, longest: float = np.inf, most: int = _MOST_TARGETS) -> None:
        self._most = most
        self._rows: Buffer[Array] = Buffer()
        self._count = 0
        self._widths: dict[str, int] = {}
        self._target_rate = TARGET_RATE
        self._last_tick = -np.inf
        self._longest = longest
        self._seconds = 0.0

    @property
    def complete(self) -> bool:
        """Whether the motion of the whole recording is kept."""
        return self._from_targets or self._seconds <= self._longest

    @property
    def reference(self) -> TorqueReference:
        """Whether the motion is that of recorded targets or the measured one."""
        if not self._count:
            return "none"
        return "target" if self._from_targets else "actual"

    def append(self, batch: Telemetry) -> None:
        """Append the usable samples of a batch; targets at TARGET_RATE or less."""
        if not self._widths:
            known = {name for name in batch.columns if np.isfinite(batch[name]).any()}
            needed = next(
                (names for names in (_TARGETS, _ACTUALS) if known >= set(names)), None
            )
            if needed is None:
                return
            named = [name for name in PAYLOAD if name in batch]
            self._widths = {name: batch[name][:1].size for name in (*needed, *named)}
        self._seconds += batch.duration
        if not self.complete or not self._widths.keys() <= batch.columns.keys():
            return
        keep = usable_samples(batch, *(_TARGETS if self._from_targets else _ACTUALS))
        if self._from_targets:
            tick = np.floor(batch.time * self._target_rate)
            keep &= np.diff(tick, prepend=self._last_tick) != 0
            self._last_tick = float(tick[-1])
        columns = [batch[name][keep] for name in self._widths]
        self._append(np.column_stack([batch.time[keep], *columns]))
        if self._from_targets and self._count > self._most:
            # Keep every second sample, and record further ones at half the rate.
            before = self._rows
            self._rows = Buffer()
            self._count = 0
            self._append(np.concatenate(list(before))[::2])
            before.close()
            self._target_rate = 0.5 * self._target_rate
            self._last_tick = 0.5 * self._last_tick

    def _append(self, rows: Array) -> None:
        self._rows.append(rows)
        self._count += len(rows)

    def telemetry(self, info: RecordingInfo, rate: float) -> Iterator[Telemetry]:
        """Samples as recorded, in parts; noise-free targets thinned to those that suffice.

        Args:
            info: of the telemetry that is made.
            rate: samples per second [Hz], to find gaps.
        """
        thin = max(1, self._count // _ENOUGH_TARGETS) if self._from_targets else 1
        edges = np.cumsum([1, *self._widths.values()])[:-1]
        waiting: list[Array] = []
        left = self._count
        for rows in self._rows:
            waiting.append(rows)
            left -= len(rows)
            if not any(map(len, waiting)) or (
                left and sum(map(len, waiting)) < _BLOCK_ROWS
            ):
                continue
            time, *parts = np.split(np.concatenate(waiting)[::thin], edges, axis=1)
            columns = {
                name: part[:, 0] if name == "payload" else part
                for name, part in zip(self._widths, parts, strict=True)
            }
            gaps = () if self._from_targets else find_gaps(time[:, 0], 1 / rate)
            yield Telemetry(time[:, 0], columns, info, gaps)
            waiting = []

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, values with the precision of single numbers."""
        rows = np.concatenate(
            [np.zeros((0, 1 + sum(self._widths.values()))), *self._rows]
        )
        return {
            "widths": self._widths,
            "time": rows[:, 0],
            "rows": rows[:, 1:].astype(np.float32),
            "rate": [self._target_rate, max(self._last_tick, -1e300)],
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from what `saved` gave."""
        self._widths = saved["widths"]
        self._target_rate, self._last_tick = saved["rate"]
        if len(saved["time"]):
            self._append(np.column_stack([saved["time"], saved["rows"].astype(float)]))

    def close(self) -> None:
        """Release the memory or file."""
        self._rows.close()
        self._count = 0

    @property
    def _from_targets(self) -> bool:
        return "target_q" in self._widths


# Parts of a long recording that the fits use: those with the most information about its
# arm. The number of samples that the fits need does not grow with the length of a
# recording; what matters is which ones. One half of the parts is spread evenly over the
# recording, so that they represent it. The other half adds the most information
# (D-optimality: the determinant of the information matrix, Pukelsheim, Optimal Design of
# Experiments, 1993, sec. 6.2), which favours varied motion and a wide range of
# temperatures.

LENGTH = 30.0
"""Length of the parts that long recordings are divided into [s]: some cycles of a program."""
TOTAL = 1500.0
"""Time that the fits use of all recordings together, where each one has its share [s]."""
_LEAST = 60.0
_MOST = 300.0
_SAMPLES_SHARE = 0.3
# time between the samples that a part's information is computed from [s]
_INFORMATION_PERIOD = 0.1
_HOUR = 3600.0
_RIDGE = 1e-6  # information that is there before, relative to that of the whole recording


@dataclass(frozen=True)
class KeptTime:
    """Time of a recording that the fits use.

    Attributes:
        motions: for torque constants, friction and presliding [s].
        samples: as recorded, for the bus capacitor and the metrics of the fit [s].
    """

    motions: float
    samples: float

    @classmethod
    def of_each(cls, recordings: int) -> KeptTime:
        """Time of each of some recordings that are fitted together."""
        motions = float(np.clip(TOTAL / max(recordings, 1), _LEAST, _MOST))
        return cls(motions, max(_LEAST, _SAMPLES_SHARE * motions))


@dataclass(frozen=True, eq=False)
class Segment:
    """A part of a recording that is used or left out as a whole.

    Attributes:
        dof: number of joints n.
        motions: filtered.
        samples: as recorded; None where they are not kept.
    """

    dof: int
    motions: tuple[FilteredMotion, ...]
    samples: Telemetry | None

    def divided(self) -> list[Segment]:
        """Parts of about LENGTH; the part itself if it is short or its clock goes back."""
        if self.samples is not None:
            time = self.samples.time
        else:
            time = np.concatenate(
                [np.zeros(0), *(motion.time for motion in self.motions)]
            )
        if self.seconds < 1.5 * LENGTH or (np.diff(time) < 0).any():
            return [self]
        edges = np.linspace(time[0], time[-1], 1 + round(self.seconds / LENGTH))
        edges[0] = -np.inf
        edges[-1] = np.inf
        pieces = []
        for ends in pairwise(edges.tolist()):
            samples = self.samples
            if samples is not None:
                samples = samples.cut(
                    slice(*np.searchsorted(samples.time, ends).tolist())
                )
            motions = (
                motion.cut(slice(*np.searchsorted(motion.time, ends).tolist()))
                for motion in self.motions
            )
            piece = Segment(self.dof, tuple(filter(len, motions)), samples or None)
            pieces += [piece] if piece.motions or piece.samples is not None else []
        return pieces

    @cached_property
    def seconds(self) -> float:
        """Time covered, without gaps [s]."""
        if self.samples is not None:
            return self.samples.duration
        return float(sum(motion.time[-1] - motion.time[0] for motion in self.motions))

    @cached_property
    def information(self) -> Array:
        """Gram matrices [n, k, k] of what the current of each moving joint depends on.

        The columns are current (its load), direction and powers of the speed,
        acceleration, load friction, and the direction times temperature and time, by
        which friction drifts.
        """
        out = np.zeros((self.dof, 9, 9))
        for motion in self.motions:
            if len(motion) < 2:
                continue
            step = max(1, round(_INFORMATION_PERIOD / motion.period))
            thin = motion.cut(slice(None, None, step))
            speed = thin.qd
            current = thin.current
            direction = np.sign(thin.qd)
            columns = (
                np.ones_like(speed),
                current,
                direction,
                speed,
                direction * np.sqrt(np.abs(speed)),
                thin.qdd,
                direction * np.abs(current),
                direction * np.nan_to_num(thin.temperature),
                direction * thin.time[:, None] / _HOUR,
            )
            rows = np.stack(columns, axis=2) * (np.abs(speed) > MOVING_SPEED)[:, :, None]
            rows = np.swapaxes(rows, 0, 1)
            out += np.swapaxes(rows, 1, 2) @ rows
        return out


def chosen_parts(information: Array, seconds: Array, wanted: float) -> Indices:
    """Indices of the parts that cover about the time wanted [s], in order; always the first one.

    All parts where they do not cover more. `information` are Gram matrices of each
    [parts, n, k, k], `seconds` the times that they cover [parts].
    """
    everything = np.arange(len(seconds))
    if seconds.sum() <= wanted:
        return everything
    chosen = [0]
    # Weak information about every coefficient, in the units of its column.
    scale = np.diagonal(information.sum(axis=0), axis1=-2, axis2=-1)
    weak = _RIDGE * np.where(scale > 0, scale, 1.0)
    known = weak[:, :, None] * np.eye(scale.shape[-1]) + information[0]
    stretches = max(1, int(0.5 * wanted / np.median(seconds)))
    number = np.floor(np.cumsum(seconds) / seconds.sum() * stretches * (1 - 1e-9))
    groups = [np.flatnonzero(number == k) for k in range(1, stretches)]
    while True:
        open_ones = groups.pop(0) if groups else np.setdiff1d(everything, chosen)
        left = wanted - seconds[chosen].sum()
        open_ones = open_ones[seconds[open_ones] <= max(left, 0.0)]
        if len(open_ones):
            gain = np.linalg.slogdet(known + information[open_ones])[1].sum(axis=1)
            best = int(open_ones[np.argmax(gain)])
            chosen.append(best)
            known = known + information[best]
        elif not groups:
            return np.sort(chosen)


class SegmentSelector:
    """Parts of a recording, taken in order; those chosen are kept, at most twice the limit [s]."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.parts: list[Segment] = []

    def add(self, part: Segment) -> None:
        """Add the next part."""
        self.parts.append(part)
        self.choose(2 * self.limit)

    @property
    def kept(self) -> float:
        """Time that the parts kept cover [s]."""
        return sum(part.seconds for part in self.parts)

    def choose(self, longest: float) -> None:
        """Reduce the parts to the limit if they cover more than this [s]."""
        if self.kept > longest:
            parts = [piece for part in self.parts for piece in part.divided()]
            information = np.array([part.information for part in parts])
            seconds = np.array([part.seconds for part in parts])
            self.parts = [
                parts[k] for k in chosen_parts(information, seconds, self.limit).tolist()
            ]


@dataclass(frozen=True, eq=False, kw_only=True)
class SessionData:
    """What the fits use of a session of the arm, recorded in a bag or as it was learned from.

    Attributes:
        path: as given by the user, or a name.
        info: what made the recording.
        cutoff: of the narrow filter [Hz].
        rate: samples per second found [Hz].
        power: accumulated bus power.
        samples: number of samples read.
        duration: without gaps [s].
        warmth: lowest and highest joint temperatures [n, 2], degC; NaN where not
            recorded.
        controller_payload: first payload set there, mass and centre [4], kg and m; NaN if
            unknown.
        payloads: distinct payload masses set in the controller [kg].
        kept: time that motions and samples cover, where the recording is longer; None
            where motions cover all of it and samples are not kept.
        motions: filtered, in order.
        samples_kept: as recorded, in parts; see `kept`.
        began: when it began, by a clock or count that all sessions of a fit share; None
            where unknown.
        constants: torque constants that the controller states in it; None where they were
            not looked for.
        link_torques: of the links, of the last pass, by its payload; see
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
        """Time [samples], speed and current [samples, n] and bus power [samples].

        Of the samples that are kept, or of the bag where none are, while the brakes are
        released.
        """
        whole = self.kept is None
        for part in (
            iterate_bag(self.path, MEASURED_FIELDS) if whole else self.samples_kept
        ):
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
        quality: verdict.
        controller_time: first and last controller time [s]; None if not recorded.
        host_time: first and last host time [ns]; None if not recorded.
        delay: of actual_q behind target_q [s], NaN if unknown.
        wall: readings of a power meter.
    """

    sha256: str
    quality: Quality
    controller_time: tuple[float, float]
    host_time: tuple[int, int] | None
    delay: float
    wall: WallFit

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "link_torques": {}}

    @property
    def rank(self) -> tuple[Any, ...]:
        """The longest first; the hash, so that the path does not matter."""
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
SAMPLE_FIELDS: tuple[str, ...] = (*ENERGY_FIELDS, "target_moment", "actual_joint_voltage")
"""Fields of the samples that are kept as recorded."""
CURRENT = "actual_current"
TORQUE = "actual_current_as_torque"
"""Measured effort of the joints: motor current, or joint torque where an arm measures that."""
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
        ContradictionError: its samples are those of another robot.
    """
    path = Path(path)
    first = list[Telemetry]()
    stream = None
    fields = tuple(dict.fromkeys((*FIELDS, effort)))
    required = (*REQUIRED[:2], effort)
    check = RecordingQualityCheck()
    power = PowerFit(robot)
    wall = WallFit()
    statements = RecordingCheck()
    constants = ControllerConstantsFit(robot)
    parts = KeptParts(robot.dof, kept)
    torque = TorqueBuffer(np.inf if kept is None else kept.samples)
    samples = 0
    duration = 0.0
    info = RecordingInfo(source=str(path))
    moving = 0.0  # time in motion so far [s]
    times = list[float]()
    stamps = list[int]()
    # of speed with position error, whose ratio is the delay
    products = 0.0
    squares = 0.0

    def started() -> MotionStream:
        """The filter of motions, its cut-off chosen from the first batches, which pass it too."""
        joined = concatenate(first)
        new = MotionStream(robot.dof, choose_cutoff(joined), sample_period(joined.time))
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
        times = [*times[:1], float(batch.time[0]), float(batch.time[-1])]
        if batch.stamp is not None:
            stamps = [*stamps[:1], int(batch.stamp[0]), int(batch.stamp[-1])]
        check.observe(batch)
        statements.observe(batch)
        power.accumulate(batch)
        wall.accumulate(batch)
        torque.append(batch)
        if not constants.full:
            constants.accumulate(batch)
        if "target_q" in batch and "target_qd" in batch:
            error = batch["target_q"] - batch["actual_q"]
            speed = batch["target_qd"]
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
        fastest = np.abs(batch["actual_qd"]).max(axis=1)
        moving += batch.duration * float((fastest > MOVING_SPEED).mean())
        if moving >= enough:
            break
    if samples == 0:
        raise RecordingError(path, "holds no samples", "record again")
    refuse(path, statements.contradictions(robot))
    stream = stream or started()
    parts.add(None, stream.finish())
    wall.finish()
    quality = check.quality()
    return Recording(
        path=path,
        sha256=bag_hash(path),
        info=info,
        quality=quality,
        payloads=quality.payloads,
        cutoff=stream.cutoff,
        rate=stream.rate,
        power=power,
        wall=wall,
        samples=samples,
        duration=duration,
        controller_time=(times[0], times[-1]),
        host_time=(stamps[0], stamps[-1]) if stamps else None,
        began=float(stamps[0]) if stamps else None,
        delay=products / squares if squares > 0 else float("nan"),
        warmth=parts.warmth,
        controller_payload=parts.controller_payload,
        constants=constants.result(),
        kept=parts.finish(),
        motions=parts.motions,
        samples_kept=parts.samples,
        _torque=torque,
    )


class KeptParts:
    """Gathers batches and the motions filtered from them, whole or in parts that are selected.

    `limit`: time to keep of arms with `dof` joints n; None for all motions and no
    samples.

    Attributes:
        motions, samples: what is kept, complete after `finish`.
        controller_payload: first payload set there, mass and centre [4]; NaN if unknown.
        warmth: lowest and highest joint temperatures of all motions [n, 2], degC.
    """

    def __init__(self, dof: int, limit: KeptTime | None) -> None:
        self.motions: Buffer[FilteredMotion] = Buffer()
        self.samples: Buffer[Telemetry] = Buffer()
        self.controller_payload = np.full(4, np.nan)
        self.warmth = np.full((dof, 2), np.nan)
        self._dof = dof
        self._begun = False
        self._limited = limit is not None
        limit = limit or KeptTime(0.0, 0.0)
        self._filtered, self._recorded = map(
            SegmentSelector, (limit.motions, limit.samples)
        )
        self._batches: list[Telemetry] = []
        self._motions: list[FilteredMotion] = []

    def add(self, batch: Telemetry | None, motions: Sequence[FilteredMotion]) -> None:
        """Add a batch, None at the end, and the motions that it completed."""
        if motions and not self._begun:
            self.controller_payload = motions[0].payload[0]
            self._begun = True
        for motion in motions:
            self.warmth = merged_ranges(self.warmth, motion.temperature_range)
            if not self._limited:
                self.motions.append(motion)
        if not self._limited:
            return
        self._motions += motions
        if batch is not None:
            columns = {name: batch[name] for name in SAMPLE_FIELDS if name in batch}
            self._batches.append(replace(batch, columns=columns))
        if batch is None or sum(part.duration for part in self._batches) > LENGTH:
            own = tuple(self._motions)
            if own:
                self._filtered.add(Segment(self._dof, own, None))
            if self._batches:
                self._recorded.add(Segment(self._dof, own, concatenate(self._batches)))
            self._batches = []
            self._motions = []

    def finish(self) -> KeptTime | None:
        """Write the selected parts into the buffers; time kept of both, None without a limit."""
        if not self._limited:
            return None
        for selector in (self._filtered, self._recorded):
            selector.choose(selector.limit)
        for part in self._filtered.parts:
            for motion in part.motions:
                self.motions.append(motion)
        for part in self._recorded.parts:
            if part.samples is not None:
                self.samples.append(part.samples)
        return KeptTime(self._filtered.kept, self._recorded.kept)
