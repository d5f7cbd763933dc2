# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Buffers that keep samples of a recording for further passes, in memory or a temporary file.

`Buffer` keeps any items in order; `TorqueBuffer` keeps target_moment with its motion, at a
rate that suffices to identify mounting, payload and inertias.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from ur_energy_model.consistency.controller_torque import TARGET_RATE
from ur_energy_model.energy.operating_conditions import PAYLOAD
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.usable_samples import usable_samples
from ur_energy_model.typing import Array

_TARGETS = ("target_q", "target_qd", "target_qdd", "target_moment")
_ACTUALS = ("actual_q", "actual_qd", "target_moment")
_ENOUGH_TARGETS = 3000  # noise-free samples of target_moment that suffice
_MOST_TARGETS = 12_000  # samples above which every second one is dropped
_BLOCK_ROWS = 20_000  # rows of target_moment that are read back together

IN_MEMORY = 1_000_000  # bytes kept in memory before a temporary file is used

TorqueReference = Literal["none", "target", "actual"]
"""Motion that a recorded target_moment belongs to: recorded targets or measured motion."""
Item = TypeVar("Item")


class Buffer(Generic[Item]):
    """Arrays, motions or samples, written once and read back in order any number of times.

    The temporary file has no name and is deleted with the object. A pickled buffer contains
    its items.

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
        """The items in the order in which they were appended."""
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
        """The motion: recorded targets, measured motion, or none."""
        if not self._count:
            return "none"
        return "target" if self._from_targets else "actual"

    def append(self, batch: Telemetry) -> None:
        """Append the usable samples of a batch; targets at TARGET_RATE or less."""
        if not self._widths:
            self._widths = _widths(batch)
        if not self._widths:
            return
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
            self._halve()

    def _append(self, rows: Array) -> None:
        """Append rows of time and fields [samples, columns]."""
        self._rows.append(rows)
        self._count += len(rows)

    def _halve(self) -> None:
        """Keep every second sample, and take further ones at half the rate."""
        before = self._rows
        self._rows = Buffer()
        self._count = 0
        self._append(np.concatenate(list(before))[::2])
        before.close()
        self._target_rate = 0.5 * self._target_rate
        self._last_tick = 0.5 * self._last_tick

    def telemetry(self, info: RecordingInfo, rate: float) -> Iterator[Telemetry]:
        """Samples as recorded, in parts; noise-free targets thinned to those that suffice.

        Args:
            info: metadata of the telemetry that is made.
            rate: samples per second [Hz], to find gaps.
        """
        thin = max(1, self._count // _ENOUGH_TARGETS) if self._from_targets else 1
        edges = np.cumsum([1, *self._widths.values()])[:-1]
        gathered: list[Array] = []
        left = self._count
        for rows in self._rows:
            gathered.append(rows)
            left -= len(rows)
            count = sum(map(len, gathered))
            is_last = left == 0
            if not count or (count < _BLOCK_ROWS and not is_last):
                continue
            time, *parts = np.split(np.concatenate(gathered)[::thin], edges, axis=1)
            columns = dict(zip(self._widths, parts, strict=True))
            if "payload" in columns:
                columns["payload"] = columns["payload"][:, 0]
            gaps = () if self._from_targets else find_gaps(time[:, 0], 1 / rate)
            yield Telemetry(time[:, 0], columns, info, gaps)
            gathered = []

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, values with single precision."""
        nothing = np.zeros((0, 1 + sum(self._widths.values())))
        rows = np.concatenate([nothing, *self._rows])
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
        """Whether target_moment is kept with recorded targets."""
        return "target_q" in self._widths


def _widths(batch: Telemetry) -> dict[str, int]:
    """Numbers of columns of the fields that a buffer takes from batches like this one.

    These are target_moment with targets, or else with the measured motion, and the
    payload set in the controller; none where the batch has neither motion.
    """
    known = {name for name in batch.columns if np.isfinite(batch[name]).any()}
    payload = [name for name in PAYLOAD if name in batch]
    for motion in (_TARGETS, _ACTUALS):
        if known >= set(motion):
            return {name: batch[name][:1].size for name in (*motion, *payload)}
    return {}
