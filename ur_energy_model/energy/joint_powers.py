"""Powers of joints and supply: from measured currents, from the motion alone, at rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ur_energy_model.energy.meter import bridged_steps
from ur_energy_model.energy.telemetry_checks import OperatingConditions
from ur_energy_model.model.drives import DrivePowers
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionDirection
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.robot_modes import POWER_OFF, ROBOT_MODES
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.plan import SHORTEST_STEP, MotionSamples
from ur_energy_model.typing import Array, Mask

# Joint speeds at the instants of the currents in the same packets.
#
# Within a packet current and speed belong to different instants: drives hold a current over a
# controller cycle, sensors and buses add delays. Because current and acceleration are correlated,
# a power k i w with the later speed is systematically too high by k i (dw/dt) delay.


def backward_difference(time: Array, values: Array) -> Array:
    """Rate of change since the last sample [samples, ...], per second; zero across gaps.

    Args:
        time: [samples], s.
        values: [samples, ...].
    """
    return rate_of_change(bridged_steps(time), np.diff(values, axis=0, prepend=values[:1]))


class SpeedAlignment:
    """Shifts speeds by the delay of the currents, batch by batch.

    Args:
        delay: of the currents behind the speeds [s]; negative where they are ahead.
    """

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._last: Array | None = None

    def __call__(self, steps: Array, qd: Array) -> Array:
        """Joint velocities at the instants of the currents of the same samples [samples, n], rad/s.

        Args:
            steps: bridged steps to the samples (`Steps.bridged`) [samples], s.
            qd: joint velocities as reported [samples, n], rad/s.
        """
        if self.delay == 0.0 or not len(qd):
            return qd
        before = qd[:1] if self._last is None else self._last[None]
        self._last = qd[-1]
        return np.asarray(
            qd - self.delay * rate_of_change(steps, np.diff(qd, axis=0, prepend=before))
        )


def rate_of_change(steps: Array, change: Array) -> Array:
    """Change per step [samples, ...]; zero where the step [samples] is zero."""
    safe = np.where(steps > 0.0, steps, np.inf)
    return np.asarray(change / safe.reshape(-1, *(1,) * (change.ndim - 1)))


class MeasuredPowers:
    """Powers of an arm from its measured speeds and currents.

    Keeps the last speed, for the delay of the currents, and the last current, for EcBot's inductive
    term.

    Args:
        model: of the arm, n joints.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        self._aligned = SpeedAlignment(model.current_delay)
        self._inductive = bool(model.bus.inductance.any())
        self._last_current: Array | None = None

    def __call__(
        self, steps: Array, qd: Array, current: Array, temperature: Array | None = None
    ) -> DrivePowers:
        """Powers of the samples that follow those of the last call, without sensitivities.

        Args:
            steps: bridged steps to the samples (`Steps.bridged`) [samples], s.
            qd: joint velocities as recorded [samples, n], rad/s.
            current: motor currents [samples, n], A.
            temperature: joint temperatures [n] or [samples, n], degC; None if unknown.

        Returns:
            Powers with the model's standby; `demand` is the arm's demand on the supply.
        """
        rate = None
        if self._inductive and len(current):
            before = current[:1] if self._last_current is None else self._last_current[None]
            rate = rate_of_change(steps, np.diff(current, axis=0, prepend=before))
            self._last_current = current[-1]
        return self.model.joint_power(
            self._aligned(steps, qd),
            current,
            temperature=temperature,
            current_rate=rate,
            std=False,
        )

    def sensitivities(
        self, qd: Array, current: Array, temperature: Array | None = None
    ) -> DrivePowers:
        """Powers at single samples with sensitivities; ignores the delay of the currents.

        Args:
            qd: joint velocities as recorded [samples, n], rad/s.
            current: motor currents [samples, n], A.
            temperature: joint temperatures [n] or [samples, n], degC; None if unknown.
        """
        return self.model.joint_power(qd, current, temperature=temperature)


# Accelerations from velocities, for telemetry without accelerations.


class Differentiator:
    """Low-pass filtered derivative of joint velocities, batch by batch.

    Args:
        joints: n.
        cutoff: of the first-order low-pass [Hz].
    """

    def __init__(self, joints: int, cutoff: float) -> None:
        self._rate = 2 * np.pi * cutoff
        self._value = np.zeros(joints)
        self._last: tuple[float, Array] | None = None

    def update(self, time: Array, qd: Array) -> Array:
        """Accelerations [samples, n], rad/s^2, of velocities [samples, n] at times [samples]."""
        out = np.empty_like(qd)
        for i, now in enumerate(time):
            if self._last is not None and now > self._last[0]:
                step = float(now - self._last[0])
                weight = 1.0 - np.exp(-self._rate * step)
                self._value = self._value + weight * ((qd[i] - self._last[1]) / step - self._value)
            out[i] = self._value
            self._last = (float(now), qd[i])
        return out


# Powers that the model predicts from the motion alone, batch by batch.

ACCELERATION_CUTOFF = 5.0
"""Low-pass of accelerations differentiated from velocities [Hz]."""


class MotionPowers:
    """Powers of an arm from its target motion, else from its measured one.

    The payload is the one set in the controller, sample by sample.

    Args:
        model: of the arm, n joints.
        robot: its description.
        conditions: current setup; updated with the payload.
    """

    def __init__(
        self, model: EnergyModel, robot: RobotDescription, conditions: OperatingConditions
    ) -> None:
        self.model, self.robot, self.conditions = model, robot, conditions
        self._slope = Differentiator(robot.dof, ACCELERATION_CUTOFF)
        self._dynamics: ArmDynamics | None = None
        self._friction_direction = FrictionDirection(model.presliding)

    def __call__(
        self, batch: Telemetry, temperature: Array | None, due: Mask
    ) -> Iterator[tuple[slice, DrivePowers, DrivePowers]]:
        """Powers of samples that follow those of the last call.

        Args:
            batch: those samples.
            temperature: of their joints [samples, n], degC; None if unknown.
            due: samples whose sensitivities are needed [samples].

        Yields:
            Parts with one payload each: rows, powers, and powers with sensitivities of the due
            samples among them.

        Raises:
            MissingFieldError: neither target nor measured motion is available.
        """
        q, qd, qdd = self._motion(batch)
        direction = self._friction_direction(q, qd)
        for rows, setup in self.conditions.parts(batch):
            dynamics = self.dynamics_in(setup)
            link = dynamics.inverse_dynamics(q[rows], qd[rows], qdd[rows])
            part_temperature, part_direction = (
                None if part is None else part[rows] for part in (temperature, direction)
            )
            powers = self.model.from_link_torque(
                link,
                qd[rows],
                qdd[rows],
                temperature=part_temperature,
                direction=part_direction,
                std=False,
            )
            chosen = due[rows]
            yield (
                rows,
                powers,
                self.model.from_link_torque(
                    link[chosen],
                    qd[rows][chosen],
                    qdd[rows][chosen],
                    temperature=None if part_temperature is None else part_temperature[chosen],
                    direction=None if part_direction is None else part_direction[chosen],
                ),
            )

    def _motion(self, batch: Telemetry) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations [samples, n]."""
        if "target_qdd" in batch.columns:
            batch.require("target_q", "target_qd", purpose="the method motion")
            q, qd, qdd = (batch.columns[f"target_{name}"] for name in ("q", "qd", "qdd"))
            return q, qd, qdd
        batch.require("actual_q", purpose="the method motion")
        qd = batch.columns["actual_qd"]
        return batch.columns["actual_q"], qd, self._slope.update(batch.time, qd)

    def dynamics_in(self, setup: Setup) -> ArmDynamics:
        """Rigid-body dynamics of the arm in a setup; the last one is cached."""
        if self._dynamics is None or self._dynamics.setup is not setup:
            self._dynamics = self.model.dynamics(robot=self.robot, setup=setup)
        return self._dynamics


# Power of an arm that is switched off or has its brakes engaged.


def mode_power(known: Mapping[str, float], modes: Array, engaged: float) -> Array:
    """Power by robot mode, where it was not measured at the bus [samples], W.

    Args:
        known: power by name of the mode, W, from the model.
        modes: robot_mode of each sample [samples].
        engaged: with brakes engaged, for modes that are not known [W].
    """
    power = np.where(modes <= POWER_OFF, 0.0, engaged)
    for code, name in ROBOT_MODES.items():
        if name in known:
            power[modes == code] = known[name]
    return power


# Power at the supply, which only delivers power, from the demand of the arm.
#
# Regenerated power feeds the rest of the arm first, then charges the bus capacitor up to the
# voltage at which a braking resistor dissipates the surplus (Heredia et al.: power at the supply
# is never negative). While the capacitor is above the supply's voltage it feeds the arm and the
# supply rests.


class BusCapacitor:
    """Computes the power at the supply, batch by batch.

    Args:
        capacity: energy that the capacitor holds above the supply's voltage [J]; with 0 all
            regenerated energy is dissipated.
        floor: lowest power the supply can show [W].

    Attributes:
        stored: energy held at present [J].
    """

    def __init__(self, capacity: float, floor: float = 0.0) -> None:
        self.capacity = capacity
        self.floor = floor
        self.stored = 0.0

    def __call__(self, steps: Array, demand: Array) -> Array:
        """Power at the supply [samples], W.

        Args:
            steps: bridged steps to the samples (`Steps.bridged`) [samples], s; a sample's demand
                holds since the one before.
            demand: of the whole arm, negative where it regenerates [samples], W.
        """
        out = np.maximum(demand, self.floor)
        if self.capacity <= 0 or not len(demand):
            return out
        below = np.flatnonzero(demand < self.floor)
        k = 0 if self.stored > 0 else int(below[0]) if len(below) else len(demand)
        if k == len(demand):
            return out
        # Numbers of Python are several times faster than elements of arrays.
        each_step, each_demand = steps.tolist(), demand.tolist()
        while k < len(demand):
            k = self._discharge(k, each_step, each_demand, out)
            later = below[np.searchsorted(below, k) :]
            k = int(later[0]) if len(later) else len(demand)
        return out

    def _discharge(self, k: int, steps: list[float], demand: list[float], out: Array) -> int:
        """Discharge the capacitor from sample k on; returns the sample after it is empty.

        Writes the power at the supply into `out`.
        """
        floor, capacity, stored = self.floor, self.capacity, self.stored
        for i in range(k, len(steps)):
            step = steps[i]
            if step == 0.0:  # a gap: discharged by now
                out[k:i] = floor
                self.stored = 0.0
                return i + 1
            stored -= step * (demand[i] - floor)
            if stored <= 0.0:
                out[k:i] = floor
                out[i] = floor - stored / step  # the supply delivers the rest
                self.stored = 0.0
                return i + 1
            if stored > capacity:
                stored = capacity
        out[k:] = floor
        self.stored = stored
        return len(steps)


# Powers of planned motions, one after the other: friction and bus capacitor keep their state.


class PlanPowers:
    """Computes the powers of consecutive motions of one arm.

    Args:
        model: of the arm, n joints.
        temperature: of the joints [n], degC; None if unknown.
        std: compute the sensitivities, which standard deviations need.
    """

    def __init__(
        self, model: EnergyModel, temperature: Array | None = None, *, std: bool = True
    ) -> None:
        self.model, self.temperature, self.std = model, temperature, std
        self._direction = FrictionDirection(model.presliding)
        self._supply = BusCapacitor(model.bus.capacitor_energy, model.bus.floor)
        self._last = 0.0

    def restarted(self, *, std: bool) -> PlanPowers:
        """The same state of the arm at time zero, with or without sensitivities."""
        out = PlanPowers(self.model, self.temperature, std=std)
        out._direction, out._supply = self._direction, self._supply
        return out

    def __call__(self, motion: MotionSamples, dynamics: ArmDynamics) -> tuple[DrivePowers, Array]:
        """Powers of the motors, and power at the supply [samples], W.

        Args:
            motion: follows that of the last call; its time counts on.
            dynamics: of the arm with its payload.
        """
        split = self.model.from_link_torque(
            dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd),
            motion.qd,
            motion.qdd,
            temperature=self.temperature,
            direction=self._direction(motion.q, motion.qd),
            std=self.std,
        )
        steps = np.diff(motion.time, prepend=self._last)
        total = self._supply(np.maximum(steps, SHORTEST_STEP), split.demand)
        self._last = float(motion.time[-1])
        return split, total
