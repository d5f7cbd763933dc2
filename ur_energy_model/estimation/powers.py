"""From a batch of telemetry to the powers of joints and arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import MissingFieldError, WrongRobotError
from ur_energy_model.estimation.channels import QUANTITIES, ArmState, Channels
from ur_energy_model.estimation.conditions import Conditions
from ur_energy_model.estimation.differentiator import Differentiator
from ur_energy_model.estimation.mode_power import ModePower, mode_of
from ur_energy_model.estimation.sensitivities import HeldSensitivities
from ur_energy_model.estimation.tracking import StandbyTracker
from ur_energy_model.model.drive import Prediction
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.measured_powers import MeasuredPowers
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.supply import SupplyStore
from ur_energy_model.telemetry.samples import Telemetry

Array = NDArray[np.float64]
Method = Literal["auto", "current", "motion"]

STANDSTILL = int(ArmState.STANDSTILL)
RELEASED = STANDSTILL
"""Lowest ArmState with brakes released."""
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
        self.conditions = Conditions(model.setup)
        self.standby = StandbyTracker(
            model.bus.standby, self.options.standby_limit, self.options.track_standby
        )
        self._modes = ModePower(model.bus.mode_power)
        self._dynamics: ArmDynamics | None = None
        self._predicted: list[Prediction] = []
        self._slope = Differentiator(robot.dof, ACCELERATION_CUTOFF)
        self._measured = MeasuredPowers(model)
        self._store = SupplyStore(model.bus.storage, model.bus.floor)
        self.channels = Channels(robot.joint_names, self._error_counts())
        self._sensitivity = HeldSensitivities(robot.dof, self.channels.errors)

    def power_now(self, qd: Sequence[float], current: Sequence[float]) -> float:
        """Power of the whole arm [W] at one sample as if brakes were released: the fast path.

        The delay of currents behind speeds, worth a few per mille, waits for `matrix`.

        Args:
            qd: joint velocities [n], rad/s.
            current: measured motor currents [n], A.
        """
        return self.model.total_power(qd, current, standby=self.standby.power)

    def arrived(self, batch: Telemetry) -> float:
        """Power of the whole arm [W] at the last sample as if brakes were released.

        The split over motors waits for `matrix`, for many packets at once; what the model says of
        a motion is kept until then.

        Raises:
            MissingFieldError: neither currents nor what the motion method needs is there.
        """
        qd, current = batch.columns["actual_qd"], self._current(batch)
        if current is not None:
            return self.power_now(qd[-1].tolist(), current[-1].tolist())
        due = self._sensitivity.due(float(batch.time[-1]))
        split = self._from_motion(batch, qd, due)
        if due:
            self._sensitivity.hold(split)
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
        out[:, columns.sensitivity :] = self._sensitivity.values
        braked = states < RELEASED
        if braked.any():
            out[braked] = 0.0
            idle = self.options.idle_power
            power = self._modes.power(mode_of(batch), self.standby.power if idle is None else idle)
            out[braked, columns.arm["standby"]] = power
            out[braked, columns.arm["total"]] = power
        bus = batch.bus_power
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
            self._modes.follow(mode_of(batch), time, float(mean[arm["bus"]]))

    @property
    def dynamics(self) -> ArmDynamics:
        """Rigid-body dynamics in the current setup."""
        if self._dynamics is None or self._dynamics.setup is not self.conditions.setup:
            self._dynamics = self.model.dynamics(robot=self.robot, setup=self.conditions.setup)
        return self._dynamics

    def _split(self, batch: Telemetry) -> Sequence[Prediction]:
        """Powers of consecutive parts of the samples that have arrived."""
        splits, self._predicted = self._predicted, []
        current = self._current(batch)
        if current is None:
            return splits
        due = self._sensitivity.due(float(batch.time[-1]))
        split = self._measured(
            batch.time, batch.columns["actual_qd"], current,
            temperature=self.conditions.temperature, standby=self.standby.power, std=due,
        )  # fmt: skip
        if due:
            self._sensitivity.hold(split)
        return [split]

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
            q, qd, qdd, dynamics=self.dynamics, temperature=self.conditions.temperature, std=std
        )
        shift = self.standby.power - self.model.bus.standby
        demand = split.demand + shift
        return replace(
            split, standby_power=split.standby_power + shift, demand=demand,
            total_power=self._store(batch.time, demand),
        )  # fmt: skip


def joined(splits: Sequence[Prediction], name: str) -> Array:
    """One quantity of consecutive predictions."""
    if len(splits) == 1:
        return np.asarray(getattr(splits[0], name))
    return np.concatenate([getattr(split, name) for split in splits])
