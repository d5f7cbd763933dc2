# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recorded channels as filtered motion on an even time grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ur_energy_model.low_pass import low_pass
from ur_energy_model.telemetry.samples import Telemetry, concatenate, slices_between
from ur_energy_model.telemetry.usable_samples import spline, usable_samples
from ur_energy_model.typing import Array, Indices, Mask

MOVING_SPEED = 0.02  # joint speed above which a sample counts as moving [rad/s]


@dataclass(frozen=True)
class FilteredMotion:
    """Filtered motion on an even grid, without gaps.

    Attributes:
        time: controller clock [samples], s.
        q: joint positions [samples, n], rad.
        qd: joint velocities [samples, n], rad/s.
        qdd: joint accelerations [samples, n], rad/s^2.
        current: motor currents [samples, n], A.
        moment: target_moment through the same filter [samples, n], N m; NaN where not
            recorded.
        temperature: joint temperatures [samples, n], degC; NaN where not recorded.
        payload: mass and centre of mass set in the controller [samples, 4], kg and m; NaN
            where not recorded.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    current: Array
    moment: Array
    temperature: Array
    payload: Array

    @property
    def period(self) -> float:
        """Step of the grid [s]; the motion has two samples or more."""
        return float(self.time[1] - self.time[0])

    @property
    def temperature_range(self) -> Array:
        """Lowest and highest temperature of each joint [n, 2], degC; NaN where not recorded."""
        low = np.fmin.reduce(self.temperature)
        high = np.fmax.reduce(self.temperature)
        return np.stack([low, high], axis=1)

    @property
    def known_temperature(self) -> Array | None:
        """Temperatures where all of them were recorded, else None."""
        return self.temperature if np.isfinite(self.temperature).all() else None

    def __len__(self) -> int:
        return len(self.time)

    def cut(self, part: slice | Indices) -> FilteredMotion:
        """Some of the samples: a slice, or their indices."""
        return FilteredMotion(*(channel[part] for channel in vars(self).values()))

    def followed_by(self, other: FilteredMotion) -> FilteredMotion:
        """Both motions as one."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return FilteredMotion(*map(np.concatenate, pairs))


def merged_ranges(first: Array, second: Array) -> Array:
    """Ranges [n, 2] that span two sets of ranges [n, 2] (low, high); NaN is ignored."""
    low = np.fmin(first[:, 0], second[:, 0])
    high = np.fmax(first[:, 1], second[:, 1])
    return np.stack([low, high], axis=1)


# Narrow low-pass filter of measurement and model columns (parallel filtering), and its
# cut-off.

SHORTEST = 12  # samples of the shortest stretch that is filtered
_STILL_SHARE = 0.1
"""Share of standstill within the reach of the filter below which a sample is clear of it."""
_FILTER_PADDING = 1.5  # extension at either end, in periods of the cut-off

CUTOFF_RANGE = (2.5, 6.0)
"""Lowest and highest cut-off [Hz]: faster motion is compliance of the gears, which a
rigid-body model lacks. The highest is also limited to 0.35 of the sample rate."""
_DEFAULT_CUTOFF = 5.0  # where no spectrum can be computed [Hz]
_MOVING = 0.02  # range of the speeds of a joint that moves [rad/s]
_ACCEPTED_LOSS = 0.05  # error of the acceleration that is accepted, as a share of it


@dataclass(frozen=True)
class ParallelFilter:
    """Low-pass filter for measurement and model columns of one recording alike.

    Attributes:
        cutoff: cut-off frequency [Hz].
    """

    cutoff: float

    def inside(self, motion: FilteredMotion) -> slice:
        """Samples out of reach of the ends of the stretch, thinned to what the cut-off needs."""
        if len(motion) < SHORTEST:
            return slice(0, 0)
        rate = 1 / motion.period
        edge = int(np.ceil(0.5 * rate / self.cutoff))
        step = max(1, int(rate / (8 * self.cutoff)))
        return slice(edge, max(edge, len(motion) - edge), step)

    def __call__(self, motion: FilteredMotion, values: Array) -> Array:
        """Values of a motion's samples, filtered along time.

        Args:
            motion: motion to whose samples the values belong.
            values: values [samples, ...], in any unit.
        """
        return low_pass(
            values, round(motion.period, 9), self.cutoff, padding=_FILTER_PADDING
        )

    def moving(self, motion: FilteredMotion, speed: float) -> Mask:
        """Samples [samples, n] of joints that move, clear of standstill by the filter's reach.

        At standstill friction takes any value up to its limit, and the filter carries
        that into the neighbouring motion.

        Args:
            motion: motion of n joints.
            speed: joint speed from which a joint moves [rad/s].
        """
        still = self(motion, (np.abs(motion.qd) < speed).astype(float))
        return np.asarray((np.abs(motion.qd) >= speed) & (still < _STILL_SHARE))


def sample_period(time: Array) -> float:
    """Median time step [s]; 0.002 without any."""
    steps = np.diff(time)
    steps = steps[steps > 0]
    return float(np.median(steps)) if steps.size else 0.002


_SPECTRUM_SECONDS = 8.0  # length of the windows of a spectrum of speeds [s]
_FEWEST_IN_SPECTRUM = 4  # fewest samples of a window from which a spectrum is computed
_FEWEST_SAMPLES = 64  # fewest samples from which the cut-off is chosen
_ENOUGH_SAMPLES = 256  # samples of a stretch without gaps that is used alone


def choose_cutoff(telemetry: Telemetry) -> float:
    """Cut-off [Hz] with the least error of the acceleration: lost motion plus remaining noise.

    The speed's spectrum (Welch) is split into a flat noise floor, read at its upper end,
    and the motion above it; both are turned into acceleration, and the frequency that
    minimises the sum of motion above and noise below is taken, the median over joints
    that move.

    Args:
        telemetry: the first minute of a recording, with `actual_qd`.
    """
    telemetry = telemetry.distinct()
    period = sample_period(telemetry.time)
    highest = min(CUTOFF_RANGE[1], 0.35 / period)
    span = _longest_segment(telemetry)
    count = span.stop - span.start
    window = int(_SPECTRUM_SECONDS / period)
    if count < _FEWEST_SAMPLES or window < _FEWEST_IN_SPECTRUM:
        return min(_DEFAULT_CUTOFF, highest)
    grid = telemetry.time[span.start] + period * np.arange(count)
    found = []
    for speed in telemetry["actual_qd"][span].T:
        known = np.nan_to_num(speed)
        if np.ptp(known) >= _MOVING:
            even = np.interp(grid, telemetry.time[span], known)
            found.append(_cutoff_of_joint(even, period, min(count, window)))
    cutoff = float(np.median(found)) if found else _DEFAULT_CUTOFF
    return float(np.clip(cutoff, CUTOFF_RANGE[0], highest))


def _longest_segment(telemetry: Telemetry) -> slice:
    """Rows of the longest stretch without gaps; all rows where it is short."""
    longest = slice(0, 0)
    for segment in telemetry.segments():
        if segment.stop - segment.start > longest.stop - longest.start:
            longest = segment
    if longest.stop - longest.start > _ENOUGH_SAMPLES:
        return longest
    return slice(0, len(telemetry))


def _cutoff_of_joint(speed: Array, period: float, window: int) -> float:
    """Cut-off [Hz] with the least error of the acceleration of one joint.

    Args:
        speed: speed on an even grid [samples], rad/s.
        period: period of the grid [s].
        window: length of the windows of the spectrum, in samples.
    """
    from scipy.signal import welch

    frequency, density = welch(speed, 1 / period, nperseg=window)
    floor = float(np.median(density[int(0.7 * len(density)) :]))
    signal = np.maximum(density - floor, 0.0) * frequency**2
    noise = floor * frequency**2
    error = signal.sum() - np.cumsum(signal) + np.cumsum(noise)
    enough = np.flatnonzero(error < _ACCEPTED_LOSS * signal.sum())
    best = enough[0] if enough.size else np.argmin(error)
    return float(frequency[best])


# Samples of a recording that identification can use.

SHORTEST_MOTION = 1.0  # A joint that moves for less time has hardly moved [s]
NO_MOTION = (
    f"no joint moves for {SHORTEST_MOTION:g} s or more, brakes released and no freedrive; record "
    "the robot while a program moves it"
)


def usable_runs(part: Telemetry, good: Mask, longest: float) -> Iterator[slice]:
    """Stretches of good samples, split where the time goes back or a step is too long.

    Args:
        part: consecutive samples.
        good: whether each sample may be used [samples].
        longest: longest time between two samples of one stretch [s].
    """
    steps = np.diff(part.time)
    broken = (steps > longest) | (steps <= 0)
    edges = np.flatnonzero(~good[1:] | ~good[:-1] | broken) + 1
    return (
        rows for rows in slices_between(edges.tolist(), len(part)) if good[rows].all()
    )


# Recorded channels turned into filtered, differentiated motion on an even time grid.
# Position, speed and current pass the same zero-phase low-pass filter, so they keep their
# phase; acceleration is the derivative of the filtered speed. This first filter is wide.
# The second, narrow one (`ParallelFilter`) is applied to model columns and measurement
# alike ("parallel filtering", usual in robot identification), so that it distorts the
# steps of friction and acceleration on both sides equally. A filter never runs across a
# gap. Short gaps that the cut-off still resolves (a sample or two lost, an uneven
# recorder) are interpolated.

WIDENING = 4.0  # bandwidth of the first filter over the cut-off of the second
OVERSAMPLING = 5.0  # samples kept per period of the first filter's bandwidth
_CHUNK = 30.0  # time that is filtered together [s]
_OVERLAP = 2.0  # time on either side of a chunk that the filter needs [s]
_LINEAR_RATE = 200.0
"""Rate from which samples are interpolated linearly and differentiated by central
differences [Hz]; splines are used below."""
PADDING = 1.5  # extension at either end of a stretch, in periods of the bandwidth


def first_bandwidth(cutoff: float, rate: float) -> float:
    """Bandwidth of the first filter [Hz].

    Args:
        cutoff: cut-off frequency of the second filter [Hz].
        rate: samples per second of the recording [Hz].
    """
    return min(WIDENING * cutoff, 0.4 * rate)


class MotionStream:
    """Turns batches of one recording with n joints into filtered motions, in constant memory.

    Args:
        dof: number of joints n.
        cutoff: cut-off frequency of the second, narrow filter [Hz]; the one here is
            WIDENING times wider.
        period: nominal sample period [s].

    Attributes:
        rate: samples per second of the recording [Hz].
        bandwidth: bandwidth of the filter [Hz].
        stride: samples of the grid from one sample kept to the next.
        longest_step: time step from which on there is a gap [s].
    """

    def __init__(self, dof: int, cutoff: float, period: float) -> None:
        self.dof = dof
        self.cutoff = cutoff
        self.period = period
        self.rate = 1 / period
        self.bandwidth = first_bandwidth(cutoff, self.rate)
        self.stride = max(1, int(self.rate / (OVERSAMPLING * self.bandwidth)))
        self.longest_step = max(2.5 * period, 0.25 / cutoff)
        self._edge = 0.5 / self.bandwidth  # time that is left out beside a gap [s]
        self._pending: list[Telemetry] = []
        self._from = -np.inf  # time up to which motions were returned [s]
        self._origin: float | None = None  # time of the first sample [s]

    def process(self, batch: Telemetry) -> list[FilteredMotion]:
        """Motions completed by this batch."""
        self._pending.append(batch)
        first = self._pending[0].time[0]
        last = batch.time[-1]
        if last - first < _CHUNK + 2 * _OVERLAP and last >= first:
            return []
        joined = concatenate(self._pending)
        if not (np.diff(joined.time) > 0).all():  # the controller restarted
            out = self.finish()
            self._from = -np.inf
            return out
        until = last - _OVERLAP
        out = list(self._motions(joined, self._from, until, last=False))
        keep = int(np.searchsorted(joined.time, until - _OVERLAP))
        self._pending = [joined.cut(slice(keep, None))]
        self._from = until
        return out

    def finish(self) -> list[FilteredMotion]:
        """Motions of the samples still pending."""
        pending = self._pending
        self._pending = []
        if not pending:
            return []
        return list(self._motions(concatenate(pending), self._from, np.inf, last=True))

    def _motions(
        self, part: Telemetry, start: float, stop: float, *, last: bool
    ) -> Iterator[FilteredMotion]:
        """Motions of pending samples.

        Args:
            part: the samples.
            start: time from which on motions are returned [s].
            stop: time before which motions are returned [s].
            last: whether no samples follow.
        """
        names = ("actual_q", "actual_qd", "actual_current")
        part = part.distinct()
        good = usable_samples(part, *names)
        if self._origin is None:
            self._origin = float(part.time[0])
        for rows in usable_runs(part, good, self.longest_step):
            time = part.time[rows]
            if len(time) < SHORTEST:
                continue
            motion = self._filtered(part, rows)
            low = max(start, time[0] + self._edge)
            high = min(stop, time[-1] - self._edge)
            # Beside samples before, or samples that follow, there is no gap.
            if rows.start == 0 and start > -np.inf:
                low = start
            if rows.stop == len(part) and not last:
                high = stop
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
        even = len(grid) == len(time) and np.allclose(
            grid, time, atol=0.02 * self.period, rtol=0
        )

        def smooth(name: str) -> Array:
            """A field on the grid, filtered [samples, n]."""
            values = part[name][rows]
            if not even and self.rate >= _LINEAR_RATE:
                values = np.stack(
                    [np.interp(grid, time, column) for column in values.T], axis=1
                )
            elif not even:
                values = spline(time, values)(grid)
            return low_pass(values, self.period, self.bandwidth, padding=PADDING)

        thin = slice(int(-first) % self.stride, None, self.stride)
        before = np.searchsorted(time, grid[thin], side="right") - 1
        latest = np.clip(before, 0, len(time) - 1)

        def held(name: str, width: int) -> Array:
            """Latest recorded values at the samples kept [samples, width]; NaN without."""
            if name not in part:
                return np.full((len(latest), width), np.nan)
            return np.asarray(part[name][rows][latest].reshape(-1, width))

        qd = smooth("actual_qd")
        # At low sample rates central differences lose part of the motion: 6 % at 0.5 Hz
        # sampled at 5 Hz. A cubic spline loses 0.1 %.
        if self.rate >= _LINEAR_RATE:
            qdd = np.gradient(qd, self.period, axis=0)
        else:
            speed = spline(self.period * np.arange(len(qd)), qd)
            qdd = speed(speed.x, 1)
        moment = np.full_like(qd[thin], np.nan)
        if "target_moment" in part and np.isfinite(part["target_moment"][rows]).all():
            moment = smooth("target_moment")[thin]
        return FilteredMotion(
            time=grid[thin],
            q=smooth("actual_q")[thin],
            qd=qd[thin],
            qdd=qdd[thin],
            current=smooth("actual_current")[thin],
            moment=moment,
            temperature=held("joint_temperatures", self.dof),
            payload=np.hstack([held("payload", 1), held("payload_cog", 3)]),
        )
