"""A recording after its bag was read: figures in memory, samples for further passes on disk."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from ur_energy_model.energy.telemetry_checks import PAYLOAD
from ur_energy_model.identification.filtered_motion import FilteredMotion, usable_samples
from ur_energy_model.identification.parts import KeptTime
from ur_energy_model.identification.power_fit import PowerFit
from ur_energy_model.identification.power_structures import power_rows
from ur_energy_model.identification.quality import Quality
from ur_energy_model.identification.target_moment import TARGET_RATE
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.bag.metadata import bag_hash
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, find_gaps
from ur_energy_model.typing import Array

# Buffers that keep samples of a recording for further passes, in memory or a temporary file.

_TARGETS = ("target_q", "target_qd", "target_qdd", "target_moment")
_ACTUALS = ("actual_q", "actual_qd", "target_moment")
_ENOUGH_TARGETS = 3000
"""Noise-free samples of target_moment that suffice."""
_MOST_TARGETS = 12_000
"""Samples above which every second one is dropped."""
_BLOCK_ROWS = 20_000
"""Rows of target_moment that are read back together."""

IN_MEMORY = 1_000_000
"""Bytes kept in memory before a temporary file is used."""

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
            needed = next((names for names in (_TARGETS, _ACTUALS) if _has(batch, names)), None)
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
            self._halve()

    def _append(self, rows: Array) -> None:
        self._rows.append(rows)
        self._count += len(rows)

    def _halve(self) -> None:
        """Keep every second sample, and record further ones at half the rate."""
        before, self._rows, self._count = self._rows, Buffer(), 0
        for block in before:
            self._append(block[::2])
        before.close()
        self._target_rate, self._last_tick = 0.5 * self._target_rate, 0.5 * self._last_tick

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


def _has(batch: Telemetry, names: tuple[str, ...]) -> bool:
    """Whether a batch has these columns with finite values."""
    return all(name in batch and np.isfinite(batch[name]).any() for name in names)


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

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "sha256": self.sha256}

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
