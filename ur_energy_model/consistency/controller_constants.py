# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The controller's torque constants from telemetry: a robust fit of target_current.

In the controller, per joint,

    target_current = target_moment / (N k_t) + compensation(speed, load),

with N k_t joint torque over motor current [N m/A]. The compensation of friction is zero at rest.
In motion recordings of UR3e, UR5e and UR10e show it as a smooth curve of the target speed with the
sign of the speed, on some joints with a share of the load. Inertia enters target_moment alone.

Two estimates per joint are combined by their variances: from standstill, where the relation is
exact to rounding once the arm has settled, and from motion, where the curve is fitted together with
the constant. Joints that gravity does not load (the base of an upright arm, the last wrist) are
known from motion only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry, run_starts
from ur_energy_model.telemetry.usable_samples import usable_samples
from ur_energy_model.typing import Array, Mask

STATED = ("target_moment", "target_current")
"""Fields that state the constants; a speed is needed besides, target_qd or else actual_qd."""
FIELDS = (*STATED, "target_qd", "target_qdd", "actual_qd", "robot_mode")
"""All fields that are read; the last four as far as they are recorded."""
MOST_READ = 600.0
"""Time of a recording that its constants are read from [s]: more of it changes them no more."""

SETTLING_TIME = 0.3
"""Time after motion for which the targets still settle [s]."""
RESTING_SPEED = 1e-4  # of every joint at rest [rad/s]
MOVING_SPEED = 0.05
"""Speed from which the friction compensation is a smooth curve [rad/s]: around a reversal it
switches sign within a cycle or two."""
OFFSET = 6e-4
"""Deviation of a target current at rest from the relation, over that of the rated torque: one of
four arms has 13 mA on its base and 3 mA on a wrist, the others below 0.2 mA."""
OFFSET_WEIGHT = 4.0  # stretches of standstill that the assumed deviation counts as
FORM_ERROR = 0.3
"""Error of a constant from motion that comes from the form of the friction curve, as a share of
what the fit leaves unexplained over the current for the load. On seven recordings of a UR10e it is
0.1 to 0.2, on four UR5e 0.1 to 0.9."""
LEAST_MOTION_ERROR = 0.005
"""Least relative deviation of a constant from motion: joints known from both differ by up to 0.5 %,
one by 1.3 % after six seconds of motion."""
LARGEST_DEVIATION = 0.2  # relative; a constant known worse counts as unknown
BLOCK = 2.0  # duration of a block of motion [s]; residuals within it are correlated
MOST_BLOCKS = 300  # blocks of motion, and stretches of standstill, that are kept
_ROUNDS = 8  # iterations of the blocks' weights
_FREEDOM = 4.0  # degrees of freedom of the Student distribution that weights blocks
_LEAST_LOAD = 1e-3  # of the rated torque: a joint with less says nothing
_LEAST_BLOCKS = 3  # blocks of motion from which a joint's constant is fitted
_LEAST_SAMPLES = 8  # samples of a block that counts
_COLUMNS = 6  # moment, sign, speed, speed squared, speed cubed, load times sign
_FALLBACK_TORQUE = 54.0  # rated torque of a joint whose robot file has none [N m]


@dataclass(frozen=True)
class _State:
    """What has been accumulated, for n joints."""

    # of the current stretch of standstill: start [s], sums of moment and current [n], and samples
    since: float
    moment: Array
    current: Array
    count: int
    rests: Array  # mean moment and current of earlier stretches [stretches, 2, n], N m and A
    # Gram matrices of (columns, current) of blocks of motion [blocks, n, 7, 7], and their samples
    grams: Array
    samples: Array  # [blocks, n]


class ControllerConstantsFit:
    """Accumulates telemetry of one arm, in order and in batches of any length.

    The result depends on the cut of the batches only through blocks of motion that a cut divides.
    """

    def __init__(self, robot: RobotDescription) -> None:
        n = robot.dof
        self.robot = robot
        rated = np.where(np.isfinite(robot.max_torque), robot.max_torque, _FALLBACK_TORQUE)
        self._rated = rated
        self._state = _State(
            since=np.nan,
            moment=np.zeros(n),
            current=np.zeros(n),
            count=0,
            rests=np.empty((0, 2, n)),
            grams=np.empty((0, n, _COLUMNS + 1, _COLUMNS + 1)),
            samples=np.empty((0, n)),
        )

    @property
    def full(self) -> bool:
        """Whether further telemetry would not be kept."""
        return len(self._state.grams) >= MOST_BLOCKS and len(self._state.rests) >= MOST_BLOCKS

    def accumulate(self, telemetry: Telemetry) -> None:
        """Add samples; those without both fields, or in freedrive, are left out."""
        speed_name = "target_qd" if "target_qd" in telemetry else "actual_qd"
        names = (*STATED, speed_name)
        shape = (len(telemetry), self.robot.dof)
        if not len(telemetry) or any(name not in telemetry for name in names):
            return
        if any(telemetry[name].shape != shape for name in names):
            return
        good = usable_samples(telemetry, *names)
        moment = telemetry["target_moment"]
        current = telemetry["target_current"]
        speed = telemetry[speed_name]
        still = good & (np.abs(speed) < RESTING_SPEED).all(axis=1)
        self._accumulate_rest(telemetry.time, moment, current, still)
        self._accumulate_motion(telemetry.time, moment, current, speed, good & ~still)

    def _accumulate_rest(self, time: Array, moment: Array, current: Array, still: Mask) -> None:
        """Means of stretches of standstill, from SETTLING_TIME after their begin."""
        state = self._state
        starts = run_starts(still)
        stops = np.append(starts[1:], len(still))
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            if not still[start]:
                state = self._with_stretch_closed(state)
                continue
            since = state.since if np.isfinite(state.since) else float(time[start])
            settled = np.arange(start, stop)[time[start:stop] - since >= SETTLING_TIME]
            state = replace(
                state,
                since=since,
                moment=state.moment + moment[settled].sum(axis=0),
                current=state.current + current[settled].sum(axis=0),
                count=state.count + len(settled),
            )
        self._state = state

    def _with_stretch_closed(self, state: _State) -> _State:
        """The state after the end of a stretch of standstill."""
        rests = state.rests
        if state.count and len(rests) < MOST_BLOCKS:
            means = np.stack([state.moment, state.current]) / state.count
            rests = np.concatenate([rests, means[None]])
        n = self.robot.dof
        return replace(
            state,
            since=np.nan,
            moment=np.zeros(n),
            current=np.zeros(n),
            count=0,
            rests=rests,
        )

    def _accumulate_motion(
        self, time: Array, moment: Array, current: Array, speed: Array, moving: Mask
    ) -> None:
        """Gram matrices of blocks of motion."""
        if not moving.any() or len(self._state.grams) >= MOST_BLOCKS:
            return
        fast = moving[:, None] & (np.abs(speed) > MOVING_SPEED)
        sign = np.sign(speed)
        size = np.abs(speed)
        columns = np.stack(
            [
                moment,
                sign,
                speed,
                sign * size**2,
                sign * size**3,
                sign * np.abs(moment),
                current,
            ],
            axis=2,
        )
        columns = columns * fast[:, :, None]
        starts = run_starts(np.floor(time / BLOCK))
        stops = np.append(starts[1:], len(time))
        grams = []
        samples = []
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            by_joint = np.swapaxes(columns[start:stop], 0, 1)
            grams.append(np.swapaxes(by_joint, 1, 2) @ by_joint)
            samples.append(fast[start:stop].sum(axis=0))
        kept = MOST_BLOCKS - len(self._state.grams)
        self._state = replace(
            self._state,
            grams=np.concatenate([self._state.grams, np.array(grams)[:kept]]),
            samples=np.concatenate([self._state.samples, np.array(samples, dtype=float)[:kept]]),
        )

    def result(self) -> ControllerConstants:
        """The constants that the telemetry so far has shown."""
        n = self.robot.dof
        state = self._with_stretch_closed(self._state)
        values = np.full(n, np.nan)
        deviations = np.full(n, np.inf)
        for j in range(n):
            offset = OFFSET * self._rated[j] / self._nominal(j)
            load = _LEAST_LOAD * self._rated[j]
            found = [
                _from_rest(state.rests[:, 0, j], state.rests[:, 1, j], load, offset),
                _from_motion(state.grams[:, j], state.samples[:, j], load),
            ]
            known = [each for each in found if each is not None]
            if not known:
                continue
            inverse, variance = np.array(known).T
            weights = 1.0 / variance
            mean = float(weights @ inverse / weights.sum())
            deviation = float(1.0 / np.sqrt(weights.sum()))
            if mean <= 0.0 or deviation > LARGEST_DEVIATION * mean:
                continue
            values[j] = 1.0 / mean
            deviations[j] = deviation / mean**2
        return ControllerConstants(values, deviations)

    def _nominal(self, j: int) -> float:
        """N k_t of a joint by the robot file, else a typical one [N m/A]."""
        constant = float(self.robot.gear_ratio[j] * self.robot.torque_constant[j])
        return constant if np.isfinite(constant) else 10.0


def recorded_constants(path: str | Path, robot: RobotDescription) -> ControllerConstants:
    """The constants that a recording states, from its first MOST_READ seconds.

    Args:
        path: bag.
        robot: the arm type.

    Raises:
        RecordingError: no bag, or a damaged one.
    """
    fit = ControllerConstantsFit(robot)
    begin: float | None = None
    for batch in iterate_bag(path, FIELDS):
        if not len(batch):
            continue
        if begin is None:
            begin = float(batch.time[0])
        fit.accumulate(batch)
        if fit.full or abs(float(batch.time[-1]) - begin) > MOST_READ:
            break
    return fit.result()


def _from_rest(
    moment: Array, current: Array, least_load: float, offset: float
) -> tuple[float, float] | None:
    """1/(N k_t) of a joint and its variance from means of stretches of standstill.

    Args:
        moment: mean target_moment of the stretches [stretches], N m.
        current: mean target_current of the stretches [stretches], A.
        least_load: torque below which a joint counts as unloaded [N m].
        offset: assumed standard deviation of a current from the relation [A].
    """
    squares = float(moment @ moment)
    if squares < least_load**2:
        return None
    count = len(moment)
    weights = np.ones(count)
    scale = offset**2
    for _ in range(_ROUNDS):
        inverse = _weighted_slope(moment, current, weights)
        residual = current - inverse * moment
        scatter = OFFSET_WEIGHT * offset**2 + float(weights @ residual**2)
        scale = scatter / (OFFSET_WEIGHT + count - 1.0)
        weights = (_FREEDOM + 1.0) / (_FREEDOM + residual**2 / scale)
    # Of a Student distribution: the information of a sample is (f + 1) / (f + 3) over the scale.
    variance = scale * (_FREEDOM + 3.0) / (_FREEDOM + 1.0) / squares
    return inverse, variance


def _weighted_slope(x: Array, y: Array, weights: Array) -> float:
    return float((weights * x) @ y / ((weights * x) @ x))


def _from_motion(grams: Array, samples: Array, least_load: float) -> tuple[float, float] | None:
    """1/(N k_t) of a joint and its variance from blocks of motion.

    Blocks that the relation does not hold in, as in force mode, lose their weight. The variance is
    that of the blocks' scatter (cluster-robust) and of the form of the friction curve.

    Args:
        grams: of (columns, current) of each block [blocks, 7, 7].
        samples: of each block [blocks].
        least_load: torque below which a joint counts as unloaded [N m].
    """
    used = samples >= _LEAST_SAMPLES
    if np.count_nonzero(used) < _LEAST_BLOCKS:
        return None
    grams = grams[used]
    samples = samples[used]
    weights = np.ones(len(grams))
    total = grams.sum(axis=0)
    if total[0, 0] < samples.sum() * least_load**2:
        return None
    scale = np.sqrt(np.maximum(np.diag(total), 1e-12))
    grams = grams / np.outer(scale, scale)
    ridge = 1e-9 * np.eye(_COLUMNS)
    for _ in range(_ROUNDS):
        whole = np.einsum("b,bpk->pk", weights, grams)
        inverse_gram = np.linalg.inv(whole[:-1, :-1] + ridge * whole[0, 0])
        coefficients = inverse_gram @ whole[:-1, -1]
        extended = np.append(-coefficients, 1.0)
        squares = np.einsum("p,bpk,k->b", extended, grams, extended)
        mean_squares = np.maximum(squares, 0.0) / samples
        typical = float(np.median(mean_squares)) + 1e-18
        weights = (_FREEDOM + 1.0) / (_FREEDOM + mean_squares / typical)
    slopes = weights[:, None] * (grams[:, :-1] @ extended)
    covariance = inverse_gram @ (slopes.T @ slopes) @ inverse_gram
    blocks = len(grams)
    statistical = float(covariance[0, 0]) * blocks / max(blocks - _COLUMNS, 1)
    # What of the current for the load the other columns do not explain as well.
    load = 1.0 / float(inverse_gram[0, 0])
    left = float(weights @ np.maximum(squares, 0.0)) / load
    form = FORM_ERROR**2 * left + (LEAST_MOTION_ERROR * float(coefficients[0])) ** 2
    variance = statistical + form
    factor = scale[-1] / scale[0]
    return float(coefficients[0] * factor), variance * factor**2
