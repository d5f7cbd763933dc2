"""Identification stages that fit motor currents: torque constants, friction, presliding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ur_energy_model.identification.dynamics.dynamics_stage import inertia_with_currents
from ur_energy_model.identification.dynamics.recording_dynamics import RecordingDynamics
from ur_energy_model.identification.dynamics.reflected_inertia import InertiaEstimate
from ur_energy_model.identification.friction.current_regression import CurrentRegression
from ur_energy_model.identification.friction.joint_estimate import JointEstimate
from ur_energy_model.identification.friction.law_selection import WARMTH
from ur_energy_model.identification.friction.presliding_fit import PreslidingFit
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array


def fit_currents(
    recordings: Sequence[Recording],
    dynamics: Sequence[RecordingDynamics],
    robot: RobotDescription,
    inertia: InertiaEstimate,
    friction: str,
) -> tuple[JointEstimate, ...]:
    """Torque constants and friction of all joints, and the inertias that are still unknown.

    Where inertias are unknown, the currents are fitted twice: the second time with loads computed
    from the inertias that the first fit found.

    Args:
        recordings: each is a session with its own friction level.
        dynamics: of the recordings.
        robot: the arm, n joints.
        inertia: reflected inertias known before the currents are fitted.
        friction: law name or "auto".
    """
    warm = _warms_up(recordings)
    nominal = inertia.value
    joints: tuple[JointEstimate, ...] = ()
    for _ in range(1 + bool(inertia.unknown.any())):
        fit = CurrentRegression(robot, friction, warm=warm, inertia=inertia, nominal=nominal)
        for recording, own in zip(recordings, dynamics, strict=True):
            fit.start_session()
            narrow = NarrowFilter(recording.cutoff)
            for motion, link_torque in _motions(recording, own):
                fit.accumulate(motion, link_torque + nominal * motion.qdd, narrow)
        joints = fit.fit()
        nominal = inertia_with_currents(inertia, joints).value
    return joints


def with_presliding(
    model: EnergyModel, recordings: Sequence[Recording], dynamics: Sequence[RecordingDynamics]
) -> EnergyModel:
    """The model with presliding travels that fit the currents at standstill.

    Args:
        model: fitted in motion.
        recordings: those it was fitted to.
        dynamics: of the recordings.
    """
    fit = PreslidingFit(model)
    for recording, own in zip(recordings, dynamics, strict=True):
        fit.start_recording()
        narrow = NarrowFilter(recording.cutoff)
        for motion, link_torque in _motions(recording, own):
            fit.accumulate(motion, link_torque, narrow)
    return fit.fitted()


def _motions(
    recording: Recording, dynamics: RecordingDynamics
) -> Iterator[tuple[FilteredMotion, Array]]:
    """Motions with one payload each, and the torque of the links [samples, n], N m, joint side."""
    for motion in recording.motions():
        for part, arm in dynamics.parts(motion):
            yield part, arm.inverse_dynamics(part.q, part.qd, part.qdd)


def _warms_up(recordings: Sequence[Recording]) -> bool:
    """Whether some joint's temperature spans enough for temperature-dependent friction."""
    low = np.fmin.reduce([recording.warmth[:, 0] for recording in recordings])
    high = np.fmax.reduce([recording.warmth[:, 1] for recording in recordings])
    return bool((high - low > WARMTH).any())
