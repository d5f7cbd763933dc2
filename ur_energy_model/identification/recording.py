"""A bag read once: figures in memory, what further passes need in memory or on disk."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from ur_energy_model.energy.powers import FIELDS as ENERGY_FIELDS
from ur_energy_model.energy.telemetry_checks import PAYLOAD, check_batch, check_robot
from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.filtered_motion import (
    FilteredMotion,
    MotionStream,
    choose_cutoff,
    merged_ranges,
    sample_period,
    usable_samples,
)
from ur_energy_model.identification.parts import LENGTH, KeptTime, Segment, SegmentSelector
from ur_energy_model.identification.power_fit import PowerFit
from ur_energy_model.identification.power_structures import power_rows
from ur_energy_model.identification.quality import Quality, RecordingQualityCheck
from ur_energy_model.identification.target_moment import TARGET_RATE
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.bag.metadata import bag_hash
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import checked_clock
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate, find_gaps
from ur_energy_model.typing import Array, Progress

# Buffers that keep samples of a recording for further passes, in memory or a temporary file.

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

    The temporary file has no name and is deleted with the object. Pickled, a buffer carries what
    it holds.
    """

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115

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

    `longest`: time of measured motion that is kept [s]. Targets, free of noise, are kept at a lower
    rate the longer the recording is.
    """

    def __init__(self, longest: float = np.inf) -> None:
        self._rows: Buffer[Array] = Buffer()
        self._count = 0
        self._widths: dict[str, int] = {}
        self._target_rate, self._last_tick = TARGET_RATE, -np.inf
        self._longest, self._seconds = longest, 0.0

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
            needed = next((names for names in (_TARGETS, _ACTUALS) if known >= set(names)), None)
            if needed is None:
                return
            named = [name for name in PAYLOAD if name in batch]
            self._widths = {name: batch[name][:1].size for name in (*needed, *named)}
        self._seconds += batch.duration
        if not self.complete:
            return
        keep = usable_samples(batch, *(_TARGETS if self._from_targets else _ACTUALS))
        if self._from_targets:
            tick = np.floor(batch.time * self._target_rate)
            keep &= np.diff(tick, prepend=self._last_tick) != 0
            self._last_tick = float(tick[-1])
        columns = [batch[name][keep] for name in self._widths]
        self._append(np.column_stack([batch.time[keep], *columns]))
        if self._from_targets and self._count > _MOST_TARGETS:
            # Keep every second sample, and record further ones at half the rate.
            before, self._rows, self._count = self._rows, Buffer(), 0
            for block in before:
                self._append(block[::2])
            before.close()
            self._target_rate, self._last_tick = 0.5 * self._target_rate, 0.5 * self._last_tick

    def _append(self, rows: Array) -> None:
        self._rows.append(rows)
        self._count += len(rows)

    def telemetry(self, info: RecordingInfo, rate: float) -> Iterator[Telemetry]:
        """Samples as recorded, in parts; noise-free targets thinned to those that suffice.

        `rate`: samples per second [Hz], to find gaps.
        """
        thin = max(1, self._count // _ENOUGH_TARGETS) if self._from_targets else 1
        edges = np.cumsum([1, *self._widths.values()])[:-1]
        for block in _joined(self._rows):
            time, *parts = np.split(block[::thin], edges, axis=1)
            columns = {
                name: part[:, 0] if name == "payload" else part
                for name, part in zip(self._widths, parts, strict=True)
            }
            gaps = () if self._from_targets else find_gaps(time[:, 0], 1 / rate)
            yield Telemetry(time[:, 0], columns, info, gaps)

    def close(self) -> None:
        """Release the memory or file."""
        self._rows.close()
        self._count = 0

    @property
    def _from_targets(self) -> bool:
        return "target_q" in self._widths


def _joined(buffer: Iterable[Array]) -> Iterator[Array]:
    """Blocks of a buffer joined to _BLOCK_ROWS or more."""
    waiting: list[Array] = []
    for block in buffer:
        if len(block):
            waiting.append(block)
        if sum(map(len, waiting)) >= _BLOCK_ROWS:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


@dataclass(frozen=True, eq=False)
class Recording:
    """What identification keeps of one bag.

    It can be pickled, so that bags are read where they are and fitted elsewhere.
    """

    path: Path  # as given by the user
    info: RecordingInfo  # what made the recording
    quality: Quality  # verdict
    cutoff: float  # of the narrow filter [Hz]
    rate: float  # samples per second found [Hz]
    power: PowerFit  # accumulated bus power
    samples: int  # number of samples read
    duration: float  # without gaps [s]
    delay: float  # of actual_q behind target_q [s], NaN if unknown
    warmth: Array  # lowest and highest joint temperatures [n, 2], degC; NaN where not recorded
    # First payload set there, mass and centre [4], kg and m; NaN if unknown
    controller_payload: Array
    # Time that motions and samples cover, where the recording is longer; None where motions
    # cover all of it and samples are not kept
    kept: KeptTime | None
    _motion: Buffer[FilteredMotion] = field(repr=False)
    _torque: TorqueBuffer = field(repr=False)
    _samples: Buffer[Telemetry] = field(repr=False)

    # Of the last pass, by its payload; see `RecordingDynamics`
    link_torques: dict[tuple[float, ...], Buffer[Array]] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "sha256": self.sha256, "link_torques": {}}

    @cached_property
    def sha256(self) -> str:
        """Hash of the bag; a pickled recording carries it, as the bag may be out of reach."""
        return bag_hash(self.path)

    def renamed(self, path: Path) -> Recording:
        """The recording under another path to the same bag."""
        source = str(path)
        info, quality = replace(self.info, source=source), replace(self.quality, source=source)
        return self._same_bag(replace(self, path=path, info=info, quality=quality))

    def motion_only(self) -> Recording:
        """The recording without target_moment and samples."""
        return self._same_bag(replace(self, _torque=TorqueBuffer(), _samples=Buffer()))

    def _same_bag(self, other: Recording) -> Recording:
        other.__dict__["sha256"] = self.sha256
        return other

    @property
    def torque_reference(self) -> TorqueReference:
        """Whether target_moment belongs to recorded targets or measured motion, or is missing."""
        return self._torque.reference

    def motions(self) -> Iterable[FilteredMotion]:
        """Filtered motion, in order, read anew in each iteration."""
        return self._motion

    def kept_samples(self) -> Iterable[Telemetry] | None:
        """Samples as recorded, in parts, read anew in each iteration; None if they are not kept."""
        return None if self.kept is None else self._samples

    def torque_telemetry(self) -> Iterator[Telemetry]:
        """target_moment and the motion it belongs to, as recorded (targets at a reduced rate)."""
        if self._torque.complete:
            return self._torque.telemetry(self.info, self.rate)
        return (replace(part, info=self.info) for part in self._samples)

    def supply(self) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Time [samples], speed and current [samples, n] and bus power [samples].

        Of the samples that are kept, while the brakes are released.
        """
        for part in self._samples:
            rows = power_rows(part)
            if rows is not None:
                use = np.isin(rows.mode, BRAKES_RELEASED)
                yield rows.time[use], rows.qd[use], rows.current[use], rows.power[use]

    def close(self) -> None:
        """Release temporary files."""
        for buffer in (self._motion, self._torque, self._samples):
            buffer.close()
        self.keep_link_torques({})

    def keep_link_torques(self, torques: dict[tuple[float, ...], Buffer[Array]]) -> None:
        """Keep these torques in place of others."""
        for buffer in self.link_torques.values():
            buffer.close()
        self.link_torques.clear()
        self.link_torques.update(torques)


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
_LOOK_AHEAD = 60.0  # time from which the cut-off is chosen [s]


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

    Args:
        dof: number of joints.
        limit: time to keep; None for all motions and no samples.

    Attributes:
        motions, samples: what is kept, complete after `finish`.
        controller_payload: first payload set there, mass and centre [4]; NaN if unknown.
        warmth: lowest and highest joint temperatures of all motions [n, 2], degC.
    """

    def __init__(self, dof: int, limit: KeptTime | None) -> None:
        self.motions: Buffer[FilteredMotion] = Buffer()
        self.samples: Buffer[Telemetry] = Buffer()
        self.controller_payload, self.warmth = np.full(4, np.nan), np.full((dof, 2), np.nan)
        self._dof, self._begun, self._limited = dof, False, limit is not None
        limit = limit or KeptTime(0.0, 0.0)
        self._filtered, self._recorded = map(SegmentSelector, (limit.motions, limit.samples))
        self._batches: list[Telemetry] = []
        self._motions: list[FilteredMotion] = []

    def add(self, batch: Telemetry | None, motions: Sequence[FilteredMotion]) -> None:
        """Add a batch, None at the end, and the motions that it completed."""
        if motions and not self._begun:
            self.controller_payload, self._begun = motions[0].payload[0], True
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
            self._batches, self._motions = [], []

    def finish(self) -> KeptTime | None:
        """Write the selected parts into the buffers; time kept of both, None without a limit."""
        if not self._limited:
            return None
        for part in self._filtered.finished():
            for motion in part.motions:
                self.motions.append(motion)
        for part in self._recorded.finished():
            if part.samples is not None:
                self.samples.append(part.samples)
        return KeptTime(self._filtered.kept, self._recorded.kept)
