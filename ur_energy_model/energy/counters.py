# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy counters of one arm: lifetime, since reset, since the last reading; kept on disk.

Two SQLite files keep them. The state is saved from time to time: it has a write-ahead
log, a save waits for one sync, and a power cut takes back at most the last save. The
journal beside it is written before every publication: its rollback journal stays, so that
both are overwritten in place, which takes 15 us, needs no room on a full disk and is safe
against a kill, but not against a power cut.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import count
from pathlib import Path

import numpy as np

from ur_energy_model.codec import built, plain
from ur_energy_model.energy.meter import EnergyMeter, MeterReading, Steps, Totals
from ur_energy_model.energy.powers import Channels
from ur_energy_model.energy.telemetry_checks import MOST_POWER
from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, open_regular, real_path, user_path
from ur_energy_model.typing import Array

COUNTERS = "counters"
JOURNAL = "journal"
"""Keys of the counters of the present arm, and of their newest values in the journal."""
LONGEST_ABSENCE = 1.0e8
"""Time since the last run that is believed [s], three years; beyond it the clock is another one."""


class EnergyCounters:
    """Integrates powers; the counters survive restarts.

    A disk that cannot be written never stops counting: the counters stay in memory,
    `problem` is why, and every saving tries again.

    Args:
        channels: what is counted.
        path: of the state file; None for none.
        robot: description name of the arm.

    Attributes:
        meter: whose reading is the energy since the state file was created.
        stated: the counters when they were loaded, last reset or last read.
        highest: highest lifetime net energy at any publication so far [channels], J. It
            never decreases, also where a joint gives energy back, and over restarts.
        cycles: number of the last work cycle, over restarts.
        note: why the counters are not those of before, for their users; None for no
            reason.

    Raises:
        InputError: the state file is damaged, in use or belongs to another robot.
    """

    def __init__(
        self, channels: Channels, path: str | Path | None, robot: str | None = None
    ) -> None:
        self.channels = channels
        self._robot = robot
        self.note: str | None = None
        self._files: tuple[StateFile, ...] = ()  # the state and the journal
        self._last_problem: str | None = None
        try:
            known = None if path is None else self._open(path)
        except BaseException:
            self._release()
            raise
        self._begin(known or self._new(None, "first start"))
        self.save()
        self.journal()

    def _open(self, path: str | Path) -> Counters | None:
        """Lock the files; returns the counters that were saved or journalled last."""
        where = real_path(user_path(path))
        state = StateFile(where)
        journal = StateFile(_journal_path(where), synced=False)
        self._files = (state, journal)
        known = None
        try:
            with _refusing(path, state):
                if _is_old(where):
                    known = self._of_this_arm(_old_counters(where))
                    state.take_over({COUNTERS: known.content()})
                state.open()
            with _refusing(path, journal):
                if _is_old(journal.path):  # without its state it counts nothing
                    journal.take_over({})
                try:
                    journal.open()
                except ValueError:  # a power cut: the state is what counts
                    journal.path.unlink()
            known = known or self._kept(COUNTERS)
        except ValueError as error:
            problem = f"is not a state file of energy counters ({error})"
            remedy = "restore it, or move it away to start from zero"
            raise InputError(where, problem, remedy) from error
        if known is None:
            return None
        entry = journal.values.get(JOURNAL, b"")
        if known.number is not None and entry[:8] == known.number.to_bytes(8, "little"):
            known = known.later(entry[8:])
        return known.converted(self.channels)

    def _kept(self, key: str) -> Counters | None:
        """Counters that were saved under a key, None if there are none; raises as `_open`."""
        content = self._files[0].values.get(key)
        return (
            None if content is None else self._of_this_arm(Counters.from_content(content))
        )

    def _of_this_arm(self, counters: Counters) -> Counters:
        """These counters; raises InputError, which names both, if they are of another robot."""
        if None not in (counters.robot, self._robot) and counters.robot != self._robot:
            problem = f"counts the energy of a {counters.robot}, not a {self._robot}"
        elif {n.partition("/")[0] for n in counters.names if "/" in n} - {
            "total",
            "model",
        } != set(self.channels.joints):
            problem = "counts the energy of other joints"
        else:
            return counters
        raise InputError(
            self._files[0].path, problem, "choose another state_file for this arm"
        )

    def _new(self, serial: str | None, reason: str) -> Counters:
        """Counters at zero."""
        zero = MeterReading.zero(len(self.channels))
        number = secrets.randbelow(LARGEST_NUMBER)
        state = (zero, zero, zero, utc_now(), reason, self.channels.names, None)
        return Counters(*state, serial, self._robot, zero.net, number)

    def _begin(self, counters: Counters, restarts: int = 0) -> None:
        """Continue counters."""
        self.stated = replace(counters, robot=counters.robot or self._robot)
        self.meter = EnergyMeter(len(self.channels), start=counters.ever)
        self.meter.restarts = restarts
        self._clock = counters.clock
        self.highest = np.maximum(counters.ever.net, counters.highest)
        self.cycles = counters.cycles
        self._resuming = counters.clock is not None

    @property
    def problem(self) -> str | None:
        """Why the counters are not on the disk, None if they are."""
        return next(
            (file.problem for file in self._files if file.problem), self._last_problem
        )

    def bind(self, serial: str) -> bool:
        """Count for the arm with this serial number; returns whether the counters are others now.

        Counters of an unknown arm become its own. Those of another arm are kept in the
        state file, and those of this arm continue, or begin at zero.
        """
        if self.stated.serial in (None, serial):
            self.stated = replace(self.stated, serial=serial)
            return False
        reason = f"arm {serial} instead of {self.stated.serial}"
        self.note = f"{reason}: counters of its own"
        counters = None
        if self._files:
            state = self._files[0]
            self.note += f"; those of the other one are kept in {state.path}"
            state.put(f"{COUNTERS} of {self.stated.serial}", self._present().content())
            with suppress(OSError, ValueError, InputError):
                counters = self._kept(f"{COUNTERS} of {serial}")
                # an earlier version kept them in a file of their own
                if counters is None:
                    label = re.sub(r"[^A-Za-z0-9-]", "_", serial)[:64]
                    old = _old_counters(
                        state.path.with_name(f"{state.path.name}.arm-{label}")
                    )
                    counters = self._of_this_arm(old) if old.serial == serial else None
                counters = None if counters is None else counters.converted(self.channels)
        self._begin(counters or self._new(serial, reason), self.meter.restarts)
        self.save()
        return True

    def resume(self, time: float) -> None:
        """Count the time since the last run as unaccounted, at the first sample of this one [s]."""
        if not self._resuming:
            return
        self._resuming = False
        away = time - (self._clock or 0.0)
        if 0.0 < away < LONGEST_ABSENCE:  # else the clock has restarted
            now = self.meter.reading
            self.meter.reading = replace(now, unaccounted=now.unaccounted + away)

    def integrate(
        self, time: Array, steps: Steps, power: Array, stops: Sequence[int] = ()
    ) -> Totals:
        """Integrate powers [n, channels], W, finite, at controller times [n], s, after `steps`.

        Returns the energy after each of these numbers of samples, and after all of them.
        """
        self.resume(float(time[0]))
        self._clock = float(time[-1])
        return self.meter.integrate_steps(steps, power, stops)

    def reset(self, reason: str) -> None:
        """Set the counters since reset to zero; the lifetime counters continue."""
        self.stated = replace(
            self.stated,
            reset=self.meter.reading,
            reset_time=utc_now(),
            reset_reason=reason,
        )
        self.save()

    def read_interval(self) -> MeterReading:
        """Energy since the last call; since the state file was created at the first."""
        passed = self.meter.reading - self.stated.interval
        self.stated = replace(self.stated, interval=self.meter.reading)
        self.save()
        return passed

    def change_channels(self, channels: Channels) -> None:
        """Continue with other channels; new ones start at zero."""
        last = self.meter.last_power
        names = self.channels.names
        counters = self._present()
        self.channels = channels
        resuming = self._resuming
        self._begin(counters.converted(channels), self.meter.restarts)
        self.meter.last_power = channels.convert_values(last, names)
        self._resuming = resuming
        self.save()

    def note_highest(self, net: Array) -> Array:
        """Include energies at consecutive moments [k, channels], J; returns the highest at each."""
        highest = np.maximum.accumulate(np.concatenate((self.highest[None], net)))[1:]
        self.highest = highest[-1]
        return np.asarray(highest)

    def journal(self) -> None:
        """Journal the counters before they are published, so that a kill cannot take them back."""
        if self._files:
            now = self.meter.reading
            clock = float("nan") if self._clock is None else self._clock
            times = (now.accounted, now.unaccounted, clock)
            cycles = (float(self.cycles),)
            numbers = np.concatenate([now.net, now.consumed, times, self.highest, cycles])
            head = (self.stated.number or 0).to_bytes(8, "little")
            self._files[1].put(
                JOURNAL, head + numbers.astype("<f8", copy=False).tobytes()
            )
            self._files[1].save()

    def prepare_save(self) -> Callable[[], None]:
        """Take the counters to save; returns a function that writes them and needs no lock.

        Counting may continue before it is called: the journal holds newer values. A disk
        that cannot be written is a `problem`.
        """
        if not self._files:
            return lambda: None
        self._files[0].put(COUNTERS, self._present().content())
        return self._files[0].save

    def save(self) -> None:
        """Write the counters to disk."""
        self.prepare_save()()

    def close(self) -> None:
        """Save, and release the state file."""
        if self._files:
            self.save()
            self.journal()  # a full disk may still have room for it
            self._last_problem = self.problem
            self._release()

    def _release(self) -> None:
        for file in self._files:
            file.close()
        self._files = ()

    def _present(self) -> Counters:
        """The counters now."""
        return replace(
            self.stated,
            ever=self.meter.reading,
            clock=self._clock,
            highest=self.highest,
            cycles=self.cycles,
        )


def utc_now() -> str:
    """Current time in UTC, ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _journal_path(path: Path) -> Path:
    """The file beside a state file with what was published since the last save."""
    return path.with_name(path.name + ".journal")


_UNUSABLE = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)
_USELESS_PATH = (errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG)


@contextmanager
def _refusing(path: str | Path, file: StateFile) -> Iterator[None]:
    """Errors of a disk that may be over later become its problem; others are InputErrors."""
    try:
        yield
    except BlockingIOError as error:
        remedy = "give each estimator a state_file of its own"
        raise InputError(path, "is in use by another estimator", remedy) from error
    except OSError as error:
        reason = f"cannot be written ({error.strerror})"
        if isinstance(error, _UNUSABLE) or error.errno in _USELESS_PATH:
            raise InputError(path, reason, "set state_file to a writable path") from error
        file.problem = f"{file.path}: {reason}"


# Counters: what the state holds under one key, as JSON.

SCHEMA = 1
LARGEST_NUMBER = 1 << 63
MOST_CYCLES = 10**12
LONGEST_TIME = 1.0e10  # time that no counter reaches [s]: three centuries
ALLOWANCE = 60.0  # accounted time that counts in addition, for corrections [s]


@dataclass(frozen=True)
class Counters:
    """Lifetime energy, and its values at which the other counters began."""

    ever: MeterReading  # since the state file was created
    # reset, interval: value of `ever` at the last reset, and at the last interval reading
    reset: MeterReading
    interval: MeterReading
    # reset_time, reset_reason: of the last reset; ISO 8601
    reset_time: str
    reset_reason: str
    names: tuple[str, ...]  # of the channels
    # controller time of the last sample [s], None where there was none
    clock: float | None = None
    serial: str | None = None  # number of the arm, None where unknown
    # description name of the arm, None in files of earlier versions
    robot: str | None = None
    # highest lifetime net energy of each channel so far [channels], J; empty for that of
    # `ever`, as in files of earlier versions
    highest: Array = field(default_factory=lambda: np.zeros(0))
    # of these counters, which journal entries carry; None in files of earlier versions
    number: int | None = None
    cycles: int = 0  # number of the last work cycle; 0 before the first

    def content(self) -> bytes:
        """As JSON."""
        content = {"schema": SCHEMA, **plain(self, arrays=True)}
        return json.dumps(content, allow_nan=False, default=np.ndarray.tolist).encode()

    @classmethod
    def from_content(cls, content: bytes) -> Counters:
        """Counters from JSON; raises ValueError for others, and for those that no arm can have."""
        try:
            values = {key: v for key, v in json.loads(content).items() if v is not None}
            if values["schema"] != SCHEMA:
                raise ValueError(f"schema {values['schema']}")
            return built(cls, values).checked()
        except (
            AttributeError, KeyError, TypeError, ArithmeticError, RecursionError
        ) as error:  # fmt: skip
            raise ValueError(str(error)) from error

    def checked(self) -> Counters:
        """These counters; raises ValueError for those that no arm can have."""
        readings = (self.ever, self.reset, self.interval)
        energies = [values for each in readings for values in (each.net, each.consumed)]
        energies += [self.highest] if self.highest.size else []
        times = [time for each in readings for time in (each.accounted, each.unaccounted)]
        if self.number is not None and not 0 <= self.number < LARGEST_NUMBER:
            raise ValueError("impossible number")
        if not 0 <= self.cycles <= MOST_CYCLES:
            raise ValueError("impossible number of cycles")
        if any(values.shape != (len(self.names),) for values in energies):
            raise ValueError("wrong number of counters")
        if not (
            all(0.0 <= time <= LONGEST_TIME for time in times)
            and (self.clock is None or abs(self.clock) <= LONGEST_TIME)
        ):
            raise ValueError("impossible times")
        unit = np.where(np.array(self.names) == "total_square", MOST_POWER, 1.0)
        largest = float(np.abs(energies / unit).max(initial=0.0))
        if not largest <= MOST_POWER * (self.ever.accounted + ALLOWANCE):
            raise ValueError(
                f"{largest:.3g} J in so short a time, more than any arm takes"
            )
        return self

    def converted(self, channels: Channels) -> Counters:
        """The same counters for other channels."""
        names = self.names
        readings = (self.ever, self.reset, self.interval)
        ever, reset, interval = (channels.convert(each, names) for each in readings)
        highest = (
            channels.convert_values(self.highest, names)
            if self.highest.size
            else ever.net
        )
        if "total_square" not in names:  # as of earlier versions: that of the mean power
            total = channels.arm["total"]
            square = channels.arm["total_square"]
            mean = ever.net[total] / max(ever.accounted, 1.0)
            for each in (ever, reset, interval):
                each.net[square] = each.consumed[square] = mean * each.net[total]
        known = replace(self, ever=ever, reset=reset, interval=interval)
        return replace(known, highest=highest, names=channels.names)

    def later(self, entry: bytes) -> Counters:
        """These counters with the numbers of a journal entry, if they are possible and newer."""
        n = len(self.names)
        # Entries of earlier versions have no number of cycles, and earlier ones no
        # highest values.
        if len(entry) not in (8 * (2 * n + 3), 8 * (3 * n + 3), 8 * (3 * n + 4)):
            return self
        ends = (n, 2 * n, 2 * n + 3, 3 * n + 3)
        net, consumed, times, highest, cycles = np.split(
            np.frombuffer(entry, "<f8"), ends
        )
        accounted, unaccounted, clock = times.tolist()
        last_cycle = (
            cycles[0] if len(cycles) and 0.0 <= cycles[0] <= MOST_CYCLES else self.cycles
        )
        passed = accounted + unaccounted - self.ever.accounted - self.ever.unaccounted
        try:
            later = replace(
                self,
                ever=MeterReading(net, consumed, accounted, unaccounted),
                clock=None if np.isnan(clock) else clock,
                highest=highest if highest.size else self.highest,
                cycles=max(int(last_cycle), self.cycles),
            ).checked()
        except ValueError:
            return self
        return later if passed >= 0.0 else self


# The two files of earlier versions: JSON, and a journal of two checksummed slots.

LARGEST_OLD_FILE = 4 << 20  # largest state file of an earlier version [bytes]
_HEAD = b"SQLite format 3\0"


def _is_old(path: Path) -> bool:
    """Whether there is a file that is not one of SQLite."""
    try:
        with open_regular(path) as file:
            return file.read(len(_HEAD)) not in (_HEAD, b"")
    except FileNotFoundError:
        return False


def _old_counters(path: Path) -> Counters:
    """The counters of a JSON file, or of its journal where that is newer.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no state file, or holds counters that no arm can have.
    """
    with open_regular(path) as file:
        data = file.read(LARGEST_OLD_FILE + 1)
    if len(data) > LARGEST_OLD_FILE:
        raise ValueError(f"more than {LARGEST_OLD_FILE} bytes")
    counters = Counters.from_content(data)
    n = len(counters.names)
    numbered = counters.number is not None
    with suppress(OSError), open_regular(_journal_path(path)) as file:
        data = file.read(LARGEST_OLD_FILE)
        # Entries begin with the number of the counters, if there is one, and a sequence.
        # There are two of them, each behind its checksum.
        words = 2 if numbered else 1
        for size in (8 * (words + 2 * n + 3), 8 * (words + 3 * n + 3)):
            for start in (0, size + 4):
                entry = data[start : start + size]
                check = data[start + size : start + size + 4]
                if len(check) < 4 or zlib.crc32(entry) != int.from_bytes(check, "little"):
                    # of another length, or an interrupted write: the other slot is valid
                    continue
                if not numbered or int.from_bytes(entry[:8], "little") == counters.number:
                    counters = counters.later(entry[8 * words :])
    return (
        counters
        if numbered
        else replace(counters, number=secrets.randbelow(LARGEST_NUMBER))
    )


# Values by key in an SQLite file.

LARGEST = 64 << 20  # largest value that is read [bytes]
CHECK_PERIOD = 0.5
"""Time between two checks that the file was not deleted, and until a disk is tried again [s]."""


class StateFile:
    """Values by key in an SQLite file, of one process at a time and safe against its end.

    The values are kept in memory too: a disk that fails ends nothing, and what is not
    written yet is written with the next call that succeeds, also where the file was
    deleted meanwhile.

    Args:
        path: of the file.
        synced: whether each save waits for the disk, as that of the state.
    """

    def __init__(self, path: Path, *, synced: bool = True) -> None:
        self.path = path
        self.values: dict[str, bytes] = {}  # by key; changed by `put`
        self.problem: str | None = None  # why the last save failed, None if it did not
        self._synced = synced
        self._unsaved: dict[str, None] = {}
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._check_due = 0.0
        self._loaded = False
        self._mutex = threading.Lock()

    def open(self) -> None:
        """Lock the file and read its values; makes it if it is missing.

        Raises:
            BlockingIOError: another process has locked it.
            OSError: it cannot be opened or written, or is a link, a pipe or a folder.
            ValueError: it is no file of this kind, or damaged.
        """
        self.close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        files = [
            self.path.with_name(self.path.name + end) for end in ("", "-wal", "-journal")
        ]
        for each in files:  # links, by which others are overwritten, and pipes
            with suppress(FileNotFoundError):
                if not stat.S_ISREG(mode := each.lstat().st_mode):
                    kind = (
                        "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
                    )
                    raise OSError(errno.EINVAL, f"{each.name} is {kind}")
        known = self.path.exists()
        if os.statvfs(self.path.parent).f_flag & os.ST_RDONLY:
            if known and not self._loaded:
                with tempfile.TemporaryDirectory() as copies:
                    for each in filter(Path.exists, files):
                        shutil.copy(each, copies)
                    copy = StateFile(Path(copies) / self.path.name)
                    copy.open()
                    copy.close()
                self.take_over(copy.values)
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if known and not os.access(self.path, os.R_OK | os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        if self._loaded and _is_old(self.path):
            # A new file with these values takes its place, or it stays.
            with tempfile.TemporaryDirectory() as made, new_file(self.path, "wb") as file:
                new = StateFile(Path(made) / self.path.name)
                new.take_over(self.values)
                new.save()
                new.close()
                file.write(new.path.read_bytes())
        try:
            self._connect()
        except sqlite3.Error as error:
            self.close()
            raise _of_disk(error) from error

    def take_over(self, values: dict[str, bytes]) -> None:
        """Begin with the values of a file of another kind, which `open` then replaces."""
        self.values = values
        self._loaded = True

    def _connect(self) -> None:
        self._connection = sqlite3.connect(
            self.path, timeout=0.0, isolation_level=None, check_same_thread=False
        )
        execute = self._connection.execute
        for pragma in (
            # Locked as long as it is open; then a log needs no shared memory, which a
            # failing disk could take away under the process.
            "locking_mode = EXCLUSIVE",
            "trusted_schema = OFF",
            "page_size = 16384",  # the counters of an arm fit into one page
            f"journal_mode = {'WAL' if self._synced else 'PERSIST'}",
            f"synchronous = {'FULL' if self._synced else 'OFF'}",
            "wal_autocheckpoint = 64",
        ):
            execute(f"PRAGMA {pragma}")
        execute("BEGIN IMMEDIATE")
        execute(
            "CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value BLOB NOT NULL)"
        )
        found = dict(
            execute(
                f"SELECT key, value FROM state WHERE length(value) <= {LARGEST}"
            ).fetchall()
        )
        execute("COMMIT")
        if not self._synced:  # both files grow while there is room, and keep it
            with suppress(sqlite3.OperationalError):
                execute("REPLACE INTO state VALUES ('room', zeroblob(65536))")
                execute("UPDATE state SET value = randomblob(65536) WHERE key = 'room'")
                execute("DELETE FROM state WHERE key = 'room'")
        if not all(isinstance(each, bytes) for each in found.values()):
            raise ValueError("values that are no bytes")
        if self._loaded:
            self._unsaved |= dict.fromkeys(self.values)
        elif self._unsaved and found:  # the disk could not read it at the start: kept
            self.close()
            names = (f"{self.path.name}.unreadable{number}" for number in count(1))
            free = (self.path.with_name(name) for name in names)
            self.path.rename(next(path for path in free if not path.exists()))
            self._connect()
        else:
            self.values = {**found, **self.values}
            self._loaded = True
        self._inode = self.path.stat().st_ino

    def put(self, key: str, value: bytes) -> None:
        """Change a value in memory; `save` writes it."""
        self.values[key] = value
        self._unsaved[key] = None

    def save(self) -> None:
        """Write what has changed, in the order of `put`; a disk that fails is a `problem`.

        A disk that has just failed is left alone for CHECK_PERIOD: what failed may take
        long.
        """
        now = time.monotonic()
        if self._connection is None and now < self._check_due:
            return
        try:
            with self._mutex:
                if self._connection is None or now >= self._check_due:
                    self._check_due = now + CHECK_PERIOD
                    try:
                        in_place = (
                            self._connection and self.path.stat().st_ino == self._inode
                        )
                    except OSError:
                        in_place = False
                    if not in_place:
                        self.open()
                assert self._connection is not None
                changed = [(key, self.values[key]) for key in list(self._unsaved)]
                self._connection.executemany("REPLACE INTO state VALUES (?, ?)", changed)
                for key, value in changed:
                    if self.values[key] is value:  # not put again meanwhile
                        self._unsaved.pop(key, None)
                self.problem = None
        except (sqlite3.Error, OSError, ValueError) as failure:
            error = _of_disk(failure)
            if isinstance(failure, sqlite3.Error):
                self.close()
            reason = error.strerror if isinstance(error, OSError) else None
            self.problem = f"{self.path}: cannot be written ({reason or error})"

    def close(self) -> None:
        """Release the lock."""
        connection = self._connection
        self._connection = None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def _of_disk(error: Exception) -> Exception:
    """An error of SQLite as one of the file system, or a ValueError for a damaged file."""
    if not isinstance(error, sqlite3.Error):
        return error
    text = str(error)
    known = {"locked": errno.EAGAIN, "full": errno.ENOSPC, "readonly": errno.EROFS}
    number = next((number for part, number in known.items() if part in text), None)
    if number is not None:
        return OSError(number, os.strerror(number))  # EAGAIN makes a BlockingIOError
    damaged = type(error) is sqlite3.DatabaseError or "no such column" in text
    return ValueError(text) if damaged else OSError(errno.EIO, text)
