# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Models of Clochiatti et al., Robotica 2024, fitted and measured as the paper defines them.

The dynamic model without friction against target_moment (Table V), the inertia of motors
and reducers (eq. 9), the current model (eq. 17 and 18, Tables VI and VII) and the power of
catalogue motors (eq. 23, Table VIII). Every sample counts as recorded, without a filter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.meter import bridged_steps, trapezoid
from ur_energy_model.identification.comparison import (
    RecordedSamples,
    compare_target_torque,
    recorded_motions,
)
from ur_energy_model.identification.dynamics import RecordingDynamics, payload_runs
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.evaluation import read_for_comparison
from ur_energy_model.identification.least_squares import (
    gram_matrices_by_joint,
    solve_normal_equations,
)
from ur_energy_model.identification.recording import Recording
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.usable_samples import usable_samples
from ur_energy_model.typing import Array

SMOOTHING = 1e-3
"""eps of eq. 11: motor speed over which tanh smooths the sign of Coulomb friction [rad/s]."""
_TARGET_MOTION = ("target_q", "target_qd", "target_qdd", "target_moment")
_TARGETS = (*_TARGET_MOTION, "robot_mode", "payload", "payload_cog")


class CatalogueMotors(NamedTuple):
    """Constants of eq. 23 for n joints.

    Attributes:
        constant: motor constants k_m [n], N m/sqrt(W).
        conversion: k_b / k_t, back EMF over torque constant, of all motors.
    """

    constant: Array
    conversion: float


@dataclass(frozen=True)
class PublishedCurrentModel:
    """Table VI: constants of the current model of n joints, motor side.

    Attributes:
        coefficients: coefficients of the columns of `current_columns` [n, 4].
        torque_constant: k_t [n], N m/A.
        viscous: k_v [n], N m s/rad.
        coulomb_direct: T_dir, where power flows to the load [n], N m.
        coulomb_reverse: T_rev, where power flows from the load [n], N m.
    """

    coefficients: Array
    torque_constant: Array
    viscous: Array
    coulomb_direct: Array
    coulomb_reverse: Array


@dataclass(frozen=True)
class PublishedSeries:
    """A recording in the current and power model of the paper, every sample, n joints.

    Attributes:
        time: controller clock [samples], s.
        qd: speeds, joint side [samples, n], rad/s.
        measured: measured currents [samples, n], A.
        modelled: currents by eq. 17 [samples, n], A.
        own: currents by our friction law [samples, n], A.
        mechanical: power w tau_m of the motors [samples, n], W.
        electrical: power by eq. 23, W_elec = (tau_m / k_m)^2 + k_b / k_t w tau_m
            [samples, n], W; None without catalogue motors.
    """

    time: Array
    qd: Array
    measured: Array
    modelled: Array
    own: Array
    mechanical: Array
    electrical: Array | None

    @property
    def energies(self) -> tuple[Array, Array] | None:
        """Mechanical and electrical energy of each joint [n], J (eq. 25-26)."""
        if self.electrical is None:
            return None
        steps = bridged_steps(self.time)[1:]
        return trapezoid(steps, self.mechanical), trapezoid(steps, self.electrical)


def current_columns(load: Array, qd: Array, gear_ratio: Array) -> Array:
    """Columns of eq. 18 [samples, n, 4]: load, speed, and Coulomb friction by power flow.

    Eq. 17 for each joint, with the motor speed w and the load tau: I = (tau / N + k_v w +
    tanh(w_dir / eps) T_dir + tanh(w_rev / eps) T_rev) / k_t. The coefficients of the
    columns are 1 / k_t, k_v / k_t, T_dir / k_t and T_rev / k_t.

    Args:
        load: torque without friction, joint side [samples, n], N m.
        qd: speeds, joint side [samples, n], rad/s.
        gear_ratio: N, motor turns per joint turn [n].
    """
    motor_speed = gear_ratio * qd
    sign = np.tanh(motor_speed / SMOOTHING)
    power = qd * load
    direct = sign * (power > 0)
    reverse = sign * (power < 0)
    return np.stack([load / gear_ratio, motor_speed, direct, reverse], axis=2)


def fit_current_model(
    model: EnergyModel, bag: str | Path, *, reference: bool = True
) -> PublishedCurrentModel:
    """Least squares of eq. 18 over a recording, with the loads of a model.

    Args:
        model: model of the arm, n joints.
        bag: folder of a bag, or an .mcap file.
        reference: whether reference accelerations are used where they were recorded, as in
            sec. 2.2 of the paper; else the derivative of the speed.

    Raises:
        UrEnergyError: the recording cannot be used.
    """
    recording, setups = read_for_comparison(model, bag)
    columns_and_current = np.zeros((model.dof, 5, 5))  # Gram matrix of each joint
    with recording:
        for part in _loaded_parts(model, recording, setups, reference):
            samples = part.samples
            columns = current_columns(part.load, samples.qd, setups.robot.gear_ratio)
            rows = np.concatenate([columns, samples.current[..., None]], axis=2)
            columns_and_current += gram_matrices_by_joint(rows)
    coefficients = np.array(
        [
            solve_normal_equations(gram[:-1, :-1], gram[:-1, -1])
            for gram in columns_and_current
        ]
    )
    by_load, by_speed, by_direct, by_reverse = coefficients.T
    torque_constant = 1.0 / by_load
    return PublishedCurrentModel(
        coefficients=coefficients,
        torque_constant=torque_constant,
        viscous=by_speed * torque_constant,
        coulomb_direct=by_direct * torque_constant,
        coulomb_reverse=by_reverse * torque_constant,
    )


def published_series(
    model: EnergyModel,
    bag: str | Path,
    currents: PublishedCurrentModel,
    motors: CatalogueMotors | None = None,
    *,
    ours: EnergyModel | None = None,
    reference: bool = True,
) -> PublishedSeries:
    """Currents and powers of a recording by the model of the paper.

    Args:
        model: model of the arm, n joints, for the loads.
        bag: folder of a bag, or an .mcap file.
        currents: constants of eq. 17.
        motors: constants of eq. 23; None for a series without electrical power.
        ours: model for the currents by our law, with its own loads; None for `model`.
        reference: whether reference accelerations are used, as in `fit_current_model`.

    Raises:
        UrEnergyError: the recording cannot be used.
    """
    recording, setups = read_for_comparison(model, bag)
    ratio = setups.robot.gear_ratio
    parts = []
    with recording:
        loaded = _loaded_parts(model, recording, setups, reference)
        by_our_law = _own_currents(model if ours is None else ours, bag, reference)
        for part, own in zip(loaded, by_our_law, strict=True):
            samples = part.samples
            columns = current_columns(part.load, samples.qd, ratio)
            modelled = np.einsum("sjc,jc->sj", columns, currents.coefficients)
            torque = currents.torque_constant * modelled
            mechanical = ratio * samples.qd * torque
            electrical = None
            if motors is not None:
                copper = np.square(torque / motors.constant)
                electrical = copper + motors.conversion * mechanical
            parts.append(
                PublishedSeries(
                    time=samples.time,
                    qd=samples.qd,
                    measured=samples.current,
                    modelled=modelled,
                    own=own,
                    mechanical=mechanical,
                    electrical=electrical,
                )
            )

    def joined(name: str) -> Array:
        return np.concatenate([getattr(part, name) for part in parts])

    return PublishedSeries(
        time=joined("time"),
        qd=joined("qd"),
        measured=joined("measured"),
        modelled=joined("modelled"),
        own=joined("own"),
        mechanical=joined("mechanical"),
        electrical=None if motors is None else joined("electrical"),
    )


def _own_currents(
    model: EnergyModel, bag: str | Path, reference: bool
) -> Iterator[Array]:
    """Currents by the friction law of a model [samples, n], A, part by part.

    Args:
        model: model of the arm.
        bag: folder of a bag, or an .mcap file.
        reference: whether reference accelerations are used, as in `fit_current_model`.
    """
    recording, setups = read_for_comparison(model, bag)
    with recording:
        for part in _loaded_parts(model, recording, setups, reference):
            drives = model.from_link_torque(
                part.link_torque, part.samples.qd, part.qdd, std=False
            )
            yield drives.current


def torque_errors(model: EnergyModel, bag: str | Path) -> ErrorStatistics | None:
    """Errors of the model without friction against target_moment (Table V), joint side [N m].

    Args:
        model: model of the arm.
        bag: folder of a bag, or an .mcap file.

    Returns:
        The errors; None where no targets were recorded.

    Raises:
        UrEnergyError: the recording cannot be used.
    """
    torque = ErrorStatistics(model.dof)
    recording, setups = read_for_comparison(model, bag)
    with recording:
        targets = _targets(recording.path)
        for _, recorded, modelled in compare_target_torque(
            model, recording, setups, targets
        ):
            torque.accumulate(recorded, modelled)
    return torque if torque.count.any() else None


def plain_inertia(model: EnergyModel, bag: str | Path, robot: RobotDescription) -> Array:
    """Motor plus reducer inertia [n], kg m^2, motor side, by least squares of eq. 9.

    Args:
        model: model of the arm, with its mounting and payload.
        bag: recording with targets: folder of a bag, or an .mcap file.
        robot: type of the arm, with the link tensors to use.

    Returns:
        The inertias; NaN for a joint whose targets do not accelerate.

    Raises:
        UrEnergyError: the recording cannot be read.
    """
    dynamics = ArmDynamics(robot, model.setup)
    ratio = robot.gear_ratio
    product = np.zeros(model.dof)
    square = np.zeros(model.dof)
    for batch in _targets(Path(bag)):
        q, qd, qdd, torque = (batch[name] for name in _TARGET_MOTION)
        motor_acceleration = ratio * qdd
        motor_torque = (torque - dynamics.inverse_dynamics(q, qd, qdd)) / ratio
        product += (motor_acceleration * motor_torque).sum(axis=0)
        square += np.square(motor_acceleration).sum(axis=0)
    inertia = np.full(model.dof, np.nan)
    np.divide(product, square, out=inertia, where=square > 0.0)
    return inertia


class _LoadedPart(NamedTuple):
    """Consecutive samples with one payload set in the controller, n joints.

    Attributes:
        samples: recorded samples.
        qdd: accelerations of the torques, joint side [samples, n], rad/s^2.
        link_torque: torque of the links, joint side [samples, n], N m.
        load: torque of links and motors, joint side [samples, n], N m.
    """

    samples: RecordedSamples
    qdd: Array
    link_torque: Array
    load: Array


def _loaded_parts(
    model: EnergyModel, recording: Recording, setups: RecordingDynamics, reference: bool
) -> Iterator[_LoadedPart]:
    """Parts of a recording with their torques without friction.

    Args:
        model: model of the arm, with the reflected inertias of its motors.
        recording: recording of the arm.
        setups: mounting and payloads of the recording.
        reference: whether reference accelerations are used, as in `fit_current_model`.
    """
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    for motion in recorded_motions(recording.path, recording.cutoff):
        for rows, controller_payload in payload_runs(motion.payload):
            part = motion.cut(rows)
            qdd = part.qdd
            if reference and np.isfinite(part.target_qdd).all():
                qdd = part.target_qdd
            dynamics = ArmDynamics(setups.robot, setups.actual_setup(controller_payload))
            link_torque = dynamics.inverse_dynamics(part.q, part.qd, qdd)
            yield _LoadedPart(part, qdd, link_torque, link_torque + inertia * qdd)


def _targets(bag: Path) -> Iterator[Telemetry]:
    """Samples of a recording with finite targets, batch by batch."""
    for batch in iterate_bag(bag, _TARGETS):
        if all(name in batch for name in _TARGET_MOTION):
            yield batch.select(usable_samples(batch, *_TARGET_MOTION))
