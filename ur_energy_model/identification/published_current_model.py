"""Current model and errors exactly as Clochiatti et al., Robotica 2024, define them.

Eq. 17-18: I = (tau / N + k_v w + tanh(w_dir / eps) T_dir + tanh(w_rev / eps) T_rev) / k_t for each
joint, w the motor speed, "dir" where power flows to the load. Fit (Table VI) and errors (Tables V
and VII) take every sample as recorded, unfiltered, standstill included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.identification.comparison import (
    RecordedMotion,
    compare_target_torque,
    recorded_motions,
)
from ur_energy_model.identification.dynamics import RecordingDynamics, payload_runs
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.evaluation import read_for_comparison
from ur_energy_model.identification.filtered_motion import usable_samples
from ur_energy_model.identification.least_squares import (
    gram_matrices_by_joint,
    solve_normal_equations,
)
from ur_energy_model.identification.recording import Recording
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

SMOOTHING = 1e-3
"""eps of eq. 11, on the motor speed [rad/s]."""
_TARGETS = (
    "target_q", "target_qd", "target_qdd", "target_moment", "robot_mode", "payload", "payload_cog",
)  # fmt: skip


@dataclass(frozen=True)
class PublishedCurrentModel:
    """Table VI: constants of n joints, motor side."""

    torque_constant: Array  # k_t [n], N m/A
    viscous: Array  # k_v [n], N m s/rad
    # T_dir and T_rev [n], N m
    coulomb_direct: Array
    coulomb_reverse: Array

    @classmethod
    def from_coefficients(cls, coefficients: Array) -> PublishedCurrentModel:
        """From the coefficients of `current_columns` [n, 4]."""
        constant = 1.0 / coefficients[:, 0]
        return cls(constant, *(coefficients[:, 1:] * constant[:, None]).T)

    @property
    def coefficients(self) -> Array:
        """Coefficients of `current_columns` [n, 4]."""
        torques = (self.viscous, self.coulomb_direct, self.coulomb_reverse)
        return (
            np.stack([np.ones(len(self.viscous)), *torques], axis=1) / self.torque_constant[:, None]
        )


@dataclass(frozen=True)
class PublishedErrors:
    """Errors of a recording over all samples, unfiltered; n joints."""

    # Of the model without friction against target_moment [N m]; None without targets
    torque: ErrorStatistics | None
    current: ErrorStatistics  # of the published current model [A]
    own_current: ErrorStatistics  # of the model's own friction law [A]


def current_columns(load: Array, qd: Array, gear_ratio: Array) -> Array:
    """Columns of eq. 18 [samples, n, 4].

    Args:
        load: torque without friction, joint side [samples, n], N m.
        qd: joint speeds [samples, n], rad/s.
        gear_ratio: [n].
    """
    speed = gear_ratio * qd
    sign = np.tanh(speed / SMOOTHING)
    flow = qd * load
    return np.stack([load / gear_ratio, speed, sign * (flow > 0), sign * (flow < 0)], axis=2)


def fit_current_model(model: EnergyModel, bag: str | Path) -> PublishedCurrentModel:
    """Least squares of eq. 18 over a recording, with the loads of a model.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    gram: Array = np.zeros((model.dof, 5, 5))
    recording, setups = read_for_comparison(model, bag)
    with closing(recording):
        for part, _, load in _loads(model, recording, setups):
            columns = current_columns(load, part.qd, setups.robot.gear_ratio)
            rows = np.concatenate([columns, part.current[:, :, None]], axis=2)
            gram = gram + gram_matrices_by_joint(rows)
    coefficients = [solve_normal_equations(one[:4, :4], one[:4, 4]) for one in gram]
    return PublishedCurrentModel.from_coefficients(np.array(coefficients))


def published_errors(
    model: EnergyModel, bag: str | Path, currents: PublishedCurrentModel
) -> PublishedErrors:
    """Errors of a recording as Tables V and VII have them.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    torque, current, own = (ErrorStatistics(model.dof) for _ in range(3))
    recording, setups = read_for_comparison(model, bag)
    with closing(recording):
        for _, recorded, modelled in compare_target_torque(
            model, recording, setups, _targets(recording.path)
        ):
            torque.accumulate(recorded, modelled)
        for part, link, load in _loads(model, recording, setups):
            columns = current_columns(load, part.qd, setups.robot.gear_ratio)
            predicted = np.einsum("sjc,jc->sj", columns, currents.coefficients)
            current.accumulate(part.current, predicted)
            powers = model.from_link_torque(link, part.qd, part.qdd, std=False)
            own.accumulate(part.current, powers.current)
    return PublishedErrors(torque if torque.count.any() else None, current, own)


def _loads(
    model: EnergyModel, recording: Recording, setups: RecordingDynamics
) -> Iterator[tuple[RecordedMotion, Array, Array]]:
    """Samples with one payload each, torque of the links, and with motors [samples, n], N m."""
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    for motion in recorded_motions(recording.path, recording.cutoff):
        for rows, controller_payload in payload_runs(motion.payload):
            part = motion.cut(rows)
            dynamics = ArmDynamics(setups.robot, setups.actual_setup(controller_payload))
            link = dynamics.inverse_dynamics(part.q, part.qd, part.qdd)
            yield part, link, link + inertia * part.qdd


def _targets(bag: Path) -> Iterator[Telemetry]:
    """Samples with finite targets."""
    names = _TARGETS[:4]
    for batch in iterate_bag(bag, _TARGETS):
        if all(name in batch for name in names):
            yield batch.select(usable_samples(batch, *names))
