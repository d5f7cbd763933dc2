"""Energy counters of one arm: lifetime, since reset, since the last reading; kept on disk."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.meter import EnergyMeter, MeterReading, Steps
from ur_energy_model.energy.powers import Channels, EnergyCorrection
from ur_energy_model.energy.telemetry_checks import MOST_POWER
from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, open_regular, user_path
from ur_energy_model.typing import Array

# What energy counters of an arm can hold: finite, and no more than its time allows.

LONGEST_TIME = 1.0e10
"""Time that no counter reaches [s]: three centuries."""
ALLOWANCE = 60.0
"""Accounted time that counts in addition, for corrections [s]."""


def check_reading(reading: MeterReading) -> None:
    """Refuse counters that no arm can have.

    Raises:
        ValueError: not finite, negative or endless time, or more energy than MOST_POWER gives.
    """
    energies = np.concatenate([reading.net, reading.consumed])
    times = np.array([reading.accounted, reading.unaccounted])
    if not (np.isfinite(energies).all() and np.isfinite(times).all()):
        raise ValueError("counters that are not finite")
    if not ((times >= 0.0) & (times <= LONGEST_TIME)).all():
        raise ValueError("impossible times")
    largest = float(np.abs(energies).max(initial=0.0))
    if largest > MOST_POWER * (reading.accounted + ALLOWANCE):
        raise ValueError(f"{largest:.3g} J in {reading.accounted:.3g} s, more than any arm takes")


def check_highest(highest: Array, lifetime: MeterReading) -> Array:
    """Highest net energies [channels], J, that are possible beside these counters.

    Raises:
        ValueError: they are not.
    """
    if highest.shape != lifetime.net.shape:
        raise ValueError("wrong number of highest energies")
    check_reading(replace(lifetime, net=highest))
    return highest


def check_time(seconds: float) -> float:
    """A controller time that is possible.

    Raises:
        ValueError: it is not.
    """
    if not abs(seconds) <= LONGEST_TIME:
        raise ValueError(f"time {seconds:.3g} s")
    return seconds


# The content of a state file: energy counters and the arm that they count.

SCHEMA = 1
READINGS = ("ever", "reset", "interval")
"""Keys of the lifetime counters and of their values at the last reset and interval reading."""
LARGEST_FILE = 4 << 20
"""Largest state file [bytes]; counters take some ten thousand."""
LARGEST_NUMBER = 1 << 63


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
        serial: number of the arm, None where unknown.
        highest: highest lifetime net energy of each channel so far [channels], J; None for that of
            `lifetime`, as in files of earlier versions.
    """

    lifetime: MeterReading
    reset: MeterReading
    interval: MeterReading
    clock: float | None
    reset_time: str
    reset_reason: str
    serial: str | None = None
    highest: Array | None = None

    @classmethod
    def new(cls, channels: int, now: str, reason: str = "first start") -> Counters:
        """Counters at zero."""
        zero = MeterReading.zero(channels)
        return cls(zero, zero, zero, None, now, reason)

    def at(self, lifetime: MeterReading, clock: float | None, highest: Array | None) -> Counters:
        """The counters at a later moment; without `highest` the known one remains."""
        highest = self.highest if highest is None else highest
        return replace(self, lifetime=lifetime, clock=clock, highest=highest)

    def converted(self, channels: Channels, names: Sequence[str]) -> Counters:
        """The same counters, of channels `names`, for other channels."""
        highest = self.highest
        if highest is not None:
            highest = channels.convert_values(highest, names)
        lifetime, reset, interval = (
            channels.convert(reading, names)
            for reading in (self.lifetime, self.reset, self.interval)
        )
        return replace(self, lifetime=lifetime, reset=reset, interval=interval, highest=highest)


@dataclass(frozen=True)
class SavedState:
    """The content of a state file.

    Attributes:
        counters: of the channels `names`.
        names: of the channels.
        sequence: number of the saving; newer journal entries have larger ones.
        number: of the state file, which its journal entries carry; None in files of earlier
            versions.
        robot: description name of the arm, None in files of earlier versions.
    """

    counters: Counters
    names: tuple[str, ...]
    sequence: int
    number: int | None
    robot: str | None

    def as_json(self) -> dict[str, Any]:
        """The content as it is written."""
        counters = self.counters
        readings = (counters.lifetime, counters.reset, counters.interval)
        return {
            "schema": SCHEMA,
            "number": self.number,
            "robot": self.robot,
            "serial": counters.serial,
            "sequence": self.sequence,
            "reset_time": counters.reset_time,
            "reset_reason": counters.reset_reason,
            "clock": counters.clock,
            "names": self.names,
            "highest": None if counters.highest is None else counters.highest.tolist(),
            **{key: _plain(reading) for key, reading in zip(READINGS, readings, strict=True)},
        }


def read_state(path: Path) -> SavedState:
    """The content of a state file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no state file, or holds counters that no arm can have.
    """
    with open_regular(path) as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise ValueError(f"more than {LARGEST_FILE} bytes")
    try:
        return _parse(json.loads(data.decode("utf-8")))
    except (KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _parse(content: Any) -> SavedState:
    if content["schema"] != SCHEMA:
        raise ValueError(f"schema {content['schema']}")
    names = tuple(content["names"])
    if not all(isinstance(name, str) for name in names):
        raise ValueError("names that are no text")
    sequence, number = int(content["sequence"]), content.get("number")
    if not 0 <= sequence < LARGEST_NUMBER:
        raise ValueError("impossible sequence")
    if number is not None and not (isinstance(number, int) and 0 <= number < LARGEST_NUMBER):
        raise ValueError("impossible number")
    clock, robot, serial = (content.get(key) for key in ("clock", "robot", "serial"))
    lifetime, reset, interval = (_reading(content[key], len(names)) for key in READINGS)
    highest = content.get("highest")
    counters = Counters(
        lifetime,
        reset,
        interval,
        clock=None if clock is None else check_time(float(clock)),
        reset_time=str(content["reset_time"]),
        reset_reason=str(content["reset_reason"]),
        serial=None if serial is None else str(serial),
        highest=None if highest is None else check_highest(np.array(highest, float), lifetime),
    )
    return SavedState(counters, names, sequence, number, None if robot is None else str(robot))


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
    if net.shape != (channels,) or consumed.shape != (channels,):
        raise ValueError("wrong number of counters")
    check_reading(reading)
    return reading


# Journal: the newest energy counters between two savings of a state file, and its lock.
#
# Two checksummed slots, overwritten in turn before every publication, without syncing 50 times a
# second. An entry belongs to the state file whose number it carries: the journal of a file that
# was moved away, or of another arm, counts nothing.

_HEAD = struct.Struct("<QQ")
"""Of a slot: number of the state file, sequence number."""
_OWN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Journal:
    """Two slots of numbers in a file; locked by one process at a time.

    Args:
        path: of the file; made if it is missing.

    Attributes:
        writable: whether it is open for writing; `write` and `check` try to open it again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writable = False
        self._file: int | None = None

    def open(self) -> None:
        """Open and lock the file; for reading only on a file system that is read-only.

        Raises:
            BlockingIOError: another process has locked it.
            OSError: it cannot be opened, or only for reading, or is no file of its own: a symbolic
                link would let it overwrite another file, a pipe could block.
        """
        self.close()
        refusal: OSError | None = None
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | _OWN, 0o644)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.EINVAL, f"{self.path.name} is a symbolic link") from None
            if error.errno != errno.EROFS:
                raise
            refusal = error
            try:
                file = os.open(self.path, os.O_RDONLY | _OWN)
            except OSError:
                raise error from None
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.EINVAL, f"{self.path.name} is not a regular file")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise
        self._file, self.writable = file, refusal is None
        if refusal is not None:
            raise refusal

    def check(self) -> None:
        """Open the file again if it is not writable or was deleted.

        Raises:
            OSError: it cannot be opened.
        """
        if self._file is None or not self.writable or os.fstat(self._file).st_nlink == 0:
            self.open()

    def write(self, number: int, sequence: int, values: Array) -> None:
        """Overwrite the older slot: a few microseconds, safe against a kill.

        Args:
            number: of the state file, 64 bit.
            sequence: of the entry.
            values: to keep [values].

        Raises:
            OSError: the disk cannot be written.
        """
        if self._file is None or not self.writable:
            self.open()
        payload = _HEAD.pack(number, sequence) + values.astype("<f8", copy=False).tobytes()
        self._overwrite(sequence, payload)

    def entries(self, count: int, number: int | None) -> Iterator[tuple[int, list[float]]]:
        """Valid entries: sequence and values.

        Args:
            count: of values.
            number: of the state file; None for entries without one, of earlier versions.

        Raises:
            OSError: the disk cannot be read.
        """
        if self._file is None:
            return
        form = struct.Struct(f"<Q{count}d" if number is None else f"<QQ{count}d")
        size = form.size + 4
        for slot in range(2):
            record = os.pread(self._file, size, slot * size)
            if len(record) < size or zlib.crc32(record[:-4]) != int.from_bytes(
                record[-4:], "little"
            ):
                continue  # interrupted write: the other slot is valid
            head = form.unpack(record[:-4])
            if number is None:
                yield int(head[0]), list(head[1:])
            elif head[0] == number:
                yield int(head[1]), list(head[2:])

    def close(self) -> None:
        """Release the lock."""
        file, self._file = self._file, None
        self.writable = False
        if file is not None:
            with suppress(OSError):
                os.close(file)

    def _overwrite(self, sequence: int, payload: bytes) -> None:
        assert self._file is not None
        record = payload + struct.pack("<I", zlib.crc32(payload))
        if os.fstat(self._file).st_size < 2 * len(record):
            os.posix_fallocate(self._file, 0, 2 * len(record))  # while the disk has room
        written = os.pwrite(self._file, record, (sequence % 2) * len(record))
        if written < len(record):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# JournalEntry: the numbers of one entry of the journal.


@dataclass(frozen=True)
class JournalEntry:
    """Counters at one publication.

    Attributes:
        lifetime: energies since the state file was created.
        clock: controller time of the last sample [s], None where there was none.
        highest: as in Counters; None in entries of earlier versions.
    """

    lifetime: MeterReading
    clock: float | None
    highest: Array | None = None

    @property
    def values(self) -> Array:
        """The entry as numbers."""
        lifetime = self.lifetime
        clock = float("nan") if self.clock is None else self.clock
        highest = () if self.highest is None else (self.highest,)
        times = (lifetime.accounted, lifetime.unaccounted, clock)
        return np.concatenate([lifetime.net, lifetime.consumed, times, *highest])

    @staticmethod
    def lengths(channels: int) -> tuple[int, int]:
        """Possible numbers of values: of earlier versions, and of this one."""
        return 2 * channels + 3, 3 * channels + 3

    @classmethod
    def from_values(cls, values: list[float], channels: int) -> JournalEntry:
        """The entry that `values` state.

        Raises:
            ValueError: counters that no arm can have.
        """
        net, consumed, rest = np.split(np.array(values), (channels, 2 * channels))
        lifetime = MeterReading(net, consumed, float(rest[0]), float(rest[1]))
        check_reading(lifetime)
        clock = None if np.isnan(rest[2]) else check_time(float(rest[2]))
        highest = check_highest(rest[3:], lifetime) if rest[3:].size else None
        return cls(lifetime, clock, highest)


# Energy counters on disk that survive a restart, a kill and a power cut.
#
# Two files: the state (JSON), replaced atomically and synced to disk from time to time, and a
# journal (journal.py), written before every publication. With the journal a killed process
# continues at or above the last published value. The state names the arm that it counts for.

SICK_DISK = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EIO,
        errno.ESTALE,
        errno.ENODEV,
        errno.ENXIO,
        errno.ENOTCONN,
        errno.ETIMEDOUT,
        errno.EMFILE,
        errno.ENFILE,
    }
)
"""Errors of a disk that may be over later; others mean that the path cannot be used."""

LONGEST_LABEL = 64
"""Longest part of a serial number in the name of a file."""


class StateFile:
    """The counters of one arm on disk; locked by one process at a time.

    Args:
        path: of the JSON file; its folder is created if missing.
        channels: that are counted; a file of other joints is refused.
        robot: description name of the arm; a file of another robot is refused.

    Attributes:
        problem: why the disk cannot be used at present, None if it can.

    Raises:
        InputError: another process has locked it, or the path cannot be used. A disk that is full,
            read-only or fails is no error but a `problem`.
    """

    def __init__(self, path: str | Path, channels: Channels, robot: str | None = None) -> None:
        self.path = user_path(path)
        self.problem: str | None = None
        self._channels = channels
        self._robot = robot
        self._begin_new()
        self._before_saving: list[Callable[[], None]] = []
        self._journal = Journal(self.path.with_name(self.path.name + ".journal"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._journal.open()
        except BlockingIOError as error:
            raise InputError(
                path,
                "is in use by another estimator",
                "give each estimator a state_file of its own",
            ) from error
        except OSError as error:
            if error.errno not in SICK_DISK:
                self._journal.close()
                raise InputError(
                    path,
                    f"cannot be written ({error.strerror})",
                    "set state_file to a writable path",
                ) from error
            self.problem = f"{self.path}: cannot be written ({error.strerror})"

    def load(self) -> Counters | None:
        """The last counters that were saved or journalled; None if there are none yet.

        A file that the disk cannot read is kept under another name before a new one is saved.

        Raises:
            InputError: the file is damaged or counts another arm; it is not overwritten.
        """
        try:
            state = read_state(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in SICK_DISK:
                raise self._damaged(error) from error
            self.problem = f"{self.path}: cannot be read ({error.strerror})"
            self._before_saving.append(self._move_away)
            return None
        except ValueError as error:
            raise self._damaged(error) from error
        self._check_arm(state)
        return self._newer(self._adopt(state), state)

    def exchange(self, old: Counters, serial: str) -> tuple[Counters | None, Path]:
        """Keep the counters of an arm beside the file, and begin those of another arm.

        Both are written with the next saving.

        Args:
            old: counters of the arm until now.
            serial: of the other arm.

        Returns:
            Its counters, if they were kept before, and where the old ones are kept.
        """
        kept, content = self._of_arm(old.serial or "unknown"), self._state(old)
        self._before_saving.append(lambda: self._write(kept, content))
        self._begin_new()
        try:
            state = read_state(self._of_arm(serial))
            self._check_arm(state)
        except (OSError, ValueError, InputError):
            return None, kept
        return (self._adopt(state) if state.counters.serial == serial else None), kept

    def set_channels(self, channels: Channels) -> None:
        """Change the channels; the caller saves afterwards."""
        self._channels = channels

    def prepare_save(self, counters: Counters) -> Callable[[], None]:
        """Take counters to save; returns a function that replaces the file atomically and syncs it.

        Journal entries after this call count as newer. Call the functions in the order of creation.
        """
        self._sequence += 1
        state = self._state(counters)
        return lambda: self._save(state)

    def save(self, counters: Counters) -> None:
        """Replace the file atomically, synced to disk.

        Raises:
            OSError: the disk cannot be written; the old file remains intact.
        """
        self.prepare_save(counters)()

    def journal(self, entry: JournalEntry) -> None:
        """Write the lifetime counters to the journal: a few microseconds, safe against a kill.

        Raises:
            OSError: the disk cannot be written.
        """
        self._sequence += 1
        self._journal.write(self._number, self._sequence, entry.values)

    def close(self) -> None:
        """Release the lock."""
        self._journal.close()

    def _begin_new(self) -> None:
        """Number a new state, so that older journal entries do not count."""
        self._number, self._sequence = secrets.randbelow(LARGEST_NUMBER), 0

    def _state(self, counters: Counters) -> SavedState:
        return SavedState(counters, self._channels.names, self._sequence, self._number, self._robot)

    def _adopt(self, state: SavedState) -> Counters:
        """Continue a state; returns its counters."""
        self._sequence = state.sequence
        if state.number is not None:
            self._number = state.number
        return self._converted(state.counters, state.names)

    def _save(self, state: SavedState) -> None:
        try:
            self._replace(state)
        except OSError as error:
            self.problem = f"{self.path}: cannot be written ({error.strerror or error})"
            raise
        self.problem = None

    def _replace(self, state: SavedState) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while self._before_saving:
            self._before_saving[0]()
            self._before_saving.pop(0)
        self._write(self.path, state)
        self._journal.check()

    def _write(self, path: Path, state: SavedState) -> None:
        with new_file(path) as file:
            file.write(json.dumps(state.as_json(), allow_nan=False))
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _check_arm(self, state: SavedState) -> None:
        """Refuse the counters of another robot.

        Raises:
            InputError: names both.
        """
        problem = None
        if None not in (state.robot, self._robot) and state.robot != self._robot:
            problem = f"counts the energy of a {state.robot}, not a {self._robot}"
        counted = {name.partition("/")[0] for name in state.names if "/" in name}
        if counted - {"total"} != set(self._channels.joints):
            problem = problem or "counts the energy of other joints"
        if problem is not None:
            raise InputError(self.path, problem, "choose another state_file for this arm")

    def _newer(self, counters: Counters, state: SavedState) -> Counters:
        """The counters of a state, or those of the journal if they are newer."""
        n = len(state.names)
        try:
            entries = [
                entry
                for length in JournalEntry.lengths(n)
                for entry in self._journal.entries(length, state.number)
            ]
        except OSError as error:
            self.problem = f"{self._journal.path}: cannot be read ({error.strerror})"
            return counters
        for sequence, values in entries:
            if not self._sequence < sequence < LARGEST_NUMBER:
                continue
            try:
                entry = JournalEntry.from_values(values, n)
            except ValueError:
                continue
            new = state.counters.at(entry.lifetime, entry.clock, entry.highest)
            counters = self._converted(new, state.names)
            self._sequence = sequence
        return counters

    def _converted(self, counters: Counters, names: tuple[str, ...]) -> Counters:
        """Counters of channels `names` for the channels of this file."""
        return counters.converted(self._channels, names)

    def _of_arm(self, serial: str) -> Path:
        """Where the counters of an arm are kept while another one is counted."""
        label = re.sub(r"[^A-Za-z0-9-]", "_", serial)[:LONGEST_LABEL]
        return self.path.with_name(f"{self.path.name}.arm-{label}")

    def _move_away(self) -> None:
        """Keep the present file under a name that is not taken."""
        number = 1
        while (path := self.path.with_name(f"{self.path.name}.unreadable{number}")).exists():
            number += 1
        if self.path.exists():
            self.path.rename(path)

    def _damaged(self, error: BaseException) -> InputError:
        return InputError(
            self.path,
            f"is not a state file of energy counters ({error})",
            "restore it, or move it away to start from zero",
        )


LONGEST_ABSENCE = 1.0e8
"""Time since the last run that is believed [s], three years; beyond it the clock is another one."""


class EnergyCounters:
    """Integrates powers; the counters survive restarts.

    A disk that cannot be written never stops counting: the counters stay in memory, `problem` is
    why, and every saving tries again.

    Args:
        channels: what is counted.
        path: of the state file; None for none.
        robot: description name of the arm.

    Attributes:
        note: what the state file told about the arm, for its users; None if there is nothing.

    Raises:
        InputError: the state file is damaged, in use or belongs to another robot.
    """

    def __init__(self, channels: Channels, path: Path | None, robot: str | None = None) -> None:
        self.channels = channels
        self.note: str | None = None
        self._file: StateFile | None = None
        self._journal_problem: str | None = None
        counters = Counters.new(len(channels), utc_now())
        if path is not None:
            self._file = StateFile(path, channels, robot)
            try:
                counters = self._file.load() or counters
            except BaseException:
                self._file.close()
                raise
        self._begin(counters)
        self.save()
        self.journal()

    def _begin(self, counters: Counters) -> None:
        """Continue counters."""
        self._counters = counters
        self._meter = EnergyMeter(len(self.channels), start=counters.lifetime)
        self._clock = counters.clock
        self._highest = counters.lifetime.net
        if counters.highest is not None:
            self._highest = np.maximum(self._highest, counters.highest)
        self._resuming = counters.clock is not None

    @property
    def lifetime(self) -> MeterReading:
        """Energy since the state file was created."""
        return self._meter.reading

    @property
    def highest(self) -> Array:
        """Highest lifetime net energy at any journal entry so far [channels], J.

        It never decreases, also where a joint gives energy back, and over restarts.
        """
        return self._highest

    @property
    def since_reset(self) -> MeterReading:
        """Energy since the last reset."""
        return self._meter.reading - self._counters.reset

    @property
    def reset_time(self) -> str:
        """Time of the last reset, ISO 8601."""
        return self._counters.reset_time

    @property
    def reset_reason(self) -> str:
        """Reason of the last reset."""
        return self._counters.reset_reason

    @property
    def serial(self) -> str | None:
        """Serial number of the arm that is counted, None if unknown."""
        return self._counters.serial

    @property
    def problem(self) -> str | None:
        """Why the counters are not on the disk, None if they are."""
        if self._file is None:
            return self._journal_problem
        return self._file.problem or self._journal_problem

    def bind(self, serial: str) -> bool:
        """Count for the arm with this serial number; returns whether the counters are others now.

        Counters of an unknown arm become its own. Those of another arm are kept beside the state
        file, and those of this arm continue, or begin at zero.
        """
        if serial == self.serial:
            return False
        if self.serial is None:
            self._counters = replace(self._counters, serial=serial)
            return False
        reason = f"arm {serial} instead of {self.serial}"
        counters, kept = None, ""
        if self._file is not None:
            counters, path = self._file.exchange(self._present(), serial)
            kept = f"; those of the other one are kept in {path}"
        self.note = f"{reason}: counters of its own{kept}"
        if counters is None:
            counters = replace(Counters.new(len(self.channels), utc_now(), reason), serial=serial)
        restarts = self._meter.restarts
        self._begin(counters)
        self._meter.restarts = restarts
        self.save()
        return True

    @property
    def clock_restarts(self) -> int:
        """Number of backward steps of the controller's clock."""
        return self._meter.restarts

    def integrate(self, time: Array, steps: Steps, power: Array) -> None:
        """Integrate samples that follow the previous ones.

        Args:
            time: controller timestamps [n], s.
            steps: to the samples [n].
            power: powers [n, channels], W, finite.
        """
        if self._resuming:
            self._resuming = False
            self._account_for_absence(float(time[0]))
        self._meter.integrate_steps(steps, power)
        self._clock = float(time[-1])

    def correct(self, correction: EnergyCorrection) -> None:
        """Correct the energy counted so far; no counter decreases."""
        self._meter.correct(correction)

    @property
    def lifetime_uncorrected(self) -> MeterReading:
        """`lifetime` without corrections: differences of it are integrals of power."""
        now = self.lifetime
        net = now.net - self._meter.corrections
        return MeterReading(net, now.consumed, now.accounted, now.unaccounted)

    def reset(self, reason: str) -> None:
        """Set the counters since reset to zero; the lifetime counters continue."""
        self._counters = replace(
            self._counters, reset=self.lifetime, reset_time=utc_now(), reset_reason=reason
        )
        self.save()

    def read_interval(self) -> MeterReading:
        """Energy since the last call; since the state file was created at the first."""
        passed = self.lifetime - self._counters.interval
        self._counters = replace(self._counters, interval=self.lifetime)
        self.save()
        return passed

    def change_channels(self, channels: Channels) -> None:
        """Continue with other channels; new ones start at zero."""
        names, counters = self.channels.names, self._counters
        last = replace(self.lifetime, net=self._meter.last_power)
        self._meter = EnergyMeter(len(channels), start=channels.convert(self.lifetime, names))
        self._meter.last_power = channels.convert(last, names).net
        self._counters = counters.converted(channels, names)
        self._highest = channels.convert_values(self._highest, names)
        self.channels = channels
        if self._file is not None:
            self._file.set_channels(channels)
        self.save()

    def note_highest(self) -> None:
        """Include the present energies in the highest ones."""
        self._highest = np.maximum(self._highest, self.lifetime.net)

    def journal(self) -> None:
        """Journal the counters before they are published, so that a kill cannot take them back."""
        self.note_highest()
        if self._file is None:
            return
        try:
            self._file.journal(JournalEntry(self.lifetime, self._clock, self._highest))
        except OSError as error:
            self._journal_problem = f"{self._file.path}: cannot be written ({error.strerror})"
        else:
            self._journal_problem = None

    def prepare_save(self) -> Callable[[], None]:
        """Take the counters to save; returns a function that writes them to disk.

        Counting may continue before it is called: the journal holds newer values. A disk that
        cannot be written is a `problem`.
        """
        if self._file is None:
            return lambda: None
        write = self._file.prepare_save(self._present())

        def save() -> None:
            with suppress(OSError):
                write()

        return save

    def save(self) -> None:
        """Write the counters to disk."""
        self.prepare_save()()

    def close(self) -> None:
        """Save, and release the state file."""
        if self._file is not None:
            self.save()
            self.journal()  # a full disk may still have room for it
            self._journal_problem = self.problem
            self._file.close()
            self._file = None

    def _present(self) -> Counters:
        """The counters now."""
        return self._counters.at(self.lifetime, self._clock, self._highest)

    def _account_for_absence(self, now: float) -> None:
        """Count the time since the last run as unaccounted, if the clock has not restarted."""
        if self._clock is not None and 0.0 < now - self._clock < LONGEST_ABSENCE:
            away = replace(MeterReading.zero(len(self.channels)), unaccounted=now - self._clock)
            self._meter = EnergyMeter(len(self.channels), start=self.lifetime + away)


def utc_now() -> str:
    """Current time in UTC, ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
