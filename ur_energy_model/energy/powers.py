# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the calculator yields: powers of every channel at every sample, and the options for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from ur_energy_model.consistency.torque_field import StatedUnit
from ur_energy_model.energy.meter import (
    DEFAULT_GAP_LIMIT,
    EnergyMeter,
    MeterReading,
    Steps,
    efficiency,
)
from ur_energy_model.model.drives import MOTION_TIME
from ur_energy_model.model.robots import GENERATIONS
from ur_energy_model.model.wall import SQUARE, SUPPLY, TERMS, WallModel, generic_wall
from ur_energy_model.robot_modes import BRAKES_RELEASED, POWER_OFF, PROTECTIVE_STOP
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Indices


class ArmState(IntEnum):
    """State of the arm; exactly one applies at any time.

    Attributes:
        OFF: joints without power.
        BRAKED: joints powered, brakes engaged (idle).
        STANDSTILL: brakes released, held in place by the motors.
        MOVING: brakes released, at least one joint faster than STANDSTILL_SPEED.
        PROTECTIVE_STOP: the safety system has stopped the arm.
    """

    OFF = 0
    BRAKED = 1
    STANDSTILL = 2
    MOVING = 3
    PROTECTIVE_STOP = 4


_STANDSTILL = int(ArmState.STANDSTILL)
"""Comparing arrays with members of an enumeration takes several times longer."""
BOX_TERMS = np.eye(TERMS)[np.minimum(list(ArmState), _STANDSTILL)]
"""Terms of the wall in each state [states, 5]: with brakes released the box is running."""
STANDSTILL_SPEED = 0.005
"""A joint slower than this stands still [rad/s]; velocity noise is below 0.002."""


def arm_states(batch: Telemetry, qd: Array) -> Indices:
    """ArmState of each sample.

    Args:
        batch: samples with robot_mode and safety_mode; without these fields, and where
            they are NaN, the arm counts as running.
        qd: joint velocities [samples, n], rad/s.
    """
    moving = np.abs(qd).max(axis=1) > STANDSTILL_SPEED
    states: Indices = np.where(moving, int(ArmState.MOVING), _STANDSTILL)
    modes = batch.columns.get("robot_mode")
    if modes is not None and not (modes == BRAKES_RELEASED[-1]).all():
        states[~np.isin(modes, BRAKES_RELEASED) & ~np.isnan(modes)] = ArmState.BRAKED
        states[modes <= POWER_OFF] = ArmState.OFF
    safety = batch.columns.get("safety_mode")
    if safety is not None and (safety == PROTECTIVE_STOP).any():
        stopped = (safety == PROTECTIVE_STOP) & (states != ArmState.OFF)
        states[stopped] = ArmState.PROTECTIVE_STOP
    return states


# Layout of the power matrix that the calculator computes and meters integrate.

QUANTITIES: tuple[str, ...] = (
    "electrical_power",
    "mechanical_power",
    "copper_loss",
    "friction_loss",
)
"""Columns of each joint [W]."""

PARTS: tuple[str, ...] = ("standby", "driver", "regeneration")
"""Modelled powers of the whole arm, W, which sum to the modelled power together with the electrical
powers of the joints. Regeneration is the power that the supply cannot take back: positive while the
bus capacitor stores it or the braking resistor burns it, negative while the capacitor feeds the
arm."""

ARM: tuple[str, ...] = (
    "total",  # measured bus power where there is one, else the modelled power [W]
    "model",  # sum of the modelled parts [W]
    *PARTS,
    "unexplained",  # total less model, signed; 0 where nothing is measured [W]
    "bus",  # measured bus power, 0 where it is not measured [W]
    # square of the total, for the losses of the supply (`model.wall`) [W^2]
    "total_square",
    "measured",  # 1 where the total is measured; its integral is the measured time
    "modelled_motion",  # 1 where the arm moves and the total is modelled
    "noise",  # variance of the measured power times the step to the sample [W^2 s]
    "resolution",  # error of the measured power that all samples may have in common [W]
)
"""Columns of the whole arm."""


_SHORTEST = 1e-3  # least time over which a power is averaged [s]
_ROUNDING = 1e-6
"""Share of the time below which a difference from all or nothing is rounding."""


class TotalSource(NamedTuple):
    """Source of the total of some time.

    Attributes:
        name: "measured", "modelled" or "mixed".
        share: share of the time in which the total is measured, 0 to 1.
    """

    name: str
    share: float

    @classmethod
    def of(cls, measured: float, seconds: float) -> TotalSource:
        """The source of a total.

        Args:
            measured: time in which the total was measured [s].
            seconds: the whole time [s].
        """
        share = 0.0
        if seconds > 0.0:
            share = min(max(measured / seconds, 0.0), 1.0)
        if share > 1.0 - _ROUNDING:
            return cls("measured", 1.0)
        return cls("mixed" if share > _ROUNDING else "modelled", share)

    def words(self, explained: float | None = None) -> str:
        """The source in words, and the share of the measured energy that the model explains."""
        words = self.name
        if self.name == "mixed":
            share = f"{100.0 * self.share:.1f} %"
            if self.share > 0.9995:
                share = "more than 99.9 %"
            words += f", measured for {share} of the time"
        if explained is not None:
            words += (
                f"; the model explains {100.0 * explained:.1f} % of the measured energy"
            )
        return words


def explained_share(measured: float, unexplained: float) -> float | None:
    """Share of a measured energy [J] that the model explains; None where nothing is measured."""
    return 1.0 - unexplained / measured if measured > 0.0 else None


class ErrorCounts(NamedTuple):
    """Numbers of independent errors whose sensitivities are channels.

    Attributes:
        per_joint: number of errors of the power of each joint.
        whole_arm: number of errors of the modelled power, the standby error included.
    """

    per_joint: int
    whole_arm: int


class Channels:
    """Columns of the power matrix [samples, channels] of an arm with n joints.

    The columns are, in this order: every quantity of every joint; the quantities of the arm;
    the total power by state; the number 1 by state, whose integral is the time in that
    state; and the sensitivities of the powers to the model's parameter errors, whose
    integrals give the standard deviations of the energies. There are sensitivities of the
    power of each joint, of the modelled power, and of the total (0 while the total is
    measured). The last error of the modelled power is the error of the standby power.

    Args:
        joints: names of the n joints.
        errors: numbers of sensitivities of each joint and of the modelled power, as of
            `ErrorCounts`.
        wall: model of the power at the mains; None for the usual one.
        motion_variance: see the attribute.

    Attributes:
        joints: names of the n joints.
        errors: numbers of sensitivities of each joint and of the modelled power.
        names: names of the channels, in the order of the columns.
        per_joint: columns of each joint quantity.
        arm: column of each quantity of the whole arm.
        state_energy: first column of total power by state.
        state_time: first column of time by state.
        state_energies: all columns of total power by state.
        state_times: all columns of time by state.
        joint_errors: columns of the sensitivities of the joints' powers.
        model_errors: columns of the errors of the modelled power.
        total_errors: columns of the errors of the total.
        motion_variance: variance of the energy per second of motion, as of `BusModel`,
            J^2/s.
        wall: model of the power at the mains.
    """

    def __init__(
        self,
        joints: Sequence[str],
        errors: tuple[int, int] = (0, 0),
        wall: WallModel | None = None,
        motion_variance: float = 0.0,
    ) -> None:
        self.joints = tuple(joints)
        self.wall = wall or generic_wall(GENERATIONS[-1])
        self.motion_variance = motion_variance
        self.errors = ErrorCounts(*errors)
        n = len(self.joints)
        per_joint, whole_arm = self.errors
        states = [state.name.lower() for state in ArmState]
        self.names: tuple[str, ...] = (
            *(f"{joint}/{quantity}" for quantity in QUANTITIES for joint in self.joints),
            *ARM,
            *(f"energy_{state}" for state in states),
            *(f"time_{state}" for state in states),
            *(f"{joint}/error_{k}" for joint in self.joints for k in range(per_joint)),
            *(f"model/error_{k}" for k in range(whole_arm)),
            *(f"total/error_{k}" for k in range(whole_arm)),
        )
        self.per_joint = {
            name: slice(i * n, (i + 1) * n) for i, name in enumerate(QUANTITIES)
        }
        arm = n * len(QUANTITIES)
        self.arm = {name: arm + i for i, name in enumerate(ARM)}
        self.state_energy = arm + len(ARM)
        self.state_time = self.state_energy + len(ArmState)
        joint_errors = self.state_time + len(ArmState)
        self.state_energies = slice(self.state_energy, self.state_time)
        self.state_times = slice(self.state_time, joint_errors)
        model_errors = joint_errors + n * per_joint
        total_errors = model_errors + whole_arm
        self.joint_errors = slice(joint_errors, model_errors)
        self.model_errors = slice(model_errors, total_errors)
        self.total_errors = slice(total_errors, total_errors + whole_arm)
        self._wall_terms = np.zeros((len(self), TERMS))
        self._wall_terms[self.state_times] = BOX_TERMS
        self._wall_terms[self.arm["total"], SUPPLY] = 1.0
        self._wall_terms[self.arm["total_square"], SQUARE] = 1.0

    # Standard deviations follow from `net`: integrals of the channels [..., channels], J;
    # with `over`, `net` are mean powers of the channels over this time [s], in W.

    def deviations(
        self, net: Array, over: Array | float | None = None
    ) -> tuple[Array, float]:
        """Standard deviations of the joints' electrical energies [n] and of the total, J (or W)."""
        return self.deviations_of_joints(net), float(self.deviations_of_total(net, over))

    def deviations_of_joints(self, net: Array) -> Array:
        """Standard deviations of the joints' electrical energies [..., n], J (or W)."""
        return np.asarray(np.sqrt(np.square(self._joint_errors(net)).sum(axis=-1)))

    def deviations_of_total(self, net: Array, over: Array | float | None = None) -> Array:
        """Standard deviation of the total [...], J (or W).

        Where the total is measured, its deviation comes from the noise of the samples and
        from the resolution of voltage and current. Elsewhere it is the deviation of the
        model.
        """
        variance = self._systematic(net[..., self.total_errors])
        variance = variance + self._of_motion(self._column(net, "modelled_motion"), over)
        return np.asarray(np.sqrt(variance + self._of_measurement(net, over)))

    def deviations_of_model(self, net: Array, over: Array | float | None = None) -> Array:
        """Standard deviation of the sum of the modelled parts [...], J (or W).

        Errors of the parameters add up over time. The error of motion is independent after
        each MOTION_TIME, so that its variance adds up.
        """
        variance = self._systematic(net[..., self.model_errors])
        moving = net[..., self.state_time + ArmState.MOVING]
        return np.asarray(np.sqrt(variance + self._of_motion(moving, over)))

    def deviations_of_unexplained(
        self, net: Array, over: Array | float | None = None
    ) -> Array:
        """Standard deviation of the total less the model in the measured time [...], J (or W)."""
        errors = net[..., self.model_errors] - net[..., self.total_errors]
        moving = net[..., self.state_time + ArmState.MOVING]
        measured = moving - self._column(net, "modelled_motion")
        variance = self._systematic(errors) + self._of_motion(measured, over)
        return np.asarray(np.sqrt(variance + self._of_measurement(net, over)))

    def deviation_of_standby(self, net: Array) -> Array:
        """Standard deviation of the standby energy [...], J (or W): the model's last error."""
        if not self.errors.whole_arm:
            return np.full(net.shape[:-1], np.nan)
        return np.abs(net[..., self.model_errors.stop - 1])

    def total_source(self, net: Array, seconds: float) -> TotalSource:
        """Source of the total, from integrals of the channels [channels] over a time [s]."""
        return TotalSource.of(float(self._column(net, "measured")), seconds)

    def explained_share(self, net: Array) -> float | None:
        """Share of the measured energy in the channels [channels], J, that the model explains.

        None where nothing is measured.
        """
        measured = float(self._column(net, "bus"))
        return explained_share(measured, float(self._column(net, "unexplained")))

    def _column(self, net: Array, name: str) -> Array:
        """One quantity of the whole arm [...] among the channels [..., channels]."""
        return np.asarray(net[..., self.arm[name]])

    def _systematic(self, errors: Array) -> Array:
        """Variance from independent errors that add up over time [..., errors]."""
        return np.asarray(np.square(errors).sum(axis=-1))

    def _of_motion(self, moving: Array, over: Array | float | None) -> Array:
        """Variance from the error of motion, in a time of motion [s] or a share of the time."""
        spread = 1.0 if over is None else 1.0 / np.maximum(over, MOTION_TIME)
        return np.asarray(self.motion_variance * np.abs(moving) * spread)

    def _of_measurement(self, net: Array, over: Array | float | None) -> Array:
        """Variance from the noise and the resolution of the bus power."""
        spread = 1.0 if over is None else 1.0 / np.maximum(over, _SHORTEST)
        noise = np.abs(self._column(net, "noise")) * spread
        return np.asarray(noise + np.square(self._column(net, "resolution")))

    def deviation_of_joints(self, net: Array) -> float:
        """Standard deviation of the sum of all joints' electrical energies [J].

        Errors of the drives are common to all joints and add up.
        """
        return float(np.linalg.norm(self._joint_errors(net).sum(axis=0)))

    def _joint_errors(self, net: Array) -> Array:
        """Sensitivities of the joints [..., n, errors]."""
        shape = (*net.shape[:-1], len(self.joints), self.errors.per_joint)
        return net[..., self.joint_errors].reshape(shape)

    def wall_terms(self, net: Array) -> Array:
        """Terms of energy (or power) at the wall [..., 5], from the channels [..., channels]."""
        return np.asarray(net @ self._wall_terms)

    def value_at_wall(self, net: Array) -> Array:
        """Energy (or power) at the wall [...], J (or W), from the channels."""
        return self.wall.value(self.wall_terms(net))

    def at_wall(
        self, net: Array, over: Array | float | None = None
    ) -> tuple[Array, Array]:
        """Energy (or power) at the wall and its deviation [...], J (or W), from the channels."""
        terms = self.wall_terms(net)
        std = self.deviations_of_total(net, over)
        return self.wall.value(terms), self.wall.deviation(terms, std)

    def by_state(self, net: Array, first: int) -> dict[ArmState, float]:
        """Values by state; `first` is the first of the columns, `state_energy` or `state_time`."""
        return {state: float(net[first + state]) for state in ArmState}

    def convert(self, reading: MeterReading, names: Sequence[str]) -> MeterReading:
        """A reading of channels with other `names` in these channels; see `convert_values`."""
        net = self.convert_values(reading.net, names)
        consumed = self.convert_values(reading.consumed, names)
        return replace(reading, net=net, consumed=consumed)

    def convert_values(self, values: Array, names: Sequence[str]) -> Array:
        """Values of channels with other `names` in these channels [channels]; new ones are 0."""
        if tuple(names) == self.names:
            return values
        known = dict(zip(names, values.tolist(), strict=True))
        return np.array([known.get(name, 0.0) for name in self.names])

    def __len__(self) -> int:
        return len(self.names)


# Options of the calculator, and the telemetry that it reads.

Method = Literal["auto", "current", "motion"]

MEASURED_FIELDS: tuple[str, ...] = (
    "actual_qd",
    "actual_current",
    "joint_temperatures",
    "actual_robot_voltage",
    "actual_robot_current",
    "robot_mode",
    "safety_mode",
)
"""RTDE fields for powers from measured currents; the first two are required."""
FIELDS: tuple[str, ...] = (
    *MEASURED_FIELDS,
    "actual_q",
    "target_q",
    "target_qd",
    "target_qdd",
    "payload",
    "payload_cog",
    "payload_inertia",
    "speed_scaling",
    "target_speed_fraction",
)
"""All RTDE fields that the calculator reads, where the source has them."""


@dataclass(frozen=True)
class PowerOptions:
    """How powers are computed.

    Attributes:
        method: "current" for measured currents; "motion" for currents that the model
            predicts; "auto" for measured currents where the source has them, else
            predicted ones.
        track_standby: whether the standby power of the session is followed.
        standby_limit: largest deviation from the model's standby power [W].
        idle_power: power with brakes engaged, where neither bus nor model shows it [W]; None for
            the standby power.
        gap_limit: longest step between samples that is bridged at any sample rate [s].
        effort_unit: content of actual_current_as_torque of recordings without motor
            currents; "auto" decides it from the samples.
    """

    method: Method = "auto"
    track_standby: bool = True
    standby_limit: float = 15.0
    idle_power: float | None = None
    gap_limit: float = DEFAULT_GAP_LIMIT
    effort_unit: StatedUnit = "auto"


# Powers of consecutive samples, the result of the calculator.


@dataclass(frozen=True)
class PowerTable:
    """Powers of consecutive samples.

    Attributes:
        samples: the usable samples, without repeated timestamps.
        steps: time to each sample.
        states: ArmState of each sample [samples].
        power: power of every channel [samples, channels], W.
        bus_measured: whether the bus power was measured at all samples.
    """

    samples: Telemetry
    steps: Steps
    states: Indices
    power: Array
    bus_measured: bool

    def parts(self, edges: Iterable[int] = ()) -> Iterator[slice]:
        """Consecutive rows between edges, which are numbers of samples."""
        borders = {0, len(self.samples), *edges}
        for start, stop in pairwise(sorted(borders)):
            yield slice(start, stop)

    def integrate(self, meter: EnergyMeter) -> None:
        """Integrate the powers by a meter."""
        meter.integrate_steps(self.steps, self.power)


# Energies of recordings and planned trajectories in JSON.


def energy_json(
    names: Sequence[str],
    joints: Mapping[str, Array],
    total: Mapping[str, float | Array],
) -> dict[str, Any]:
    """The entries `joints` and `total` of `ur_energy estimate --json` and `predict --json`.

    Args:
        names: names of the joints, n.
        joints: quantities per joint by their JSON keys [n], J; mechanical and electrical
            first.
        total: further quantities of the whole arm by their JSON keys [J].
    """
    mechanical = joints["mechanical_energy"]
    electrical = joints["electrical_energy"]
    of_joints = {**joints, "efficiency": efficiency(mechanical, electrical)}
    entries: list[dict[str, Any]] = []
    for j, name in enumerate(names):
        values = {key: quantity[j] for key, quantity in of_joints.items()}
        entries.append({"name": name, **values})
    mechanical_sum = mechanical.sum()
    electrical_sum = electrical.sum()
    whole = {
        "mechanical_energy": mechanical_sum,
        "electrical_energy": electrical_sum,
        "efficiency": efficiency(mechanical_sum[None], electrical_sum[None])[0],
    }
    return {"joints": entries, "total": {**whole, **total}}
