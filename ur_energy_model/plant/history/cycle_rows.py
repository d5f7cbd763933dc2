"""CycleRows: rows of the table `cycles` from parts of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.cycles import Cycle, CycleCounter
from ur_energy_model.energy.meter import MeterReading, interval
from ur_energy_model.plant.history.arrow_columns import arrow_table, lists, same_texts, times
from ur_energy_model.plant.history.part_table import PartTable
from ur_energy_model.plant.history.source_keys import SourceKeys
from ur_energy_model.plant.history.time_ranges import SECOND
from ur_energy_model.telemetry.runs import slices_between

if TYPE_CHECKING:
    import pyarrow


class CycleRows:
    """Completed cycles of one source, part by part.

    A cycle counts where it begins and ends in the source; one that another source covers from
    begin to end is left out.

    Args:
        channels: of the parts.
    """

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._counter = CycleCounter()
        self._reading = MeterReading.zero(len(channels))
        self._only_covered = True
        """Whether another source covers the cycle in progress so far."""
        self._bus_measured = True
        self._done: list[tuple[Cycle, bool]] = []

    def update(self, parts: PartTable) -> None:
        """Take parts that follow those of the last call."""
        for rows in slices_between(np.flatnonzero(parts.begins_cycle).tolist(), len(parts)):
            if parts.begins_cycle[rows.start]:
                done = self._counter.begin(parts.begin[rows.start] / SECOND, self._reading)
                if done is not None and not self._only_covered:
                    self._done.append((done, self._bus_measured))
                self._only_covered = self._bus_measured = True
            self._reading += parts.reading(rows)
            self._counter.observe(float(parts.peak[rows].max()))
            self._only_covered &= bool(parts.covered[rows].all())
            self._bus_measured &= bool(parts.bus_measured[rows].all())

    def take(self, keys: SourceKeys) -> pyarrow.Table:
        """Rows of the cycles that ended since the last call.

        Raises:
            MissingPackageError: pyarrow is not installed.
        """
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
            "program": None,
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
