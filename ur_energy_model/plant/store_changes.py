# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Changes of a history store: what is committed, and commits beside other processes.

A change is computed from the state of the store and committed if the state is still the
newest one; else it is computed again from the new state. So each change sees what other
processes have committed before it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import pyarrow.dataset as ds

from ur_energy_model.plant.delta_logs import ConflictError
from ur_energy_model.plant.energy_parts import TimeRanges
from ur_energy_model.plant.schema import LIVE, UNDIVIDED
from ur_energy_model.plant.sources import SourceRecord, joined, without
from ur_energy_model.plant.store_content import (
    FileChange,
    StoreContent,
    joined_name,
    may_have_had,
)
from ur_energy_model.plant.store_files import StoredFile, StoreError, StoreFiles
from ur_energy_model.plant.store_log import State, StoreLog

MOST_WAIT = 60.0  # time in which a commit is tried beside commits of other processes [s]
SHORTEST_PAUSE = 0.01  # longest pause before a commit is tried a second time [s]
LONGEST_PAUSE = 0.5  # longest pause before a commit is tried once more [s]


class OverlapError(Exception):
    """Another source covers some of the time of the rows that were to be written."""


class StoreChanges:
    """Commits changes of a store, and computes the files that a change replaces.

    Args:
        files: files of the store.
        log: log of the store, which states the files that count.
        content: what the files contain.
    """

    def __init__(self, files: StoreFiles, log: StoreLog, content: StoreContent) -> None:
        self._files = files
        self._log = log
        self._content = content

    def commit(
        self,
        change: Callable[[State], FileChange | None],
        *,
        always: bool = False,
        publish: bool = True,
    ) -> bool:
        """Commit a change of the state, made anew as long as other processes are faster.

        Args:
            change: gives the change of a state; None if there is nothing to change.
            always: whether logs are brought up to date also without a change.
            publish: whether the logs of the tables are brought up to date as well; False
                where further changes follow at once.

        Returns:
            Whether there was a change.

        Raises:
            StoreError: other processes are faster for MOST_WAIT.
        """
        end = time.monotonic() + MOST_WAIT
        pause = SHORTEST_PAUSE
        while True:
            state = self._log.read()
            found = change(state)
            settled = state.log is not None and not state.behind
            if found is None and (settled or not always):
                return False
            committed = FileChange(()) if found is None else found
            try:
                if found is not None or state.log is None:
                    self._log.commit(state, committed.added, committed.removed)
                if publish:
                    self._log.publish()
                for file in committed.removed:
                    self._files.remove_stand_in(file.path)
                return found is not None
            except ConflictError:
                if time.monotonic() > end:
                    problem = "is written by others again and again"
                    remedy = "repeat the command later"
                    raise StoreError(self._files.address, problem, remedy) from None
            time.sleep(random.uniform(0.0, pause))
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def check_free(self, state: State, arm: str, source: str, ranges: TimeRanges) -> None:
        """Refuse rows of a time that another source covers.

        Args:
            state: state of the store.
            arm: name of the arm.
            source: name of the source of the rows.
            ranges: host time that the rows cover; nothing where it is not known.

        Raises:
            OverlapError: another source covers some of that time.
        """
        if not ranges:
            return
        taken = self._content.covered(state, arm, ranges.pairs()[0][0], source)
        if any(taken.within(*pair) for pair in ranges.pairs()):
            raise OverlapError

    def cut_out(
        self, state: State, record: SourceRecord
    ) -> tuple[list[StoredFile], list[StoredFile]]:
        """Take the rows of a source out of the files that count.

        A lost file of several bags is replaced when the last of these bags is added again.

        Args:
            state: state of the store.
            record: record of the source.

        Returns:
            New files with the rows of other sources, and the files that they replace.
        """
        kept = []
        gone = []
        source = record.source
        for file in state.select():
            own_arm = file.table in UNDIVIDED or file.arm == record.arm
            if not own_arm or file.live != source.startswith(LIVE):
                continue
            if file.table == "models":
                continue
            if file.source is not None:
                replaced = file.source == source
            elif file.lost or not self._files.is_good(file):
                replaced = self._is_last_of(state, file, source)
            else:
                replaced = file.may_hold(source) and source in self._files.parts(file)
                rest = self._without(file, source) if replaced else None
                if rest is not None:
                    kept.append(rest)
            if replaced:
                gone.append(file)
        return kept, gone

    def _without(self, file: StoredFile, source: str) -> StoredFile | None:
        """A new file with the rows of all other sources of a file; None without any."""
        rows = self._files.rows(file.table, [file], ds.field("source") != source)
        if not len(rows):
            return None
        parts = without(self._files.parts(file), source)
        arm = file.arm or ""
        day = file.day or ""
        return self._files.write(file.table, arm, day, joined_name([file]), rows, parts)

    def _is_last_of(self, state: State, file: StoredFile, source: str) -> bool:
        """Whether all bags that can have had rows in a lost file, but for one, are whole."""
        for record in self._content.records(state):
            if record.source == source or not may_have_had(file, record):
                continue
            counted = file.table in record.rows
            if not counted or not self._content.is_whole(state, record.source):
                return False
        return True

    def join(self, groups: Sequence[Sequence[StoredFile]]) -> None:
        """Replace groups of files of one table, arm and day by one file each, in one commit.

        Groups with a file that is not whole stay as they are; so do groups that lose a
        file to another process meanwhile.

        Args:
            groups: files that are joined; a group of one file stays as it is.
        """
        made = []
        for group in groups:
            if len(group) < 2 or not all(map(self._files.is_good, group)):
                continue
            table = group[0].table
            arm = group[0].arm or ""
            day = group[0].day or ""
            rows = self._files.rows(table, group)
            parts = {} if table in UNDIVIDED else joined(map(self._files.parts, group))
            file = self._files.write(table, arm, day, joined_name(group), rows, parts)
            made.append((file, group))

        def change(state: State) -> FileChange | None:
            """The groups whose files all count still."""
            counting = set(state.files["path"].to_pylist())
            new = []
            gone: list[StoredFile] = []
            for file, group in made:
                if counting.issuperset(each.path for each in group):
                    new.append(file)
                    gone += group
            return FileChange(new, gone) if new else None

        if made:
            self.commit(change, publish=False)
