# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The standby power of a session, estimated from telemetry, forward only.

Standby power is the bus power less the power of motors and drivers. It differs by several
watts between days of one arm, so that every session estimates it anew: a Kalman filter over
blocks of the controller's clock, at standstill as in motion. Its prior is the model's standby
power with the spread between sessions, its process noise the drift within a session.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.drives import MOTION_OF_SESSION, MOTION_TIME
from ur_energy_model.telemetry.samples import run_starts
from ur_energy_model.typing import Array, Indices, Mask

# A measurement of the standby power is a mean over one block of the controller's clock, so
# that the result does not depend on how samples are batched. At standstill a measurement
# has only the noise of the bus power. In motion it also has the error of the modelled power
# of motion: one part of this error is new every MOTION_TIME, another part is common to all
# motions of the session.
#
# An error of the model's parameters changes the measurement by the sensitivity of motors
# and drivers, with the opposite sign. The filter keeps this change of its estimate per
# parameter error, and estimates none of these errors (Schmidt, Application of state-space
# methods to navigation problems, 1966: a filter with "considered" parameters). When the
# powers of standby, motors and drivers are added, the error of a parameter therefore
# cancels in the poses and motions in which the standby power was measured.

BLOCK = 0.05  # length of the blocks [s]
ANCHORING = 0.5  # standstill after which the session's standby counts as measured [s]
ANCHORING_MOTION = 10.0
"""Motion after which the standby counts as measured, where the arm never stands still [s]."""
NOISE = 0.032
"""Noise of the bus power at standstill: variance of a mean times the time of the mean [W^2 s],
used until the scatter of the blocks shows it. It corresponds to a standard deviation of 2 W
per sample at 125 Hz, and of 0.8 W per block."""
DRIFT = 2.0e-4
"""Variance by which standby power drifts per second [W^2/s]: 0.4 W in a quarter of an hour. With
NOISE the filter forgets with a time constant of 13 s of standstill."""
POSE_STD = 0.4
"""Standard deviation of the standby power of a motion to come, after long standstill [W]: holding
currents depend on the pose, and standby power drifts between standstills. This error
averages out in energies of the time in which the standby power was measured."""
JUMP_TIME = 1.0
"""Time over which differences to the estimate are averaged [s]; their mean shows a jump of the
standby power, as when a tool is switched on."""
_JUMP = 5.0
"""A mean difference of more standard deviations than this is a jump. The variance of the estimate
then grows by the square of the jump, so that the next blocks almost alone determine it."""
_NOISE_MEMORY = 100  # number of blocks over which the noise is averaged
_FIRST_BLOCKS = 4  # number of blocks that the initial value NOISE weighs as much as
_SURPRISE = 4.0
"""A measurement in motion counts as at most this many standard deviations off, whatever its value:
the model's error in a rare motion must not move the standby power far."""


_NO_ERRORS: Array = np.zeros(0)
"""Changes per error before the first samples show how many errors there are [0]."""


class StandbyState(NamedTuple):
    """Estimate of the standby power of a session after the last complete block.

    Attributes:
        power: mean of the estimated standby power [W].
        variance: variance of the estimate by noise and drift [W^2].
        errors: change of the estimate per error of the power of motors and drivers
            [errors], W per standard deviation of that error.
        motion: share of the estimate that was measured in motion, 0 to 1.
        still_seconds: standstill that was used [s].
        moving_seconds: motion that was used [s].
        known: whether an earlier pass over the session has shown the standby power.
        noise: variance of a mean at standstill times the time of the mean, see NOISE
            [W^2 s].
        blocks: number of blocks at standstill that were used.
        recent: mean difference to the estimate over JUMP_TIME [W].
        recent_variance: variance of `recent` by noise [W^2].
    """

    power: float
    variance: float
    errors: Array = _NO_ERRORS
    motion: float = 0.0
    still_seconds: float = 0.0
    moving_seconds: float = 0.0
    known: bool = False
    noise: float = NOISE
    blocks: int = 0
    recent: float = 0.0
    recent_variance: float = 0.0

    def for_another_pass(self) -> StandbyState:
        """The state at the begin of another pass over the same session."""
        return self._replace(known=self.measured, still_seconds=0.0, moving_seconds=0.0)

    @property
    def measured(self) -> bool:
        """Whether the session has shown its standby power."""
        still = self.still_seconds >= ANCHORING - 1e-9
        return self.known or still or self.moving_seconds >= ANCHORING_MOTION - 1e-9


def standby_step(
    state: StandbyState,
    seconds: float,
    watts: float,
    sensitivity: Array,
    *,
    moving: bool,
    motion_variance: float,
) -> StandbyState:
    """The estimate of the standby power after another block (one step of a Kalman filter).

    Args:
        state: estimate before the block, drift included.
        seconds: time of the block [s].
        watts: bus power less the power of motors and drivers, mean over the block [W].
        sensitivity: change of the power of motors and drivers per error, mean over the
            block [errors], W.
        moving: whether the arm moved in the block.
        motion_variance: variance of the energy of motion per second, see `BusModel`
            [J^2/s].
    """
    measured_variance = state.noise / seconds
    lasting_variance = 0.0  # variance of errors that a mean over JUMP_TIME keeps
    if moving:
        # Where the parameters leave the power of a motion uncertain, the motion shows
        # little of the standby power.
        open_power = state.errors + sensitivity
        systematic = float(open_power @ open_power)
        measured_variance += motion_variance / seconds + systematic
        lasting_variance = motion_variance / MOTION_TIME + systematic
    innovation = watts - state.power
    share = min(seconds / JUMP_TIME, 1.0)
    recent = state.recent + share * (innovation - state.recent)
    recent_variance = (1.0 - share) ** 2 * state.recent_variance
    recent_variance += share**2 * measured_variance
    usual_variance = state.variance + recent_variance + lasting_variance
    if state.measured and abs(recent) > _JUMP * math.sqrt(usual_variance):
        state = state._replace(variance=state.variance + recent**2)
        recent = 0.0
    innovation_variance = state.variance + measured_variance
    noise = state.noise
    if moving:
        least = (innovation / _SURPRISE) ** 2
        innovation_variance = max(innovation_variance, least)
    else:
        noise = _noise_after(state, seconds, innovation, innovation_variance)
    gain = state.variance / innovation_variance
    return state._replace(
        power=state.power + gain * innovation,
        variance=(1.0 - gain) * state.variance,
        errors=(1.0 - gain) * state.errors - gain * sensitivity,
        motion=(1.0 - gain) * state.motion + gain * moving,
        still_seconds=state.still_seconds + (0.0 if moving else seconds),
        moving_seconds=state.moving_seconds + (seconds if moving else 0.0),
        noise=max(noise, 1e-9),
        blocks=state.blocks + (not moving),
        recent=recent,
        recent_variance=recent_variance,
    )


def _noise_after(
    state: StandbyState, seconds: float, innovation: float, innovation_variance: float
) -> float:
    """The noise at standstill, updated by the innovation of a block [W^2 s].

    The expected square of an innovation is the variance of the estimate plus the variance
    of the measurement. What remains of the square without the first is the second.

    Args:
        state: estimate before the block.
        seconds: time of the block [s].
        innovation: measured power less the estimate [W].
        innovation_variance: expected square of the innovation [W^2].
    """
    weight = 1.0 / min(_FIRST_BLOCKS + state.blocks, _NOISE_MEMORY)
    square = min(innovation**2, _SURPRISE**2 * innovation_variance)
    shown = max(square - state.variance, 0.0) * seconds
    return state.noise + weight * (shown - state.noise)


@dataclass
class _Block:
    """The block in progress.

    Attributes:
        number: number of the block on the controller's clock; NaN before the first one.
        seconds: time of its samples so far [s].
        energy: bus energy less the energy of motors and drivers [J]; NaN where unknown.
        changes: change of the energy of motors and drivers per error [errors], J.
        still: whether the arm stands still in all samples.
        released: whether the brakes are released in all samples.
    """

    number: float = math.nan
    seconds: float = 0.0
    energy: float = 0.0
    changes: Array = field(default_factory=lambda: _NO_ERRORS)
    still: bool = True
    released: bool = True


class _Stretches(NamedTuple):
    """Consecutive samples summed over the stretches that lie in one block each.

    Attributes:
        lengths: numbers of samples [stretches].
        numbers: numbers of the blocks on the controller's clock [stretches].
        seconds: times of the samples [stretches], s.
        energies: bus energies less the energies of motors and drivers [stretches], J.
        changes: changes of the energy of motors and drivers per error [stretches,
            errors], J.
        still: whether the arm stands still in all samples [stretches].
        released: whether the brakes are released in all samples [stretches].
    """

    lengths: Indices
    numbers: list[float]
    seconds: list[float]
    energies: list[float]
    changes: Array
    still: list[bool]
    released: list[bool]

    @classmethod
    def of_samples(
        cls,
        time: Array,
        steps: Array,
        still: Mask,
        released: Mask,
        unexplained: Array,
        sensitivities: Array,
    ) -> _Stretches:
        """The stretches of samples; arguments as for `StandbyFollower.update`."""
        number = np.floor(time / BLOCK)
        starts = run_starts(number)
        changes = steps[:, None] * sensitivities
        return cls(
            lengths=np.diff(starts, append=len(time)),
            numbers=number[starts].tolist(),
            seconds=np.add.reduceat(steps, starts).tolist(),
            energies=np.add.reduceat(steps * unexplained, starts).tolist(),
            changes=np.add.reduceat(changes, starts, axis=0),
            still=np.logical_and.reduceat(still, starts).tolist(),
            released=np.logical_and.reduceat(released, starts).tolist(),
        )


class StandbySeries(NamedTuple):
    """Standby power in use at consecutive samples.

    Attributes:
        power: standby power [samples], W.
        std: standard deviation of the standby power [samples], W.
        errors: change of the standby power per error of the power of motors and drivers
            [samples, errors], W.
    """

    power: Array
    std: Array
    errors: Array

    @classmethod
    def joined(cls, parts: Sequence[StandbySeries]) -> StandbySeries:
        """The standby power at samples that follow one another, from at least one part."""
        return cls(
            power=np.concatenate([part.power for part in parts]),
            std=np.concatenate([part.std for part in parts]),
            errors=np.concatenate([part.errors for part in parts]),
        )


class StandbyFollower:
    """Follows the standby power of one session after the other.

    Args:
        nominal: the model's standby power [W].
        spread: standard deviation of standby power between sessions [W].
        limit: largest deviation of the power in use from the nominal one [W].
        enabled: False keeps the nominal power.
        motion_std: standard deviation of the power of a second of motion, see `BusModel`
            [W].
        motion_variance: variance of the energy of motion per second, see `BusModel`
            [J^2/s].

    Attributes:
        state: the estimate after the last complete block.
        common: standard deviation of the error that all motions of the session have [W].
    """

    def __init__(
        self,
        nominal: float,
        spread: float,
        *,
        limit: float = 15.0,
        enabled: bool = True,
        motion_std: float = 0.0,
        motion_variance: float = 0.0,
    ) -> None:
        self.nominal = nominal
        self.spread = spread
        self.limit = limit
        self.enabled = enabled
        self.common = MOTION_OF_SESSION * motion_std
        self._motion_variance = motion_variance
        self.state = StandbyState(nominal, spread**2)
        self._block = _Block()

    def begin(self, known: StandbyState | None = None) -> None:
        """Begin a session.

        Args:
            known: estimate of this session from an earlier pass; None to begin with the
                model's standby power.
        """
        self.state = known or StandbyState(self.nominal, self.spread**2)
        self._block = _Block()

    def continue_from(self, earlier: StandbyFollower) -> None:
        """Continue the session of a follower whose model has other errors of the motors.

        The uncertainty that the earlier model's errors gave to the estimate counts as
        noise from now on.
        """
        state = earlier.state
        variance = state.variance + float(state.errors @ state.errors)
        # Empty: `update` allocates as many errors as its samples have.
        self.state = state._replace(
            variance=min(variance, self.spread**2), errors=_NO_ERRORS
        )

    def update(
        self,
        time: Array,
        steps: Array,
        still: Mask,
        released: Mask,
        unexplained: Array,
        sensitivities: Array,
    ) -> StandbySeries:
        """Standby power at consecutive samples of one session, batch by batch.

        A sample gets the estimate from the blocks before its own.

        Args:
            time: controller timestamps [samples], s.
            steps: time from the sample before to each sample, zero over a gap [samples],
                s.
            still: whether the arm is held at standstill [samples].
            released: whether its brakes are released [samples].
            unexplained: bus power less the power of motors and drivers [samples], W; NaN
                where unknown.
            sensitivities: change of the power of motors and drivers per error [samples,
                errors], W.
        """
        count = sensitivities.shape[1]
        if len(self.state.errors) != count:
            self.state = self.state._replace(errors=np.zeros(count))
        if len(self._block.changes) != count:
            self._block.changes = np.zeros(count)
        stretches = _Stretches.of_samples(
            time, steps, still, released, unexplained, sensitivities
        )
        stretch_count = len(stretches.numbers)
        power = np.empty(stretch_count)
        at_rest = np.empty(stretch_count)
        in_motion = np.empty(stretch_count)
        errors = np.empty((stretch_count, count))
        for index, number in enumerate(stretches.numbers):
            if self._block.number != number:
                self._close_block(number)
            block = self._block
            block.seconds += stretches.seconds[index]
            block.energy += stretches.energies[index]
            block.changes = block.changes + stretches.changes[index]
            block.still = block.still and stretches.still[index]
            block.released = block.released and stretches.released[index]
            power[index] = self.power
            at_rest[index], in_motion[index] = self._deviations()
            errors[index] = self._errors
        lengths = stretches.lengths
        std_at_rest = np.repeat(at_rest, lengths)
        std_in_motion = np.repeat(in_motion, lengths)
        return StandbySeries(
            power=np.repeat(power, lengths),
            std=np.where(still, std_at_rest, std_in_motion),
            errors=np.repeat(errors, lengths, axis=0),
        )

    def _close_block(self, number: float) -> None:
        """Use the complete block, and begin the next one."""
        block = self._block
        passed = (number - block.number) * BLOCK
        if math.isfinite(passed):
            drifted = self.state.variance + DRIFT * max(passed, 0.0)
            # However long nothing is measured, the standby power of a session differs
            # from the nominal one by no more than the sessions differ.
            self.state = self.state._replace(variance=min(drifted, self.spread**2))
        usable = block.seconds > 0.0 and block.released and math.isfinite(block.energy)
        if usable:
            self.state = standby_step(
                self.state,
                block.seconds,
                block.energy / block.seconds,
                block.changes / block.seconds,
                moving=not block.still,
                motion_variance=self._motion_variance,
            )
        self._block = _Block(number, changes=np.zeros_like(block.changes))

    @property
    def _errors(self) -> Array:
        """Change of the power in use per error of the power of motors and drivers [errors], W."""
        return self.state.errors if self.enabled else np.zeros_like(self.state.errors)

    @property
    def anchored(self) -> bool:
        """Whether the power in use is the one that the session has shown."""
        return self.enabled and self.state.measured

    @property
    def measured(self) -> float | None:
        """Standby power that the session has shown, without limit [W]; None before it has."""
        return self.state.power if self.state.measured else None

    @property
    def still_seconds(self) -> float:
        """Standstill that was used [s]."""
        return self.state.still_seconds

    @property
    def power(self) -> float:
        """Standby power in use [W]."""
        if not self.enabled:
            return self.nominal
        lowest = self.nominal - self.limit
        return min(max(self.state.power, lowest), self.nominal + self.limit)

    @property
    def std(self) -> float:
        """Standard deviation of `power` for motions to come [W]."""
        at_rest, _ = self._deviations()
        return math.hypot(at_rest, POSE_STD) if self.anchored else at_rest

    def _deviations(self) -> tuple[float, float]:
        """Standard deviations of the power at standstill and in motion [W]."""
        if not self.enabled:
            return self.spread, self.spread
        variance = self.state.variance
        if not self.state.measured:
            return math.sqrt(variance), math.sqrt(variance)
        # The share `motion` of the estimate contains the error that all motions of the
        # session have: an error at standstill. The rest of the error counts in motion.
        at_rest = variance + (self.state.motion * self.common) ** 2
        in_motion = variance + ((1.0 - self.state.motion) * self.common) ** 2
        return math.sqrt(at_rest), math.sqrt(in_motion)

    @property
    def at_limit(self) -> bool:
        """Whether the measured standby power is further from the nominal one than the limit."""
        measured = self.measured
        return measured is not None and abs(measured - self.nominal) > self.limit
