"""CycleRows: rows of the table `cycles` from parts of a recording."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.cycles import MOST_MARKS, Cycle, CycleCounter, Mark
from ur_energy_model.energy.meter import MeterReading, interval
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.arrow_columns import arrow_table, lists, same_texts, times
from ur_energy_model.plant.history.part_table import PartTable
from ur_energy_model.plant.history.source_keys import SourceKeys
from ur_energy_model.plant.history.time_ranges import SECOND
from ur_energy_model.telemetry.runs import slices_between

if TYPE_CHECKING:
    import pyarrow


class CycleRows:
    """Completed cycles of one source, part by part.

    A cycle counts where it begins and ends in the source, and no other source covers a part of it:
    left out are its seconds too, and cycles of two sources may begin at different moments.

    Args:
        channels: of the parts.
    """

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._counter = CycleCounter()
        self._reading = MeterReading.zero(len(channels))
        self._covered = self._unmeasured = 0
        """Parts so far that another source covers, and parts without measured bus power."""
        self._counts: deque[tuple[int, int]] = deque(maxlen=MOST_MARKS)
        """These numbers at the marks."""
        self._done: list[tuple[Cycle, bool]] = []

    def update(self, parts: PartTable) -> None:
        """Take parts that follow those of the last call."""
        begins = [k for k, mark in enumerate(parts.marks) if mark is not None]
        for rows in slices_between(begins, len(parts)):
            mark = parts.marks[rows.start]
            if mark is not None:
                self._mark(parts.begin[rows.start] / SECOND, mark)
            self._reading += parts.reading(rows)
            self._counter.observe(float(parts.peak[rows].max()))
            self._covered += int(np.count_nonzero(parts.covered[rows]))
            self._unmeasured += int(np.count_nonzero(~parts.bus_measured[rows]))

    def _mark(self, time: float, mark: Mark) -> None:
        """Take a mark at a host time [s]."""
        self._counts.append((self._covered, self._unmeasured))
        done = self._counter.mark(time, self._reading, mark)
        ends = [*mark.ends, 0][-1 - len(done) :]
        for cycle, (begin, end) in zip(done, pairwise(ends), strict=True):
            before, after = self._counts[-1 - begin], self._counts[-1 - end]
            if after[0] == before[0]:
                self._done.append((cycle, after[1] == before[1]))

    def take(self, keys: SourceKeys) -> pyarrow.Table:
        """Rows of the cycles that ended since the last call.

        Raises:
            MissingPackageError: pyarrow is not installed.
        """
        with needed_here():
            import pyarrow as pa
        done, self._done = self._done, []
        channels, cycles = self._channels, [cycle for cycle, _ in done]
        net = np.array([cycle.reading.net for cycle in cycles]).reshape(-1, len(channels))
        values = [cycle.summary(channels) for cycle in cycles]
        total, std = net[:, channels.arm["total"]], channels.deviations_of_total(net)
        bus = np.where([measured for _, measured in done], net[:, channels.arm["bus"]], np.nan)
        names = ("duration", "peak_power", "motion_time", "motion_energy", "idle_time")
        ends = interval(total, std)
        columns = {
            "start": times(np.array([round(c.start * SECOND) for c in cycles], dtype=np.int64)),
            "source": keys.source,
            "robot": keys.robot,
            "model": keys.model,
            "number": np.array([cycle.number for cycle in cycles], dtype=np.int64),
            "program": pa.array([cycle.program for cycle in cycles], pa.string()),
            **{
                name: np.array([value[name] for value in values], dtype=float)
                for name in (*names, "idle_energy")
            },
            "total_energy": total,
            "total_std": std,
            "bus_energy": bus,
            "energy_low": ends[:, 0],
            "energy_high": ends[:, 1],
            "joints": same_texts(channels.joints, len(cycles)),
            "joint_energy": lists(net[:, channels.per_joint["electrical_power"]]),
            **{
                f"{name}_energy": net[:, channels.arm[name]]
                for name in ("standby", "driver", "regeneration")
            },
        }
        return arrow_table("cycles", columns)
