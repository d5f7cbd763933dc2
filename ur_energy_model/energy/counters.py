# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy counters of one arm: lifetime, since reset, since the last reading; kept on disk.

Two files keep them (`StateFile`). The state is synced and saved from time to time: a power
cut takes back at most what came after the last save. The journal beside it is written
before every publication, in place and without sync, so that not even a kill takes back
what was published.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.meter import EnergyMeter, MeterReading, Steps, Totals
from ur_energy_model.energy.powers import Channels
from ur_energy_model.energy.saved_counters import Counters, utc_now
from ur_energy_model.errors import InputError
from ur_energy_model.files import real_path, user_path
from ur_energy_model.state_file import StateFile
from ur_energy_model.typing import Array

COUNTERS = "counters"
"""Key of the counters of the present arm in the state file."""
JOURNAL = "journal"
"""Key of their newest values in the journal."""
LONGEST_ABSENCE = 1.0e8
"""Time since the last run that is believed [s], three years; beyond it the clock is another one."""


class EnergyCounters:
    """Integrates powers; the counters survive restarts.

    A disk that fails later than at the start never stops counting: the counters stay in
    memory, `problem` is why they are not on the disk, and every saving tries again.

    Args:
        channels: what is counted.
        path: path of the state file; None for none.
        robot: description name of the arm.

    Attributes:
        file: the state file, which may hold other values, too; None without one.
        meter: meter whose reading is the energy since the state file was created.
        stated: the counters when they were loaded, last reset or last read.
        highest: highest lifetime net energy at any publication so far [channels], J. It
            never decreases, also where a joint gives energy back, and over restarts.
        cycles: number of the last work cycle, over restarts.
        note: why other counters are in use than before, for users; None if they are the same.

    Raises:
        InputError: the state file is damaged, in use, cannot be read or belongs to
            another robot.
    """

    def __init__(
        self, channels: Channels, path: str | Path | None, robot: str | None = None
    ) -> None:
        self.channels = channels
        self.file: StateFile | None = None
        self.note: str | None = None
        self._robot = robot
        self._journal: StateFile | None = None
        self._last_problem: str | None = None
        known = None
        if path is not None:
            try:
                known = self._open(path)
            except BaseException:
                self._release()
                raise
        self._begin(known or Counters.zero(channels.names, robot, None, "first start"))
        self.save()
        self.journal()

    def _open(self, path: str | Path) -> Counters | None:
        """Lock the files; returns the counters that were saved or journalled last."""
        where = real_path(user_path(path))
        state = StateFile(where)
        journal = StateFile(_journal_path(where), synced=False)
        self.file = state
        self._journal = journal
        try:
            _open_or_refuse(state, path)
            try:
                _open_or_refuse(journal, path)
            except ValueError:  # damaged by a power cut: the state is what counts
                journal.path.unlink()
                _open_or_refuse(journal, path)
            known = self._saved(COUNTERS)
        except ValueError as error:
            problem = f"is not a state file of energy counters ({error})"
            remedy = "restore it, or move it away to start from zero"
            raise InputError(where, problem, remedy) from error
        if known is None:
            return None
        entry = journal.get(JOURNAL)
        if entry is not None:
            known = known.continued(entry)
        return known.converted(self.channels)

    def _saved(self, key: str) -> Counters | None:
        """Counters that were saved under a key; None if there are none.

        Raises:
            ValueError: they are damaged.
            InputError: they are of another robot; names both.
        """
        assert self.file is not None
        content = self.file.get(key)
        if content is None:
            return None
        counters = Counters.from_content(content)
        problem = None
        if None not in (counters.robot, self._robot) and counters.robot != self._robot:
            problem = f"counts the energy of a {counters.robot}, not a {self._robot}"
        elif counters.joints != set(self.channels.joints):
            problem = "counts the energy of other joints"
        if problem is not None:
            remedy = "choose another state_file for this arm"
            raise InputError(self.file.path, problem, remedy)
        return counters

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
        for file in (self.file, self._journal):
            if file is not None and file.problem is not None:
                return file.problem
        return self._last_problem

    def bind(self, serial: str) -> bool:
        """Count for the arm with this serial number.

        Counters of an unknown arm become the counters of this arm. Counters of another arm
        are kept in the state file, and the counters of this arm continue, or begin at zero.

        Returns:
            Whether other counters are in use now.
        """
        if self.stated.serial in (None, serial):
            self.stated = replace(self.stated, serial=serial)
            return False
        reason = f"arm {serial} instead of {self.stated.serial}"
        self.note = f"{reason}: counters of its own"
        known = None
        if self.file is not None:
            self.note += f"; those of the other one are kept in {self.file.path}"
            self.file.put(_key_of_arm(self.stated.serial), self._present().content())
            try:
                known = self._saved(_key_of_arm(serial))
            except (ValueError, InputError) as error:
                self.note += f"; its counters of before cannot be used ({error})"
        if known is None:
            names = self.channels.names
            known = Counters.zero(names, self._robot, serial, reason)
        self._begin(known.converted(self.channels), self.meter.restarts)
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
        if self._journal is not None:
            self._journal.put(JOURNAL, self._present().journal_entry())
            self._journal.save()

    def prepare_save(self) -> Callable[[], None]:
        """Take the counters to save; returns a function that writes them and needs no lock.

        Counting may continue before it is called: the journal holds newer values. A disk
        that cannot be written is a `problem`.
        """
        if self.file is None:
            return lambda: None
        self.file.put(COUNTERS, self._present().content())
        return self.file.save

    def save(self) -> None:
        """Write the counters to disk."""
        self.prepare_save()()

    def close(self) -> None:
        """Save, and release the state file."""
        self.save()
        self.journal()  # a full disk may still have room for it
        self._last_problem = self.problem
        self._release()

    def _release(self) -> None:
        for file in (self.file, self._journal):
            if file is not None:
                file.close()
        self.file = None
        self._journal = None

    def _present(self) -> Counters:
        """The counters now."""
        return replace(
            self.stated,
            ever=self.meter.reading,
            clock=self._clock,
            highest=self.highest,
            cycles=self.cycles,
        )


def _journal_path(path: Path) -> Path:
    """The file beside a state file with what was published since the last save."""
    return path.with_name(path.name + ".journal")


def _key_of_arm(serial: str | None) -> str:
    """Key of the counters of an arm that is not the present one."""
    return f"{COUNTERS} of {serial}"


_USELESS_PATH = (errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG)
_UNUSABLE = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)


def _open_or_refuse(file: StateFile, path: str | Path) -> None:
    """Open a file of a state; a new file on a full disk gets a `problem` instead.

    Raises:
        InputError: it cannot be used; names the `path` as the user has given it.
        ValueError: it is damaged, or of another kind.
    """
    is_there = file.path.is_file() and file.path.stat().st_size > 0
    try:
        file.open()
    except BlockingIOError as error:
        remedy = "give each estimator a state_file of its own"
        raise InputError(path, "is in use by another estimator", remedy) from error
    except OSError as error:
        reason = f"cannot be written ({error.strerror})"
        useless = isinstance(error, _UNUSABLE) or error.errno in _USELESS_PATH
        unknown = is_there and not file.is_loaded  # counting from zero would step back
        if useless or unknown or error.errno == errno.EROFS:
            raise InputError(path, reason, "set state_file to a writable path") from error
        file.problem = f"{file.path}: {reason}"
