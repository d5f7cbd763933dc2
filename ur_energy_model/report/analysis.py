"""A recording beside the model: the arrays behind every figure and table of the report.

Torques are joint side, as target_moment is. Equations: Clochiatti et al., Robotica 2024 (torque
eq. 1-9, current eq. 10-18). Motion and currents pass the same filters as in identification.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.reference_motion import POSITION_DELAY, usable
from ur_energy_model.identification.signals import Motion, choose_cutoff, motions, sample_period
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.powers import Breaks, Powers, breaks_of, chunks, powers_of
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry

Array = NDArray[np.float64]
FIELDS: tuple[str, ...] = (
    "target_q", "target_qd", "target_qdd", "target_moment",
    "actual_q", "actual_qd", "actual_current", "joint_temperatures",
    "actual_robot_voltage", "actual_robot_current",
    "payload", "payload_cog", "payload_inertia", "robot_mode",
)  # fmt: skip
"""Fields that an analysis can use."""
MOVING = 0.02
"""Joint speed above which a joint counts as moving [rad/s]."""


@dataclass(frozen=True)
class TorqueComparison:
    """The controller's torque beside the model's; joint side, N m.

    Attributes:
        time: since the first sample of the recording [n], s.
        breaks: indices of samples that follow a gap.
        recorded: target_moment [n, joints].
        modelled: links, payload and motor inertia [n, joints].
    """

    time: Array
    breaks: Breaks
    recorded: Array
    modelled: Array


@dataclass(frozen=True)
class CurrentComparison:
    """Measured currents beside what the model expects of the motion alone.

    Attributes:
        motion: filtered motion, its time since the first sample of the recording; m samples.
        breaks: indices of samples that follow a gap.
        estimated: [m, joints], A; the measured ones are `motion.current`.
        friction_measured: friction torque that the measured current leaves when links, payload and
            motor inertia are taken off [m, joints], N m, joint side.
        friction_modelled: [m, joints], N m, joint side.
        moving: joint moves [m, joints].
        cutoff: of the filter [Hz].
    """

    motion: Motion
    breaks: Breaks
    estimated: Array
    friction_measured: Array
    friction_modelled: Array
    moving: NDArray[np.bool_]
    cutoff: float


@dataclass(frozen=True)
class Analysis:
    """One recording beside the model.

    Attributes:
        label: short name of the recording.
        held_out: True where the model was not fitted on it, None where that is unknown.
        info, gaps: of the recording.
        samples: number of them.
        joint_names: names of the joints.
        flange: path of the flange in the base frame, at the samples of `current` [m, 3], m.
        torque: None where target_moment was not recorded.
        current, powers: the comparisons.
    """

    label: str
    held_out: bool | None
    info: RecordingInfo
    gaps: tuple[Gap, ...]
    samples: int
    joint_names: tuple[str, ...]
    flange: Array
    torque: TorqueComparison | None
    current: CurrentComparison
    powers: Powers

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.joint_names)


def analyse(
    model: EnergyModel,
    telemetry: Telemetry,
    *,
    label: str | None = None,
    held_out: bool | None = None,
) -> Analysis:
    """Evaluate the model along a recording.

    Args:
        model: identified model, in the setup of the recording.
        telemetry: at least actual_q, actual_qd and actual_current.
        label: short name; by default that of the file.
        held_out: whether the model was fitted without it.

    Raises:
        MissingFieldError: one of these fields was not recorded.
        RecordingError: no stretch in which the robot runs is long enough to look at.
    """
    telemetry.require("actual_q", "actual_qd", "actual_current", purpose="the report")
    dynamics = model.dynamics()
    current = _currents(model, dynamics, telemetry)
    return Analysis(
        label=label or Path(telemetry.info.source).name,
        held_out=held_out,
        info=telemetry.info,
        gaps=telemetry.gaps,
        samples=len(telemetry),
        joint_names=tuple(joint.name for joint in model.joints),
        flange=_flange(dynamics, current.motion.q),
        torque=_torques(model, dynamics, telemetry, current),
        current=current,
        powers=powers_of(model, telemetry),
    )


def _currents(model: EnergyModel, dynamics: ArmDynamics, telemetry: Telemetry) -> CurrentComparison:
    cutoff = choose_cutoff(telemetry)
    parts = list(motions([telemetry], model.dof, cutoff, sample_period(telemetry.time)))
    if not parts:
        raise RecordingError(
            telemetry.info.source,
            "has no stretch of half a second in which the robot runs",
            "record while it moves, brakes released",
        )
    stacked = {f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Motion)}
    stacked["time"] = stacked["time"] - telemetry.time[0]
    motion = Motion(**stacked)
    warmth = motion.temperature if np.isfinite(motion.temperature).all() else None
    link = _link_torque(dynamics, motion.q, motion.qd, motion.qdd)
    predicted = model.from_link_torque(link, motion.qd, motion.qdd, temperature=warmth, std=False)
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    ratio = np.array([joint.gear_ratio for joint in model.joints])
    constant = np.array([joint.torque_constant for joint in model.joints])
    frictionless = link + inertia * motion.qdd
    return CurrentComparison(
        motion=motion,
        breaks=np.cumsum([len(part) for part in parts])[:-1],
        estimated=predicted.current,
        friction_measured=ratio * constant * motion.current - frictionless,
        friction_modelled=ratio * predicted.motor_torque - frictionless,
        moving=np.abs(motion.qd) > MOVING,
        cutoff=cutoff,
    )


def _torques(
    model: EnergyModel, dynamics: ArmDynamics, telemetry: Telemetry, current: CurrentComparison
) -> TorqueComparison | None:
    """At the commanded motion where it was recorded: that is what target_moment belongs to."""
    if "target_moment" not in telemetry:
        return None
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    names = ("target_q", "target_qd", "target_qdd")
    if not all(name in telemetry for name in names):
        motion = current.motion
        modelled = _link_torque(dynamics, motion.q, motion.qd, motion.qdd) + inertia * motion.qdd
        return TorqueComparison(motion.time, current.breaks, motion.moment, modelled)
    keep = np.flatnonzero(usable(telemetry, *names, "target_moment"))
    q, qd, qdd = (telemetry[name][keep] for name in names)
    modelled = _link_torque(dynamics, q - POSITION_DELAY * qd, qd, qdd) + inertia * qdd
    time = telemetry.time[keep] - telemetry.time[0]
    return TorqueComparison(time, breaks_of(time), telemetry["target_moment"][keep], modelled)


def _link_torque(dynamics: ArmDynamics, q: Array, qd: Array, qdd: Array) -> Array:
    """Torque of links and payload [n, joints], N m."""
    return np.concatenate([
        dynamics.inverse_dynamics(q[part], qd[part], qdd[part]) for part in chunks(len(q))
    ])  # fmt: skip


def _flange(dynamics: ArmDynamics, q: Array) -> Array:
    """Path of the flange [n, 3], m; computed at 2000 places at most, straight between them."""
    every = max(1, len(q) // 2000)
    places = np.unique(np.append(np.arange(0, len(q), every), len(q) - 1))
    path = dynamics.flange_pose(q[places])[:, :3, 3]
    index = np.arange(len(q))
    return np.stack([np.interp(index, places, path[:, axis]) for axis in range(3)], axis=1)
