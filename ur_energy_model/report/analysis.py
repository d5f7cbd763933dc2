"""A recording beside the model: the arrays behind every figure and table of the report.

Torques are joint side, as target_moment is; friction in `JointModel` is motor side. Equations:
Clochiatti et al., Robotica 2024 (torque eq. 1-9, current eq. 10-18, power and energy eq. 19-26) and
Heredia et al., EcBot (power of the whole arm, eq. 13-21).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy import DEFAULT_GAP_LIMIT, trapezoid
from ur_energy_model.model.energy_model import EnergyModel, Prediction
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry

Array = NDArray[np.float64]

MOVING = 0.01
"""Joint speed above which a joint counts as moving [rad/s]."""
CONFIDENCE = 1.96
"""Half width of a 95 % interval in standard deviations."""
CHUNK = 20_000
"""Samples worked on at a time; bounds the memory of the sensitivities."""


@dataclass(frozen=True)
class Powers:
    """Powers and their energies over one recording; W and J.

    Attributes:
        electrical, mechanical, copper, friction: of the motors [n, joints].
        electrical_half_width: of the 95 % interval [n, joints].
        driver, standby, total: whole arm [n].
        total_half_width: of the 95 % interval [n].
        bus: measured voltage times current [n], None where it was not recorded.
        energy: integral of each joint's electrical power since the start [n, joints].
        total_energy, bus_energy: the same for the arm [n].
        electrical_energy, mechanical_energy, friction_energy, copper_energy: [joints].
        energy_half_width: of the electrical energies' 95 % intervals [joints].
        total_energy_half_width: of the total energy's.
        measured_current: True where the powers follow from measured currents.
    """

    electrical: Array
    mechanical: Array
    copper: Array
    friction: Array
    electrical_half_width: Array
    driver: Array
    standby: Array
    total: Array
    total_half_width: Array
    bus: Array | None
    energy: Array
    total_energy: Array
    bus_energy: Array | None
    electrical_energy: Array
    mechanical_energy: Array
    friction_energy: Array
    copper_energy: Array
    energy_half_width: Array
    total_energy_half_width: float
    measured_current: bool


@dataclass(frozen=True)
class Analysis:
    """One recording beside the model; d joints, n samples.

    Attributes:
        label: short name of the recording.
        held_out: True where the model was not fitted on it, None where that is unknown.
        info, gaps: of the recording.
        joint_names: d names.
        time: since the first sample [n], s.
        position, velocity, acceleration: that the model was evaluated at [n, d], rad, ...
        flange: path of the flange in the base frame [n, 3], m.
        torque_recorded: target_moment [n, d], N m, None where it was not recorded.
        torque_modelled: rigid-body and motor inertia [n, d], N m.
        current_measured: [n, d], A, None where it was not recorded.
        current_estimated: [n, d], A.
        friction_measured: joint-side friction torque that the measured current leaves after link
            and motor dynamics are taken off [n, d], N m; None without measured current.
        friction_modelled: [n, d], N m, joint side.
        temperature: [n, d], degC, None where it was not recorded.
        moving: joint moves [n, d].
        breaks: indices of the samples that follow a gap.
        powers: powers and energies.
    """

    label: str
    held_out: bool | None
    info: RecordingInfo
    gaps: tuple[Gap, ...]
    joint_names: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array
    acceleration: Array
    flange: Array
    torque_recorded: Array | None
    torque_modelled: Array
    current_measured: Array | None
    current_estimated: Array
    friction_measured: Array | None
    friction_modelled: Array
    temperature: Array | None
    moving: NDArray[np.bool_]
    breaks: NDArray[np.int_]
    powers: Powers

    @property
    def dof(self) -> int:
        """Number of joints d."""
        return len(self.joint_names)

    @property
    def duration(self) -> float:
        """Time that the samples cover, gaps left out [s]."""
        return float(np.diff(self.time)[_bridged(self.time)].sum())


def analyse(
    model: EnergyModel,
    telemetry: Telemetry,
    *,
    label: str | None = None,
    held_out: bool | None = None,
) -> Analysis:
    """Evaluate the model at every sample of a recording.

    The motion is the commanded one where it was recorded (what target_moment belongs to), else
    the measured one with its acceleration from the speed.

    Raises:
        MissingFieldError: neither a commanded nor a measured motion was recorded.
    """
    q, qd, qdd = motion(telemetry)
    dynamics = model.dynamics()
    temperature = telemetry.columns.get("joint_temperatures")
    link = np.concatenate([
        dynamics.inverse_dynamics(q[part], qd[part], qdd[part]) for part in _chunks(len(q))
    ])  # fmt: skip
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    ratio = np.array([joint.gear_ratio for joint in model.joints])
    constant = np.array([joint.torque_constant for joint in model.joints])
    modelled = link + inertia * qdd
    measured = telemetry.columns.get("actual_current")
    time = telemetry.time - telemetry.time[0]
    powers, predicted = _powers(model, telemetry, time, link, qd, qdd)
    return Analysis(
        label=label or Path(telemetry.info.source).name,
        held_out=held_out,
        info=telemetry.info,
        gaps=telemetry.gaps,
        joint_names=tuple(joint.name for joint in model.joints),
        time=time,
        position=q,
        velocity=qd,
        acceleration=qdd,
        flange=_flange(dynamics, q),
        torque_recorded=telemetry.columns.get("target_moment"),
        torque_modelled=modelled,
        current_measured=measured,
        current_estimated=predicted.current,
        friction_measured=None if measured is None else ratio * constant * measured - modelled,
        friction_modelled=ratio * predicted.friction,
        temperature=temperature,
        moving=np.abs(qd) > MOVING,
        breaks=np.array([gap.index for gap in telemetry.gaps], dtype=int),
        powers=powers,
    )


def motion(telemetry: Telemetry) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations [n, d] to evaluate the model at."""
    if all(name in telemetry for name in ("target_q", "target_qd", "target_qdd")):
        return telemetry["target_q"], telemetry["target_qd"], telemetry["target_qdd"]
    telemetry.require("actual_q", "actual_qd", purpose="the report")
    velocity = telemetry["actual_qd"]
    acceleration = np.zeros_like(velocity)
    for part in telemetry.segments():
        if part.stop - part.start > 1:
            acceleration[part] = np.gradient(velocity[part], telemetry.time[part], axis=0)
    return telemetry["actual_q"], velocity, acceleration


@dataclass(frozen=True)
class _Predicted:
    """What the model says of currents, from the motion alone."""

    current: Array
    friction: Array


def _powers(
    model: EnergyModel, telemetry: Telemetry, time: Array, link: Array, qd: Array, qdd: Array
) -> tuple[Powers, _Predicted]:
    """Powers from measured currents where there are any, chunk by chunk."""
    n, d = qd.shape
    measured = telemetry.columns.get("actual_current")
    actual_speed = telemetry.columns.get("actual_qd", qd)
    temperature = telemetry.columns.get("joint_temperatures")
    steps = np.where(_bridged(time), np.diff(time), 0.0)
    shape = (n, d)
    electrical, mechanical, copper, friction, spread, current, modelled_friction = (
        np.empty(shape) for _ in range(7)
    )
    driver, standby, total, total_spread = (np.empty(n) for _ in range(4))
    integrals: list[Array] = []
    for part in _chunks(n):
        warmth = None if temperature is None else temperature[part]
        predicted = model.from_link_torque(link[part], qd[part], qdd[part], temperature=warmth)
        current[part] = predicted.current
        speed = np.array([joint.gear_ratio for joint in model.joints]) * qd[part]
        modelled_friction[part] = np.divide(
            predicted.friction_loss, speed, out=np.zeros_like(speed), where=np.abs(speed) > 1e-9
        )
        shown = predicted
        if measured is not None:
            inductive = model.bus.inductance.any() and part.stop - part.start > 1
            shown = model.joint_power(
                actual_speed[part], measured[part], temperature=warmth,
                current_rate=np.gradient(measured[part], time[part], axis=0) if inductive else None,
            )  # fmt: skip
        electrical[part], mechanical[part] = shown.electrical_power, shown.mechanical_power
        copper[part], friction[part] = shown.copper_loss, shown.friction_loss
        driver[part], standby[part] = shown.driver_power, shown.standby_power
        total[part] = shown.total_power
        spread[part], total_spread[part] = shown.electrical_power_std, shown.total_power_std
        integrals.append(_integrals(shown, steps, part))
    bus = None
    if "actual_robot_voltage" in telemetry and "actual_robot_current" in telemetry:
        bus = telemetry["actual_robot_voltage"] * telemetry["actual_robot_current"]
    errors = np.sum(integrals, axis=0)
    powers = Powers(
        electrical=electrical,
        mechanical=mechanical,
        copper=copper,
        friction=friction,
        electrical_half_width=CONFIDENCE * spread,
        driver=driver,
        standby=standby,
        total=total,
        total_half_width=CONFIDENCE * total_spread,
        bus=bus,
        energy=cumulative(steps, electrical),
        total_energy=cumulative(steps, total),
        bus_energy=None if bus is None else cumulative(steps, bus),
        electrical_energy=trapezoid(steps, electrical),
        mechanical_energy=trapezoid(steps, mechanical),
        friction_energy=trapezoid(steps, friction),
        copper_energy=trapezoid(steps, copper),
        energy_half_width=CONFIDENCE * np.linalg.norm(errors[:d], axis=1),
        total_energy_half_width=float(CONFIDENCE * np.linalg.norm(errors[d:])),
        measured_current=measured is not None,
    )
    return powers, _Predicted(current, modelled_friction)


def _integrals(shown: Prediction, steps: Array, part: slice) -> Array:
    """Time integrals of the sensitivities of one chunk, joints first, then the whole arm.

    Rectangles with the mean of the neighbouring steps: the trapezoid, split by sample.
    """
    weight = 0.5 * (np.append(steps, 0.0) + np.insert(steps, 0, 0.0))[part]
    joints = np.tensordot(weight, shown.sensitivity, axes=1)
    whole = weight @ shown.total_sensitivity
    out = np.zeros((len(joints) + 1, max(joints.shape[1], len(whole))))
    out[:-1, : joints.shape[1]] = joints
    out[-1, : len(whole)] = whole
    return out


def cumulative(steps: Array, power: Array) -> Array:
    """Energy since the start: trapezoid of power [n] or [n, k] over steps [n - 1]."""
    out = np.zeros_like(power)
    mean = 0.5 * (power[1:] + power[:-1])
    out[1:] = np.cumsum(mean * (steps if power.ndim == 1 else steps[:, None]), axis=0)
    return out


def _bridged(time: Array) -> NDArray[np.bool_]:
    """Steps that energy is integrated over."""
    steps = np.diff(time)
    return np.asarray((steps > 0) & (steps <= DEFAULT_GAP_LIMIT))


def _chunks(n: int) -> list[slice]:
    return [slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]


def _flange(dynamics: ArmDynamics, q: Array) -> Array:
    """Path of the flange [n, 3], m; computed at 2000 places at most, straight between them."""
    every = max(1, len(q) // 2000)
    places = np.unique(np.append(np.arange(0, len(q), every), len(q) - 1))
    path = dynamics.flange_pose(q[places])[:, :3, 3]
    index = np.arange(len(q))
    return np.stack([np.interp(index, places, path[:, axis]) for axis in range(3)], axis=1)
