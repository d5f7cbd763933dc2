"""target_moment and the columns of the motion it belongs to, in blocks of time.

Recorded target_q, target_qd and target_qdd are that motion, free of noise. Otherwise measured
position and speed are used, with the acceleration from the filtered speed; then columns and torque
pass the same zero-phase filter, so that it biases neither side ("parallel filtering").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ur_energy_model.identification.regression.resampling import resampled_runs
from ur_energy_model.identification.regression.usable_samples import usable_samples
from ur_energy_model.low_pass import low_pass
from ur_energy_model.telemetry.runs import time_blocks
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

Columns = Callable[[Array, Array, Array], Array]
TARGET_RATE = 50.0
"""Samples per second used of noise-free targets [Hz]; more add nothing."""
POSITION_DELAY = 0.002
"""target_moment is computed from the target position of about one tick earlier [s].

Measured on recordings of a UR3e and two UR5e at 25, 50 and 500 Hz: the torque residual is
proportional to speed times stiffness of gravity, and vanishes with 2.3 to 2.6 ms.
"""
_BLOCK = 2.0
"""Duration of a block of time [s]."""
_GROUP = 500
"""Samples whose columns are computed together."""
_STEP = 0.001
_GRID_RATE = 100.0
_ACCELERATION_BANDWIDTH = 15.0
_BANDWIDTH = 2.5
"""Common filter of both sides [Hz]: arm motion lies below it, mostly noise above."""
_EDGE = 0.4
"""Dropped at either end of a filtered stretch [s]."""


@dataclass(frozen=True)
class ReferenceBlock:
    """A stretch of torques and columns, linear in a small remaining delay h [s].

    torque + h torque_slope + h^2/2 torque_curve = (columns + h column_slopes) @ coefficients

    Attributes:
        kind: "target" (recorded targets) or "actual" (filtered measurement).
        nominal_delay: delay already compensated [s]; h is the remainder.
        columns, column_slopes: [samples, n, width] and per second.
        torque, torque_slope, torque_curve: [samples, n], N m, and per second (squared).
        position: joint side [samples, n], rad.
        duration: time it covers [s].
    """

    kind: Literal["target", "actual"]
    nominal_delay: float
    columns: Array
    column_slopes: Array
    torque: Array
    torque_slope: Array
    torque_curve: Array
    position: Array
    duration: float


def reference_blocks(telemetry: Telemetry, columns: Columns) -> Iterator[ReferenceBlock]:
    """Blocks of time of a recording's usable samples.

    Freedrive, stretches with brakes applied and samples that are not finite are left out.

    Raises:
        MissingFieldError: without target_moment, or without any position and speed.
    """
    telemetry.require("target_moment", purpose="estimating setup and motor inertia")
    telemetry = telemetry.distinct()
    if all(name in telemetry for name in ("target_q", "target_qd", "target_qdd")):
        yield from _target_blocks(telemetry, columns)
    else:
        telemetry.require("actual_q", "actual_qd", purpose="estimating setup and motor inertia")
        yield from _actual_blocks(telemetry, columns)


def _target_blocks(telemetry: Telemetry, columns: Columns) -> Iterator[ReferenceBlock]:
    names = ("target_q", "target_qd", "target_qdd", "target_moment")
    keep = np.flatnonzero(usable_samples(telemetry, *names))
    if keep.size == 0:
        return
    tick = np.floor(telemetry.time[keep] * TARGET_RATE)
    keep = keep[np.concatenate([[True], np.diff(tick) != 0])]
    blocks = time_blocks(telemetry.time[keep], _BLOCK, telemetry.time[keep[0]])
    for group in _groups(blocks):
        rows = keep[group[0].start : group[-1].stop]
        q, qd, qdd, torque = (telemetry[name][rows] for name in names)
        now, late, early = (
            columns(q - delay * qd + 0.5 * delay**2 * qdd, qd, qdd)
            for delay in (POSITION_DELAY, POSITION_DELAY + _STEP, POSITION_DELAY - _STEP)
        )
        slopes = (late - early) / (2 * _STEP)
        for block in group:
            part = slice(block.start - group[0].start, block.stop - group[0].start)
            zero = np.zeros_like(torque[part])
            yield ReferenceBlock(
                kind="target",
                nominal_delay=POSITION_DELAY,
                columns=now[part],
                column_slopes=slopes[part],
                torque=torque[part],
                torque_slope=zero,
                torque_curve=zero,
                position=q[part],
                duration=_BLOCK,
            )


def _groups(blocks: Iterable[slice]) -> Iterator[list[slice]]:
    """Consecutive blocks, some hundred samples together: columns of few samples cost more each."""
    group: list[slice] = []
    for block in blocks:
        group.append(block)
        if block.stop - group[0].start >= _GROUP:
            yield group
            group = []
    if group:
        yield group


def _actual_blocks(telemetry: Telemetry, columns: Columns) -> Iterator[ReferenceBlock]:
    names = ("actual_q", "actual_qd", "target_moment")
    rate = _GRID_RATE / 2
    edge = int(_EDGE * rate)
    for run in resampled_runs(
        telemetry,
        names,
        usable_samples(telemetry, *names),
        rate=_GRID_RATE,
        bandwidth=_ACCELERATION_BANDWIDTH,
        shortest=4 * _EDGE,
    ):
        q, qd, qdd = run["actual_q"][::2], run["actual_qd"][::2], run.derivative("actual_qd")[::2]
        torque = low_pass(run["target_moment"][::2], 1 / rate, _BANDWIDTH)
        slope = np.gradient(torque, 1 / rate, axis=0)
        curve = np.gradient(slope, 1 / rate, axis=0)
        values = low_pass(columns(q, qd, qdd), 1 / rate, _BANDWIDTH)
        time = run.time[::2][edge:-edge]
        for part in time_blocks(time, _BLOCK, time[0]):
            inside = slice(part.start + edge, part.stop + edge)
            yield ReferenceBlock(
                kind="actual",
                nominal_delay=0.0,
                columns=values[inside],
                column_slopes=np.zeros_like(values[inside]),
                torque=torque[inside],
                torque_slope=slope[inside],
                torque_curve=curve[inside],
                position=q[inside],
                duration=_BLOCK,
            )
