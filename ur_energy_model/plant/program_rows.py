# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rows of `program_nodes`: time and energy in each node of a program, minute by minute.

Columns have units and meanings in `schema`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ur_energy_model.energy.powers import Channels, PowerTable
from ur_energy_model.energy.program import LINE, Script
from ur_energy_model.energy.program_energy import ProgramEnergy, ProgramPart, Spent
from ur_energy_model.plant.energy_parts import NOTHING, SECOND, TimeRanges
from ur_energy_model.plant.rows import total_sources
from ur_energy_model.plant.schema import SourceKeys, arrow_table
from ur_energy_model.telemetry.samples import host_times, run_starts

STEP = 60 * SECOND
"""Length of the minute that a row of `program_nodes` is about [ns]."""


class _NodeMinute(NamedTuple):
    """Time and energy of a program node in a minute.

    Attributes:
        minute: number of the minute since 1970 UTC.
        program: name of the program; None where it is not known.
        node: label of the node, or line and its number.
        spent: time and energy in the node.
    """

    minute: int
    program: str | None
    node: str
    spent: Spent


class ProgramRows:
    """Rows of `program_nodes` from the powers of consecutive samples.

    A single script is taken for the script of all programs, as names of programs come
    late, or not at all. Each of several scripts belongs to the program of the same name.

    Args:
        channels: channels of the powers.
        scripts: scripts that name the nodes of programs.
        covered: time that other sources cover, which is left out.
    """

    def __init__(
        self,
        channels: Channels,
        scripts: Sequence[Script] = (),
        covered: TimeRanges = NOTHING,
    ) -> None:
        self._channels = channels
        self._scripts = scripts
        self._covered = covered
        self._counted = ProgramEnergy(channels)
        self._before: dict[ProgramPart, Spent] = {}
        """Time and energy of each node at the begin of the stretch in progress."""
        self._program: str | None = None
        self._minute: int | None = None
        """Minute of the stretch in progress; None before the first powers."""
        self._is_covered = False
        """Whether another source covers the stretch in progress."""
        self._rows: list[_NodeMinute] = []

    def update(self, table: PowerTable) -> None:
        """Take powers that follow the powers of the last call.

        Powers without program lines are ignored.
        """
        if LINE not in table.samples:
            return
        if self._minute is None or table.samples.info.program != self._program:
            self._close()
            self._program = table.samples.info.program
            self._counted = ProgramEnergy(self._channels, self._script(), self._counted)
            self._before = {}
        times = host_times(table.samples)
        minutes = times // STEP
        covered = self._covered.holds(times)
        edges = run_starts(np.column_stack([minutes, covered]))[1:]
        for row in self._counted.added(table, edges.tolist()):
            self._close()
            self._minute = int(minutes[row])
            self._is_covered = bool(covered[row])

    def rows(self, keys: SourceKeys) -> pa.Table:
        """Rows of `program_nodes` since the last call; each time is in one row.

        Args:
            keys: columns that all rows have in common.
        """
        self._close()
        rows = self._rows
        self._rows = []
        minutes = np.array([row.minute for row in rows], dtype=np.int64)
        seconds = np.array([row.spent.seconds for row in rows], dtype=float)
        measured = np.array([row.spent.measured for row in rows], dtype=float)
        columns = {
            "minute": minutes * STEP,
            **vars(keys),
            "program": [row.program for row in rows],
            "node": [row.node for row in rows],
            "count": np.array([row.spent.executions for row in rows], dtype=np.int64),
            "seconds": seconds,
            "joules": np.array([row.spent.energy for row in rows], dtype=float),
            "model_joules": np.array([row.spent.model for row in rows], dtype=float),
            "measured": measured,
            "total_source": total_sources(measured, seconds),
        }
        return arrow_table("program_nodes", columns)

    def _script(self) -> Script | None:
        """The script of the program in progress; None if it is not among the scripts."""
        if len(self._scripts) == 1:
            return self._scripts[0]
        name = PurePosixPath(self._program or "").stem
        return next((script for script in self._scripts if script.name == name), None)

    def _close(self) -> None:
        """End the stretch in progress: make rows of what was counted since its begin."""
        if self._minute is None:
            return
        spent = self._counted.spent()
        script = self._counted.tracker.script
        for part, now in spent.items():
            passed = now.since(self._before.get(part))
            if passed.seconds > 0.0 and not self._is_covered:
                name = part.name(script)
                self._rows.append(_NodeMinute(self._minute, self._program, name, passed))
        self._before = spent
