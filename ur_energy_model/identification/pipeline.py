"""The whole way from bags to a model.

Order: read and judge every bag once (signals filtered, power accumulated) - setup and reflected
inertia from target_moment - torque constants and friction from current, with the torque of the
actual motion - power at the supply, which tells torque constants more exactly - what the bus keeps
of braking energy, friction at standstill - metrics of the bags fitted and of those held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.identification.assembly import assemble
from ur_energy_model.identification.comparison import Setups
from ur_energy_model.identification.currents import CurrentFit
from ur_energy_model.identification.evaluation import measure
from ur_energy_model.identification.friction_choice import AUTO, WARMTH
from ur_energy_model.identification.joint_fit import JointFit
from ur_energy_model.identification.metrics import Metrics
from ur_energy_model.identification.power import PowerFitResult
from ur_energy_model.identification.recording import Progress, Recording, read_recording
from ur_energy_model.identification.session_stages import compare_sessions, fit_power
from ur_energy_model.identification.setup_estimation import SetupEstimate
from ur_energy_model.identification.setups import estimate_setups
from ur_energy_model.identification.signals import NarrowFilter
from ur_energy_model.identification.standstill import StandstillFit
from ur_energy_model.identification.storage import with_storage
from ur_energy_model.identification.torque_constants import with_shared_sizes
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Identification:
    """Result of `identify`.

    Attributes:
        robot: the arm as its robot file describes it.
        model: ready to save.
        joints: current stage per joint (comparison of laws, sources).
        power: power stage.
        setups: setup stage, None where no target_moment was recorded.
        fit, validation: metrics.
        warnings: for the user, one line each.
    """

    robot: RobotDescription
    model: EnergyModel
    joints: tuple[JointFit, ...]
    power: PowerFitResult
    setups: SetupEstimate | None
    fit: tuple[Metrics, ...]
    validation: tuple[Metrics, ...]
    warnings: tuple[str, ...]


def identify(
    bags: Sequence[str | Path],
    robot: RobotDescription | str,
    *,
    validate: Sequence[str | Path] = (),
    friction: str = AUTO,
    power_model: str = "physical",
    setup: Setup | None = None,
    identify_tensors: bool = False,
    progress: Progress | None = None,
) -> Identification:
    """Identify an arm from one or more bags; memory does not grow with their length.

    Args:
        bags: recordings to fit, together.
        robot: description or name of the arm.
        validate: recordings held out, for metrics only.
        friction: name of a friction law, or "auto" to choose per joint.
        power_model: "physical" or "ecbot".
        setup: mounting and payload as the user states them, a prior for the estimate.
        identify_tensors: identify the link tensors too, in place of the robot file's.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    described = load_robot(robot) if isinstance(robot, str) else robot
    with _Readings(described, progress) as read:
        fitted = [read(bag) for bag in bags]
        held_out = [read(bag) for bag in validate]
        for recording in (*fitted, *held_out):
            recording.quality.require_usable()
        arm, estimate = estimate_setups(
            [*fitted, *held_out], fitted, described, setup, identify_tensors
        )
        joints = _fit_currents(fitted, arm, estimate, setup, friction)
        joints, result, standby = fit_power(
            [recording.power for recording in fitted], power_model, joints
        )
        spread = compare_sessions(joints, standby, len(fitted))
        model = assemble(arm, estimate, joints, result, fitted, setup, spread)
        model = with_storage(model, fitted)
        model = _fit_standstill(model, fitted, arm, estimate, setup)
        fit, validation = (
            tuple(
                measure(
                    model, recording, Setups(arm, recording.info, estimate, setup), anchor=anchor
                )
                for recording in recordings
            )
            for recordings, anchor in ((fitted, len(fitted) > 1), (held_out, True))
        )
    model = replace(
        model,
        fit=tuple(entry.as_json() for entry in fit),
        validation=tuple(entry.as_json() for entry in validation),
    )
    warnings = [w for recording in fitted for w in recording.quality.warnings]
    warnings += [] if estimate is None else list(estimate.warnings)
    if estimate is None:
        warnings.append(
            "no target_moment recorded: nominal motor inertia, and mounting and payload as stated"
        )
    return Identification(
        described, model, joints, result, estimate, fit, validation,
        tuple(dict.fromkeys(warnings)),
    )  # fmt: skip


class _Readings:
    """Recordings that are released together."""

    def __init__(self, robot: RobotDescription, progress: Progress | None) -> None:
        self.robot, self.progress = robot, progress
        self._open: list[Recording] = []

    def __call__(self, bag: str | Path) -> Recording:
        self._open.append(read_recording(bag, self.robot, progress=self.progress))
        return self._open[-1]

    def __enter__(self) -> _Readings:
        return self

    def __exit__(self, *_: object) -> None:
        for recording in self._open:
            recording.close()


def _fit_currents(
    recordings: Sequence[Recording], robot: RobotDescription, estimate: SetupEstimate | None,
    configured: Setup | None, friction: str,
) -> tuple[JointFit, ...]:  # fmt: skip
    inertia = robot.reflected_inertia if estimate is None else estimate.reflected_inertia
    low = np.fmin.reduce([recording.warmth[:, 0] for recording in recordings])
    high = np.fmax.reduce([recording.warmth[:, 1] for recording in recordings])
    warm = bool((high - low > WARMTH).any())
    fit = CurrentFit(robot, friction, warm=warm)
    for recording in recordings:
        fit.start_session()
        setups = Setups(robot, recording.info, estimate, configured)
        narrow = NarrowFilter(recording.cutoff)
        for motion in recording.motions():
            for part, dynamics in setups.parts(motion):
                link = dynamics.inverse_dynamics(part.q, part.qd, part.qdd)
                fit.add(part, link + inertia * part.qdd, narrow)
    return with_shared_sizes(fit.fit(), robot)


def _fit_standstill(
    model: EnergyModel, recordings: Sequence[Recording], robot: RobotDescription,
    estimate: SetupEstimate | None, configured: Setup | None,
) -> EnergyModel:  # fmt: skip
    fit = StandstillFit(model)
    for recording in recordings:
        fit.start_recording()
        setups = Setups(robot, recording.info, estimate, configured)
        narrow = NarrowFilter(recording.cutoff)
        for motion in recording.motions():
            for part, dynamics in setups.parts(motion):
                fit.add(part, dynamics.inverse_dynamics(part.q, part.qd, part.qdd), narrow)
    return fit.fitted()
