# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The session of an arm: friction scales of the day and standby power, from telemetry."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.drives import MOTION_STD
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.sessions import (
    SESSION_GAP,
    Session,
    SessionFriction,
    begins_session,
    friction_directions,
)
from ur_energy_model.telemetry.plausibility import PlausibleRanges, impossible_rows
from ur_energy_model.telemetry.samples import (
    Telemetry,
    changes,
    equal_runs,
    slices_between,
    time_blocks,
)
from ur_energy_model.typing import Array, Indices, Mask

# Friction scales: the part of measured currents that friction explains.


class FrictionSplit:
    """Splits currents into friction that varies between sessions and everything else, n joints."""

    def __init__(self, model: EnergyModel) -> None:
        self.ratio = np.array([joint.gear_ratio for joint in model.joints])
        self.constant = np.array([joint.torque_constant for joint in model.joints])
        self.inertia = np.array([joint.inertia for joint in model.joints])
        self._bank = FrictionBank([joint.friction for joint in model.joints], self.ratio)
        self._weights = []  # of the friction terms in currents of scale, tilt and the rest [p, 3]
        for joint in model.joints:
            level, tilt = friction_directions(joint.friction.law.parameters)
            per_ampere = joint.friction.values / joint.torque_constant
            self._weights.append(np.stack([level, tilt, 1.0 - level], axis=1) * per_ampere[:, None])

    def __call__(
        self,
        qd: Array,
        load: Array,
        current: Array,
        temperature: Array | None,
        direction: Array | None = None,
    ) -> tuple[Array, Array]:
        """Currents per unit of scale and tilt [samples, n, 2], and those left [samples, n], A.

        `load` is the torque of links, payload and rotors, joint side [samples, n], N m;
        temperatures [n] or [samples, n], degC, are NaN where unknown; direction: `FrictionBank`.
        """
        terms = self._bank.regressors(qd, load, temperature, direction)
        parts = np.stack([t @ w for t, w in zip(terms, self._weights, strict=True)], axis=1)
        left = current - load / (self.ratio * self.constant) - parts[..., 2]
        return parts[..., :2], left


ANCHOR_SPEED = 0.1
"""Least joint speed that is used, away from stiction and the reversal of friction [rad/s]."""
CORRELATION_TIME = 0.3  # correlation time of the model error of a current [s]
WITHIN_SESSION = 0.03
"""Relative standard deviation of friction within a session: warming, different motions."""
TILT_SPREAD = 0.09
"""Standard deviation of the tilt between sessions. With FRICTION_SPREAD it makes 0.20 for friction
that depends on the speed and 0.12 for Coulomb friction, the spreads between days of a UR10e."""
FADING = 900.0
"""Time constant with which samples count less [s]: joints warm up within minutes to an hour."""
USUAL_MISFIT = 3.0
"""Error of currents in a session over that of filtered currents in the fit, which vibration, noise
and another day explain: 1.6 to 3 in nine of ten pairs of UR10e recordings, 7 and more where payload
or arm are others."""
ANCHOR_BLOCK = 0.25  # time of samples that are used together [s]


class FrictionAnchor:
    """Friction scale and tilt of the session of an arm with n joints, recursively from samples.

    Bayesian linear regression of the currents that friction explains, with the spread between
    sessions as prior; samples within CORRELATION_TIME count as one, and fade (FADING).
    """

    def __init__(self, model: EnergyModel) -> None:
        n = model.dof
        self.prior = Session.unanchored(model.bus.standby, model.sessions, n)
        self.split = FrictionSplit(model.in_session(self.prior))
        self.moving_seconds = np.zeros(n)  # motion of each joint so far [s]
        self._residual = np.array([joint.current_residual for joint in model.joints])
        # Time integrals of products of friction per scale and tilt, the currents left, and 1
        # [n, 4, 4], A^2 s.
        self._sums = np.zeros((n, 4, 4))
        self._time = math.nan

    def observe(
        self,
        dynamics: ArmDynamics,
        time: Array,
        q: Array,
        qd: Array,
        qdd: Array,
        current: Array,
        temperature: Array | None = None,
    ) -> None:
        """Use consecutive samples that follow the previous ones: motion and motor currents.

        Times [samples], s; all others [samples, n] in rad, rad/s, rad/s^2, A and degC, NaN where a
        temperature is unknown. The dynamics are of the arm in its current setup.
        """
        load = dynamics.inverse_dynamics(q, qd, qdd) + self.split.inertia * qdd
        self._use(time, qd, *self.split(qd, load, current, temperature))

    def track(self, time: Array, qd: Array, friction: Array, left: Array) -> tuple[Array, Array]:
        """Use consecutive samples, split by `split`; what was known of friction before each.

        Returns the currents of friction [samples, n], A, by scale and tilt from the samples before
        the block of theirs, and their variance [samples, n], A^2: also what these samples left
        unexplained beyond the usual.
        """
        known, blocks = self._use(time, qd, friction, left)
        lengths = np.diff(blocks, append=len(time))
        mean, own, noise = (
            np.repeat(each, lengths, axis=0) for each in self._posterior(known, self.prior, 0.0)
        )
        variance = np.einsum("snk,snkl,snl->sn", friction, own, friction)
        excess = np.maximum(noise - (USUAL_MISFIT * self._residual) ** 2, 0.0)
        return (friction * mean).sum(axis=2), variance + excess

    def session(self, prior: Session | None = None, time: float | None = None) -> Session:
        """The session by the samples so far, friction the mean of a normal posterior.

        The standard deviation of the scale is at least WITHIN_SESSION. What is known of the session
        otherwise is `prior`, standby included: None for the spread between sessions. `time`: at
        which friction is needed [s], by default that of the last sample.
        """
        prior = self.prior if prior is None else prior
        if not self.moving_seconds.any():
            return prior
        sums = self._sums * self._kept(self._time if time is None else time)
        mean, covariance, _ = self._posterior(sums, prior, WITHIN_SESSION)
        std, tilt = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)).T
        return replace(
            prior,
            friction_scale=mean[:, 0],
            friction_std=std,
            moving_seconds=max(prior.moving_seconds, float(self.moving_seconds.max())),
            friction_tilt=mean[:, 1],
            tilt_std=tilt,
            tilt_correlation=covariance[:, 0, 1] / (std * tilt),
        )

    def saved(self) -> dict[str, Array]:
        """Everything needed to continue with the same model, for `restore`."""
        seconds, time = self.moving_seconds, np.array(self._time)
        return {"sums": self._sums, "seconds": seconds, "time": time}

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `saved` gave."""
        self._sums, self.moving_seconds = saved["sums"], saved["seconds"]
        self._time = float(saved["time"])

    def _posterior(self, sums: Array, prior: Session, changes: float) -> tuple[Array, Array, Array]:
        """Mean [..., n, 2] and covariance [..., n, 2, 2] of scale and tilt, from `_sums`.

        Also the mean squared error of the currents that is left [..., n], A^2. The scale `changes`
        from these samples on by this standard deviation.
        """
        squares, products = sums[..., :2, :2], sums[..., :2, 2]
        seconds = np.maximum(sums[..., 3, 3], 1e-9)
        spread = np.maximum(prior.friction_std, 1e-9)
        information = np.zeros((len(spread), 2, 2))
        information[:, 0, 0], information[:, 1, 1] = 1.0 / spread**2, 1.0 / TILT_SPREAD**2
        known = information[:, :, 0] * prior.friction_scale[:, None]
        noise = np.maximum(self._residual**2, 1e-6 * squares[..., 0, 0] / seconds)
        for _ in range(2):  # the error of the model's currents is at least what is left in the end
            weight = 1.0 / np.maximum(noise * CORRELATION_TIME, 1e-18)
            covariance = np.linalg.inv(information + weight[..., None, None] * squares)
            right = known + weight[..., None] * products
            mean = (covariance @ right[..., None])[..., 0]
            error = sums[..., 2, 2] - 2 * (mean * products).sum(axis=-1)
            error += np.einsum("...i,...ij,...j", mean, squares, mean)
            noise = np.maximum(noise, error / seconds)
        variance = covariance[..., 0, 0] + changes**2
        covariance[..., 0, 0] = np.minimum(variance, prior.friction_std**2)
        return mean, covariance, noise

    def _use(self, time: Array, qd: Array, friction: Array, left: Array) -> tuple[Array, Indices]:
        """Use samples; returns the sums before each block [blocks, n, 4, 4], and its begin."""
        steps = np.clip(np.diff(time, prepend=time[0]), 0.0, CORRELATION_TIME)
        weight = np.where(np.abs(qd) >= ANCHOR_SPEED, steps[:, None], 0.0)
        rows = np.concatenate([friction, left[..., None], np.ones((*qd.shape, 1))], axis=2)
        products = (weight[..., None] * rows)[..., None] * rows[:, :, None]
        begins = np.array([block.start for block in time_blocks(time, ANCHOR_BLOCK)])
        grams = np.add.reduceat(products, begins, axis=0)
        before = np.empty_like(grams)
        for k, end in enumerate(np.append(begins[1:], len(time)) - 1):
            before[k], now = self._sums, float(time[end])
            self._sums, self._time = self._kept(now) * self._sums + grams[k], now
        self.moving_seconds = self.moving_seconds + grams[..., 3, 3].sum(axis=0)
        return before, begins

    def _kept(self, time: float) -> float:
        """Share of the samples so far that counts at a later time [s]."""
        return math.exp(-(time - self._time) / FADING) if time > self._time else 1.0


class RunningMean:
    """Exponentially weighted mean and variance of a slow quantity, unbiased from the first value.

    `elapsed` is the time observed [s], up to a time constant [s] the mean is arithmetic.
    """

    def __init__(self, time_constant: float) -> None:
        self.time_constant = time_constant
        self.mean = self.variance = self.elapsed = 0.0

    def update(self, duration: float, value: float) -> float:
        """Include a value that lasted `duration` [s]; returns its weight in the mean."""
        if duration <= 0:
            return 0.0
        self.elapsed += duration
        # An arithmetic mean at first, exponential once a time constant has passed.
        weight = min(1.0, duration / min(self.elapsed, self.time_constant))
        delta = value - self.mean
        self.mean += weight * delta
        self.variance = (1.0 - weight) * (self.variance + weight * delta * delta)
        return weight

    @property
    def std(self) -> float:
        """Standard deviation of the values."""
        return math.sqrt(self.variance)


# Standby power of the session, tracked at standstill.
#
# An arm's standby power differs by several watts between days. While all joints stand still, it is
# the bus power less that of motors and drivers, averaged over blocks of the controller's clock so
# that the result does not depend on how samples are batched. An error of the power that holds the
# arm is then in the standby power with the opposite sign, so that the whole arm's power at
# standstill does not have it, and that in motion only the difference.

BLOCK = 0.05  # length of the averaging blocks [s]
SETTLING = 0.15  # standstill before averaging begins, so that transients have decayed [s]
ANCHORING = 0.5  # settled standstill after which the session's standby counts as known [s]
STANDBY_TIME_CONSTANT = 10.0
"""Of the tracked standby power [s]: bus noise of 3 W a sample at 500 Hz leaves 0.03 W."""
ANCHORED_STD = 0.4
"""Standard deviation of a session's standby after long standstill [W]: holding currents depend on
the pose, and standby drifts between standstills."""
BLOCK_NOISE = 0.8  # standard deviation of a block's mean for fewer than four blocks [W]
STRETCH = 3600.0
"""Longest time for which a finished recording has one standby power [s]: it drifts."""


class Standby(NamedTuple):
    """Standby power in use at consecutive samples.

    `used` [samples, 3 + k] has the number 1, the power, its standard deviation, W, and its change
    per error of the power of motors and drivers, W. `anchor` is the first of these samples at which
    the session's own standby power is in use, and that, else None, and `begins` those with which a
    stretch begins (`Stretches`).
    """

    used: Array
    anchor: tuple[int, SettledStandby] | None
    begins: list[int]


class Stretches:
    """Divides samples into stretches: sessions, and hours of a session (STRETCH)."""

    def __init__(self) -> None:
        self._last = self._begin = math.nan
        self._number = 0.0

    def __call__(self, time: Array, bridged: Array) -> list[int]:
        """Samples with which a stretch begins, other than the very first one.

        Controller times of samples that follow those of the last call, and bridged steps to them
        [samples], s.
        """
        within = float(time[-1]) - self._begin < STRETCH * (self._number + 1.0)
        if within and bridged.min() > 0.0:  # the usual case
            self._last = float(time[-1])
            return []
        if math.isnan(self._last):
            self._last = self._begin = float(time[0])
        steps = changes(time, self._last)
        other = (steps < 0.0) | (steps > SESSION_GAP)
        first = np.maximum.accumulate(np.where(other, np.arange(len(time)), -1))
        begin = np.where(first >= 0, time[first], self._begin)
        number = np.floor((time - begin) / STRETCH)
        found: list[int] = np.flatnonzero(other | (changes(number, self._number) != 0.0)).tolist()
        self._last, self._begin, self._number = float(time[-1]), float(begin[-1]), float(number[-1])
        return found


class SettledStandby(NamedTuple):
    """Standby power of a stretch, the mean over its standstill, and its deviations [W].

    `std` is that in motion, `still_std` that at standstill, which the mean is of. `errors` is its
    change per error of the power of motors and drivers [k], W. Before ANCHORING seconds of
    standstill it is not `anchored`, but the model's.
    """

    anchored: bool
    power: float
    std: float
    still_std: float
    errors: Array
    still_seconds: float


class StandstillMean:
    """Mean of the standby power over blocks of settled standstill, with a time constant [s]."""

    def __init__(self, time_constant: float) -> None:
        self.watts = RunningMean(time_constant)
        self.errors = np.zeros(0)
        """Mean change of the power of motors and drivers per error [k], W."""
        self._blocks = 0

    def include(self, duration: float, watts: float, errors: Array) -> None:
        """Include a block [s], its standby power [W] and its change per error [k], W."""
        weight = self.watts.update(duration, watts)
        known = self.errors if len(self.errors) == len(errors) else np.zeros(len(errors))
        self.errors = known + weight * (errors - known)
        self._blocks += 1

    @property
    def noise(self) -> float:
        """Standard deviation of the mean by the scatter of the blocks [W]."""
        noise = self.watts.std if self._blocks >= 4 else max(self.watts.std, BLOCK_NOISE)
        return noise / math.sqrt(self._blocks)


class StandbyTracker:
    """Standby power of a session from the bus power at standstill.

    Before ANCHORING seconds of settled standstill it is the model's, with the spread between
    sessions as its standard deviation.

    Args:
        nominal: the model's standby power [W].
        spread: standard deviation of standby power between sessions [W].
        limit: largest deviation from the nominal power [W].
        enabled: False keeps the nominal power.

    Attributes:
        motion: standard deviation of the error that all motions of the session have [W].
    """

    def __init__(
        self,
        nominal: float,
        spread: float,
        limit: float = 15.0,
        enabled: bool = True,
    ) -> None:
        self.nominal, self.spread, self.motion = nominal, spread, MOTION_STD
        self.limit, self.enabled = limit, enabled
        self._mean = StandstillMean(STANDBY_TIME_CONSTANT)
        self._stretches, self._whole = Stretches(), StandstillMean(math.inf)
        self.settled: list[SettledStandby] = []  # of the stretches that are over
        self._still = 0.0  # duration of the current standstill [s]
        self._block: float | None = None
        """Number of the block in progress; its time [s], energy without motors and drivers [J],
        changes of their energy per error [k], J, and whether all samples are of standstill."""
        self._duration, self._energy, self._changes, self._known = 0.0, 0.0, np.zeros(0), True

    def update(
        self,
        time: Array,
        steps: Array,
        still: Mask,
        unexplained: Array | None,
        sensitivities: Array | None = None,
    ) -> Standby:
        """Standby power at samples that follow those of the last call.

        Args:
            time: controller timestamps [samples], s.
            steps: bridged steps to the samples [samples], s.
            still: whether the arm is held at standstill [samples].
            unexplained: bus power less motors and drivers [samples], W; None or NaN where unknown.
            sensitivities: change of the power of motors and drivers per error [samples, k], W.
        """
        n, begins = len(time), self._stretches(time, steps)
        sensitivities = np.zeros((n, 0)) if sensitivities is None else sensitivities
        if len(self._changes) != sensitivities.shape[1]:
            self._changes = np.zeros(sensitivities.shape[1])
        watts = np.full(n, np.nan) if unexplained is None else unexplained
        used = np.empty((n, 3 + sensitivities.shape[1]))
        anchor: tuple[int, SettledStandby] | None = None
        for part in equal_runs(block := np.floor(time / BLOCK)):
            if self._block != block[part.start]:
                before, self._block = self.anchored, float(block[part.start])
                self._close_block()
                if self.anchored and not before:
                    known = (self.power, self.std, self.std)
                    now = (*known, self._mean.errors, self.still_seconds)
                    anchor = part.start, SettledStandby(True, *now)
            for _ in [k for k in begins if part.start <= k < part.stop] if begins else ():
                self.settled.append(self._settled_now())
                self._whole = StandstillMean(math.inf)
            lasted = steps[part]
            if self._known and still[part].all():
                self._energy += float(lasted @ watts[part])
                self._changes += lasted @ sensitivities[part]
                self._known = math.isfinite(self._energy)
            else:
                self._known = False
            self._duration += float(lasted.sum())
            used[part, :3] = 1.0, self.power, self.std
            used[part, 3:] = -self._mean.errors if self.anchored else 0.0
        return Standby(used, anchor, begins)

    def finish(self) -> list[SettledStandby]:
        """End the last stretch; those so far, or since the last call, in order.

        A stretch without enough standstill has the standby power of the nearest one before, else of
        the next one.
        """
        found = [*self.settled, self._settled_now()]
        self.settled, self._whole = [], StandstillMean(math.inf)
        for order in (range(1, len(found)), range(len(found) - 2, -1, -1)):
            for k in order:
                found[k] = found[k] if found[k].anchored else found[k - order.step]
        return found

    def _settled_now(self) -> SettledStandby:
        """Of the stretch in progress."""
        whole, seconds = self._whole, self._whole.watts.elapsed
        if not self.enabled or seconds < ANCHORING - 1e-9:
            unknown = (self.nominal, self.spread, self.spread)
            return SettledStandby(False, *unknown, 0.0 * self._changes, 0.0)
        power = self._limited(whole.watts.mean)
        std = math.hypot(self.motion, whole.noise)
        return SettledStandby(True, power, std, whole.noise, whole.errors, seconds)

    @property
    def measured(self) -> float | None:
        """Mean measured standby power without limit [W]; None until the session is anchored."""
        watts = self._mean.watts
        return watts.mean if watts.elapsed >= ANCHORING - 1e-9 else None

    @property
    def still_seconds(self) -> float:
        """Settled standstill in the average [s]."""
        return self._mean.watts.elapsed

    @property
    def anchored(self) -> bool:
        """Whether the session's own standby power is in use."""
        return self.enabled and self.measured is not None

    @property
    def power(self) -> float:
        """Standby power in use [W]."""
        if not self.enabled or (measured := self.measured) is None:
            return self.nominal
        return self._limited(measured)

    @property
    def std(self) -> float:
        """Standard deviation of `power` [W]."""
        return math.hypot(ANCHORED_STD, self._mean.noise) if self.anchored else self.spread

    @property
    def at_limit(self) -> bool:
        """Whether the measured standby exceeds the limit."""
        return self.measured is not None and abs(self.measured - self.nominal) > self.limit

    def _limited(self, measured: float) -> float:
        return min(max(measured, self.nominal - self.limit), self.nominal + self.limit)

    def _close_block(self) -> None:
        """Include the completed block in the average."""
        duration = self._duration
        if duration > 0.0 and not self._known:
            self._still = 0.0
        elif duration > 0.0 and self._still < SETTLING:
            self._still += duration
        elif duration > 0.0:
            self._mean.include(duration, self._energy / duration, self._changes / duration)
        if duration > 0.0 and self._known:  # transients are part of what standstill takes
            self._whole.include(duration, self._energy / duration, self._changes / duration)
        self._duration, self._energy, self._known = 0.0, 0.0, True
        self._changes[:] = 0.0


class RecordingStandby(StandbyTracker):
    """Standby power of a finished recording, from the first sample of each of its stretches on.

    `first` has tracked it, in a first pass over the same samples. Being the mean of what standstill
    shows, it adds no error to the energy of standstill but that of its noise.
    """

    def __init__(self, first: StandbyTracker) -> None:
        super().__init__(first.nominal, first.spread, first.limit, first.enabled)
        self._of_stretches = first.finish()
        self._at = 0

    def update(
        self,
        time: Array,
        steps: Array,
        still: Mask,
        unexplained: Array | None,
        sensitivities: Array | None = None,
    ) -> Standby:
        """As `StandbyTracker.update`."""
        begins = self._stretches(time, steps)
        used = np.empty((len(time), 3 + (0 if sensitivities is None else sensitivities.shape[1])))
        for part in slices_between(begins, len(time)):
            self._at += part.start in begins
            used[part, :2] = 1.0, self.power
            used[part, 2] = np.where(still[part], self._now.still_std, self.std)
            used[part, 3:] = -self._now.errors
        return Standby(used, None, begins)

    @property
    def _now(self) -> SettledStandby:
        return self._of_stretches[self._at]

    @property
    def measured(self) -> float | None:
        """Standby power measured in this stretch [W]; None for the model's."""
        return self._now.power if self._now.anchored else None

    @property
    def still_seconds(self) -> float:
        """Settled standstill in the mean [s]."""
        return self._now.still_seconds

    @property
    def std(self) -> float:
        """Standard deviation of `power` [W]."""
        return self._now.std


# A model in the session of its arm, as far as that is known.

_TOGETHER = 4.0  # time of the samples that are used together [s]: their dynamics take longest
_PERIOD = 0.04  # of the samples that are used [s]; errors of the currents correlate for longer
_FIELDS = ("target_q", "target_qd", "target_qdd", "actual_current")
_WARMTH = "joint_temperatures"


class SessionModel:
    """A model with what is known of the session.

    Friction is what the motion of the session shows, with what learning follows as prior until it
    has followed a joint in this session, too, and owns it. Standby power is tracked at standstill.

    Args:
        model: of the arm, in its session or in any; one that is anchored stays as it is.
        limits: of the arm; blocks of samples with a value beyond them anchor nothing.
        dynamics: of the arm in its current setup.
    """

    def __init__(
        self, model: EnergyModel, limits: PlausibleRanges, dynamics: Callable[[], ArmDynamics]
    ) -> None:
        self._model, self._session = model, model.session
        self._friction: SessionFriction | None = None
        self._tracked: EnergyModel | None = None
        self._limits, self._dynamics = limits, dynamics
        self._time: float | None = None
        self._begin()

    def _begin(self) -> None:
        anchored = self._model.session.moving_seconds > 0
        self._anchor = None if anchored else FrictionAnchor(self._model)
        self._waiting: list[Telemetry] = []

    def observe(self, samples: Telemetry) -> None:
        """Anchor friction on the motion of a session, from samples that follow the last ones.

        Accelerations are the controller's targets: those differentiated from measured speeds come
        too late, and inertia would count as friction.
        """
        before, self._time = self._time, float(samples.time[-1])
        if before is None or begins_session(before, float(samples.time[0])):
            self._begin()
        if self._anchor is not None and all(name in samples.columns for name in _FIELDS):
            if self._waiting and samples.columns.keys() != self._waiting[0].columns.keys():
                self._use_waiting()
            self._waiting.append(samples)
            if self._time - float(self._waiting[0].time[0]) >= _TOGETHER:
                self._use_waiting()

    def _use_waiting(self) -> None:
        if self._anchor is None or not self._waiting:
            return
        batches, self._waiting = self._waiting, []
        time = np.concatenate([each.time for each in batches])
        if len(time) < 2:
            return
        rows = slice(None, None, max(1, round(_PERIOD * len(time) / float(np.ptp(time)))))
        names = [name for name in (*_FIELDS, _WARMTH) if name in batches[0].columns]
        used = {n: np.concatenate([each.columns[n] for each in batches])[rows] for n in names}
        warmth = used.pop(_WARMTH, None)
        if np.abs(used["target_qd"]).max() < ANCHOR_SPEED:
            return
        if not impossible_rows(used, self._limits)[0].any():
            q, qd, qdd, current = used.values()
            self._anchor.observe(self._dynamics(), time[rows], q, qd, qdd, current, warmth)

    def use_friction(self, friction: SessionFriction | None) -> None:
        """Take this friction from now on; None for that of the model."""
        session, self._friction, self._tracked = self._model.session, friction, None
        self._session = session if friction is None else friction.applied_to(session)

    def tracked(self) -> EnergyModel:
        """The model for samples, whose error of standby power the standby tracker states."""
        if self._tracked is None:
            self._tracked = self._model.in_session(replace(self._session, standby_std=0.0))
        return self._tracked

    def anchored(self, standby: StandbyTracker) -> EnergyModel:
        """The model for predictions, with the standby power that is tracked."""
        self._use_waiting()
        session, friction = self._session, self._friction
        if self._anchor is not None:
            # What learning has followed in this session is the motion that the anchor has, too.
            follows = friction is not None and friction.moving_seconds > 0
            prior = self._model.session if follows else session
            session = self._anchor.session(prior, self._time)
            session = friction.applied_to(session) if friction and follows else session
        session = replace(session, standby=standby.power, standby_std=standby.std)
        if standby.anchored:
            session = replace(session, still_seconds=standby.still_seconds)
        return self._model.in_session(session)
