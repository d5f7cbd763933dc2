# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The controller's torque constants from telemetry: a robust fit of target_current.

In the controller, per joint,

    target_current = target_moment / (N k_t) + compensation(speed, load),

with N k_t joint torque over motor current [N m/A]. The compensation of friction is zero
at rest. In motion recordings of UR3e, UR5e and UR10e show it as a smooth curve of the
target speed with the sign of the speed, on some joints with a share of the load. Inertia
enters target_moment alone.

Two estimates per joint are combined by their variances: one from standstill, where the
relation is exact to rounding once the arm has settled, and one from motion, where the curve
of the compensation is fitted together with the constant. For joints that gravity does not
load (the base of an upright arm, the last wrist) there is only the estimate from motion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry, concatenate, run_starts
from ur_energy_model.telemetry.usable_samples import usable_samples
from ur_energy_model.typing import Array, Mask

STATED = ("target_moment", "target_current")
"""Fields that state the constants; a speed is needed besides, target_qd or else
actual_qd."""
FIELDS = (*STATED, "target_qd", "target_qdd", "actual_qd", "robot_mode")
"""Fields that are read where a source has them."""

SETTLING_TIME = 0.3
"""Time after motion for which the targets still settle [s]."""
RESTING_SPEED = 1e-4  # speed below which a joint rests [rad/s]
MOVING_SPEED = 0.05
"""Speed from which the friction compensation is a smooth curve [rad/s]: around a reversal
it switches sign within a cycle or two."""
OFFSET = 6e-4
"""Deviation of a target current at rest from the relation, over the current of the rated torque:
one of four arms has 13 mA on its base and 3 mA on a wrist, the others below 0.2 mA."""
OFFSET_WEIGHT = 4.0  # number of stretches of standstill that OFFSET weighs as much as
FORM_ERROR = 0.3
"""Relative error of a constant from motion by the form of the friction curve, over the ratio of the
unexplained current to the current for the load. In seven recordings of a UR10e it is 0.1 to 0.2, on
four UR5e 0.1 to 0.9."""
LEAST_MOTION_ERROR = 0.005
"""Least relative deviation of a constant from motion: joints known from both differ by up
to 0.5 %, one by 1.3 % after six seconds of motion."""
LARGEST_DEVIATION = 0.2  # relative deviation beyond which a constant counts as unknown
BLOCK = 2.0  # duration of a block of samples [s]; residuals within a block are correlated
MOST_SAMPLES = 5000  # largest number of samples of a block, whatever its duration
MOST_BLOCKS = 300  # largest number of blocks of motion, and of stretches of standstill
LARGEST_VALUE = 1.0e7
"""No arm has torques or currents beyond this value, in any unit."""
LARGEST_SPEED = 100.0  # no joint has a speed beyond this value [rad/s]
ANOTHER_UNIT = 3.0
"""Factor between a constant and the expected constant beyond which a field has another unit: arms
of a type differ by factors below 1.2, milliampere or newton millimetres by 1000."""
TYPICAL_CONSTANT = 8.0
"""N k_t of a joint without one in its robot file [N m/A]; UR arms have 3.6 to 14.3."""
_ROUNDS = 8  # number of iterations of the blocks' weights
_FREEDOM = 4.0  # degrees of freedom of the Student distribution that weights blocks
_LEAST_LOAD = 1e-3  # share of the rated torque below which a joint counts as unloaded
_LEAST_BLOCKS = 3  # least number of blocks of motion for a joint's constant
_LEAST_SAMPLES = 8  # least number of samples of a block
_MOMENTS, _CURRENTS = range(2)
"""Rows of the arrays [2, n] of `ConstantsData`: target_moment and target_current."""
_COLUMNS = 6  # moment, sign, speed, speed squared, speed cubed, load times sign
_MOMENT = 0  # first of these columns, whose coefficient is 1/(N k_t)
_CURRENT = _COLUMNS  # column of the current, behind these columns
_CONFIDENCE = 1.96  # half of a 95 % interval, in standard deviations


@dataclass(frozen=True)
class ConstantsData:
    """Sums that a fit has accumulated, for n joints.

    Attributes:
        last: time of the last sample [s].
        since: start of the current stretch of standstill [s].
        moment: sum of target_moment over the current stretch [n], N m.
        current: sum of target_current over the current stretch [n], A.
        count: number of samples of the current stretch.
        rests: mean moment and current of earlier stretches [stretches, 2, n], N m and A.
        first: moment and current of the first sample [2, n], N m and A.
        differs: whether later samples differ from the first sample, 0 or 1 [2, n].
        grams: Gram matrices of (columns, current) of blocks of motion [blocks, n, 7, 7].
        samples: number of samples of each block [blocks, n].
    """

    last: float | None
    since: float | None
    moment: Array
    current: Array
    count: int
    rests: Array
    first: Array | None
    differs: Array
    grams: Array
    samples: Array

    @classmethod
    def empty(cls, n: int) -> ConstantsData:
        """Sums before the first sample, for n joints."""
        return cls(
            last=None,
            since=None,
            moment=np.zeros(n),
            current=np.zeros(n),
            count=0,
            rests=np.empty((0, 2, n)),
            first=None,
            differs=np.zeros((2, n)),
            grams=np.empty((0, n, _COLUMNS + 1, _COLUMNS + 1)),
            samples=np.empty((0, n)),
        )

    @property
    def full(self) -> bool:
        """Whether further telemetry would not be kept."""
        return len(self.grams) >= MOST_BLOCKS and len(self.rests) >= MOST_BLOCKS

    @property
    def computed(self) -> Mask:
        """Whether the current of each joint changes with the moment, or neither changes [n]."""
        current_differs = self.differs[_CURRENTS] > 0.0
        moment_differs = self.differs[_MOMENTS] > 0.0
        return np.asarray(current_differs | ~moment_differs)


class ControllerConstantsFit:
    """Accumulates telemetry of one arm, in order and in batches of any length.

    Samples are kept until their block is complete, so that the result does not depend on
    the batches, and live accumulation costs little.

    Args:
        robot: description of the arm.
        data: data of an earlier fit that is continued; None to begin.
    """

    def __init__(
        self, robot: RobotDescription, data: ConstantsData | None = None
    ) -> None:
        self.robot = robot
        self._rated = robot.rated_torque
        nominal = robot.gear_ratio * robot.torque_constant
        self._expected = np.where(np.isfinite(nominal), nominal, TYPICAL_CONSTANT)
        self._state = data or ConstantsData.empty(robot.dof)
        self._waiting: list[Telemetry] = []

    @property
    def full(self) -> bool:
        """Whether further telemetry would not be kept."""
        return self._state.full

    def accumulate(self, telemetry: Telemetry) -> None:
        """Add samples; samples in freedrive or without the needed fields are left out."""
        if not len(telemetry) or self.full or not self._has_fields(telemetry):
            return
        columns = {name: telemetry[name] for name in FIELDS if name in telemetry}
        waiting = self._waiting
        if waiting and columns.keys() != waiting[0].columns.keys():
            self._state = self.data
            waiting = []
        waiting = [*waiting, Telemetry(telemetry.time, columns)]
        block = np.floor(waiting[0].time[0] / BLOCK)
        begin = block * BLOCK
        end = (block + 1.0) * BLOCK
        same = telemetry.time[0] >= begin and telemetry.time[-1] < end
        if same and sum(map(len, waiting)) < MOST_SAMPLES:
            self._waiting = waiting
            return
        joined = concatenate(waiting)
        blocks = _blocks(joined.time)
        for rows in blocks[:-1]:
            self._state = _with_block(self._state, joined.cut(rows))
        self._waiting = [joined.cut(blocks[-1])]

    def _has_fields(self, telemetry: Telemetry) -> bool:
        """Whether both fields of STATED and a speed are there, for the joints of the robot."""
        speeds = [name for name in ("target_qd", "actual_qd") if name in telemetry]
        if not speeds or any(name not in telemetry for name in STATED):
            return False
        shape = (len(telemetry), self.robot.dof)
        return all(telemetry[name].shape == shape for name in (*STATED, *speeds))

    @property
    def data(self) -> ConstantsData:
        """All that was accumulated, with the samples of the block in progress."""
        state = self._state
        if self._waiting:
            state = _with_block(state, concatenate(self._waiting))
        return state

    def result(self) -> ControllerConstants:
        """The constants by the telemetry so far.

        A constant far from the expected one counts as unknown; if all are, `contradiction`
        gives the reason.
        """
        found = self._fitted()
        factor = found.torque_per_ampere / self._expected
        plausible = (factor < ANOTHER_UNIT) & (factor > 1.0 / ANOTHER_UNIT)
        return ControllerConstants(
            np.where(plausible, found.torque_per_ampere, np.nan),
            np.where(plausible, found.std, np.inf),
        )

    def contradiction(self) -> Contradiction | None:
        """Another unit of target_current or target_moment, where all known joints show one."""
        fitted = self._fitted()
        known = fitted.known
        if not known.any() or self.result().known.any():
            return None
        j = int(np.argmin(np.where(known, fitted.std / fitted.torque_per_ampere, np.inf)))
        joint = self.robot.joint_names[j]
        return Contradiction(
            subject="torque_constants",
            stated="target_current is in A and target_moment in N m",
            shown=f"their ratio at {joint} is {fitted.torque_per_ampere[j]:.3g} N m/A",
            evidence=f"a {self.robot.name} has about {self._expected[j]:.3g} N m/A",
            remedy="import again with both fields in these units; the controller's torque "
            "constants are not used",
        )

    def _fitted(self) -> ControllerConstants:
        """Constants by the fit, whether plausible or not."""
        n = self.robot.dof
        state = _with_stretch_closed(self.data)
        values = np.full(n, np.nan)
        deviations = np.full(n, np.inf)
        for j in np.flatnonzero(state.computed).tolist():
            offset = OFFSET * self._rated[j] / self._expected[j]
            load = _LEAST_LOAD * self._rated[j]
            found = [
                _from_rest(
                    state.rests[:, _MOMENTS, j],
                    state.rests[:, _CURRENTS, j],
                    load,
                    offset,
                ),
                _from_motion(state.grams[:, j], state.samples[:, j], load),
            ]
            known = [each for each in found if each is not None]
            if not known:
                continue
            inverse, variance = np.array(known).T
            weights = 1.0 / variance
            mean = float(weights @ inverse / weights.sum())
            deviation = float(1.0 / np.sqrt(weights.sum()))
            if not mean > 0.0 or not deviation <= LARGEST_DEVIATION * mean:
                continue
            values[j] = 1.0 / mean
            deviations[j] = deviation / mean**2
        return ControllerConstants(values, deviations)


def _blocks(time: Array) -> list[slice]:
    """Consecutive rows of one block of time each, of MOST_SAMPLES at most."""
    starts = run_starts(np.floor(time / BLOCK))
    stops = np.append(starts[1:], len(time))
    blocks = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        for first in range(start, stop, MOST_SAMPLES):
            last = min(first + MOST_SAMPLES, stop)
            blocks.append(slice(first, last))
    return blocks


def _with_block(state: ConstantsData, block: Telemetry) -> ConstantsData:
    """The state after adding the samples of a block."""
    speed = block["target_qd" if "target_qd" in block else "actual_qd"]
    moment = block["target_moment"]
    current = block["target_current"]
    good = usable_samples(block, *STATED) & np.isfinite(block.time)
    with np.errstate(invalid="ignore"):
        good &= (np.abs(speed) < LARGEST_SPEED).all(axis=1)
        for values in (moment, current):
            good &= (np.abs(values) < LARGEST_VALUE).all(axis=1)
        still = good & (np.abs(speed) < RESTING_SPEED).all(axis=1)
    if good.any():
        values = np.stack([moment[good], current[good]])  # [2, samples, n]
        first = values[:, 0] if state.first is None else state.first
        differs = (values != first[:, None]).any(axis=1)
        state = replace(state, first=first, differs=np.maximum(state.differs, differs))
    state = _with_rest(state, block.time, moment, current, still)
    moving = good & ~still
    if not moving.any() or len(state.grams) >= MOST_BLOCKS:
        return state
    return _with_motion(state, moment[moving], current[moving], speed[moving])


def _with_rest(
    state: ConstantsData, time: Array, moment: Array, current: Array, still: Mask
) -> ConstantsData:
    """The state after adding standstill, from SETTLING_TIME after the begin of each stretch.

    Args:
        state: sums over the standstills so far.
        time: controller timestamps [samples], s.
        moment: target_moment [samples, n], N m.
        current: target_current [samples, n], A.
        still: whether the arm rests [samples].
    """
    # Where the clock goes back, the controller was restarted, and another stretch begins.
    back = np.zeros(len(time), dtype=bool)
    back[1:] = time[1:] < time[:-1]
    back[0] = state.last is not None and time[0] < state.last
    starts = run_starts(np.column_stack([still, np.cumsum(back)]))
    stops = np.append(starts[1:], len(still))
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        if not still[start] or back[start]:
            state = _with_stretch_closed(state)
        if not still[start]:
            continue
        since = float(time[start]) if state.since is None else state.since
        settled = np.arange(start, stop)[time[start:stop] - since >= SETTLING_TIME]
        state = replace(
            state,
            since=since,
            moment=state.moment + moment[settled].sum(axis=0),
            current=state.current + current[settled].sum(axis=0),
            count=state.count + len(settled),
        )
    return replace(state, last=float(time[-1]))


def _with_stretch_closed(state: ConstantsData) -> ConstantsData:
    """The state after the end of a stretch of standstill."""
    rests = state.rests
    if state.count and len(rests) < MOST_BLOCKS:
        means = np.stack([state.moment, state.current]) / state.count
        rests = np.concatenate([rests, means[None]])
    nothing = np.zeros(rests.shape[2])
    return replace(
        state, since=None, moment=nothing, current=nothing, count=0, rests=rests
    )


def _with_motion(
    state: ConstantsData, moment: Array, current: Array, speed: Array
) -> ConstantsData:
    """The state after adding the moving samples of a block.

    Args:
        state: sums so far.
        moment: target_moment [samples, n], N m.
        current: target_current [samples, n], A.
        speed: joint speeds [samples, n], rad/s.
    """
    fast = np.abs(speed) > MOVING_SPEED
    samples = fast.sum(axis=0)
    if samples.max() < _LEAST_SAMPLES:
        return state
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
    by_joint = np.swapaxes(columns * fast[:, :, None], 0, 1)
    grams = np.swapaxes(by_joint, 1, 2) @ by_joint
    return replace(
        state,
        grams=np.concatenate([state.grams, grams[None]]),
        samples=np.concatenate([state.samples, samples[None].astype(float)]),
    )


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
    # With a Student distribution of f degrees of freedom, the information of a sample is
    # (f + 1) / (f + 3) over the scale.
    variance = scale * (_FREEDOM + 3.0) / (_FREEDOM + 1.0) / squares
    return inverse, variance


def _weighted_slope(x: Array, y: Array, weights: Array) -> float:
    """Slope of the line through the origin that fits y over x best [samples]."""
    return float((weights * x) @ y / ((weights * x) @ x))


def _from_motion(
    grams: Array, samples: Array, least_load: float
) -> tuple[float, float] | None:
    """1/(N k_t) of a joint and its variance from blocks of motion.

    Blocks in which the relation does not hold, as in force mode, get a low weight. The
    variance has two parts: by the scatter of the blocks (cluster-robust), and by the form
    of the friction curve.

    Args:
        grams: Gram matrices of (columns, current) of each block [blocks, 7, 7].
        samples: number of samples of each block [blocks].
        least_load: torque below which a joint counts as unloaded [N m].
    """
    used = samples >= _LEAST_SAMPLES
    if np.count_nonzero(used) < _LEAST_BLOCKS:
        return None
    grams = grams[used]
    samples = samples[used]
    weights = np.ones(len(grams))
    total = grams.sum(axis=0)
    if total[_MOMENT, _MOMENT] < samples.sum() * least_load**2:
        return None
    # Columns are scaled to one square each, so that the matrix is well conditioned.
    scale = np.sqrt(np.maximum(np.diag(total), 1e-12))
    grams = grams / np.outer(scale, scale)
    ridge = 1e-9 * np.eye(_COLUMNS)
    for _ in range(_ROUNDS):
        whole = np.einsum("b,bpk->pk", weights, grams)
        square = max(whole[_MOMENT, _MOMENT], 1e-9)
        inverse_gram = np.linalg.inv(whole[:_CURRENT, :_CURRENT] + ridge * square)
        coefficients = inverse_gram @ whole[:_CURRENT, _CURRENT]
        extended = np.append(-coefficients, 1.0)
        squares = np.einsum("p,bpk,k->b", extended, grams, extended)
        mean_squares = np.maximum(squares, 0.0) / samples
        typical = float(np.median(mean_squares)) + 1e-18
        weights = (_FREEDOM + 1.0) / (_FREEDOM + mean_squares / typical)
    slopes = weights[:, None] * (grams[:, :_CURRENT] @ extended)
    covariance = inverse_gram @ (slopes.T @ slopes) @ inverse_gram
    blocks = len(grams)
    moment_variance = float(covariance[_MOMENT, _MOMENT])
    statistical = moment_variance * blocks / max(blocks - _COLUMNS, 1)
    # Square of the part of the moment that the other columns do not explain as well.
    load = 1.0 / float(inverse_gram[_MOMENT, _MOMENT])
    left = float(weights @ np.maximum(squares, 0.0)) / load
    slope = float(coefficients[_MOMENT])
    form = FORM_ERROR**2 * left + (LEAST_MOTION_ERROR * slope) ** 2
    variance = statistical + form
    factor = scale[_CURRENT] / scale[_MOMENT]
    inverse = float(coefficients[_MOMENT] * factor)
    variance = variance * factor**2
    return (inverse, variance) if 0.0 < variance < np.inf else None


def constants_in_words(constants: ControllerConstants, robot: RobotDescription) -> str:
    """The constants per joint in one line, with their ratio to the robot file's constants."""
    nominal = robot.gear_ratio * robot.torque_constant
    parts = []
    for j, name in enumerate(robot.joint_names):
        text = "unknown"
        if constants.known[j]:
            text = f"{constants.torque_per_ampere[j]:.4g}"
            half = _CONFIDENCE * constants.std[j]
            percent = 100.0 * half / constants.torque_per_ampere[j]
            if percent >= 2.0:
                text += f" ± {percent:.0f} %"
            if np.isfinite(nominal[j]):
                text += f" ({constants.torque_per_ampere[j] / nominal[j]:.3f})"
        parts.append(f"{name.removesuffix('_joint')} {text}")
    of_file = " (over the robot file's)" if np.isfinite(nominal).any() else ""
    return f"controller's torque constants [N m/A]{of_file}: {', '.join(parts)}"


# Constants of a bag.

MOST_READ = 600.0
"""Time of samples after which no more of a bag is read [s]."""
FIRST_LOOK = 20.0
"""Time of samples after which the first decision is taken whether to read on [s]; the time doubles
from one decision to the next."""
ENOUGH_BLOCKS = 20
"""Least number of blocks of motion before reading ends: with fewer, the constants of joints that
gravity does not load may still be unknown."""
LEAST_GAIN = 0.7
"""Reading goes on while the relative deviation of a constant, calibration included, becomes smaller
than this share of the deviation at the decision before."""


def recorded_constants(path: str | Path, robot: RobotDescription) -> ControllerConstants:
    """The constants that a bag shows; arguments and errors as for `fit_of_bag`."""
    return fit_of_bag(path, robot).result()


def fit_of_bag(path: str | Path, robot: RobotDescription) -> ControllerConstantsFit:
    """The fit to a bag, from its needed fields, in bounded time and memory.

    More is read while it makes constants known or clearly more certain.

    Args:
        path: path of the bag.
        robot: description of the arm.

    Raises:
        RecordingError: a bag that cannot be read.
    """
    fit = ControllerConstantsFit(robot)
    seconds = 0.0
    next_look = FIRST_LOOK
    before = np.full(robot.dof, np.inf)
    for batch in iterate_bag(path, FIELDS):
        if any(name not in batch for name in STATED):
            break
        fit.accumulate(batch)
        seconds += max(batch.duration, 0.0)
        if fit.full or seconds > MOST_READ:
            break
        if seconds < next_look:
            continue
        next_look = 2.0 * seconds
        deviations = fit.result().relative_deviation
        gains = deviations < LEAST_GAIN * before
        if len(fit.data.grams) >= ENOUGH_BLOCKS and not gains.any():
            break
        before = deviations
    return fit
