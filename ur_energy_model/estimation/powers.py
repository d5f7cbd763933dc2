"""From a batch of telemetry to the powers of joints and arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import MissingFieldError, WrongRobotError
from ur_energy_model.estimation.channels import QUANTITIES, ArmState, Channels
from ur_energy_model.estimation.tracking import RunningMean, StandbyTracker
from ur_energy_model.model.drive import Prediction
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.modes import POWER_OFF, ROBOT_MODES
from ur_energy_model.telemetry.samples import Telemetry

Array = NDArray[np.float64]
Method = Literal["auto", "current", "motion"]

SENSITIVITY_PERIOD = 0.02
"""How often the sensitivities are worked out anew [s]; they are held in between."""
STANDSTILL = int(ArmState.STANDSTILL)
RELEASED = STANDSTILL
"""Lowest ArmState with brakes released."""
MODE_TIME_CONSTANT = 2.0
"""Of the power followed in modes other than running [s]."""
ACCELERATION_CUTOFF = 5.0
"""Low-pass of accelerations differentiated from velocities [Hz]."""


@dataclass(frozen=True)
class PowerOptions:
    """How powers are found.

    Attributes:
        method: from measured "current", from "motion" by the model, or "auto".
        track_standby: follow the standby power at standstill.
        standby_limit: largest departure from the model's standby [W].
        idle_power: with brakes engaged, where neither bus nor model tells; None takes standby [W].
    """

    method: Method = "auto"
    track_standby: bool = True
    standby_limit: float = 10.0
    idle_power: float | None = None


class PowerFlow:
    """Powers of every channel, sample by sample.

    Follows what changes while the arm works: temperatures, payload and speed scaling from
    telemetry, standby power from the bus.

    Args:
        model: identified model of the arm.
        robot: its description.
        options: how powers are found.

    Raises:
        WrongRobotError: model and description have different joints.
    """

    def __init__(
        self, model: EnergyModel, robot: RobotDescription, options: PowerOptions | None = None
    ) -> None:
        if tuple(joint.name for joint in model.joints) != robot.joint_names:
            raise WrongRobotError(
                model.robot, f"the model's joints are not those of {robot.name}",
                "give the model of this robot",
            )  # fmt: skip
        self.model = model
        self.robot = robot
        self.options = PowerOptions() if options is None else options
        self.setup = model.setup
        self.speed_scaling = 1.0
        self.temperature: Array | None = None
        self.standby = StandbyTracker(
            model.bus.standby, self.options.standby_limit, self.options.track_standby
        )
        self._modes: dict[int, RunningMean] = {}
        self._dynamics: ArmDynamics | None = None
        self._predicted: list[Prediction] = []
        self._slope = Differentiator(robot.dof, ACCELERATION_CUTOFF)
        self._sensitivity_time = -np.inf
        self._inductive = bool(model.bus.inductance.any())
        self.channels = Channels(robot.joint_names, self._error_counts())
        self._sensitivity = np.zeros(len(self.channels) - self.channels.sensitivity)

    def arrived(self, batch: Telemetry) -> float:
        """Power of the whole arm at the last sample as if brakes were released, W: the fast path.

        The split over motors waits for `matrix`, for many packets at once; what the model says of
        a motion is kept until then.

        Raises:
            MissingFieldError: neither currents nor what the motion method needs is there.
        """
        qd, current = batch.columns["actual_qd"], self._current(batch)
        if current is not None:
            return self.model.total_power(qd[-1], current[-1], standby=self.standby.power)
        due = self._sensitivity_due(batch)
        split = self._from_motion(batch, qd, due)
        if due:
            self._hold_sensitivity(split)
        self._predicted.append(split)
        return float(split.total_power[-1])

    def matrix(self, batch: Telemetry, states: NDArray[np.intp]) -> Array:
        """Powers [samples, channels], W, of all samples that have arrived since the last call.

        Args:
            batch: those samples.
            states: ArmState of each sample [samples].
        """
        columns = self.channels
        splits = self._split(batch)
        out = np.zeros((len(batch), len(columns)))
        for name in QUANTITIES:
            out[:, columns.per_joint[name]] = joined(splits, name)
        out[:, columns.arm["driver"]] = joined(splits, "driver_power")
        out[:, columns.arm["standby"]] = joined(splits, "standby_power")
        out[:, columns.arm["total"]] = joined(splits, "total_power")
        out[:, columns.sensitivity :] = self._sensitivity
        braked = states < RELEASED
        if braked.any():
            out[braked] = 0.0
            power = self._mode_power(batch)
            out[braked, columns.arm["standby"]] = power
            out[braked, columns.arm["total"]] = power
        bus = bus_power(batch)
        if bus is not None:
            out[:, columns.arm["bus"]] = bus
        rows = np.arange(len(batch))
        out[rows, columns.state_energy + states] = out[:, columns.arm["total"]]
        out[rows, columns.state_time + states] = 1.0
        return out

    def track(self, batch: Telemetry, power: Array, states: NDArray[np.intp], time: float) -> None:
        """Follow standby and mode powers from the bus power.

        Args:
            batch: samples.
            power: their powers [samples, channels], W.
            states: ArmState of each sample [samples].
            time: length of the batch [s].
        """
        mean = power.mean(axis=0)
        arm = self.channels.arm
        lowest, highest = states.min(), states.max()
        if lowest >= RELEASED:
            motors = mean[self.channels.per_joint["electrical_power"]].sum()
            unexplained = mean[arm["bus"]] - motors - mean[arm["driver"]]
            still = bool(highest == STANDSTILL and lowest == STANDSTILL)
            self.standby.update(time, still, float(unexplained))
        elif highest < RELEASED:
            mode = _mode(batch)
            mean_bus = float(mean[arm["bus"]])
            self._modes.setdefault(mode, RunningMean(MODE_TIME_CONSTANT)).update(time, mean_bus)

    def follow(self, batch: Telemetry) -> None:
        """Take over temperatures, speed scaling and payload from telemetry."""
        columns = batch.columns
        if "joint_temperatures" in columns:
            self.temperature = columns["joint_temperatures"][-1]
        if "speed_scaling" in columns:
            self.speed_scaling = float(columns["speed_scaling"][-1])
            if "target_speed_fraction" in columns:
                self.speed_scaling *= float(columns["target_speed_fraction"][-1])
        if "payload" in columns and "payload_cog" in columns:
            mass, center = columns["payload"][-1], columns["payload_cog"][-1]
            known = self.setup.payload
            if mass != known.mass or (mass and not np.array_equal(center, known.center_of_mass)):
                self.setup = Setup(self.setup.gravity, told_payload(columns))

    @property
    def dynamics(self) -> ArmDynamics:
        """Rigid-body dynamics in the current setup."""
        if self._dynamics is None or self._dynamics.setup is not self.setup:
            self._dynamics = self.model.dynamics(robot=self.robot, setup=self.setup)
        return self._dynamics

    def _split(self, batch: Telemetry) -> Sequence[Prediction]:
        """Powers of consecutive parts of the samples that have arrived."""
        splits, self._predicted = self._predicted, []
        current = self._current(batch)
        if current is None:
            return splits
        rate = None
        if self._inductive and len(batch) > 1:
            rate = np.gradient(current, batch.time, axis=0)
        due = self._sensitivity_due(batch)
        split = self.model.joint_power(
            batch.columns["actual_qd"], current, temperature=self.temperature,
            standby=self.standby.power, current_rate=rate, std=due,
        )  # fmt: skip
        if due:
            self._hold_sensitivity(split)
        return [split]

    def _sensitivity_due(self, batch: Telemetry) -> bool:
        """Whether it is time to work out the sensitivities anew."""
        now = float(batch.time[-1])
        due = abs(now - self._sensitivity_time) >= SENSITIVITY_PERIOD
        if due:
            self._sensitivity_time = now
        return due

    def _error_counts(self) -> tuple[int, int]:
        """Most parameter errors of a joint's and of the total power that the method can have."""
        zero = np.zeros((1, self.robot.dof))
        probes = []
        if self.options.method != "motion":
            probes.append(self.model.joint_power(zero, zero))
        if self.options.method != "current":
            probes.append(self.model.predict(zero, zero, zero, dynamics=self.dynamics))
        each = max(probe.sensitivity.shape[-1] for probe in probes)
        return each, max(probe.total_sensitivity.shape[-1] for probe in probes)

    def _hold_sensitivity(self, split: Prediction) -> None:
        """Keep the sensitivities of the last sample until they are worked out anew."""
        n, (each, _) = self.robot.dof, self.channels.errors
        joints, total = split.sensitivity[-1], split.total_sensitivity[-1]
        self._sensitivity[:] = 0.0
        self._sensitivity[: n * each].reshape(n, each)[:, : joints.shape[1]] = joints
        self._sensitivity[n * each :][: len(total)] = total

    def _current(self, batch: Telemetry) -> Array | None:
        """Measured currents [samples, n], A, where the method takes them and they are there."""
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
                batch.info.source, "is missing, and the method current needs it",
                "set method to motion", field="actual_current",
            )  # fmt: skip
        return None

    def _from_motion(self, batch: Telemetry, qd: Array, std: bool) -> Prediction:
        if "target_qdd" in batch.columns:
            batch.require("target_q", "target_qd", purpose="the method motion")
            q, qd, qdd = (batch.columns[f"target_{name}"] for name in ("q", "qd", "qdd"))
        else:
            batch.require("actual_q", purpose="the method motion")
            q, qdd = batch.columns["actual_q"], self._slope.update(batch.time, qd)
        split = self.model.predict(
            q, qd, qdd, dynamics=self.dynamics, temperature=self.temperature, std=std
        )
        shift = self.standby.power - self.model.bus.standby
        return split if shift == 0 else shifted(split, shift, self.model.bus.floor)

    def _mode_power(self, batch: Telemetry) -> float:
        """Power of an arm that is off or has its brakes engaged [W]."""
        mode = _mode(batch)
        followed = self._modes.get(mode)
        if followed is not None and followed.elapsed > 0:
            return followed.mean
        known = self.model.bus.mode_power.get(ROBOT_MODES.get(mode, ""))
        if known is not None:
            return known
        if mode <= POWER_OFF:
            return 0.0
        idle = self.options.idle_power
        return self.standby.power if idle is None else idle


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


def bus_power(batch: Telemetry) -> Array | None:
    """Measured power of the robot bus [samples], W; None where it was not recorded."""
    columns = batch.columns
    if "actual_robot_voltage" not in columns or "actual_robot_current" not in columns:
        return None
    return columns["actual_robot_voltage"] * columns["actual_robot_current"]


def told_payload(columns: Mapping[str, Array]) -> Payload:
    """The payload that the controller was told of last."""
    tensor = np.zeros((3, 3))
    if "payload_inertia" in columns:
        xx, yy, zz, xy, xz, yz = columns["payload_inertia"][-1]
        told = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        # Users may type anything there; a body that cannot be counts as a point.
        tensor = told if np.linalg.eigvalsh(told).min() >= 0 else tensor
    return Payload(float(columns["payload"][-1]), np.array(columns["payload_cog"][-1]), tensor)


def joined(splits: Sequence[Prediction], name: str) -> Array:
    """One quantity of consecutive predictions."""
    if len(splits) == 1:
        return np.asarray(getattr(splits[0], name))
    return np.concatenate([getattr(split, name) for split in splits])


def shifted(split: Prediction, shift: float, floor: float) -> Prediction:
    """The same powers with another standby power, `shift` W higher."""
    total = split.electrical_power.sum(axis=1) + split.driver_power + split.standby_power + shift
    return replace(
        split, standby_power=split.standby_power + shift, total_power=np.maximum(total, floor)
    )


def _mode(batch: Telemetry) -> int:
    modes = batch.columns.get("robot_mode")
    return 7 if modes is None else int(modes[-1])
