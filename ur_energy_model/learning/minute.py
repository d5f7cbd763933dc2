"""What one minute of work shows of friction, payload and mounting: a few numbers per joint."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ur_energy_model.energy.powers import ArmState, arm_states
from ur_energy_model.energy.session import (
    ANCHOR_SPEED,
    CORRELATION_TIME,
    FrictionSplit,
    StandbyTracker,
)
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.telemetry.samples import (
    Telemetry,
    concatenate,
    find_gaps,
    slices_between,
    time_blocks,
)
from ur_energy_model.typing import Array

MINUTE = 60.0
"""Length of a minute of the controller's clock [s]."""
LEAST_MOTION = 3.0
"""Motion of a joint in a minute from which its friction is estimated [s]."""
SETUP = ("mass", "tilt_x", "tilt_y")
"""Deviations from the setup configured in the controller: payload [kg], two angles [rad]."""
_RATE = 25.0
"""Samples used per second; the model's error of a current correlates over CORRELATION_TIME."""
_FRICTION_PRIOR = 1.0
_MASS, _MOMENT, _TILT = 3.0, 0.5, 0.3
"""Standard deviations before a minute's data: kg, kg m, rad."""
_LEAST_GAIN = 0.01
"""Relative standard deviation of a joint's torque per ampere, at least."""
_LEAST_SHARE = 1e-3
"""Least precision of a torque per ampere from data alone, over that of the model's value."""
_NOISE_SHARE = 0.02
"""Least error of a current, as a share of the RMS current."""
_ROUNDS = 2
_NUISANCE = 6
"""Columns shared by the joints: mass, three first moments, two tilts."""


@dataclass(frozen=True)
class Minute:
    """Statistics of one minute of work of an arm with n joints.

    Attributes:
        time: controller time at its end [s].
        moving_seconds: motion of each joint that was used [n], s.
        temperature: mean of each joint [n], degC; NaN where unknown.
        level: natural logarithm of each joint's friction over the model's [n]; NaN for joints
            that moved less than LEAST_MOTION.
        covariance: of the levels [n, n].
        setup: deviations from the stated setup [3], see SETUP; NaN without motion.
        setup_covariance: [3, 3].
        torque_constant: of each joint over the model's as this minute alone shows it, without the
            model's own knowledge [n]; NaN for joints that moved less than LEAST_MOTION.
        torque_constant_std: its standard deviation [n].
    """

    time: float
    moving_seconds: Array
    temperature: Array
    level: Array
    covariance: Array
    setup: Array
    setup_covariance: Array
    torque_constant: Array = field(default_factory=lambda: np.zeros(0))
    torque_constant_std: Array = field(default_factory=lambda: np.zeros(0))


class MinuteMeter:
    """Turns motion into one `Minute` after the other, in constant memory.

    Friction scales, an undeclared payload and tilt of the base, and the error of
    each joint's torque per ampere are estimated together by least squares of currents, so that a
    gripped part is not mistaken for friction. Only joints faster than ANCHOR_SPEED count.

    Args:
        model: that the levels are relative to, n joints.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        self._split = FrictionSplit(model)
        constants = np.array([joint.torque_constant for joint in model.joints])
        spread = np.array([joint.std.get("torque_constant", 0.0) for joint in model.joints])
        self._gain = np.maximum(spread / constants, _LEAST_GAIN)
        self._residual = np.array([joint.current_residual for joint in model.joints])
        self._number: float | None = None
        self._clear()

    def _clear(self) -> None:
        n, width = self.model.dof, 3 + _NUISANCE
        self._gram = np.zeros((n, width, width))
        self._seconds, self._square = np.zeros(n), np.zeros(n)
        self._warmth = np.zeros((2, n))

    def observe(self, motion: FilteredMotion, dynamics: ArmDynamics) -> list[Minute]:
        """Use a motion that follows the previous one; returns the minutes completed before its end.

        Args:
            motion: of the arm.
            dynamics: of the arm in the setup configured in the controller.
        """
        out = []
        for rows in time_blocks(motion.time, MINUTE):
            number = float(np.floor(motion.time[rows.start] / MINUTE))
            if self._number is not None and number != self._number:
                out += self.finish()
            self._number = number
            self._accumulate(motion.cut(rows), dynamics)
        return out

    def finish(self) -> list[Minute]:
        """The minute in progress, if it has any motion; the next one starts."""
        if self._number is None:
            return []
        found = self._solved((self._number + 1) * MINUTE)
        self._number = None
        self._clear()
        return [] if found is None else [found]

    def _accumulate(self, motion: FilteredMotion, dynamics: ArmDynamics) -> None:
        if len(motion) < 2:
            return
        step = max(1, round(1.0 / (_RATE * motion.period)))
        period = step * motion.period
        motion = motion.cut(slice(None, None, step))
        q, qd, qdd = motion.q, motion.qd, motion.qdd
        split = self._split
        load = dynamics.inverse_dynamics(q, qd, qdd) + split.inertia * qdd
        friction, left = split(qd, load, motion.current, motion.known_temperature)
        payload = dynamics.payload_regressor(q, qd, qdd)[..., :4]
        tilt = dynamics.gravity_regressor(q) @ _tilts(dynamics.setup.gravity)
        extra = np.concatenate([load[..., None], payload, tilt], axis=2)
        extra /= (split.ratio * split.constant)[:, None]
        rows = np.concatenate([friction[..., None], extra, left[..., None]], axis=2)
        moving = (np.abs(qd) >= ANCHOR_SPEED).astype(float)
        weight = period * moving
        self._gram += np.einsum("tj,tja,tjb->jab", weight, rows, rows)
        self._seconds += weight.sum(axis=0)
        self._square += (weight * motion.current**2).sum(axis=0)
        known = np.isfinite(motion.temperature)
        self._warmth += np.stack([np.where(known, motion.temperature, 0.0), known]).sum(axis=1)

    def _solved(self, time: float) -> Minute | None:
        used = self._seconds >= LEAST_MOTION
        if not used.any():
            return None
        n = self.model.dof
        seconds = np.maximum(self._seconds, 1e-9)
        least = _NOISE_SHARE * np.sqrt(self._square / seconds)
        noise = np.maximum(self._residual, least) ** 2
        std = np.concatenate(
            [np.full(n, _FRICTION_PRIOR), self._gain, [_MASS, *[_MOMENT] * 3, _TILT, _TILT]]
        )
        mean = np.concatenate([np.ones(n), np.zeros(n + _NUISANCE)])
        for _ in range(_ROUNDS):
            information, product = np.diag(std**-2.0), mean / std**2
            for j in np.flatnonzero(used):
                own = [j, n + j, *range(2 * n, 2 * n + _NUISANCE)]
                weight = 1.0 / (noise[j] * CORRELATION_TIME)
                information[np.ix_(own, own)] += weight * self._gram[j, :-1, :-1]
                product[own] += weight * self._gram[j, :-1, -1]
            covariance = np.linalg.inv(information)
            found = covariance @ product
            for j in np.flatnonzero(used):
                own = [j, n + j, *range(2 * n, 2 * n + _NUISANCE)]
                signed = np.append(found[own], -1.0)
                square = float(signed @ self._gram[j] @ signed) / seconds[j]
                noise[j] = max(square, least[j] ** 2, 1e-12)
        scale = np.clip(found[:n], 0.1, 10.0)
        level = np.where(used, np.log(scale), np.nan)
        gains = slice(n, 2 * n)
        gain, gain_std = _without_prior(found[gains], np.diag(covariance)[gains], self._gain)
        shown = [2 * n, 2 * n + 4, 2 * n + 5]
        with np.errstate(invalid="ignore"):
            temperature = self._warmth[0] / np.where(self._warmth[1] > 0, self._warmth[1], np.nan)
        return Minute(
            time=time,
            moving_seconds=self._seconds.copy(),
            temperature=temperature,
            level=level,
            covariance=covariance[:n, :n] / np.outer(scale, scale),
            setup=found[shown],
            setup_covariance=np.array(covariance[np.ix_(shown, shown)]),
            torque_constant=np.where(used, 1.0 / np.clip(1.0 + gain, 0.1, 10.0), np.nan),
            torque_constant_std=np.where(used, gain_std, np.nan),
        )


def _without_prior(value: Array, variance: Array, prior: Array) -> tuple[Array, Array]:
    """Normal quantities with prior mean 0 from the data alone, and their deviations [n] each.

    Args:
        value: mean of the posterior [n].
        variance: of the posterior [n].
        prior: standard deviation of the prior [n].
    """
    precision = np.maximum(1.0 / variance - 1.0 / prior**2, _LEAST_SHARE / prior**2)
    return value / variance / precision, precision**-0.5


def _tilts(gravity: Array) -> Array:
    """Change of gravity [3, 2] per small rotation of the base about two level axes [m/s^2]."""
    down = gravity / max(float(np.linalg.norm(gravity)), 1e-9)
    first = np.eye(3)[int(np.argmin(np.abs(down)))]
    first = first - (first @ down) * down
    first /= np.linalg.norm(first)
    axes = np.stack([first, np.cross(down, first)])
    return np.asarray(np.cross(axes, gravity).T)


WINDOW = 5.0
"""Length of a window [s]."""


class Windows:
    """Collects batches and returns the windows that are complete.

    A window ends WINDOW seconds of the controller's clock after the first one began, twice
    WINDOW seconds after, and so on, or where the clock goes back, from where it counts anew.
    """

    def __init__(self) -> None:
        self.origin = 0.0
        """Time at which the first window began [s]."""
        self.pending: list[Telemetry] = []
        """Batches of the window that is not complete yet."""

    def add(self, batch: Telemetry) -> list[Telemetry]:
        """Windows completed by a batch with finite times."""
        if not len(batch):
            return []
        done = []
        for run in slices_between(
            (np.flatnonzero(np.diff(batch.time) < 0) + 1).tolist(), len(batch)
        ):
            done += self._add_run(batch.cut(run))
        return done

    def _add_run(self, batch: Telemetry) -> list[Telemetry]:
        """Windows completed by a batch whose clock does not go back."""
        done: list[Telemetry] = []
        if self.pending and batch.time[0] < self.pending[-1].time[-1]:
            done += self.finish()
        if not self.pending:
            self.origin = float(batch.time[0])
        last = self.pending[-1].time[-1] if self.pending else batch.time[0]
        number = np.floor((np.append(last, batch.time) - self.origin) / WINDOW)
        cuts = np.flatnonzero(np.diff(number)).tolist()
        for part in slices_between(cuts, len(batch)):
            if part.start in cuts:
                done.append(_joined(self.pending))
                self.pending = []
            self.pending.append(batch.cut(part))
        return done

    @property
    def open(self) -> Telemetry | None:
        """The samples of the window that is not complete."""
        return _joined(self.pending) if self.pending else None

    def finish(self) -> list[Telemetry]:
        """The window that is not complete, if there is one."""
        done = [_joined(self.pending)] if self.pending else []
        self.pending = []
        return done


def _joined(parts: list[Telemetry]) -> Telemetry:
    """Batches as one, with the gaps of the clock."""
    window = concatenate(parts)
    rate = window.info.rate
    return replace(window, gaps=find_gaps(window.time, None if rate is None else 1.0 / rate))


_LEAST_STILL = 2.0
"""Settled standstill in a minute from which its standby power is stated [s]."""
_FIELDS = ("actual_qd", "actual_current", "actual_robot_voltage", "actual_robot_current")
_LONGEST_STEP = 0.5


class StandbyMinutes:
    """Mean standby power of each minute with enough standstill.

    Args:
        model: of the arm.
    """

    def __init__(self, model: EnergyModel) -> None:
        self._model = model
        self._tracker = StandbyTracker(model.bus.standby, model.sessions.standby)
        self._number: float | None = None
        self._before = 0.0

    def observe(self, window: Telemetry) -> list[tuple[float, float, float]]:
        """Use samples that follow those of the last call.

        Returns:
            controller time at the end [s], power and its standard deviation [W], of each minute
            that is complete.
        """
        if any(name not in window for name in _FIELDS) or len(window) < 2:
            return []
        out = []
        for part in time_blocks(window.time, MINUTE):
            number = float(np.floor(window.time[part.start] / MINUTE))
            if self._number is not None and number != self._number:
                out += self._finished(self._number)
            self._number = number
            self._use(window.cut(part))
        return out

    def _use(self, part: Telemetry) -> None:
        qd, current = part["actual_qd"], part["actual_current"]
        still = arm_states(part, qd) == ArmState.STANDSTILL
        unexplained = np.full(len(part), np.nan)
        bus = part.bus_power
        if bus is None:
            return
        if still.any():
            powers = self._model.joint_power(qd[still], current[still], std=False)
            unexplained[still] = bus[still] - powers.demand + powers.standby_power
        steps = np.clip(np.diff(part.time, prepend=part.time[:1]), 0.0, _LONGEST_STEP)
        self._tracker.update(part.time, steps, still, unexplained)

    def _finished(self, number: float) -> list[tuple[float, float, float]]:
        gained = self._tracker.still_seconds - self._before
        self._before = self._tracker.still_seconds
        if gained < _LEAST_STILL or self._tracker.measured is None:
            return []
        return [((number + 1) * MINUTE, self._tracker.measured, self._tracker.std)]
