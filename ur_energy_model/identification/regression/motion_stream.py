"""Recorded channels turned into filtered, differentiated motion on an even time grid.

Position, speed and current pass the same zero-phase low-pass filter, so they keep their phase;
acceleration is the derivative of the filtered speed. This first filter is wide. The second, narrow
one (`NarrowFilter`) is applied to model columns and measurement alike ("parallel filtering", usual
in robot identification), so that it distorts the steps of friction and acceleration on both sides
equally. A filter never runs across a gap. Short gaps that the cut-off still resolves (a sample or
two lost, an uneven recorder) are interpolated.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.interpolate import CubicSpline

from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.identification.regression.narrow_filter import SHORTEST
from ur_energy_model.identification.regression.usable_samples import usable_samples
from ur_energy_model.low_pass import low_pass
from ur_energy_model.telemetry.runs import slices_between
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.typing import Array, Mask

WIDENING = 4.0
"""Bandwidth of the first filter over the cut-off of the second."""
OVERSAMPLING = 5.0
"""Samples kept per period of the first filter's bandwidth."""
_CHUNK = 30.0
_OVERLAP = 2.0
_LINEAR_RATE = 200.0
_PADDING = 1.5
"""Extension at either end of a stretch, in periods of the bandwidth."""


class MotionStream:
    """Turns batches of one recording into filtered motions, in constant memory.

    Args:
        dof: number of joints n.
        cutoff: of the second, narrow filter [Hz]; the filter applied here is WIDENING times wider.
        period: nominal sample period [s].
        moment: filter target_moment too.
    """

    def __init__(self, dof: int, cutoff: float, period: float, *, moment: bool = True) -> None:
        self.dof, self.cutoff, self.period = dof, cutoff, period
        self._moment = moment
        self.rate = 1 / period
        self.bandwidth = min(WIDENING * cutoff, 0.4 / period)
        self.stride = max(1, int(self.rate / (OVERSAMPLING * self.bandwidth)))
        self.longest_step = max(2.5 * period, 0.25 / cutoff)
        """Steps longer than this are gaps [s]."""
        self._edge = 0.5 / self.bandwidth
        self._pending: list[Telemetry] = []
        self._from = -np.inf
        self._origin: float | None = None

    def process(self, batch: Telemetry) -> list[FilteredMotion]:
        """Motions completed by this batch."""
        self._pending.append(batch)
        first, last = self._pending[0].time[0], batch.time[-1]
        if last - first < _CHUNK + 2 * _OVERLAP and last >= first:
            return []
        joined = concatenate(self._pending)
        until = last - _OVERLAP
        out = list(self._motions(joined, self._from, until, last=False))
        keep = int(np.searchsorted(joined.time, until - _OVERLAP)) if last >= first else 0
        monotonic = bool((np.diff(joined.time) > 0).all())
        if not monotonic:  # the controller restarted: finish the pending samples
            self._pending = []
            out = list(self._motions(joined, self._from, np.inf, last=True))
            self._from = -np.inf
            return out
        self._pending = [joined.cut(slice(keep, None))]
        self._from = until
        return out

    def finish(self) -> list[FilteredMotion]:
        """Motions of the samples still pending."""
        if not self._pending:
            return []
        joined = concatenate(self._pending)
        self._pending = []
        return list(self._motions(joined, self._from, np.inf, last=True))

    def _motions(
        self, part: Telemetry, start: float, stop: float, *, last: bool
    ) -> Iterator[FilteredMotion]:
        names = ("actual_q", "actual_qd", "actual_current")
        part = part.distinct()
        good = usable_samples(part, *names)
        if self._origin is None:
            self._origin = float(part.time[0])
        for rows in _runs(part, good, self.longest_step):
            time = part.time[rows]
            if len(time) < SHORTEST:
                continue
            motion = self._filtered(part, rows)
            low = start if rows.start == 0 and start > -np.inf else max(start, time[0] + self._edge)
            at_end = rows.stop == len(part)
            high = stop if at_end and not last else min(stop, time[-1] - self._edge)
            keep = np.flatnonzero((motion.time >= low) & (motion.time < high))
            if keep.size:
                yield motion.cut(keep)

    def _filtered(self, part: Telemetry, rows: slice) -> FilteredMotion:
        """Motion of one stretch, on a grid that all stretches of the recording share."""
        assert self._origin is not None
        time = part.time[rows]
        first = np.ceil((time[0] - self._origin) / self.period - 1e-6)
        count = int((time[-1] - self._origin) / self.period - first + 1e-6) + 1
        grid = self._origin + self.period * (first + np.arange(count))
        even = len(grid) == len(time) and np.allclose(grid, time, atol=0.02 * self.period, rtol=0)

        def smooth(name: str) -> Array:
            values = part[name][rows]
            if not even:
                values = self._interpolated(time, values, grid)
            return low_pass(values, self.period, self.bandwidth, padding=_PADDING)

        thin = slice(int(-first) % self.stride, None, self.stride)
        latest = np.clip(np.searchsorted(time, grid[thin], side="right") - 1, 0, len(time) - 1)

        def held(name: str, width: int) -> Array:
            """Latest recorded values at the samples kept [samples, width]; NaN without."""
            if name not in part:
                return np.full((len(latest), width), np.nan)
            return np.asarray(part[name][rows][latest].reshape(-1, width))

        qd = smooth("actual_qd")
        moment = np.full_like(qd[thin], np.nan)
        recorded = self._moment and "target_moment" in part
        if recorded and np.isfinite(part["target_moment"][rows]).all():
            moment = smooth("target_moment")[thin]
        return FilteredMotion(
            time=grid[thin],
            q=smooth("actual_q")[thin],
            qd=qd[thin],
            qdd=self._derivative(qd)[thin],
            current=smooth("actual_current")[thin],
            moment=moment,
            temperature=held("joint_temperatures", self.dof),
            payload=np.hstack([held("payload", 1), held("payload_cog", 3)]),
        )

    def _interpolated(self, time: Array, values: Array, grid: Array) -> Array:
        """Values [samples, n] at the times of a grid; linear where sampling is dense."""
        if self.rate >= _LINEAR_RATE:
            return np.stack([np.interp(grid, time, column) for column in values.T], axis=1)
        return np.asarray(CubicSpline(time, values)(grid))

    def _derivative(self, values: Array) -> Array:
        """Time derivative [samples, n] of evenly sampled values.

        At low sample rates central differences lose part of the motion: 6 % at 0.5 Hz sampled at
        5 Hz. A cubic spline loses 0.1 %.
        """
        if self.rate >= _LINEAR_RATE:
            return np.asarray(np.gradient(values, self.period, axis=0))
        spline = CubicSpline(self.period * np.arange(len(values)), values)
        return np.asarray(spline(spline.x, 1))


def _runs(part: Telemetry, good: Mask, longest: float) -> Iterator[slice]:
    """Stretches of usable samples, split where a time step is too long or negative."""
    steps = np.diff(part.time)
    broken = (steps > longest) | (steps <= 0)
    edges = np.flatnonzero(~good[1:] | ~good[:-1] | broken) + 1
    for rows in slices_between(edges.tolist(), len(part)):
        if good[rows].all():
            yield rows
