"""Energy counters on disk that survive a restart, a kill and a power cut.

Two files: the state (JSON), replaced atomically and synced to disk from time to time, and a journal
(journal.py), written before every publication. With the journal a killed process continues at or
above the last published value. The state names the arm that it counts for.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.journal import Journal
from ur_energy_model.energy.live.journal_entry import JournalEntry
from ur_energy_model.energy.live.saved_state import (
    LARGEST_NUMBER,
    Counters,
    SavedState,
    read_state,
)
from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, user_path

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
