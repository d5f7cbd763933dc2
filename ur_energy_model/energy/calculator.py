# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The energy calculator: from telemetry to the power of every channel, sample by sample.

The live estimator, `ur_energy estimate`, reports and evaluation all use it. One batch
passes these steps, in this order:

1. impossible samples, and samples that repeat a timestamp, are left out;
2. motors and drivers: their power from measured currents (`MeasuredPowers`), else from the
   motion (`PredictedPowers`);
3. standby: the power that the session has shown so far (`SessionFollower`);
4. supply: regeneration that the supply cannot take back (`BusCapacitor`). Steps 2 to 4 are
   the modelled power;
5. total: bus power where it is measured (`BusMeter`), else the modelled power. What is
   unexplained is the total less the modelled power.

The result does not depend on how samples are batched, and nothing is changed afterwards:
all state follows the samples and the controller's clock. There is one exception: the
friction that splits the mechanical power of a joint is the estimate at the start of a
batch.

Equations: model/drives.py; Clochiatti et al., Robotica 2024, eq. 19-26; Heredia et al.,
EcBot, eq. 13-21.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy

import numpy as np

from ur_energy_model.consistency.torque_field import (
    JOINT_TORQUE,
    WITHOUT_GRAVITY_TORQUE,
)
from ur_energy_model.energy.matched_model import check_joints, is_same_session
from ur_energy_model.energy.meter import StepRule
from ur_energy_model.energy.motor_powers import (
    MeasuredPowers,
    MotorErrors,
    MotorPowers,
    PredictedPowers,
    channels_of,
)
from ur_energy_model.energy.operating_conditions import OperatingConditions
from ur_energy_model.energy.powers import ArmState, PowerOptions, PowerTable, arm_states
from ur_energy_model.energy.session import SessionFollower
from ur_energy_model.energy.standby import StandbyFollower, StandbySeries
from ur_energy_model.energy.supply import BusCapacitor, BusMeter, BusPower
from ur_energy_model.energy.telemetry_checks import (
    UsableSamples,
    most_power,
    rated_limits,
)
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.model.drives import MOTION_COMMON, MOTION_OF_SESSION
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.robot_modes import POWER_OFF, ROBOT_MODES
from ur_energy_model.telemetry.samples import Telemetry, changes, slices_between
from ur_energy_model.typing import Array, Indices, Mask

_STANDSTILL = int(ArmState.STANDSTILL)
_MOVING = int(ArmState.MOVING)
RESTING_SHARE = 0.3
"""Bus powers below this share of the standby power do not show the standby power: the supply
rests, because the joints regenerate more than the arm needs."""
SENSITIVITY_PERIOD = 0.05
"""Sensitivities to parameter errors are computed once per period of the clock and held in
between [s]."""


class EnergyCalculator:
    """Powers of every channel of one arm.

    Args:
        model: identified model of the arm.
        robot: description of the arm.
        options: how powers are computed.

    Attributes:
        channels: columns of the powers.
        session: follower of standby power and friction.
        conditions: payload, speed scaling and temperatures at present.
        refused: samples left out so far because of values that are not finite or
            impossible.
        repeated: samples left out so far because the recording has them twice.
        torque_note: how joint torques of the recording stand for its currents, or why they
            do not; None where it has currents or no torques.

    Raises:
        WrongRobotError: model and description have different joints.
    """

    def __init__(
        self,
        model: EnergyModel,
        robot: RobotDescription,
        options: PowerOptions | None = None,
    ) -> None:
        check_joints(model, robot)
        self.model = model
        self.robot = robot
        self.options = PowerOptions() if options is None else options
        self.refused = 0
        self.repeated = 0
        self.torque_note: str | None = None
        self.gaps = StepRule(self.options.gap_limit)
        self.conditions = OperatingConditions(model.setup)
        limits = rated_limits(robot)
        self._most_power = most_power(robot)
        self._usable = UsableSamples(limits, self._most_power)
        self._refused_time = 0.0  # time of refused samples before the next good one [s]
        self.channels = channels_of(
            model, motion=self.options.method != "current", wall=model.wall_of(robot)
        )
        self.session = SessionFollower(
            model,
            limits,
            lambda: self.dynamics,
            limit=self.options.standby_limit,
            enabled=self.options.track_standby,
        )
        self._measured = MeasuredPowers(self.session.tracked())
        self._predicted = PredictedPowers(model, robot)
        self._capacitor = BusCapacitor(model.bus.capacitor_energy, model.bus.floor)
        self._bus = BusMeter()
        per_joint, whole_arm = self.channels.errors
        # Sensitivities that are held at present [1, errors], W.
        self._errors = MotorErrors(
            joints=np.zeros((1, model.dof * per_joint)),
            shared=np.zeros((1, whole_arm - 1)),
        )
        self._period = math.nan  # number of the SENSITIVITY_PERIOD of these sensitivities

    @property
    def standby(self) -> StandbyFollower:
        """Follower of the standby power of the session."""
        return self.session.standby

    @property
    def dynamics(self) -> ArmDynamics:
        """Rigid-body dynamics of the arm in its current setup."""
        return self._predicted.dynamics(self.conditions.setup)

    def continue_from(self, earlier: EnergyCalculator) -> None:
        """Take over the state of a calculator with another model of the same arm.

        Taken over are the clock, the conditions and the measurement of the bus; the
        session begins anew.
        """
        self.gaps = earlier.gaps
        self.refused = earlier.refused
        self.conditions.continue_from(earlier.conditions)
        self._bus = earlier._bus

    def continue_session(self, earlier: EnergyCalculator) -> None:
        """Take over state and session of a calculator whose model has other torque constants."""
        self.continue_from(earlier)
        self.repeated = earlier.repeated
        self.session.continue_from(earlier.session)
        self._measured.friction = self.session.friction()

    def set_options(self, options: PowerOptions) -> None:
        """Change options other than the method."""
        self.options = options
        self.gaps.limit = options.gap_limit
        self.standby.enabled = options.track_standby
        self.standby.limit = options.standby_limit

    def follow_session(self, batches: Iterable[Telemetry]) -> None:
        """Follow the sessions of a whole recording in a first pass over its batches.

        The second pass begins each session with its final estimates of standby power and
        friction. The power is therefore divided correctly from the first sample on, also
        where the arm stands still late in the recording.

        Raises:
            MissingFieldError: a field that the method needs is missing.
        """
        first = EnergyCalculator(self.model, self.robot, self.options)
        for batch in batches:
            first(batch)
        self.session.expect(first.session.states())
        self._measured.friction = self.session.friction()

    def use_friction(self, friction: SessionFriction | None) -> None:
        """Use friction from learning from now on; None for the friction of the model."""
        self.session.use_friction(friction)

    def model_in_session(self) -> EnergyModel:
        """The model with the standby power and, as far as it is known, friction of this session."""
        return self.session.model()

    def joint_positions(self, q: Array) -> Array:
        """Positions of the joints in the base frame [n, 3], m, at joint angles [n], rad."""
        return self.dynamics.joint_positions(q)

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
        torque = self._joint_torque(batch)
        if torque is not None:
            ratio = np.array([joint.gear_ratio for joint in self.model.joints])
            constant = np.array([joint.torque_constant for joint in self.model.joints])
            return np.asarray(torque / (ratio * constant))
        if self.options.method == "current":
            raise MissingFieldError(
                batch.info.source,
                "is missing, which the method current needs",
                "set method to motion",
                field="actual_current",
            )
        return None

    def _joint_torque(self, batch: Telemetry) -> Array | None:
        """Joint torques with gravity [samples, n], N m; None where it has none of known content.

        To torques without gravity the model's gravity torque is added, with the payload
        that is set in the controller. actual_current_as_torque itself is not used: what it
        contains must be decided or stated before.
        """
        columns = batch.columns
        if JOINT_TORQUE in columns:
            return columns[JOINT_TORQUE]
        if WITHOUT_GRAVITY_TORQUE not in columns:
            return None
        batch.require("actual_q", purpose="adding gravity to joint torques without it")
        q = columns["actual_q"]
        torque = np.array(columns[WITHOUT_GRAVITY_TORQUE])
        # The conditions are updated only with usable samples; this must not change them.
        conditions = copy(self.conditions)
        for rows, setup in conditions.parts(batch):
            torque[rows] += self._predicted.dynamics(setup).gravity_torque(q[rows])
        return torque

    def __call__(self, batch: Telemetry) -> PowerTable | None:
        """Powers of samples that follow those of the last call.

        Args:
            batch: samples in the order of the clock.

        Returns:
            The powers of the usable samples; None where no sample is usable.

        Raises:
            MissingFieldError: a field that the method needs is missing.
        """
        self.repeated += batch.repeated
        current = self.currents(batch)
        good = self._usable(batch, current)
        if not good.all():
            self.refused += len(batch) - int(good.sum())
            batch = batch.select(good)
            current = None if current is None else current[good]
            if not len(batch):
                return None
        # The time to a refused sample belongs to the next good one: steps come after.
        steps = self.gaps(batch.time, batch.stamp, batch.gaps, batch.info.rate)
        first = math.isnan(self._period)
        if not steps.bridged.min() > 0.0:  # some samples may repeat a timestamp
            new = (steps.bridged > 0.0) | (steps.lost > 0.0) | steps.back
            new[0] |= first  # the very first sample has no step
            batch = batch.select(new)
            steps = steps.cut(new)
            current = None if current is None else current[new]
            if not len(batch):
                return None
        motors, errors, good = self._motors(batch, current, steps.bridged)
        if not good.all():
            # Currents within their limits can still be impossible together.
            self.refused += len(batch) - int(good.sum())
            steps, self._refused_time = steps.without(~good, self._refused_time)
            batch = batch.select(good)
            motors = motors.at(good)
            errors = errors.at(good)
            if not len(batch):
                return None
        self.conditions.update(batch)
        states = arm_states(batch, batch.columns["actual_qd"])
        self._bus, bus = self._bus.step(batch, steps.bridged, states >= _STANDSTILL)
        if first:
            self._begin_session(batch)
        standby = self._follow(batch, steps.bridged, states, motors, bus, errors.shared)
        power = self._assembled(
            batch, steps.bridged, states, motors, errors, standby, bus
        )
        return PowerTable(batch, steps, states, power, bool(bus.measured.all()))

    def _motors(
        self, batch: Telemetry, current: Array | None, steps: Array
    ) -> tuple[MotorPowers, MotorErrors, Mask]:
        """Powers of motors and drivers, with brakes released, and their sensitivities.

        Args:
            batch: usable samples.
            current: motor currents [samples, n], A; None to compute from the motion.
            steps: bridged steps to the samples [samples], s.

        Returns:
            Powers of the samples; their sensitivities; and whether the power of each
            sample is possible: no more than the arm can take [samples].
        """
        period = np.floor(batch.time / SENSITIVITY_PERIOD)
        # Sensitivities are due at the first good sample of each period.
        due = changes(period, self._period) != 0
        self._period = float(period[-1])
        if current is None:
            model = self.session.tracked()
            motion = self._predicted.motion(batch, self.conditions)
            powers = self._predicted.powers(model, motion)
        else:
            temperature = batch.columns.get("joint_temperatures")
            speed = batch.columns["actual_qd"]
            measured = self._measured.motion(steps, speed, current, temperature)
            powers = self._measured.powers(measured)
        electrical = powers.joints[:, self.channels.per_joint["electrical_power"]]
        good = np.abs(electrical).sum(axis=1) + powers.driver <= self._most_power
        due &= good
        known = self._errors  # the first row holds for samples before the first due one
        per_joint, whole_arm = self.channels.errors
        counts = (per_joint, whole_arm - 1)
        if due.any():
            if current is None:
                found = self._predicted.errors(model, motion.at(due), counts)
            else:
                found = self._measured.errors(measured.at(due), counts)
            known = MotorErrors(
                joints=np.concatenate((known.joints, found.joints)),
                shared=np.concatenate((known.shared, found.shared)),
            )
        self._errors = known.at(slice(-1, None))
        # Each sample has the sensitivities of the last sample at which they were due.
        latest = np.cumsum(due)
        return powers, known.at(latest), good

    def _begin_session(self, samples: Telemetry) -> None:
        """Set the error that all motions of a session have in common, from its first samples.

        The error is smaller in the session in which the model was identified. The standby
        power of that session is known as well.
        """
        same = is_same_session(self.model, samples)
        share = MOTION_COMMON if same else MOTION_OF_SESSION
        common = self.model.bus.motion_std * share
        self.standby.common = common
        if same and samples.bus_power is None and not self.standby.anchored:
            self.standby.state = self.standby.state._replace(variance=common**2)

    def _follow(
        self,
        batch: Telemetry,
        steps: Array,
        states: Indices,
        motors: MotorPowers,
        bus: BusPower,
        errors: Array,
    ) -> StandbySeries:
        """Update the estimates of one or more sessions; returns the standby power.

        Args:
            batch: samples of one session, or of several, one after the other.
            steps: bridged steps to the samples [samples], s.
            states: states of the arm [samples].
            motors: powers of motors and drivers.
            bus: measured power of the robot bus.
            errors: sensitivities of motors and drivers [samples, errors], W.
        """
        floor = self.model.bus.floor
        resting = floor + RESTING_SHARE * (self.model.bus.standby - floor)
        supply_rests = bus.watts < resting
        known = bus.measured & ~supply_rests
        unexplained = np.where(known, bus.watts - motors.demand, np.nan)
        still = states == _STANDSTILL
        released = still | (states == _MOVING)
        starts = self.session.session_starts(batch.time)
        found = []
        for rows in slices_between(starts, len(batch)):
            samples = batch.cut(rows) if starts else batch
            if rows.start in starts:
                self.session.next_session()
                self._begin_session(samples)
                self._measured.friction = self.session.friction()
            found.append(
                self.standby.update(
                    samples.time,
                    steps[rows],
                    still[rows],
                    released[rows],
                    unexplained[rows],
                    errors[rows],
                )
            )
            if self.session.observe_motion(samples):
                self._measured.friction = self.session.friction()
        return StandbySeries.joined(found)

    def _assembled(
        self,
        batch: Telemetry,
        steps: Array,
        states: Indices,
        motors: MotorPowers,
        errors: MotorErrors,
        standby: StandbySeries,
        bus: BusPower,
    ) -> Array:
        """Powers of all channels [samples, channels], W, in the order of `Channels`.

        Args:
            batch: usable samples.
            steps: bridged steps to the samples [samples], s.
            states: states of the arm [samples].
            motors: powers of motors and drivers.
            errors: sensitivities of these powers.
            standby: standby power.
            bus: measured power of the robot bus.
        """
        channels = self.channels
        demand = motors.demand + standby.power
        supply = self._capacitor(steps, demand)
        joint_errors = errors.joints
        # The error of a parameter changes the standby power, too, with the opposite sign.
        # Added before they are integrated, both changes cancel where standby was measured.
        shared = errors.shared + standby.errors
        model_errors = np.column_stack([shared, standby.std])
        parts = {
            "standby": standby.power,
            "driver": motors.driver,
            "regeneration": supply - demand,
        }
        model = supply
        joints = motors.joints
        braked = states < _STANDSTILL
        if braked.any():
            # An arm that is off or has its brakes engaged takes the power of that mode
            # alone.
            idle = self._braked_power(batch.columns["robot_mode"], bus)
            parts = {name: np.where(braked, 0.0, watts) for name, watts in parts.items()}
            parts["standby"] = np.where(braked, idle, standby.power)
            model = np.where(braked, idle, supply)
            rows = braked[:, None]
            joints = np.where(rows, 0.0, joints)
            joint_errors = np.where(rows, 0.0, joint_errors)
            model_errors = np.where(rows, 0.0, model_errors)
        total = np.where(bus.measured, bus.watts, model)
        moving = states == _MOVING
        arm = {
            "total": total,
            "model": model,
            **parts,
            "unexplained": total - model,
            "bus": bus.watts,
            "total_square": total * total,
            "measured": bus.measured,
            "modelled_motion": moving & ~bus.measured,
            "noise": bus.noise,
            "resolution": bus.resolution,
        }
        in_state = states[:, None] == np.arange(len(ArmState))
        return np.concatenate(
            [
                joints,
                np.column_stack([arm[name] for name in channels.arm]),
                in_state * total[:, None],
                in_state,
                joint_errors,
                model_errors,
                np.where(bus.measured[:, None], 0.0, model_errors),
            ],
            axis=1,
        )

    def _braked_power(self, modes: Array, bus: BusPower) -> Array:
        """Power of an arm that is off or has its brakes engaged [samples], W.

        It is the power of the bus where the bus is measured, else the model's power in each
        mode.

        Args:
            modes: robot modes, RTDE codes [samples].
            bus: measured power of the robot bus.
        """
        idle = self.options.idle_power
        if idle is None:
            idle = self.standby.power
        power = np.where(modes <= POWER_OFF, 0.0, idle)
        for code, name in ROBOT_MODES.items():
            if name in self.model.bus.mode_power:
                power = np.where(modes == code, self.model.bus.mode_power[name], power)
        return np.where(bus.measured, bus.watts, power)
