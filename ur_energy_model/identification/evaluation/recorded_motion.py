"""Every sample of a recording as it was recorded: the data that the papers measure errors on.

Positions, speeds and currents are not filtered, nothing is thinned, and samples at standstill stay.
Only the acceleration, which no controller measures, is the low-passed derivative of the speed, as
in Raviola et al., RAAD 2021, sec. 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from ur_energy_model.identification.regression.motion_stream import WIDENING
from ur_energy_model.identification.regression.usable_samples import usable_samples
from ur_energy_model.low_pass import low_pass
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.runs import slices_between
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.typing import Array

_NAMES = ("actual_q", "actual_qd", "actual_current")
_OTHERS = (
    "actual_current_as_torque", "actual_robot_voltage", "actual_robot_current", "robot_mode",
    "target_qd", "target_qdd", "payload", "payload_cog",
)  # fmt: skip
_OVERLAP = 2.0
"""Time on either side that the filter of the acceleration needs [s]."""
_LONGEST_STEP = 2.5
"""Steps longer than this many sample periods are gaps."""
_SHORTEST = 12
"""Samples that a stretch needs for its acceleration."""


@dataclass(frozen=True)
class RecordedMotion:
    """Consecutive samples as recorded, joint side.

    Attributes:
        time: controller clock [samples], s.
        q, qd: as recorded [samples, n], rad and rad/s.
        qdd: low-passed derivative of qd [samples, n], rad/s^2.
        current: as recorded [samples, n], A.
        torque: measured torque [samples, n], N m; NaN where not recorded.
        power: at the supply [samples], W; NaN where not recorded.
        payload: mass and centre told to the controller [samples, 4], kg and m; NaN where not
            recorded.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    current: Array
    torque: Array
    power: Array
    payload: Array

    def __len__(self) -> int:
        return len(self.time)

    def cut(self, part: slice) -> RecordedMotion:
        """Some of the samples."""
        return RecordedMotion(*(getattr(self, field.name)[part] for field in fields(self)))


def recorded_motions(bag: str | Path, cutoff: float) -> Iterator[RecordedMotion]:
    """Samples of a bag in stretches without gaps, in constant memory.

    Samples with the brakes engaged, in freedrive or with values that are not finite are left out.

    Args:
        bag: recording.
        cutoff: of the identification's narrow filter [Hz]; accelerations pass its wide one.

    Raises:
        UrEnergyError: no such bag, damaged, or without motion.
    """
    pending: Telemetry | None = None
    done = -np.inf
    for batch in iterate_bag(bag, (*_NAMES, *_OTHERS)):
        if pending is not None and batch.time[0] <= pending.time[-1]:  # the controller restarted
            yield from _motions(pending, done, np.inf, cutoff)
            pending, done = None, -np.inf
        window = batch if pending is None else concatenate([pending, batch])
        until = float(window.time[-1]) - _OVERLAP
        yield from _motions(window, done, until, cutoff)
        done = max(done, until)
        start = int(np.searchsorted(window.time, until - _OVERLAP))
        pending = window.cut(slice(start, None))
    if pending is not None:
        yield from _motions(pending, done, np.inf, cutoff)


def _motions(part: Telemetry, start: float, stop: float, cutoff: float) -> Iterator[RecordedMotion]:
    """Stretches of a window, cut to times from `start` up to but not including `stop`."""
    part = part.distinct()
    if len(part) < _SHORTEST:
        return
    good = usable_samples(part, *_NAMES)
    power = part.bus_power
    if power is None:
        power = np.full(len(part), np.nan)
    steps = np.diff(part.time)
    broken = steps > _LONGEST_STEP * float(np.median(steps))
    edges = np.flatnonzero(~good[1:] | ~good[:-1] | broken) + 1
    for rows in slices_between(edges.tolist(), len(part)):
        if not good[rows].all() or rows.stop - rows.start < _SHORTEST:
            continue
        time, speed = part.time[rows], part["actual_qd"][rows]
        period = float(np.median(np.diff(time)))
        slope = np.gradient(speed, time, axis=0)
        acceleration = low_pass(slope, period, WIDENING * cutoff)
        keep = (time >= start) & (time < stop)
        if not keep.any():
            continue
        yield RecordedMotion(
            time=time[keep],
            q=part["actual_q"][rows][keep],
            qd=speed[keep],
            qdd=acceleration[keep],
            current=part["actual_current"][rows][keep],
            torque=_recorded(part, "actual_current_as_torque", rows, speed.shape[1])[keep],
            power=power[rows][keep],
            payload=np.hstack(
                [_recorded(part, "payload", rows, 1), _recorded(part, "payload_cog", rows, 3)]
            )[keep],
        )


def _recorded(part: Telemetry, name: str, rows: slice, width: int) -> Array:
    """A column [samples, width]; NaN where it was not recorded."""
    if name not in part:
        return np.full((rows.stop - rows.start, width), np.nan)
    return np.asarray(part[name][rows].reshape(-1, width))
