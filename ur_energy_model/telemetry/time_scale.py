# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Time scale: whether positions advance as far as the speeds and the steps of the clock say.

From one sample to the next a joint moves by its mean speed times the time that passes,

    q[k+1] - q[k] = (qd[k] + qd[k+1]) / 2 * factor * (t[k+1] - t[k]),

with a factor of 1 where times are in seconds. A clock that counts in milliseconds has a
factor of 0.001, positions in degrees beside speeds in rad/s have one of 57.3. The
least-squares estimate of the factor and its R^2 need sums only, so that recordings of any
length are followed in constant memory. On recordings of real arms from 10 to 500 Hz the
factor is 1 within 0.5 %. Where an arm moves back and forth between two samples (steps of
seconds) R^2 is small, and only the ratio of the paths remains, which is right within a
factor of three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

PAIRS: tuple[tuple[str, str], ...] = (
    ("actual_q", "actual_qd"),
    ("target_q", "target_qd"),
)
"""RTDE fields of positions [rad] and of their speeds [rad/s], in order of preference."""
MOVING = 0.02  # least speed of a joint that counts as moving [rad/s]
FEWEST_STEPS = 5  # fewest steps with motion that show anything
_TURN = 2.0 * math.pi
_NEAR_TURN = 0.5
"""Increments so close to a turn [rad] do not count: positions of endless joints may jump by one."""
# least R^2 with which the factor holds, and not only the ratio of the paths
_WELL_SAMPLED = 0.9
_SURE = 0.02  # relative tolerance of the factor where R^2 is 1
_SPREAD = 3.0
"""Further tolerance of the factor over sqrt(1 - R^2). On recordings of real arms,
thinned out to steps of up to two seconds, errors of the factor over sqrt(1 - R^2) are at
most 1.2."""
_SAME_PATH = 30.0
"""Largest ratio between paths of positions and speeds that poor sampling explains; units of time
differ by 60 or more."""


@dataclass(frozen=True)
class TimeScale:
    """By which factor steps of the clock have to be multiplied so that speeds explain positions.

    Attributes:
        positions: RTDE field of the positions.
        speeds: RTDE field of the speeds.
        steps: number of steps between samples in which a joint moved.
        factor: least-squares estimate of the factor; NaN if positions never changed.
        r2: share of the variance of position increments that the speeds explain.
        path_ratio: length of the path by the positions over its length by the speeds,
            where one step of the clock is 1.
    """

    positions: str
    speeds: str
    steps: int
    factor: float
    r2: float
    path_ratio: float

    @property
    def is_evidence(self) -> bool:
        """Whether there was enough motion to distinguish factors."""
        moved = math.isfinite(self.factor) and self.path_ratio > 0.0
        return self.steps >= FEWEST_STEPS and moved

    @property
    def is_precise(self) -> bool:
        """Whether the factor itself holds, and not only its order of magnitude."""
        return self.is_evidence and self.r2 >= _WELL_SAMPLED and self.factor > 0.0

    @property
    def tolerance(self) -> float:
        """Largest difference from the factor, as a natural logarithm, that the data allow."""
        if self.is_precise:
            return _SURE + _SPREAD * math.sqrt(1.0 - self.r2)
        return math.log(_SAME_PATH)

    @property
    def best(self) -> float:
        """The best estimate of the factor that the sampling allows."""
        return self.factor if self.is_precise else self.path_ratio

    def allows(self, factor: float) -> bool:
        """Whether the true factor can be this one; True where there is no evidence."""
        if not self.is_evidence:
            return True
        return abs(math.log(self.best / factor)) <= self.tolerance


class TimeScaleFit:
    """Follows the samples of one recording, batch by batch, and estimates their time scale."""

    def __init__(self) -> None:
        self._fits = {pair: _PairFit() for pair in PAIRS}
        self._last: Telemetry | None = None

    def update(self, part: Telemetry) -> None:
        """Include the next samples; steps over recorded gaps do not count."""
        if not len(part):
            return
        continues = np.ones(len(part), dtype=bool)
        continues[[gap.index for gap in part.gaps if gap.index < len(part)]] = False
        last = self._last
        before = math.nan if last is None else float(last.time[-1])
        steps = np.diff(part.time, prepend=before)
        continues &= steps > 0.0  # False for the very first sample, whose step is NaN
        for (positions, speeds), fit in self._fits.items():
            if positions not in part or speeds not in part:
                continue
            q = part.columns[positions]
            qd = part.columns[speeds]
            usable = continues.copy()
            # Of the sample in front of the first one; its own values if there is none.
            q_before = q[:1]
            qd_before = qd[:1]
            if last is not None and positions in last and speeds in last:
                q_before = last.columns[positions]
                qd_before = last.columns[speeds]
            else:
                usable[0] = False
            increments = np.diff(q, axis=0, prepend=q_before)
            means = 0.5 * (qd + np.concatenate([qd_before, qd[:-1]]))
            fit.update(steps, increments, means, usable)
        self._last = part.cut(slice(len(part) - 1, len(part)))

    @property
    def result(self) -> TimeScale | None:
        """The time scale by the pair of fields with the most evidence; None without motion."""
        found: list[TimeScale] = []
        for (positions, speeds), fit in self._fits.items():
            if fit.steps:
                found.append(fit.result(positions, speeds))
        found.sort(key=lambda scale: (not scale.is_evidence, not scale.is_precise))
        return found[0] if found else None


class _PairFit:
    """Sums of the least-squares fit of position increments on speeds times steps of the clock."""

    def __init__(self) -> None:
        self.steps = 0  # number of steps in which a joint moved
        # Sums of x x, x y and y y, and of the magnitudes of y and x, where x is the mean
        # speed times the step and y the increment of the position.
        self._squares = 0.0
        self._products = 0.0
        self._increments = 0.0
        self._path = 0.0
        self._speed_path = 0.0

    def update(self, steps: Array, increments: Array, means: Array, usable: Mask) -> None:
        """Include the next steps.

        Args:
            steps: steps of the clock [n], in its unit.
            increments: changes of the joint positions in the steps [n, k], rad.
            means: mean speeds of the joints in the steps [n, k], rad/s.
            usable: mask of the steps that count [n].
        """
        with np.errstate(invalid="ignore", over="ignore"):
            expected = means * steps[:, None]
            wrapped = np.abs(np.abs(increments) - _TURN) < _NEAR_TURN
            counted = usable[:, None] & (np.abs(means) > MOVING) & ~wrapped
            counted &= np.isfinite(expected) & np.isfinite(increments)
        x = expected[counted]
        y = increments[counted]
        self.steps += int(np.count_nonzero(counted.any(axis=1)))
        with np.errstate(over="ignore"):
            self._squares += float(x @ x)
            self._products += float(x @ y)
            self._increments += float(y @ y)
            self._path += float(np.abs(y).sum())
            self._speed_path += float(np.abs(x).sum())

    def result(self, positions: str, speeds: str) -> TimeScale:
        """The time scale of the steps so far."""
        sums = (self._squares, self._increments, self._speed_path)
        if not all(0.0 < each < math.inf for each in sums):
            return TimeScale(positions, speeds, self.steps, math.nan, 0.0, 0.0)
        factor = self._products / self._squares
        r2 = min(1.0, factor * (self._products / self._increments))
        ratio = self._path / self._speed_path
        return TimeScale(positions, speeds, self.steps, factor, r2, ratio)
