# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The energy calculator: from telemetry to the power of every channel, sample by sample.

The live estimator, `ur_energy estimate`, reports and evaluation all use it. The result does not
depend on how samples are batched: all state (gaps, the previous sample, standby, the bus
capacitor) follows the samples and the controller's clock. Equations: model/drives.py;
Clochiatti et al., Robotica 2024, eq. 19-26; Heredia et al., EcBot, eq. 13-21.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ur_energy_model.energy.meter import (
    EnergyCorrection,
    GapRule,
    bridged_steps,
    trapezoid_weights,
)
from ur_energy_model.energy.powers import (
    QUANTITIES,
    ArmState,
    Channels,
    PowerOptions,
    PowerTable,
    arm_states,
)
from ur_energy_model.energy.session import (
    RecordingStandby,
    SessionModel,
    SettledStandby,
    Standby,
    StandbyTracker,
)
from ur_energy_model.energy.telemetry_checks import (
    OperatingConditions,
    UsableSamples,
    check_joints,
    is_same_session,
    most_power,
    rated_limits,
)
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.model.drives import MOTION_COMMON, MOTION_OF_SESSION, Drives
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionDirection
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.model.setup import Setup
from ur_energy_model.model.wall import WallModel
from ur_energy_model.robot_modes import POWER_OFF, ROBOT_MODES
from ur_energy_model.telemetry.samples import Telemetry, changes, slices_between
from ur_energy_model.typing import Array, Indices, Mask


def backward_difference(time: Array, values: Array) -> Array:
    """Rate of change [samples, ...], per second, since the last sample; zero across gaps."""
    return rate_of_change(bridged_steps(time), values, values[:1])


def rate_of_change(steps: Array, values: Array, before: Array) -> Array:
    """Change per step of values [samples, ...] after `before` [1, ...]; 0 where a step is 0."""
    change = np.diff(np.concatenate((before, values)), axis=0)
    safe = np.where(steps > 0.0, steps, np.inf).reshape(-1, *(1,) * (values.ndim - 1))
    return np.asarray(change / safe)


def channels_of(
    model: EnergyModel, *, motion: bool = False, wall: WallModel | None = None
) -> Channels:
    """Channels of an arm, with room for the errors of powers from measured currents or motion.

    The total has one error more than the powers of the model: the standby of the session.
    """
    still = np.zeros((1, model.dof))
    powers = (
        model.from_link_torque(still, still, still) if motion else model.joint_power(still, still)
    )
    errors = powers.sensitivity.shape[-1], powers.total_sensitivity.shape[-1] + 1
    names = [joint.name for joint in model.joints]
    return Channels(names, errors, wall, model.bus.motion_variance)


class MeasuredPowers:
    """Powers of an arm from its measured speeds and currents, batch by batch.

    With currents I, motor speeds w and friction torques f, the powers of model/drives.py and their
    changes per error of a parameter are linear in I^2, w I, |I|, w f, |w|, I dI/dt (EcBot's
    inductive term) and I dw of all joints: one matrix gives every channel from these products.

    Within a packet current and speed belong to different instants: drives hold a current over a
    controller cycle, sensors and buses add delays. Because current and acceleration are correlated,
    a power k i w with the later speed is systematically too high by k i (dw/dt) delay. The speeds
    are therefore shifted by dw, the change during the model's delay; the sensitivities are not.

    Attributes:
        powers: per product, by channel [products, channels that are no sensitivities].
        sensitivities: per product, by error [products, errors]; `constant` [errors] is added, W.
        demand: per product, of the motors and drivers together [products].
    """

    def __init__(self, model: EnergyModel, channels: Channels) -> None:
        self._drives = drives = Drives(model.joints, model.bus, model.session)
        self._delay, self._inductive = model.current_delay, bool(model.bus.inductance.any())
        self._last: tuple[Array, Array] | None = None  # speeds and currents of the last sample
        each, whole = np.arange(model.dof), np.arange(len(drives.standby_errors))
        matrix = np.zeros((7, model.dof, len(channels)))
        square, product, amperes, friction, speed, inductive, shift = matrix
        electrical, mechanical, copper, lost = (
            each + channels.per_joint[name].start for name in QUANTITIES
        )
        driver, total = channels.arm["driver"], channels.arm["total"]
        square[each, copper] = square[each, electrical] = drives.winding_resistance
        product[each, electrical] = shift[each, electrical] = drives.back_emf_constant
        product[each, mechanical] = shift[each, mechanical] = drives.torque_constant
        friction[each, lost] = 1.0
        amperes[:, driver], inductive[:, driver] = model.bus.driver, model.bus.inductance
        speed[:, driver] = model.bus.drag
        matrix[:, :, total] = matrix[:, :, electrical].sum(axis=2) + matrix[:, :, driver]
        own = channels.sensitivity + channels.errors[0] * each[:, None] + whole
        shared = len(channels) - channels.errors[1] + whole
        square[each[:, None], own] = square[:, shared] = drives.resistance_errors.T
        product[each[:, None], own] = product[:, shared] = drives.back_emf_errors.T
        amperes[:, shared], speed[:, shared] = drives.driver_errors.T, drives.drag_errors.T
        used = [0, 1, 2, 3, 4, *[5] * self._inductive, *[6] * bool(self._delay)]
        rows = matrix[used].reshape(-1, len(channels))
        self.powers, self.sensitivities = np.split(rows, [channels.sensitivity], axis=1)
        self.demand = self.powers[:, total]
        self.constant = np.zeros(self.sensitivities.shape[1])
        self.constant[shared - channels.sensitivity], self.constant[-1] = drives.standby_errors, 1.0

    def __call__(
        self, steps: Array, qd: Array, current: Array, temperature: Array | None = None
    ) -> Array:
        """Products of samples that follow those of the last call [samples, products].

        Bridged steps [samples], s; speeds and motor currents as recorded [samples, n], rad/s, A;
        temperatures [n] or [samples, n], degC.
        """
        drives, motor = self._drives, self._drives.gear_ratio * qd
        motor_before, current_before = self._last or (motor[:1], current[:1])
        self._last = motor[-1:], current[-1:]
        if self._delay:
            shift = -self._delay * rate_of_change(steps, motor, motor_before)
            qd = qd + shift / drives.gear_ratio
        torque = drives.torque_constant * current
        friction = drives.friction.torque_within(qd, torque, temperature)
        lost = drives.gear_ratio * qd * friction
        products = [current * current, motor * current, np.abs(current), lost, np.abs(motor)]
        if self._inductive:
            products.append(current * rate_of_change(steps, current, current_before))
        if self._delay:
            products.append(shift * current)
        return np.concatenate(products, axis=1)


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
        if stored <= 0.0 and demand.min() >= floor:  # only regenerated power charges it
            return demand
        out = np.maximum(demand, floor)
        if capacity <= 0.0:
            return out
        begins = (demand < floor).nonzero()[0].tolist()
        # Numbers of Python are several times faster than elements of arrays.
        each_step, surplus = steps.tolist(), (steps * (floor - demand)).tolist()
        k, count = 0, len(surplus)
        for begin in [0, *begins] if stored > 0.0 else begins:
            if begin < k:  # still charged
                continue
            k = begin
            while k < count:
                stored += surplus[k]
                if stored <= 0.0 or each_step[k] == 0.0:
                    break
                stored, k = capacity if stored > capacity else stored, k + 1
            out[begin:k] = floor
            if k < count:
                if each_step[k] > 0.0:  # else a gap: discharged by now
                    out[k] = floor - stored / each_step[k]  # the supply delivers the rest
                stored, k = 0.0, k + 1
        self.stored = stored
        return out


class CutRegeneration:
    """Samples at which the supply cuts regeneration, or would with less standby power.

    With another standby power the cut is another one, which no integral shows: the samples
    themselves are kept, batch by batch, MOST at most; what follows then stays as it was counted.

    Args:
        capacity, floor: as of BusCapacitor.
    """

    MOST = 500_000  # some 30 MB

    def __init__(self, capacity: float, floor: float) -> None:
        self._capacity, self._floor = capacity, floor
        self._worst, self._count = BusCapacitor(capacity, floor), 0
        self._runs: list[list[Array]] = []
        """Consecutive batches that were kept together, each [samples, 5]: step, its weight in the
        integral, state, demand without standby, regeneration as counted; s, W."""
        self._open = False  # whether the last batch is in the last run

    def keep(
        self,
        steps: Array,
        states: Indices,
        motors: Array,
        demand: Array,
        supply: Array,
        margin: float,
    ) -> None:
        """Keep samples, if some are cut with `margin` [W] less standby; powers [samples], W."""
        if self._open:
            last = self._runs[-1][-1][-1]
            last[1] += 0.5 * steps[0] * (last[2] >= _STANDSTILL)
        lowest = demand - margin
        if self._worst(steps, lowest) is lowest or self._count >= self.MOST:
            self._open = False
            return
        held = states >= _STANDSTILL  # else the power is not that of the model
        weights = np.where(held, trapezoid_weights(steps)[1:], 0.0)
        rows = np.column_stack((steps, weights, states, motors, supply - demand))
        self._runs += [] if self._open else [[]]
        self._runs[-1].append(rows)
        self._open, self._count = True, self._count + len(rows)

    def recut(self, standby: float) -> Array:
        """Change of the regeneration with this standby power [states], J; forgets the samples."""
        change = np.zeros(len(ArmState))
        for run in self._runs:
            steps, weights, states, motors, before = np.concatenate(run).T
            demand = motors + standby
            after = BusCapacitor(self._capacity, self._floor)(steps, demand) - demand
            np.add.at(change, states.astype(np.intp), weights * (after - before))
        self._runs, self._open, self._count = [], False, 0
        return change


_STANDSTILL = int(ArmState.STANDSTILL)
SENSITIVITY_PERIOD = 0.05
"""Sensitivities are computed once per period of the clock and held in between [s]."""
ACCELERATION_CUTOFF = 5.0  # low-pass of accelerations differentiated from velocities [Hz]


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
        self.options = options = PowerOptions() if options is None else options
        self.refused = self.repeated = 0
        self.gaps, self.conditions = GapRule(options.gap_limit), OperatingConditions(model.setup)
        self.standby = StandbyTracker(
            model.bus.standby,
            model.session.standby_std,
            options.standby_limit,
            options.track_standby,
        )
        limits, self._most_power = rated_limits(robot), most_power(robot)
        self._usable = UsableSamples(limits, self._most_power)
        self._refused_time = 0.0
        self._session = SessionModel(model, limits, lambda: self.dynamics)
        motion, wall = options.method != "current", model.wall_of(robot)
        self.channels = channels_of(model, motion=motion, wall=wall)
        self._measured = MeasuredPowers(self._session.tracked(), self.channels)
        self._direction = FrictionDirection(model.presliding)
        self._slope: tuple[float, Array, Array] | None = None
        """Last time [s], velocities and filtered accelerations, where those are not measured."""
        self._dynamics: ArmDynamics | None = None
        self._capacitor = BusCapacitor(model.bus.capacitor_energy, model.bus.floor)
        self._cut = CutRegeneration(model.bus.capacitor_energy, model.bus.floor)
        shared = self.channels.shared_errors
        self._counted: Array | None = np.zeros((len(ArmState), 4 + shared.stop - shared.start))
        """Time by state in this stretch, and the integrals over it of standby power, its standard
        deviation, its errors and the total as counted; None where nothing is to be corrected."""
        self._follows_friction = True
        self._used: Array | None = None
        """1, standby power, its deviation and errors, the total at the last sample [1, 4 + k]."""
        self._due = np.zeros(len(self.channels))
        """Corrections of the stretches before [channels], J."""
        self._sensitivities = np.zeros((1, len(self.channels) - self.channels.sensitivity))
        self._period = math.nan

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
        steps = self.gaps(batch.time, batch.stamp, batch.gaps, batch.info.rate)
        first = math.isnan(self._period)
        if not steps.bridged.min() > 0.0:
            new = (steps.bridged > 0.0) | (steps.lost > 0.0) | steps.back
            new[0] |= first  # the very first sample
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
        if self._follows_friction:
            self._session.observe(batch)
        bus, columns = batch.bus_power, self.channels
        if first:
            self._begin_session(batch)
        standby = self._supply(powers, batch.time, steps.bridged, states, bus)
        for begin in standby.begins[-1:]:
            self._begin_session(batch.cut(slice(begin, None)))
        if states.min() < _STANDSTILL:
            self._engage_brakes(powers, batch.columns["robot_mode"], states < _STANDSTILL, bus)
        finite = bus is not None and bool(np.isfinite(bus).all())
        if bus is not None:
            powers[:, columns.arm["bus"]] = bus if finite else np.nan_to_num(bus)
        rows, total = np.arange(len(batch)), powers[:, columns.arm["total"]]
        powers[rows, columns.state_energy + states] = total
        powers[:, columns.arm["total_square"]] = total * total
        powers[rows, columns.state_time + states] = 1.0
        correction = self._correction(steps.bridged, states, standby, total)
        return PowerTable(batch, steps, states, powers, finite, correction)

    def _begin_session(self, samples: Telemetry) -> None:
        """In another session than that of the model, all motions have an error in common."""
        share = MOTION_COMMON if is_same_session(self.model, samples) else MOTION_OF_SESSION
        self.standby.motion = share * self.model.bus.motion_std

    def settle(self, batches: Iterable[Telemetry]) -> None:
        """Take the standby power of a finished recording in a first pass over its batches.

        Powers contain it from the first sample on: that of a session is its mean over all settled
        standstill. Without bus power it is the model's, whose deviation is smaller in the session
        that the model was identified in. Without `track_standby` nothing changes.

        Raises:
            MissingFieldError: a field that the method needs is missing.
        """
        if not self.options.track_standby:
            return
        first = EnergyCalculator(self.model, self.robot, self.options)
        first._counted, first._follows_friction = None, False
        for batch in batches:
            if batch.bus_power is None:
                if is_same_session(self.model, batch):
                    self.standby.spread = MOTION_COMMON * self.model.bus.motion_std
                return
            first(batch)
        self.standby, self._counted = RecordingStandby(first.standby), None

    def final_correction(self) -> Array:
        """Change of the energies at the end of a recording [channels], J.

        Their sum then has the standby power that `settle` would have given.
        """
        due, self._due = self._due, np.zeros_like(self._due)
        if self._counted is None:
            return due
        return due + self._end_stretch(self.standby.finish()[-1])

    def joint_positions(self, q: Array) -> Array:
        """Positions of the joints in the base frame [n, 3], m, at joint angles [n], rad."""
        return self.dynamics.joint_positions(q)

    def use_friction(self, friction: SessionFriction | None) -> None:
        """Predict motion with this friction from now on; None for that of the model."""
        self._session.use_friction(friction)

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
        columns, measured = self.channels, self._measured
        temperature = batch.columns.get("joint_temperatures")
        period = np.floor(batch.time / SENSITIVITY_PERIOD)
        due = changes(period, self._period) != 0
        self._period = float(period[-1])
        out = np.zeros((len(batch), len(columns)))
        driver, electrical = columns.arm["driver"], columns.per_joint["electrical_power"]
        if current is None:
            q, qd, qdd = self._motion(batch)
            direction, link = self._direction(q, qd), np.empty_like(qd)
            for rows, setup in self.conditions.parts(batch):
                dynamics = self._dynamics_in(setup)
                link[rows] = dynamics.inverse_dynamics(q[rows], qd[rows], qdd[rows])
            powers = self._session.tracked().from_link_torque(
                link, qd, qdd, temperature=temperature, direction=direction, std=False
            )
            for name in QUANTITIES:
                out[:, columns.per_joint[name]] = getattr(powers, name)
            out[:, driver] = powers.driver_power
            out[:, columns.arm["total"]] = powers.demand - powers.standby_power
        else:
            products = measured(steps, batch.columns["actual_qd"], current, temperature)
            out[:, : columns.sensitivity] = products @ measured.powers
        # Motors and drivers that take no more than an arm can.
        good = np.abs(out[:, electrical]).sum(axis=1) + out[:, driver] <= self._most_power
        due &= good
        if due.any():
            if current is None:
                at_due = self._session.tracked().from_link_torque(
                    link[due],
                    qd[due],
                    qdd[due],
                    temperature=None if temperature is None else temperature[due],
                    direction=None if direction is None else direction[due],
                )
                joints = at_due.sensitivity.reshape(len(at_due.demand), -1)
                found = np.column_stack([joints, at_due.total_sensitivity, np.ones(len(joints))])
            else:  # the last error is 1 W of standby
                found = products[due] @ measured.sensitivities + measured.constant
            held = np.concatenate((self._sensitivities, found))
            self._sensitivities = held[-1:]
            out[:, columns.sensitivity :] = held[np.cumsum(due)]
        else:
            out[:, columns.sensitivity :] = self._sensitivities
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

    def _supply(
        self, out: Array, time: Array, steps: Array, states: Indices, bus: Array | None
    ) -> Standby:
        """Add standby power, and compute the power at the supply from the demand."""
        arm = self.channels.arm
        motors = out[:, arm["total"]]
        unexplained = None if bus is None else bus - motors
        errors = out[:, self.channels.shared_errors]
        standby = self.standby.update(time, steps, states == _STANDSTILL, unexplained, errors)
        # In place, `errors` being a view of the table's columns: what is wrong in the power that
        # holds the arm is in the tracked standby with the opposite sign. Summed before they are
        # integrated, the errors cancel at standstill, and only the difference to motion remains.
        errors += standby.used[:, 3:]
        out[:, arm["standby"]] = standby.used[:, 1]
        demand = motors + standby.used[:, 1]
        supply = self._capacitor(steps, demand)
        if self._counted is not None:
            self._cut.keep(steps, states, motors, demand, supply, self.standby.limit)
        # `motors` is a view of the same column.
        out[:, arm["total"]], out[:, arm["regeneration"]] = supply, supply - demand
        # The last error stands for 1 W of standby so far, held over samples of several periods,
        # while its size changes with every sample.
        out[:, -1] *= standby.used[:, 2]
        return standby

    def _engage_brakes(self, out: Array, modes: Array, braked: Mask, bus: Array | None) -> None:
        """Power of an arm that is off or has its brakes engaged: of the bus, else of the model."""
        idle, modes = self.options.idle_power, modes[braked]
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
        self, steps: Array, states: Indices, standby: Standby, total: Array
    ) -> EnergyCorrection | None:
        """When the session's standby becomes known: of what was counted with the model's before."""
        if self._counted is None:
            return None
        columns, found, (anchor, now) = self.channels, None, standby.anchor or (0, None)
        before, used = self._used, np.column_stack((standby.used, total))
        self._used = used[-1:]
        used = 0.5 * (used + np.concatenate((used[:1] if before is None else before, used[:-1])))
        cuts = sorted({*standby.begins, anchor})
        for part in slices_between(cuts, len(steps)):
            if part.start in standby.begins:
                self._due += self._end_stretch(self.standby.settled.pop(0))
            if now is not None and part.start == anchor:
                change = self._recount(now)
                deducted_from = (columns.arm["total"], columns.arm["standby"])
                found = EnergyCorrection(anchor, deducted_from, change)
            for state in (present := set(states[part].tolist())):
                seconds, held = steps[part], state >= _STANDSTILL
                if len(present) > 1 or not held:  # brakes engaged: without standby power
                    seconds = np.where((states[part] == state) & held, seconds, 0.0)
                self._counted[state] += seconds @ used[part]
        return found

    def _end_stretch(self, standby: SettledStandby) -> Array:
        """Count the time of this stretch as `RecordingStandby` does: change by channel, J."""
        change, columns = self._recount(standby), self.channels
        if standby.anchored:
            joules = self._cut.recut(standby.power)
            for name in ("total", "regeneration"):
                change[columns.arm[name]] += joules.sum()
            change[columns.state_energy : columns.state_time] += joules
        if self._counted is not None:
            change[-1] += self._counted[_STANDSTILL, 0] * (standby.still_std - standby.std)
            self._counted[:] = 0.0
        return change

    def _recount(self, standby: SettledStandby) -> Array:
        """Count the time of this stretch with this standby power: change by channel, J."""
        change, columns, counted = np.zeros(len(self.channels)), self.channels, self._counted
        if counted is None or not standby.anchored:
            return change
        values = np.concatenate([[1.0, standby.power, standby.std], -standby.errors])
        seconds, watts = counted[:, :1], counted[:, -1]
        joules, std, *errors = (seconds * values - counted[:, :-1]).T[1:]
        self._counted = np.column_stack((seconds * values, watts + joules))
        mean = (2.0 * watts + joules) / np.where(seconds > 0.0, seconds, 1.0)[:, 0]
        change[columns.arm["total_square"]] = joules @ mean
        change[columns.arm["standby"]] = change[columns.arm["total"]] = joules.sum()
        change[columns.state_energy : columns.state_time] = joules
        change[columns.shared_errors], change[-1] = [each.sum() for each in errors], std.sum()
        return change
