"""From recorded columns to motion fit for identification: filtered, differentiated, on a grid.

Position, speed and current pass the same zero-phase low-pass filter, so that no delay comes
between them; acceleration is the derivative of the filtered speed. This first filter is wide. The
second, narrow one is applied to what is compared, model columns and measurement alike ("parallel
filtering", usual in robot identification): then neither the steps of friction at a reversal nor
those of acceleration are distorted on one side only. Its cut-off is chosen from the data. A
filter never runs across a gap; steps that the cut-off still resolves (a sample or two lost, an
uneven recorder) are irregular sampling and are interpolated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.signal import butter, sosfiltfilt, welch

from ur_energy_model.identification.dynamics.reference_motion import usable
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.typing import Array, Indices, Mask

CUTOFF_RANGE = (2.5, 6.0)
"""Lowest and highest cut-off [Hz]: faster motion is the gears' compliance, which a rigid-body model
lacks. The highest also stays below 0.35 of the sample rate."""
WIDENING = 4.0
"""Bandwidth of the first filter over the cut-off of the second."""
OVERSAMPLING = 5.0
"""Samples kept per period of the first filter's bandwidth."""
_CHUNK = 30.0
_OVERLAP = 2.0
_LINEAR_RATE = 200.0
_SHORTEST = 12
_DEFAULT_CUTOFF = 5.0
_MOVING = 0.02
_STILL_SHARE = 0.1
_ACCEPTED_LOSS = 0.05


@dataclass(frozen=True)
class FilteredMotion:
    """Filtered motion on an even grid, without gaps.

    Attributes:
        time: controller clock [samples], s.
        q, qd, qdd: joint side [samples, n], rad, rad/s, rad/s^2.
        current: motor currents [samples, n], A.
        moment: target_moment through the same filter [samples, n], N m; NaN where not recorded.
        temperature: [samples, n], degC; NaN where not recorded.
        payload: mass and centre of mass told to the controller [samples, 4], kg and m; NaN where
            not recorded.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    current: Array
    moment: Array
    temperature: Array
    payload: Array

    @classmethod
    def from_rows(cls, rows: Array) -> FilteredMotion:
        """Motion from rows [samples, 5 + 6 n] as `rows` gives them."""
        q, qd, qdd, current, moment, temperature = np.split(rows[:, 1:-4], 6, axis=1)
        return cls(rows[:, 0], q, qd, qdd, current, moment, temperature, rows[:, -4:])

    @property
    def rows(self) -> Array:
        """All values in one array [samples, 5 + 6 n]."""
        return np.column_stack([getattr(self, f.name) for f in fields(self)])

    def __len__(self) -> int:
        return len(self.time)

    def cut(self, part: slice | Indices) -> FilteredMotion:
        """Some of the samples."""
        return replace(self, **{f.name: getattr(self, f.name)[part] for f in fields(self)})

    def blocks(self, duration: float) -> Iterator[FilteredMotion]:
        """Consecutive parts of about `duration` seconds."""
        if not len(self):
            return
        number = np.floor((self.time - self.time[0]) / duration)
        edges = [0, *(np.flatnonzero(np.diff(number)) + 1), len(self)]
        for start, stop in pairwise(edges):
            yield self.cut(slice(int(start), int(stop)))


def sample_period(time: Array) -> float:
    """Median step of a clock [s]; 0.002 where there is none."""
    steps = np.diff(time)
    steps = steps[steps > 0]
    return float(np.median(steps)) if steps.size else 0.002


def choose_cutoff(telemetry: Telemetry) -> float:
    """Cut-off that loses least of the acceleration: motion cut off above against noise let in.

    The speed's spectrum (Welch) is split into a flat noise floor, read at its upper end, and the
    motion above it; both are turned into acceleration, and the frequency that minimises the sum
    of motion above and noise below is taken, the median over joints that move.

    Args:
        telemetry: at least some seconds with actual_qd.

    Returns:
        Cut-off [Hz] within CUTOFF_RANGE.
    """
    telemetry = telemetry.distinct()
    period = sample_period(telemetry.time)
    highest = min(CUTOFF_RANGE[1], 0.35 / period)
    speed = telemetry["actual_qd"]
    found: list[float] = []
    longest = max(telemetry.segments(), key=lambda s: s.stop - s.start, default=slice(0, 0))
    span = longest if longest.stop - longest.start > 256 else slice(0, len(telemetry))
    count = span.stop - span.start
    if count < 64:
        return min(_DEFAULT_CUTOFF, highest)
    grid = telemetry.time[span.start] + period * np.arange(count)
    for j in range(speed.shape[1]):
        column = np.nan_to_num(speed[span, j])
        if np.ptp(column) < _MOVING:
            continue
        even = np.interp(grid, telemetry.time[span], column)
        frequency, density = welch(even, 1 / period, nperseg=min(count, int(8 / period)))
        floor = float(np.median(density[int(0.7 * len(density)) :]))
        signal = np.maximum(density - floor, 0.0) * frequency**2
        noise = floor * frequency**2
        error = signal.sum() - np.cumsum(signal) + np.cumsum(noise)
        enough = np.flatnonzero(error < _ACCEPTED_LOSS * signal.sum())
        found.append(float(frequency[enough[0] if enough.size else np.argmin(error)]))
    cutoff = float(np.median(found)) if found else _DEFAULT_CUTOFF
    return float(np.clip(cutoff, CUTOFF_RANGE[0], highest))


class MotionStream:
    """Turns batches of one recording into Motions, in constant memory.

    Args:
        dof: number of joints n.
        cutoff: of the second, narrow filter [Hz]; the one applied here is WIDENING as wide.
        period: nominal sample period [s].
    """

    def __init__(self, dof: int, cutoff: float, period: float) -> None:
        self.dof, self.cutoff, self.period = dof, cutoff, period
        self.rate = 1 / period
        self.bandwidth = min(WIDENING * cutoff, 0.4 / period)
        self.stride = max(1, int(self.rate / (OVERSAMPLING * self.bandwidth)))
        self._filter = butter(2, 2 * self.bandwidth * period, output="sos")
        self.longest_step = max(2.5 * period, 0.25 / cutoff)
        """Steps longer than this are gaps [s]."""
        self._edge = 0.5 / self.bandwidth
        self._pending: list[Telemetry] = []
        self._from = -np.inf
        self._origin: float | None = None

    def add(self, batch: Telemetry) -> list[FilteredMotion]:
        """Motions that became complete with this batch."""
        self._pending.append(batch)
        first, last = self._pending[0].time[0], batch.time[-1]
        if last - first < _CHUNK + 2 * _OVERLAP and last >= first:
            return []
        joined = concatenate(self._pending)
        until = last - _OVERLAP
        out = list(self._motions(joined, self._from, until, last=False))
        keep = int(np.searchsorted(joined.time, until - _OVERLAP)) if last >= first else 0
        monotonic = bool((np.diff(joined.time) > 0).all())
        if not monotonic:  # a restarted controller: finish what there is
            self._pending = []
            out = list(self._motions(joined, self._from, np.inf, last=True))
            self._from = -np.inf
            return out
        self._pending = [joined.cut(slice(keep, None))]
        self._from = until
        return out

    def finish(self) -> list[FilteredMotion]:
        """The rest."""
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
        good = usable(part, *names)
        if self._origin is None:
            self._origin = float(part.time[0])
        for rows in _runs(part, good, self.longest_step):
            time = part.time[rows]
            if len(time) < _SHORTEST:
                continue
            motion = self._filtered(part, rows)
            low = start if rows.start == 0 and start > -np.inf else max(start, time[0] + self._edge)
            at_end = rows.stop == len(part)
            high = stop if at_end and not last else min(stop, time[-1] - self._edge)
            keep = np.flatnonzero((motion.time >= low) & (motion.time < high))
            if keep.size:
                yield motion.cut(keep)

    def _filtered(self, part: Telemetry, rows: slice) -> FilteredMotion:
        assert self._origin is not None
        time = part.time[rows]
        first = np.ceil((time[0] - self._origin) / self.period - 1e-6)
        count = int((time[-1] - self._origin) / self.period - first + 1e-6) + 1
        grid = self._origin + self.period * (first + np.arange(count))
        even = len(grid) == len(time) and np.allclose(grid, time, atol=0.02 * self.period, rtol=0)

        def at_grid(name: str) -> Array:
            values = part[name][rows]
            if even:
                return values
            if self.rate >= _LINEAR_RATE:
                return np.stack([np.interp(grid, time, column) for column in values.T], axis=1)
            return np.asarray(CubicSpline(time, values)(grid))

        def smooth(values: Array) -> Array:
            pad = min(len(values) - 1, int(1.5 * self.rate / self.bandwidth))
            return np.asarray(sosfiltfilt(self._filter, values, axis=0, padlen=pad))

        thin = slice(int(-first) % self.stride, None, self.stride)
        qd = smooth(at_grid("actual_qd"))
        shape = qd[thin].shape
        moment, temperature = np.full(shape, np.nan), np.full(shape, np.nan)
        if "target_moment" in part and np.isfinite(part["target_moment"][rows]).all():
            moment = smooth(at_grid("target_moment"))[thin]
        payload = np.full((len(qd[thin]), 4), np.nan)
        latest = np.clip(np.searchsorted(time, grid[thin], side="right") - 1, 0, len(time) - 1)
        if "joint_temperatures" in part:
            temperature = part["joint_temperatures"][rows][latest]
        if "payload" in part:
            payload[:, 0] = part["payload"][rows][latest]
        if "payload_cog" in part:
            payload[:, 1:] = part["payload_cog"][rows][latest]
        return FilteredMotion(
            time=grid[thin],
            q=smooth(at_grid("actual_q"))[thin],
            qd=qd[thin],
            qdd=self._derivative(qd)[thin],
            current=smooth(at_grid("actual_current"))[thin],
            moment=moment,
            temperature=temperature,
            payload=payload,
        )

    def _derivative(self, values: Array) -> Array:
        """Time derivative [samples, n] of evenly sampled values.

        Where few samples make up a period of the motion, central differences would lose part of it:
        6 % at 0.5 Hz sampled at 5 Hz, of which a cubic spline loses 0.1 %.
        """
        if self.rate >= _LINEAR_RATE:
            return np.asarray(np.gradient(values, self.period, axis=0))
        spline = CubicSpline(self.period * np.arange(len(values)), values)
        return np.asarray(spline(spline.x, 1))


class NarrowFilter:
    """The second filter, for motions of one recording.

    Args:
        cutoff: [Hz].
    """

    def __init__(self, cutoff: float) -> None:
        self.cutoff = cutoff
        self._designed: dict[float, Array] = {}

    def inside(self, motion: FilteredMotion) -> slice:
        """Samples that the ends of the stretch do not reach, thinned to what the cut-off needs."""
        if len(motion) < _SHORTEST:
            return slice(0, 0)
        rate = 1 / _period(motion)
        edge = int(np.ceil(0.5 * rate / self.cutoff))
        return slice(edge, max(edge, len(motion) - edge), max(1, int(rate / (8 * self.cutoff))))

    def __call__(self, motion: FilteredMotion, values: Array) -> Array:
        """Values [samples, ...] filtered along time."""
        period = round(_period(motion), 9)
        if period not in self._designed:
            fraction = min(2 * self.cutoff * period, 0.9)
            self._designed[period] = butter(2, fraction, output="sos")
        pad = min(len(values) - 1, int(1.5 / (period * self.cutoff)))
        return np.asarray(sosfiltfilt(self._designed[period], values, axis=0, padlen=pad))

    def moving(self, motion: FilteredMotion, speed: float) -> Mask:
        """Samples [samples, n] of joints that move, clear of standstill by the filter's reach.

        At standstill friction takes any value up to its limit, and the filter carries that into
        the motion beside it.
        """
        still = self(motion, (np.abs(motion.qd) < speed).astype(float))
        return np.asarray((np.abs(motion.qd) >= speed) & (still < _STILL_SHARE))


def _period(motion: FilteredMotion) -> float:
    return float(motion.time[1] - motion.time[0])


def motions(
    batches: Sequence[Telemetry] | Iterator[Telemetry], dof: int, cutoff: float, period: float
) -> Iterator[FilteredMotion]:
    """Motions of one recording that comes in batches."""
    stream = MotionStream(dof, cutoff, period)
    for batch in batches:
        if len(batch):
            yield from stream.add(batch)
    yield from stream.finish()


def _runs(part: Telemetry, good: Mask, longest: float) -> Iterator[slice]:
    """Stretches of usable samples, broken where a step is too long or goes back."""
    steps = np.diff(part.time)
    broken = (steps > longest) | (steps <= 0)
    start: int | None = None
    edges = np.flatnonzero(~good[1:] | ~good[:-1] | broken) + 1
    for start, stop in zip([0, *edges], [*edges, len(part)], strict=True):
        if stop > start and good[start:stop].all():
            yield slice(int(start), int(stop))
