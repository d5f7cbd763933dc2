# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction, payload and mounting as one minute of work shows them: a few numbers per joint.

Learning works with these statistics of minutes, so that it needs no samples of earlier days.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.friction_follower import (
    ANCHOR_SPEED,
    CORRELATION_TIME,
    SCALE,
    FrictionSplit,
)
from ur_energy_model.energy.motor_powers import MeasuredPowers
from ur_energy_model.energy.powers import ArmState, arm_states
from ur_energy_model.energy.standby import StandbyFollower
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.setup import STATIC
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import (
    Telemetry,
    concatenate,
    slices_between,
    time_blocks,
)
from ur_energy_model.typing import Array, Mask

MINUTE = 60.0  # length of a minute of the controller's clock [s]
LEAST_MOTION = 3.0
"""Least motion of a joint in a minute for an estimate of its friction [s]."""
_RATE = 25.0
"""Samples used per second; the model's error of a current correlates over
CORRELATION_TIME."""
_FRICTION_PRIOR = 1.0  # standard deviation of the friction of a joint over the model's
_SHARED_PRIOR = (3.0, 0.5, 0.5, 0.5, 0.3, 0.3)
"""Prior standard deviations of the unknowns that the joints share: mass of an undeclared payload
[kg], its three first moments [kg m], two tilts of the base [rad]."""
_SHOWN = [0, 4, 5]  # places of the mass and the tilts among the shared unknowns
_CURRENT = -1
"""Last column of the regression of a joint: the part of its current that friction, load and the
shared unknowns, the columns before it, explain."""
_LEAST_GAIN = 0.01  # smallest relative standard deviation of a joint's torque per ampere
_LEAST_SHARE = 1e-3
"""Least precision of a torque per ampere from data alone, over the precision of the model's
value."""
_NOISE_SHARE = 0.02  # least error of a current, as a share of the RMS current
_ROUNDS = 2  # rounds of the noise levels
TYPICAL_SPEED = 0.5  # joint speed at which friction is stated in words and tables [rad/s]


class LevelSpread(NamedTuple):
    """Spread of a joint's friction about its usual level: natural logarithms.

    Attributes:
        session: standard deviation between sessions, independent in each joint.
        common: standard deviation between sessions of the part that all joints of an arm
            have in common.
        wander: standard deviation within a session.
        slope: standard deviation of the part of the temperature's effect that the model's
            friction law leaves, per kelvin.
    """

    session: float
    common: float
    wander: float
    slope: float


LEVEL_SPREAD = LevelSpread(session=0.05, common=0.05, wander=0.015, slope=0.01)
"""Sessions: 7 % together, the scatter of a UR10e's friction from day to day, half of its
variance common to all joints (config/simulation/arm.yaml). Slope: 1 % per kelvin, half of
the e-Series controllers' own temperature model, beyond the model's friction law."""


def friction_torque(model: EnergyModel, speed: Array) -> Array:
    """Friction of a model's joints without load.

    Args:
        model: model of an arm with n joints.
        speed: joint speeds [speeds], rad/s, the same for all joints.

    Returns:
        Friction, joint side [speeds, n], N m.
    """
    ratio = np.array([joint.gear_ratio for joint in model.joints])
    bank = FrictionBank([joint.friction for joint in model.joints], ratio)
    speeds = np.repeat(speed[:, None], model.dof, axis=1)
    return np.asarray(ratio * bank.torque(speeds, np.zeros_like(speeds)))


@dataclass(frozen=True)
class Minute:
    """Statistics of one minute of work of an arm with n joints.

    Attributes:
        time: controller time at the end of the minute [s].
        moving_seconds: motion of each joint that was used [n], s.
        temperature: mean temperature of each joint [n], degC; NaN where unknown.
        level: natural logarithm of each joint's friction over the model's [n]; NaN for
            joints that moved less than LEAST_MOTION.
        covariance: covariance of the levels [n, n].
        setup: deviations from the setup configured in the controller: payload [kg], two
            tilts [rad] [3].
        setup_covariance: covariance of these deviations [3, 3].
        torque_constant: torque constant of each joint over the model's constant, by the
            data of this minute alone, without the model as prior [n]; NaN as `level`.
        torque_constant_std: standard deviation of `torque_constant` [n].
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

    Levels are relative to the model. Friction scales, an undeclared payload and tilt of
    the base, and the error of each joint's torque per ampere are estimated together by
    least squares of currents, so that a gripped part is not mistaken for friction. Samples
    of a joint count while it is faster than ANCHOR_SPEED.

    Args:
        model: model of the arm, n joints.
    """

    def __init__(self, model: EnergyModel) -> None:
        self._n = model.dof
        self._split = FrictionSplit(model)
        constant = np.array([joint.torque_constant for joint in model.joints])
        std = np.array([joint.std.get("torque_constant", 0.0) for joint in model.joints])
        spread = std / constant
        # Relative standard deviation of each joint's torque per ampere [n].
        self._gain = np.maximum(spread, _LEAST_GAIN)
        self._residual = np.array([joint.current_residual for joint in model.joints])
        self._number: float | None = None
        self._clear()

    def _clear(self) -> None:
        """Begin another minute."""
        n = self._n
        # Columns: friction, load, the shared unknowns, and the current.
        width = 3 + len(_SHARED_PRIOR)
        self._gram = np.zeros((n, width, width))
        self._seconds = np.zeros(n)  # time that was used [s]
        self._square = np.zeros(n)  # integral of the squared current [A^2 s]
        # Sum of the known temperatures [degC], and their number.
        self._temperature_sum = np.zeros(n)
        self._temperature_count = np.zeros(n)

    def observe(self, motion: FilteredMotion, dynamics: ArmDynamics) -> list[Minute]:
        """Use a motion that follows the previous one.

        Args:
            motion: motion without gaps.
            dynamics: dynamics of the arm in the setup configured in the controller.

        Returns:
            The minutes that were complete before the end of the motion.
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
        number = self._number
        used = self._seconds >= LEAST_MOTION
        out = [] if number is None or not used.any() else [self._solved(number, used)]
        self._number = None
        self._clear()
        return out

    def _accumulate(self, motion: FilteredMotion, dynamics: ArmDynamics) -> None:
        """Use a motion within the minute; for the arguments see `observe`."""
        if len(motion) < 2:
            return
        step = max(1, round(1.0 / (_RATE * motion.period)))
        period = step * motion.period
        motion = motion.cut(slice(None, None, step))
        q = motion.q
        qd = motion.qd
        qdd = motion.qdd
        split = self._split
        load = dynamics.inverse_dynamics(q, qd, qdd) + split.inertia * qdd
        parts, left = split(qd, load, motion.current, motion.known_temperature)
        friction = parts[..., SCALE]
        payload = dynamics.payload_regressor(q, qd, qdd)[..., STATIC]
        tilt = dynamics.gravity_regressor(q) @ _gravity_changes(dynamics.setup.gravity)
        # Torques become currents: divided by gear ratio and torque constant.
        shared = np.concatenate([load[..., None], payload, tilt], axis=2)
        shared /= (split.ratio * split.constant)[:, None]
        rows = np.concatenate([friction[..., None], shared, left[..., None]], axis=2)
        weight = period * (np.abs(qd) >= ANCHOR_SPEED)
        self._gram += np.einsum("tj,tja,tjb->jab", weight, rows, rows)
        self._seconds += weight.sum(axis=0)
        self._square += (weight * motion.current**2).sum(axis=0)
        known = np.isfinite(motion.temperature)
        self._temperature_sum += np.where(known, motion.temperature, 0.0).sum(axis=0)
        self._temperature_count += known.sum(axis=0)

    def _solved(self, number: float, used: Mask) -> Minute:
        """The minute by least squares with a prior.

        Unknowns are friction over the model's friction [n], relative errors of torque per
        ampere [n], and the unknowns that the joints share [6].

        Args:
            number: number of the minute on the controller's clock.
            used: joints that moved enough [n].
        """
        n = self._n
        scales = slice(0, n)
        gains = slice(n, 2 * n)
        seconds = np.maximum(self._seconds, 1e-9)
        least = _NOISE_SHARE * np.sqrt(self._square / seconds)
        noise = np.maximum(self._residual, least) ** 2
        std = np.concatenate([np.full(n, _FRICTION_PRIOR), self._gain, _SHARED_PRIOR])
        mean = np.zeros(len(std))
        mean[scales] = 1.0
        shared = np.arange(2 * n, len(std))
        for _ in range(_ROUNDS):
            information = np.diag(std**-2.0)
            product = mean / std**2
            for j in np.flatnonzero(used).tolist():
                own = [j, n + j, *shared]
                weight = 1.0 / (noise[j] * CORRELATION_TIME)
                gram = weight * self._gram[j]
                information[np.ix_(own, own)] += gram[:_CURRENT, :_CURRENT]
                product[own] += gram[:_CURRENT, _CURRENT]
            covariance = np.linalg.inv(information)
            found = covariance @ product
            for j in np.flatnonzero(used).tolist():
                signed = np.append(found[[j, n + j, *shared]], -1.0)
                square = float(signed @ self._gram[j] @ signed) / seconds[j]
                noise[j] = max(square, least[j] ** 2, 1e-12)
        scale = np.clip(found[scales], 0.1, 10.0)
        # Errors of torque per ampere from the data alone: the prior, whose mean is zero, is
        # taken out of the posterior.
        gain = found[gains]
        variance = np.diag(covariance)[gains]
        prior = self._gain**2
        precision = np.maximum(1.0 / variance - 1.0 / prior, _LEAST_SHARE / prior)
        gain = gain / variance / precision
        shown = shared[_SHOWN]
        count = self._temperature_count
        with np.errstate(invalid="ignore"):
            temperature = self._temperature_sum / np.where(count > 0, count, np.nan)
        return Minute(
            time=(number + 1) * MINUTE,
            moving_seconds=self._seconds,
            temperature=temperature,
            level=np.where(used, np.log(scale), np.nan),
            covariance=covariance[scales, scales] / np.outer(scale, scale),
            setup=found[shown],
            setup_covariance=np.array(covariance[np.ix_(shown, shown)]),
            torque_constant=np.where(used, 1.0 / np.clip(1.0 + gain, 0.1, 10.0), np.nan),
            torque_constant_std=np.where(used, precision**-0.5, np.nan),
        )


def _gravity_changes(gravity: Array) -> Array:
    """Changes of gravity [3] by small rotations of the base about two level axes [3, 2].

    They are in m/s^2 per rad.
    """
    down = gravity / max(float(np.linalg.norm(gravity)), 1e-9)
    level = np.eye(3)[int(np.argmin(np.abs(down)))]
    level = level - (level @ down) * down
    level /= np.linalg.norm(level)
    axes = np.stack([level, np.cross(down, level)])
    return np.asarray(np.cross(axes, gravity).T)


_LEAST_STILL = 2.0  # least standstill in a minute that shows its standby power [s]
_FIELDS = ("actual_qd", "actual_current", "actual_robot_voltage", "actual_robot_current")
_LONGEST_STEP = 0.5  # largest time for which a sample counts [s]


class StandbyMinutes:
    """Mean standby power of each minute with enough standstill of an arm.

    Args:
        model: model of the arm.
    """

    def __init__(self, model: EnergyModel) -> None:
        self._powers = MeasuredPowers(model)
        self._follower = StandbyFollower(model.bus.standby, model.sessions.standby)
        self._number: float | None = None
        self._before = 0.0

    def observe(self, window: Telemetry) -> list[tuple[float, float, float]]:
        """Use samples that follow the samples of the last call.

        Args:
            window: consecutive samples; without bus power they are ignored.

        Returns:
            Time at the end [s], standby power and standard deviation of the power [W] of each
            complete minute.
        """
        bus = window.bus_power
        if bus is None or any(name not in window for name in _FIELDS) or len(window) < 2:
            return []
        out = []
        follower = self._follower
        for rows in time_blocks(window.time, MINUTE):
            part = window.cut(rows)
            number = float(np.floor(window.time[rows.start] / MINUTE))
            if self._number is not None and number != self._number:
                enough = follower.still_seconds - self._before >= _LEAST_STILL
                self._before = follower.still_seconds
                if enough and follower.measured is not None:
                    out.append(
                        ((self._number + 1) * MINUTE, follower.measured, follower.std)
                    )
            self._number = number
            qd = part["actual_qd"]
            current = part["actual_current"]
            still = arm_states(part, qd) == ArmState.STANDSTILL
            steps = np.clip(np.diff(part.time, prepend=part.time[:1]), 0.0, _LONGEST_STEP)
            motors = self._powers.powers(self._powers.motion(steps, qd, current)).demand
            nothing = np.zeros((len(part), 0))
            follower.update(part.time, steps, still, still, bus[rows] - motors, nothing)
        return out


WINDOW = 5.0  # length of a window [s]


class WindowCollector:
    """Collects batches and returns the windows that are complete.

    A window ends WINDOW seconds of the controller's clock after the first one began,
    twice WINDOW seconds after, and so on, or where the clock goes back, from where it
    counts anew.
    """

    def __init__(self) -> None:
        self.origin = 0.0  # time at which the first window began [s]
        # batches of the window that is not complete yet
        self.pending: list[Telemetry] = []

    def add(self, batch: Telemetry) -> list[Telemetry]:
        """Windows completed by a batch with finite times."""
        if not len(batch):
            return []
        done = []
        back = (np.flatnonzero(np.diff(batch.time) < 0) + 1).tolist()
        for rows in slices_between(back, len(batch)):
            run = batch.cut(rows)
            if self.pending and run.time[0] < self.pending[-1].time[-1]:
                done += self.finish()
            if not self.pending:
                self.origin = float(run.time[0])
            last = self.pending[-1].time[-1] if self.pending else run.time[0]
            number = np.floor((np.append(last, run.time) - self.origin) / WINDOW)
            cuts = np.flatnonzero(np.diff(number)).tolist()
            for part in slices_between(cuts, len(run)):
                if part.start in cuts:
                    done += self.finish()
                self.pending.append(run.cut(part))
        return done

    def finish(self) -> list[Telemetry]:
        """The window that is not complete, with the gaps of its clock, if there is one."""
        if not self.pending:
            return []
        window = concatenate(self.pending)
        self.pending = []
        rate = window.info.rate
        period = None if rate is None else 1.0 / rate
        return [replace(window, gaps=find_gaps(window.time, period))]
