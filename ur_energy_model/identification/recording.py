"""One bag, read once: everything the later steps need of it, in constant memory.

While the batches pass, the quality check, the power stage and the filters see them; what a second
pass needs (filtered motion at a reduced rate, the controller's torque, bus power) is spooled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ur_energy_model.identification.power.power_fit import PowerFit
from ur_energy_model.identification.quality.recording_quality import Quality
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.identification.row_buffer import RowBuffer
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, find_gaps
from ur_energy_model.typing import Array

_ENOUGH_TARGETS = 3000
"""Noise-free samples of target_moment beyond which more of them add nothing."""
_SPOOLED_ROWS = 20_000


@dataclass
class Recording:
    """What is kept of one bag.

    Attributes:
        path: as given by the user.
        info: what made it.
        samples: number read.
        duration: without gaps [s].
        quality: verdict.
        cutoff: of the filter applied [Hz].
        rate: samples per second found [Hz].
        power: bus power, accumulated.
        delay: of actual_q behind target_q [s], NaN where it cannot be told.
        warmth: lowest and highest joint temperatures [n, 2], degC; NaN where not recorded.
    """

    path: Path
    info: RecordingInfo
    quality: Quality
    cutoff: float
    rate: float
    power: PowerFit
    samples: int = 0
    duration: float = 0.0
    delay: float = float("nan")
    warmth: Array = field(default_factory=lambda: np.zeros((0, 2)))
    _motion: RowBuffer = field(repr=False, default_factory=lambda: RowBuffer(1))
    _torque: RowBuffer = field(repr=False, default_factory=lambda: RowBuffer(1))
    _torque_columns: dict[str, int] = field(repr=False, default_factory=dict)
    _supply: RowBuffer = field(repr=False, default_factory=lambda: RowBuffer(1))

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return (self._motion.width - 5) // 6

    @property
    def torque_reference(self) -> str:
        """Whether target_moment belongs to recorded targets or to measured motion, or is absent."""
        if not self._torque_columns or not self._torque.rows:
            return "none"
        return "target" if "target_q" in self._torque_columns else "actual"

    @property
    def told_payload(self) -> Array:
        """Payload first told to the controller, mass and centre [4], kg and m; NaN if unknown."""
        first = next(iter(self.motions()), None)
        return np.full(4, np.nan) if first is None else first.payload[0]

    def motions(self) -> Iterator[FilteredMotion]:
        """Filtered motion, in order."""
        for block in self._motion:
            yield FilteredMotion.from_rows(block)

    def torque_telemetry(self) -> Iterator[Telemetry]:
        """target_moment and the motion it belongs to, as recorded (targets at a reduced rate)."""
        thin = 1
        if self.torque_reference == "target":
            thin = max(1, self._torque.rows // _ENOUGH_TARGETS)
        for block in _joined(self._torque):
            block = block[::thin]
            time, columns, at = block[:, 0], {}, 1
            for name, width in self._torque_columns.items():
                columns[name] = block[:, at] if width == 0 else block[:, at : at + width]
                at += max(width, 1)
            gaps = () if self.torque_reference == "target" else find_gaps(time, 1 / self.rate)
            yield Telemetry(time, columns, self.info, gaps)

    def supply(self) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Time [samples], speed and current [samples, n] and bus power [samples], as recorded."""
        n = self.dof
        for block in self._supply:
            yield block[:, 0], block[:, 1 : 1 + n], block[:, 1 + n : 1 + 2 * n], block[:, -1]

    def close(self) -> None:
        """Release temporary files."""
        for spool in (self._motion, self._torque, self._supply):
            spool.close()


def _joined(spool: RowBuffer) -> Iterator[Array]:
    """Blocks of a spool put together to a useful size."""
    waiting: list[Array] = []
    for block in spool:
        if len(block):
            waiting.append(block)
        if sum(map(len, waiting)) >= _SPOOLED_ROWS:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)
