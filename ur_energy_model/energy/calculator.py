"""The energy calculator: from telemetry to the power of every channel, sample by sample.

The live estimator, `ur_energy estimate`, reports and evaluation all use it. The result does not
depend on how samples are batched: all state (gaps, the previous sample, standby, the bus
capacitor) follows the samples and the controller's clock. Equations: model/drives.py,
joint_powers.py; Clochiatti et al., Robotica 2024, eq. 19-26; Heredia et al., EcBot, eq. 13-21.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.joint_powers import (
    BusCapacitor,
    MeasuredPowers,
    MotionPowers,
    mode_power,
)
from ur_energy_model.energy.meter import GapRule
from ur_energy_model.energy.powers import (
    QUANTITIES,
    ArmState,
    Channels,
    PowerOptions,
    PowerTable,
    arm_states,
)
from ur_energy_model.energy.session import SessionModel, Standby, StandbyCorrection, StandbyTracker
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
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.telemetry.samples import Telemetry, changes
from ur_energy_model.typing import Array, Indices, Mask

_STANDSTILL = int(ArmState.STANDSTILL)
SENSITIVITY_PERIOD = 0.05
"""Sensitivities are computed once per period of the clock and held in between [s]."""


class EnergyCalculator:
    """Powers of every channel of one arm.

    Args:
        model: identified model of the arm.
        robot: its description.
        options: how powers are computed.

    Raises:
        WrongRobotError: model and description have different joints.
    """

    def __init__(
        self, model: EnergyModel, robot: RobotDescription, options: PowerOptions | None = None
    ) -> None:
        check_joints(model, robot)
        self.model = model
        self.robot = robot
        self.options = PowerOptions() if options is None else options
        self.refused = 0
        """Samples left out so far because of values that are not finite or impossible."""
        self.repeated = 0
        """Samples left out so far because the recording has them twice."""
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
        tracked = self._session.tracked()
        self._measured = MeasuredPowers(tracked)
        self._motion = MotionPowers(tracked, robot, self.conditions)
        self._capacitor = BusCapacitor(model.bus.capacitor_energy, model.bus.floor)
        self.channels = Channels(robot.joint_names, self._error_counts())
        self._standby_correction = StandbyCorrection(
            self.channels, model.bus.standby, model.session.standby_std
        )
        self._sensitivities = np.zeros(len(self.channels) - self.channels.sensitivity)
        self._period: float | None = None

    def continue_from(self, earlier: EnergyCalculator) -> None:
        """Take over the state of a calculator with another model of the same arm."""
        self.gaps, self.refused = earlier.gaps, earlier.refused
        self.conditions.continue_from(earlier.conditions)

    def set_options(self, options: PowerOptions) -> None:
        """Change options other than the method."""
        self.gaps.limit = options.gap_limit
        self.standby.enabled = options.track_standby
        self.standby.limit = options.standby_limit
        self.options = options

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
            batch = batch.select(good)
            current = None if current is None else current[good]
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
        bus = batch.bus_power
        standby = self._supply(powers, batch.time, steps.bridged, states, bus)
        self._brakes_engaged(powers, batch, states, bus)
        finite = bus is not None and bool(np.isfinite(bus).all())
        if bus is not None:
            powers[:, self.channels.arm["bus"]] = bus if finite else np.nan_to_num(bus)
        rows, columns = np.arange(len(batch)), self.channels
        powers[rows, columns.state_energy + states] = powers[:, columns.arm["total"]]
        powers[rows, columns.state_time + states] = 1.0
        correction = self._standby_correction(steps.bridged, states, standby)
        return PowerTable(batch, steps, states, powers, finite, correction)

    def joint_positions(self, q: Array) -> Array:
        """Positions of the joints in the base frame [n, 3], m, at joint angles [n], rad."""
        return self.dynamics.joint_positions(q)

    def use_friction(self, friction: SessionFriction | None) -> None:
        """Predict motion with this friction from now on; None for that of the model."""
        self._session.use_friction(friction)
        self._motion.model = self._session.tracked()

    def model_in_session(self) -> EnergyModel:
        """The model with the standby power and, as far as it is known, friction of this session."""
        return self._session.anchored(self.standby)

    @property
    def dynamics(self) -> ArmDynamics:
        """Rigid-body dynamics of the arm in its current setup."""
        return self._motion.dynamics_in(self.conditions.setup)

    def _powers(self, batch: Telemetry, current: Array | None, steps: Array) -> tuple[Array, Mask]:
        """Powers of motors and drivers with brakes released [samples, channels], W.

        The column of the total contains the demand without standby; `_supply` completes it.

        Returns:
            powers, and the samples whose powers are possible for the arm [samples].
        """
        columns, temperature = self.channels, batch.columns.get("joint_temperatures")
        out = np.zeros((len(batch), len(columns)))
        period = np.floor(batch.time / SENSITIVITY_PERIOD)
        due = changes(period, np.nan if self._period is None else self._period) != 0
        self._period = float(period[-1])
        held = [self._sensitivities[None]]
        if current is None:
            for rows, powers, at_due in self._motion(batch, temperature, due):
                self._fill(out[rows], powers)
                held.append(self._sensitivity_columns(at_due)[self._possible(out[rows])[due[rows]]])
            good = self._possible(out)
            due &= good
        else:
            qd = batch.columns["actual_qd"]
            self._fill(out, self._measured(steps, qd, current, temperature))
            good = self._possible(out)
            due &= good
            if due.any():
                due_temperature = None if temperature is None else temperature[due]
                at_due = self._measured.sensitivities(qd[due], current[due], due_temperature)
                held.append(self._sensitivity_columns(at_due))
        if len(held) == 1:
            out[:, columns.sensitivity :] = self._sensitivities
            return out, good
        values = np.concatenate(held)
        counts = np.diff(np.flatnonzero(due), prepend=0, append=len(out))
        out[:, columns.sensitivity :] = np.repeat(values, counts, axis=0)
        self._sensitivities = values[-1]
        return out, good

    def _possible(self, out: Array) -> Mask:
        """Samples whose motors and drivers take no more than an arm can [samples]."""
        motors = np.abs(out[:, self.channels.per_joint["electrical_power"]]).sum(axis=1)
        drivers = out[:, self.channels.arm["driver"]]
        return np.asarray(motors + drivers <= self._most_power)

    def _fill(self, out: Array, powers: DrivePowers) -> None:
        """Write powers into rows of the table; the total is the demand without standby."""
        columns = self.channels
        for name in QUANTITIES:
            out[:, columns.per_joint[name]] = getattr(powers, name)
        out[:, columns.arm["driver"]] = powers.driver_power
        out[:, columns.arm["total"]] = powers.demand - powers.standby_power

    def _sensitivity_columns(self, powers: DrivePowers) -> Array:
        """Sensitivities in the order of the table's last columns [samples, errors], W.

        The last one is the session's standby, for a standard deviation of 1 W.
        """
        samples, n = powers.sensitivity.shape[:2]
        each, whole = self.channels.errors
        out = np.zeros((samples, n * each + whole))
        joints, total = out[:, : n * each], out[:, n * each :]
        joints.reshape(samples, n, each)[:, :, : powers.sensitivity.shape[2]] = powers.sensitivity
        total[:, : powers.total_sensitivity.shape[1]] = powers.total_sensitivity
        total[:, -1] = 1.0
        return out

    def _supply(
        self, out: Array, time: Array, steps: Array, states: Indices, bus: Array | None
    ) -> Standby:
        """Add standby power, and compute the power at the supply from the demand."""
        arm = self.channels.arm
        motors = out[:, arm["total"]]
        unexplained = np.full(len(out), np.nan) if bus is None else bus - motors
        still = states == _STANDSTILL
        errors = out[:, self.channels.shared_errors]
        standby = self.standby.update(time, steps, still, unexplained, errors)
        # `errors` is a view of the table. What is wrong in the power that holds the arm is in the
        # tracked standby with the opposite sign: summed before they are integrated, the errors
        # cancel at standstill, and only the difference to motion remains.
        errors += standby.errors
        out[:, arm["standby"]] = standby.power
        demand = motors + standby.power
        out[:, arm["total"]] = self._capacitor(steps, demand)
        out[:, arm["regeneration"]] = out[:, arm["total"]] - demand
        # The last error stands for 1 W of standby so far, held over samples of several periods;
        # its size changes with every sample.
        out[:, -1] *= standby.std
        return standby

    def _brakes_engaged(
        self, out: Array, batch: Telemetry, states: Indices, bus: Array | None
    ) -> None:
        """Power with brakes engaged: measured at the bus, else from the model."""
        braked = states < _STANDSTILL
        if not braked.any():
            return
        idle = self.options.idle_power
        engaged = self.standby.power if idle is None else idle
        modes = batch.columns["robot_mode"][braked]
        power = mode_power(self.model.bus.mode_power, modes, engaged)
        if bus is not None:
            shown = bus[braked]
            power = np.where(np.isfinite(shown), shown, power)
        out[braked] = 0.0
        out[braked, self.channels.arm["standby"]] = power
        out[braked, self.channels.arm["total"]] = power

    def _error_counts(self) -> tuple[int, int]:
        """Largest number of parameter errors of a joint's power and of the total.

        The total has one more for the session's standby.
        """
        zero = np.zeros((1, self.robot.dof))
        probes = []
        if self.options.method != "motion":
            probes.append(self.model.joint_power(zero, zero))
        if self.options.method != "current":
            probes.append(self.model.from_link_torque(zero, zero, zero))
        each = max(probe.sensitivity.shape[-1] for probe in probes)
        return each, 1 + max(probe.total_sensitivity.shape[-1] for probe in probes)

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
