# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Standby power: the bus power less the power of motors and drivers.

An arm's standby power differs by several watts between days. Means over blocks of the
controller's clock are measurements of it, so that the result does not depend on how samples are
batched. At standstill they have the noise of the bus alone; in motion the error of the model's
power of motion, too, of which one part is new every MOTION_TIME and another one is common to all
motions of the session. An error of the model's parameters changes the measurement by the
sensitivity of motors and drivers, with the opposite sign: the estimate keeps this change per
error (Schmidt 1966, a filter with parameters that are considered and not estimated), so that the
error of the whole arm's power is that of the difference to the poses and motions it was
measured in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.drives import MOTION_OF_SESSION
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Array, Mask

BLOCK = 0.05  # length of the blocks [s]
SETTLING = 0.15  # standstill before blocks are used, so that transients have decayed [s]
ANCHORING = 0.5  # settled standstill after which the session's standby counts as measured [s]
ANCHORING_MOTION = 10.0  # the same of motion, for a program that never stands still [s]
NOISE = 0.032
"""Variance of the mean over a time at standstill, times that time [W^2 s], before the scatter of
the blocks shows it: 3 W a sample at 125 Hz, 0.8 W a block."""
DRIFT = 2.0e-4
"""Variance by which standby power drifts per second [W^2/s]: 0.4 W in a quarter of an hour. With
NOISE the filter forgets with a time constant of 13 s of standstill."""
POSE_STD = 0.2
"""Standard deviation of the power at standstill between poses that no sensitivity explains [W]."""
_NOISE_MEMORY = 100  # blocks that the estimate of the noise goes back
_FIRST_BLOCKS = 4  # blocks that NOISE counts as
_SURPRISE = 4.0
"""Measurements in motion beyond so many standard deviations count as just so many: the model's
error in a rare motion must not move the standby power far."""


@dataclass(frozen=True)
class StandbyState:
    """Estimate of the standby power of a session after the last complete block."""

    power: float  # mean of the estimate [W]
    variance: float  # variance by noise and drift [W^2]
    errors: Array = field(default_factory=lambda: np.zeros(0))
    """Change of the estimate per error of the power of motors and drivers [errors], W."""
    motion: float = 0.0  # share of the estimate that was measured in motion, 0 to 1
    still_seconds: float = 0.0  # settled standstill that was used [s]
    moving_seconds: float = 0.0  # motion that was used [s]
    known: bool = False  # whether an earlier pass over the session has shown it
    noise: float = NOISE  # variance of a mean at standstill times its time [W^2 s]
    blocks: int = 0  # blocks at standstill that were used

    def for_another_pass(self) -> StandbyState:
        """This state at the begin of another pass over the same session."""
        return replace(self, known=self.measured, still_seconds=0.0, moving_seconds=0.0)

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
    """The estimate after another block.

    Args:
        state: estimate before it, drift included.
        seconds: time of the block [s].
        watts: mean of bus power less motors and drivers over it [W].
        sensitivity: mean change of the power of motors and drivers per error [errors], W.
        moving: whether the arm moved.
        motion_variance: of the energy of motion per second, see `BusModel` [J^2/s].
    """
    spread = state.variance + state.noise / seconds
    innovation = watts - state.power
    if moving:
        spread += motion_variance / seconds
        spread = max(spread, (innovation / _SURPRISE) ** 2)
    gain = state.variance / spread
    noise = state.noise
    if not moving:
        weight = 1.0 / min(_FIRST_BLOCKS + state.blocks, _NOISE_MEMORY)
        usual = min(innovation**2, _SURPRISE**2 * spread)
        shown = max(usual - state.variance, 0.0) * seconds
        noise += weight * (shown - noise)
    return replace(
        state,
        power=state.power + gain * innovation,
        variance=(1.0 - gain) * state.variance,
        errors=(1.0 - gain) * state.errors - gain * sensitivity,
        motion=(1.0 - gain) * state.motion + gain * moving,
        still_seconds=state.still_seconds + (0.0 if moving else seconds),
        moving_seconds=state.moving_seconds + (seconds if moving else 0.0),
        noise=max(noise, 1e-9),
        blocks=state.blocks + (not moving),
    )


@dataclass(frozen=True)
class _Block:
    """The block in progress."""

    number: float = math.nan  # of the controller's clock
    seconds: float = 0.0  # time so far [s]
    energy: float = 0.0  # bus energy less motors and drivers [J]; NaN where unknown
    changes: Array = field(default_factory=lambda: np.zeros(0))
    """Change of the energy of motors and drivers per error [errors], J."""
    still: bool = True  # whether all samples are of standstill
    released: bool = True  # whether the brakes were released in all samples


class StandbySeries(NamedTuple):
    """Standby power in use at consecutive samples."""

    power: Array  # [samples], W
    std: Array  # standard deviation [samples], W
    errors: Array  # change per error of the power of motors and drivers [samples, errors], W


class StandbyFollower:
    """Follows the standby power of one session after the other.

    Args:
        nominal: the model's standby power [W].
        spread: standard deviation of standby power between sessions [W].
        limit: largest deviation of the power in use from the nominal one [W].
        enabled: False keeps the nominal power.
        motion_std: of the power of a second of motion, see `BusModel` [W].
        motion_variance: of the energy of motion per second, see `BusModel` [J^2/s].

    Attributes:
        state: the estimate.
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
        self._still = 0.0  # duration of the current standstill [s]

    def begin(self, known: StandbyState | None = None) -> None:
        """Begin a session, with what is known of it already."""
        self.state = known or StandbyState(self.nominal, self.spread**2)
        self._block = _Block()
        self._still = 0.0

    def update(
        self,
        time: Array,
        steps: Array,
        still: Mask,
        released: Mask,
        unexplained: Array,
        sensitivities: Array,
    ) -> StandbySeries:
        """Standby power at samples of one session that follow those of the last call.

        Args:
            time: controller timestamps [samples], s.
            steps: bridged steps to the samples [samples], s.
            still: whether the arm is held at standstill [samples].
            released: whether its brakes are released [samples].
            unexplained: bus power less motors and drivers [samples], W; NaN where unknown.
            sensitivities: change of the power of motors and drivers per error [samples, k], W.
        """
        count = sensitivities.shape[1]
        if len(self.state.errors) != count:
            self.state = replace(self.state, errors=np.zeros(count))
        if len(self._block.changes) != count:
            self._block = replace(self._block, changes=np.zeros(count))
        powers, stds, errors = [], [], []
        number = np.floor(time / BLOCK)
        for rows in equal_runs(number):
            if self._block.number != number[rows.start]:
                self._close_block(float(number[rows.start]))
            seconds = steps[rows]
            self._block = replace(
                self._block,
                seconds=self._block.seconds + float(seconds.sum()),
                energy=self._block.energy + float(seconds @ unexplained[rows]),
                changes=self._block.changes + seconds @ sensitivities[rows],
                still=self._block.still and bool(still[rows].all()),
                released=self._block.released and bool(released[rows].all()),
            )
            length = rows.stop - rows.start
            powers.append(np.full(length, self.power))
            at_rest, in_motion = self._deviations()
            stds.append(np.where(still[rows], at_rest, in_motion))
            errors.append(np.broadcast_to(self._errors, (length, count)))
        return StandbySeries(np.concatenate(powers), np.concatenate(stds), np.concatenate(errors))

    def _close_block(self, number: float) -> None:
        """Use the complete block, and begin the next one."""
        block = self._block
        passed = (number - block.number) * BLOCK
        if math.isfinite(passed):
            drifted = self.state.variance + DRIFT * max(passed, 0.0)
            # Between sessions it differs by no more than this.
            self.state = replace(self.state, variance=min(drifted, self.spread**2))
        usable = block.seconds > 0.0 and block.released and math.isfinite(block.energy)
        settled = self._still >= SETTLING
        self._still = self._still + block.seconds if usable and block.still else 0.0
        if usable and (settled or not block.still):
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
        return self.state.errors if self.enabled else np.zeros_like(self.state.errors)

    @property
    def anchored(self) -> bool:
        """Whether the session has shown its standby power."""
        return self.enabled and self.state.measured

    @property
    def measured(self) -> float | None:
        """Standby power that the session has shown, without limit [W]; None before it has."""
        return self.state.power if self.state.measured else None

    @property
    def still_seconds(self) -> float:
        """Settled standstill that was used [s]."""
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
        """Standard deviation of `power` at standstill [W]."""
        return self._deviations()[0]

    def _deviations(self) -> tuple[float, float]:
        """Standard deviations of the power at standstill and in motion [W]."""
        if not self.enabled:
            return self.spread, self.spread
        own = self.state.variance
        common = self.common
        at_rest = own + (self.state.motion * common) ** 2
        in_motion = own + ((1.0 - self.state.motion) * common) ** 2
        if self.state.measured:
            at_rest += POSE_STD**2
        return math.sqrt(at_rest), math.sqrt(in_motion)

    @property
    def at_limit(self) -> bool:
        """Whether the measured standby exceeds the limit."""
        return self.measured is not None and abs(self.measured - self.nominal) > self.limit
