"""Energy counters on disk that survive a restart, a kill and a power cut.

Two files: the state (JSON), replaced atomically and synced to disk from time to time, and a journal
of two checksummed slots, overwritten in turn before every publication. With the journal a killed
process continues at or above the last published value, without syncing 50 files a second.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file

SCHEMA = 1
READINGS = ("ever", "reset", "interval")
"""Keys of the lifetime counters and of their values at the last reset and interval reading."""


@dataclass(frozen=True)
class Counters:
    """Lifetime energy, and its values at which the other counters began.

    Attributes:
        lifetime: since the state file was created.
        reset: value of `lifetime` at the last reset.
        interval: value of `lifetime` at the last interval reading.
        clock: controller time of the last sample [s], None where there was none.
        reset_time: of the last reset, ISO 8601.
        reset_reason: of the last reset.
    """

    lifetime: MeterReading
    reset: MeterReading
    interval: MeterReading
    clock: float | None
    reset_time: str
    reset_reason: str

    @classmethod
    def new(cls, channels: int, now: str) -> Counters:
        """Counters at zero."""
        zero = MeterReading.zero(channels)
        return cls(zero, zero, zero, None, now, "first start")


class StateFile:
    """The counters of one arm on disk; locked by one process at a time.

    Args:
        path: of the JSON file; its folder is created if missing.
        channels: that are counted; a file of other joints is refused.

    Raises:
        InputError: another process has locked it, or it cannot be written.
    """

    def __init__(self, path: str | Path, channels: Channels) -> None:
        self.path = Path(path).expanduser()
        self._channels = channels
        self._sequence = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT
            self._journal_file = os.open(
                self.path.with_name(self.path.name + ".journal"), flags, 0o644
            )
        except OSError as error:
            raise InputError(
                path, f"cannot be written ({error.strerror})", "set state_file to a writable path"
            ) from error
        try:
            fcntl.flock(self._journal_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._journal_file)
            raise InputError(
                path,
                "is in use by another estimator",
                "give each estimator a state_file of its own",
            ) from error

    def load(self) -> Counters | None:
        """The last counters that were saved or journalled; None if there are none yet.

        Raises:
            InputError: the file is damaged or counts other joints; it is not overwritten.
        """
        if not self.path.is_file():
            return None
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            if content["schema"] != SCHEMA:
                raise ValueError(f"schema {content['schema']}")
            names = tuple(content["names"])
            self._sequence = int(content["sequence"])
            clock = content["clock"]
            lifetime, reset, interval = (_reading(content[key], len(names)) for key in READINGS)
            counters = Counters(
                lifetime,
                reset,
                interval,
                clock=None if clock is None else float(clock),
                reset_time=str(content["reset_time"]),
                reset_reason=str(content["reset_reason"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                self.path,
                f"is not a state file of energy counters ({error})",
                "restore it, or move it away to start from zero",
            ) from error
        counted = {name.partition("/")[0] for name in names if "/" in name}
        if counted - {"total"} != set(self._channels.joints):
            raise InputError(
                self.path,
                "counts the energy of other joints",
                "choose another state_file for this arm",
            )
        counters = self._newer(counters, len(names))
        convert = self._channels.convert
        return replace(
            counters,
            lifetime=convert(counters.lifetime, names),
            reset=convert(counters.reset, names),
            interval=convert(counters.interval, names),
        )

    def set_channels(self, channels: Channels) -> None:
        """Change the channels; the caller saves afterwards."""
        self._channels = channels

    def prepare_save(self, counters: Counters) -> Callable[[], None]:
        """Take counters to save; returns a function that replaces the file atomically and syncs it.

        Journal entries after this call count as newer. Call the functions in the order of creation.
        """
        self._sequence += 1
        readings = (counters.lifetime, counters.reset, counters.interval)
        content = {
            "schema": SCHEMA,
            "sequence": self._sequence,
            "reset_time": counters.reset_time,
            "reset_reason": counters.reset_reason,
            "clock": counters.clock,
            "names": self._channels.names,
            **{key: _plain(reading) for key, reading in zip(READINGS, readings, strict=True)},
        }
        return lambda: self._replace(content)

    def save(self, counters: Counters) -> None:
        """Replace the file atomically, synced to disk.

        Raises:
            OSError: the disk cannot be written; the old file remains intact.
        """
        self.prepare_save(counters)()

    def _replace(self, content: dict[str, Any]) -> None:
        with new_file(self.path) as file:
            json.dump(content, file, indent=1, allow_nan=False)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def journal(self, lifetime: MeterReading, clock: float | None) -> None:
        """Write the lifetime counters to the journal: a few microseconds, safe against a kill."""
        self._sequence += 1
        payload = _slot(len(self._channels)).pack(
            self._sequence,
            *lifetime.net,
            *lifetime.consumed,
            lifetime.accounted,
            lifetime.unaccounted,
            float("nan") if clock is None else clock,
        )
        record = payload + struct.pack("<I", zlib.crc32(payload))
        os.pwrite(self._journal_file, record, (self._sequence % 2) * len(record))

    def close(self) -> None:
        """Release the lock."""
        os.close(self._journal_file)

    def _newer(self, counters: Counters, n: int) -> Counters:
        """The counters of n channels, or those of the journal if they are newer."""
        struct_, size = _slot(n), _slot(n).size + 4
        for slot in range(2):
            record = os.pread(self._journal_file, size, slot * size)
            if len(record) < size:
                continue
            payload, checksum = record[:-4], struct.unpack("<I", record[-4:])[0]
            if zlib.crc32(payload) != checksum:
                continue  # interrupted write: the other slot is valid
            sequence, *values = struct_.unpack(payload)
            if sequence <= self._sequence:
                continue
            clock = values[-1]
            counters = replace(
                counters,
                lifetime=MeterReading(
                    np.array(values[:n]), np.array(values[n : 2 * n]), values[-3], values[-2]
                ),
                clock=None if np.isnan(clock) else clock,
            )
            self._sequence = sequence
        return counters


def _slot(channels: int) -> struct.Struct:
    """Format of a slot: sequence number, counters, accounted and unaccounted time, clock."""
    return struct.Struct(f"<Q{2 * channels + 3}d")


def _plain(reading: MeterReading) -> dict[str, Any]:
    return {
        key: value.tolist() if isinstance(value, np.ndarray) else value
        for key, value in asdict(reading).items()
    }


def _reading(content: dict[str, Any], channels: int) -> MeterReading:
    net, consumed = (np.array(content[key], dtype=float) for key in ("net", "consumed"))
    reading = MeterReading(
        net, consumed, float(content["accounted"]), float(content["unaccounted"])
    )
    numbers = np.concatenate([net, consumed, [reading.accounted, reading.unaccounted]])
    if net.shape != (channels,) or consumed.shape != (channels,):
        raise ValueError("wrong number of counters")
    if not np.isfinite(numbers).all():
        raise ValueError("counters that are not finite")
    return reading
