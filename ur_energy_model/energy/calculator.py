"""The energy calculator: from telemetry to the power of every channel, sample by sample.

The live estimator, `ur_energy estimate`, reports and evaluation all use it. The result does not
depend on how samples are batched: all state (gaps, the previous sample, standby, the bus
capacitor) follows the samples and the controller's clock. Equations: model/drives.py;
Clochiatti et al., Robotica 2024, eq. 19-26; Heredia et al., EcBot, eq. 13-21.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.meter import EnergyCorrection, GapRule, bridged_steps
from ur_energy_model.energy.powers import (
    QUANTITIES,
    ArmState,
    Channels,
    PowerOptions,
    PowerTable,
    arm_states,
)
from ur_energy_model.energy.session import SessionModel, Standby, StandbyTracker
from ur_energy_model.energy.telemetry_checks import (
    OperatingConditions,
    UsableSamples,
    check_joints,
    most_power,
    rated_limits,
)
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.model.drives import DrivePowers
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionDirection
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.model.setup import Setup
from ur_energy_model.robot_modes import POWER_OFF, ROBOT_MODES
from ur_energy_model.telemetry.samples import Telemetry, changes
from ur_energy_model.typing import Array, Indices, Mask

# Joint speeds at the instants of the currents in the same packets.
#
# Within a packet current and speed belong to different instants: drives hold a current over a
# controller cycle, sensors and buses add delays. Because current and acceleration are correlated,
# a power k i w with the later speed is systematically too high by k i (dw/dt) delay.


def backward_difference(time: Array, values: Array) -> Array:
    """Rate of change [samples, ...], per second, since the last sample; zero across gaps."""
    return rate_of_change(bridged_steps(time), values, values[:1])


def rate_of_change(steps: Array, values: Array, before: Array) -> Array:
    """Change per step of values [samples, ...] after `before` [1, ...]; 0 where a step is 0."""
    change = np.concatenate((before, values))
    safe = np.where(steps > 0.0, steps, np.inf).reshape(-1, *(1,) * (values.ndim - 1))
    return np.asarray((change[1:] - change[:-1]) / safe)


class SpeedAlignment:
    """Shifts speeds by the delay of the currents behind them [s], batch by batch."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._last: Array | None = None

    def __call__(self, steps: Array, qd: Array) -> Array:
        """Velocities [samples, n], rad/s, at the instants of the currents of the same samples.

        From those reported, after bridged steps (`Steps.bridged`) [samples], s.
        """
        if self.delay == 0.0 or not len(qd):
            return qd
        before = qd[:1] if self._last is None else self._last
        self._last = qd[-1:]
        return qd - self.delay * rate_of_change(steps, qd, before)


class MeasuredPowers:
    """Powers of an arm from its measured speeds and currents.

    Keeps the last speed, for the delay of the currents, and the last current, for EcBot's inductive
    term.
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

        Bridged steps [samples], s; speeds and motor currents as recorded [samples, n], rad/s, A;
        temperatures [n] or [samples, n], degC. With the model's standby power.
        """
        rate = None
        if self._inductive and len(current):
            before = current[:1] if self._last_current is None else self._last_current
            rate = rate_of_change(steps, current, before)
            self._last_current = current[-1:]
        speed = self._aligned(steps, qd)
        return self.model.joint_power(
            speed, current, temperature=temperature, current_rate=rate, std=False
        )


class BusCapacitor:
    """Power at the supply, which only delivers power, from the demand of the arm, batch by batch.

    Regenerated power feeds the rest of the arm first, then charges the bus capacitor up to the
    voltage at which a braking resistor dissipates the surplus (Heredia et al.: power at the supply
    is never negative). While the capacitor is above the supply's voltage it feeds the arm and the
    supply rests.

    Args:
        capacity: energy that the capacitor holds above the supply's voltage [J]; with 0 all
            regenerated energy is dissipated.
        floor: lowest power the supply can show [W].

    Attributes:
        stored: energy held at present [J].
    """

    def __init__(self, capacity: float, floor: float = 0.0) -> None:
        self.capacity, self.floor, self.stored = capacity, floor, 0.0

    def __call__(self, steps: Array, demand: Array) -> Array:
        """Power at the supply [samples], W, from the whole arm's demand [samples], W.

        Bridged steps [samples], s; a sample's demand holds since the one before.
        """
        floor, capacity, stored = self.floor, self.capacity, self.stored
        out = np.maximum(demand, floor)
        if capacity <= 0.0 or not (stored > 0.0 or (len(demand) and demand.min() < floor)):
            return out
        below = np.flatnonzero(demand < floor)
        # Numbers of Python are several times faster than elements of arrays.
        each_step, each_demand, supply = steps.tolist(), demand.tolist(), out.tolist()
        k = 0
        while k < len(supply):
            if stored <= 0.0:  # only regenerated power charges it again
                later = np.searchsorted(below, k)
                if later == len(below):
                    break
                k = int(below[later])
            step, stored = each_step[k], stored - each_step[k] * (each_demand[k] - floor)
            if step == 0.0:  # a gap: discharged by now
                stored = 0.0
            elif stored <= 0.0:
                supply[k] = floor - stored / step  # the supply delivers the rest
                stored = 0.0
            else:
                supply[k], stored = floor, min(stored, capacity)
            k += 1
        self.stored = stored
        return np.array(supply)


_STANDSTILL = int(ArmState.STANDSTILL)
SENSITIVITY_PERIOD = 0.05
"""Sensitivities are computed once per period of the clock and held in between [s]."""
ACCELERATION_CUTOFF = 5.0
"""Low-pass of accelerations differentiated from velocities [Hz]."""


class EnergyCalculator:
    """Powers of every channel of one arm.

    Args:
        model: identified model of the arm.
        robot: its description.
        options: how powers are computed.

    Attributes:
        refused: samples left out so far because of values that are not finite or impossible.
        repeated: samples left out so far because the recording has them twice.

    Raises:
        WrongRobotError: model and description have different joints.
    """

    def __init__(
        self, model: EnergyModel, robot: RobotDescription, options: PowerOptions | None = None
    ) -> None:
        check_joints(model, robot)
        self.model, self.robot = model, robot
        self.options = PowerOptions() if options is None else options
        self.refused = self.repeated = 0
        self.gaps = GapRule(self.options.gap_limit)
        self.conditions = OperatingConditions(model.setup)
        self.standby = StandbyTracker(
            model.bus.standby,
            model.session.standby_std,
            self.options.standby_limit,
            self.options.track_standby,
        )
        limits, self._most_power = rated_limits(robot), most_power(robot)
        self._usable = UsableSamples(limits, self._most_power)
        self._refused_time = 0.0
        self._session = SessionModel(model, limits)
        self._tracked = self._session.tracked()
        self._measured = MeasuredPowers(self._tracked)
        self._direction = FrictionDirection(model.presliding)
        self._slope: tuple[float, Array, Array] | None = None
        """Last time [s], velocities and filtered accelerations, where those are not measured."""
        self._dynamics: ArmDynamics | None = None
        self._capacitor = BusCapacitor(model.bus.capacitor_energy, model.bus.floor)
        # The most parameter errors of any method; the total has one more, the session's standby.
        zero, probes = np.zeros((1, robot.dof)), []
        if self.options.method != "motion":
            probes.append(model.joint_power(zero, zero))
        if self.options.method != "current":
            probes.append(model.from_link_torque(zero, zero, zero))
        each = max(probe.sensitivity.shape[-1] for probe in probes)
        whole = 1 + max(probe.total_sensitivity.shape[-1] for probe in probes)
        self.channels = Channels(robot.joint_names, (each, whole))
        self._unanchored: Array | None = np.zeros(len(ArmState))
        """Time by state counted with the model's standby power [s]; None once it is corrected."""
        self._sensitivities = np.zeros(len(self.channels) - self.channels.sensitivity)
        self._period: float | None = None

    def continue_from(self, earlier: EnergyCalculator) -> None:
        """Take over the state of a calculator with another model of the same arm."""
        self.gaps, self.refused = earlier.gaps, earlier.refused
        self.conditions.continue_from(earlier.conditions)

    def set_options(self, options: PowerOptions) -> None:
        """Change options other than the method."""
        self.options, self.gaps.limit = options, options.gap_limit
        self.standby.enabled, self.standby.limit = options.track_standby, options.standby_limit

    def __call__(self, batch: Telemetry) -> PowerTable | None:
        """Powers of samples that follow those of the last call; None where no sample is usable.

        Raises:
            MissingFieldError: a field that the method needs is missing.
        """
        self.repeated += batch.repeated
        current = self.currents(batch)
        good = self._usable(batch, current)
        if not good.all():
            self.refused += len(batch) - int(good.sum())
            batch, current = batch.select(good), None if current is None else current[good]
            if not len(batch):
                return None
        steps = self.gaps(batch.time, batch.stamp, batch.gaps)
        if not steps.bridged.min() > 0.0:
            new = (steps.bridged > 0.0) | (steps.lost > 0.0) | steps.back
            new[0] |= self._period is None  # the very first sample
            batch, steps = batch.select(new), steps.cut(new)  # some may repeat a timestamp
            current = None if current is None else current[new]
            if not len(batch):
                return None
        states = arm_states(batch, batch.columns["actual_qd"])
        powers, good = self._powers(batch, current, steps.bridged)
        if not good.all():
            self.refused += len(batch) - int(good.sum())
            steps, self._refused_time = steps.without(~good, self._refused_time)
            batch, states, powers = batch.select(good), states[good], powers[good]
            if not len(batch):
                return None
        self.conditions.update(batch)
        self._session.observe(batch, lambda: self.dynamics)
        bus, columns = batch.bus_power, self.channels
        standby = self._supply(powers, batch.time, steps.bridged, states, bus)
        self._brakes_engaged(powers, batch, states, bus)
        finite = bus is not None and bool(np.isfinite(bus).all())
        if bus is not None:
            powers[:, columns.arm["bus"]] = bus if finite else np.nan_to_num(bus)
        rows = np.arange(len(batch))
        powers[rows, columns.state_energy + states] = powers[:, columns.arm["total"]]
        powers[rows, columns.state_time + states] = 1.0
        correction = self._correction(steps.bridged, states, standby)
        return PowerTable(batch, steps, states, powers, finite, correction)

    def joint_positions(self, q: Array) -> Array:
        """Positions of the joints in the base frame [n, 3], m, at joint angles [n], rad."""
        return self.dynamics.joint_positions(q)

    def use_friction(self, friction: SessionFriction | None) -> None:
        """Predict motion with this friction from now on; None for that of the model."""
        self._session.use_friction(friction)
        self._tracked = self._session.tracked()

    def model_in_session(self) -> EnergyModel:
        """The model with the standby power and, as far as it is known, friction of this session."""
        return self._session.anchored(self.standby)

    @property
    def dynamics(self) -> ArmDynamics:
        """Rigid-body dynamics of the arm in its current setup."""
        return self._dynamics_in(self.conditions.setup)

    def currents(self, batch: Telemetry) -> Array | None:
        """Measured currents [samples, n], A; None where the method does not use or have them.

        Raises:
            MissingFieldError: a field that the method needs is missing.
        """
        if "actual_qd" not in batch.columns:
            batch.require("actual_qd", purpose="energy")
        if self.options.method == "motion":
            return None
        if "actual_current" in batch.columns:
            return batch.columns["actual_current"]
        if "actual_current_as_torque" in batch.columns:
            joints = self.model.joints
            scale = np.array([joint.gear_ratio * joint.torque_constant for joint in joints])
            return np.asarray(batch.columns["actual_current_as_torque"] / scale)
        if self.options.method == "current":
            raise MissingFieldError(
                batch.info.source,
                "is missing, which the method current needs",
                "set method to motion",
                field="actual_current",
            )
        return None

    def _powers(self, batch: Telemetry, current: Array | None, steps: Array) -> tuple[Array, Mask]:
        """Powers with brakes released [samples, channels], W, and whether they are possible.

        The column of the total contains the demand without standby; `_supply` completes it.
        """
        columns, temperature = self.channels, batch.columns.get("joint_temperatures")
        out = np.zeros((len(batch), len(columns)))
        period = np.floor(batch.time / SENSITIVITY_PERIOD)
        due = changes(period, np.nan if self._period is None else self._period) != 0
        self._period = float(period[-1])
        if current is None:
            q, qd, qdd = self._motion(batch)
            direction, link = self._direction(q, qd), np.empty_like(qd)
            for rows, setup in self.conditions.parts(batch):
                dynamics = self._dynamics_in(setup)
                link[rows] = dynamics.inverse_dynamics(q[rows], qd[rows], qdd[rows])
            powers = self._tracked.from_link_torque(
                link, qd, qdd, temperature=temperature, direction=direction, std=False
            )
        else:
            qd = batch.columns["actual_qd"]
            powers = self._measured(steps, qd, current, temperature)
        electrical = powers.electrical_power
        for name in QUANTITIES:
            out[:, columns.per_joint[name]] = getattr(powers, name)
        out[:, columns.arm["driver"]] = powers.driver_power
        out[:, columns.arm["total"]] = powers.demand - powers.standby_power
        # Motors and drivers that take no more than an arm can.
        good = np.abs(electrical).sum(axis=1) + powers.driver_power <= self._most_power
        due &= good
        held = self._sensitivities[None]
        if due.any():
            now = None if temperature is None else temperature[due]
            if current is None:
                way = None if direction is None else direction[due]
                at_due = self._tracked.from_link_torque(
                    link[due], qd[due], qdd[due], temperature=now, direction=way
                )
            else:  # single samples: the delay of the currents is left out
                at_due = self._measured.model.joint_power(qd[due], current[due], temperature=now)
            held = np.concatenate((held, self._sensitivity_columns(at_due)))
            self._sensitivities = held[-1]
            held = np.repeat(held, np.diff(np.flatnonzero(due), prepend=0, append=len(out)), axis=0)
        out[:, columns.sensitivity :] = held
        return out, good

    def _motion(self, batch: Telemetry) -> tuple[Array, Array, Array]:
        """Target positions, velocities and accelerations [samples, n], else the measured ones."""
        if "target_qdd" in batch.columns:
            batch.require("target_q", "target_qd", purpose="the method motion")
            q, qd, qdd = (batch.columns[f"target_{name}"] for name in ("q", "qd", "qdd"))
            return q, qd, qdd
        batch.require("actual_q", purpose="the method motion")
        qd = batch.columns["actual_qd"]
        last, before, value = self._slope or (np.inf, qd[0], np.zeros(self.robot.dof))
        steps = np.maximum(changes(batch.time, last), 0.0)
        weights = -np.expm1(-2 * np.pi * ACCELERATION_CUTOFF * steps)
        out = rate_of_change(steps, qd, before[None])
        for k, weight in enumerate(weights):  # a first-order low-pass with uneven steps
            out[k] = value = value + weight * (out[k] - value)
        self._slope = float(batch.time[-1]), qd[-1], value.copy()
        return batch.columns["actual_q"], qd, out

    def _dynamics_in(self, setup: Setup) -> ArmDynamics:
        """Rigid-body dynamics of the arm in a setup; the last one is kept."""
        if self._dynamics is None or self._dynamics.setup is not setup:
            self._dynamics = self.model.dynamics(robot=self.robot, setup=setup)
        return self._dynamics

    def _sensitivity_columns(self, powers: DrivePowers) -> Array:
        """The table's last columns [samples, errors], W; the last one is for 1 W of standby."""
        samples, n, own = powers.sensitivity.shape
        each, whole = self.channels.errors
        joints, total = np.zeros((samples, n, each)), np.zeros((samples, whole))
        joints[:, :, :own] = powers.sensitivity
        total[:, : powers.total_sensitivity.shape[1]] = powers.total_sensitivity
        total[:, -1] = 1.0
        return np.concatenate((joints.reshape(samples, n * each), total), axis=1)

    def _supply(
        self, out: Array, time: Array, steps: Array, states: Indices, bus: Array | None
    ) -> Standby:
        """Add standby power, and compute the power at the supply from the demand."""
        arm = self.channels.arm
        motors = out[:, arm["total"]]
        unexplained = np.full(len(out), np.nan) if bus is None else bus - motors
        errors = out[:, self.channels.shared_errors]
        still = states == _STANDSTILL
        standby = self.standby.update(time, steps, still, unexplained, errors)
        # In place, `errors` being a view of the table's columns: what is wrong in the power that
        # holds the arm is in the tracked standby with the opposite sign. Summed before they are
        # integrated, the errors cancel at standstill, and only the difference to motion remains.
        errors += standby.errors
        out[:, arm["standby"]] = standby.power
        demand = motors + standby.power
        out[:, arm["total"]] = supply = self._capacitor(steps, demand)
        out[:, arm["regeneration"]] = supply - demand
        # In place too: the last error stands for 1 W of standby so far, held over samples of
        # several periods, while its size changes with every sample.
        out[:, -1] *= standby.std
        return standby

    def _brakes_engaged(
        self, out: Array, batch: Telemetry, states: Indices, bus: Array | None
    ) -> None:
        """Power of an arm that is off or has its brakes engaged: of the bus, else of the model."""
        braked = states < _STANDSTILL
        if not braked.any():
            return
        idle, modes = self.options.idle_power, batch.columns["robot_mode"][braked]
        power = np.where(modes <= POWER_OFF, 0.0, self.standby.power if idle is None else idle)
        for code, name in ROBOT_MODES.items():
            if name in self.model.bus.mode_power:
                power[modes == code] = self.model.bus.mode_power[name]
        if bus is not None:
            power = np.where(np.isfinite(bus[braked]), bus[braked], power)
        out[braked] = 0.0
        out[braked, self.channels.arm["standby"]] = power
        out[braked, self.channels.arm["total"]] = power

    def _correction(
        self, steps: Array, states: Indices, standby: Standby
    ) -> EnergyCorrection | None:
        """When the session's standby becomes known: of what was counted with the model's before."""
        seconds, anchor, columns = self._unanchored, standby.anchor, self.channels
        if seconds is None:
            return None
        seconds += np.bincount(states[:anchor], steps[:anchor], len(ArmState))
        if anchor is None:
            return None
        self._unanchored = None
        seconds[:_STANDSTILL] = 0.0  # brakes engaged: counted without standby power
        shift = float(standby.power[anchor]) - self.standby.nominal
        energy, deviation = np.zeros((2, len(columns)))
        energy[columns.arm["standby"]] = energy[columns.arm["total"]] = shift * seconds.sum()
        energy[columns.state_energy : columns.state_time] = shift * seconds
        deviation[columns.shared_errors] = standby.errors[anchor] * seconds.sum()
        deviation[-1] = (float(standby.std[anchor]) - self.standby.spread) * seconds.sum()
        deducted_from = (columns.arm["total"], columns.arm["standby"])
        return EnergyCorrection(anchor, deducted_from, energy, deviation)
