# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocol s0, Clochiatti et al., Robotica 2024: test motions A and B through random points.

The arm runs two motions through six random points each (sec. 4). The model is identified
from A; A and B are evaluated by the definitions of the paper and by ours. Rows of the
tables are in `s0_inertia` and `s0_tables`, pictures in `s0_figures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.limits import RepeatedMotion
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.model.drives import KT_OVER_KB
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.power_models import catalogue_motor_constants
from ur_energy_model.papers.protocol import Outcome, ProtocolRun
from ur_energy_model.papers.published import Paper, ResultRow
from ur_energy_model.papers.s0_figures import draw_test_motions
from ur_energy_model.papers.s0_inertia import (
    inertia_rows,
    printed_model,
    tensor_rows,
)
from ur_energy_model.papers.s0_models import CatalogueMotors
from ur_energy_model.papers.s0_tables import (
    TESTS,
    catalogue_rows,
    our_energy_rows,
    our_error_rows,
    our_friction_rows,
    recorded_rows,
)
from ur_energy_model.report.analysis import Analysis, analyse
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.trajectory.named_motions import Planner

DISSIPATED_SHARE = 0.01
"""Share of the supply energy above which dissipated regenerated energy is reported."""
_BAGS = {"A": "trajectory_a", "B": "trajectory_b"}
_SEEDS = {"A": 11, "B": 23}
"""Added to the seed of the run, so that both tests have points of their own."""


def run(session: ProtocolRun, paper: Paper) -> Outcome:
    """Fit on motion A; errors and energies of A and B by the paper's definitions, and ours.

    Args:
        session: the arm, the output folder, and how motions are run.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with the values found here, written to the folder, too.

    Raises:
        UrEnergyError: a motion or an identification is not possible.
    """
    robot = session.robot
    bags = {test: _record(session, test) for test in TESTS}
    found = _identify(session, bags, "physical")
    model = found.model
    save_model(model, session.folder / "model.yaml")
    motors = _catalogue_motors(robot)
    catalogue = None
    if motors is None:
        session.warnings.append(
            "the paper chose catalogue motors for joints of 150 and 28 N m only: no eq. 23"
        )
    else:
        catalogue = _identify(session, bags, "catalogue")
    printed = printed_model(model, bags["A"])
    analyses = [analyse(printed, bag, label=test) for test, bag in bags.items()]
    table_rows, series = recorded_rows(
        paper, model, bags, session.simulated, motors=motors
    )
    rows = [
        *_motion_rows(paper, list(bags.values()), analyses),
        *tensor_rows(paper, robot),
        *inertia_rows(paper, model, robot, bags["A"], session.simulated),
        *table_rows,
    ]
    metrics = {"A": found.fit[0], "B": found.validation[0]}
    for test, own in metrics.items():
        rows += our_error_rows(paper, "torque", test, own.torque)
        rows += our_error_rows(paper, "current", test, own.current)
    rows += our_friction_rows(paper, model)
    for test, bag in bags.items():
        energies = estimate_energy(model, bag)
        rows += our_energy_rows(paper, test, energies)
        if test == "B":
            rows.append(_dissipated_row(session, paper, energies))
    if catalogue is not None:
        save_model(catalogue.model, session.folder / "model_catalogue.yaml")
        rows += catalogue_rows(paper, catalogue, found)
    draw_test_motions(session, analyses, series)
    return session.finish(paper, rows)


def _record(session: ProtocolRun, test: str) -> Path:
    """Record a test: six random points joined by trapezoidal speed profiles.

    Args:
        session: the run, whose seed determines the points.
        test: "A" or "B".

    Raises:
        MotionRefusedError: no motion passes the checks.
    """
    planner = Planner(session.robot)

    def through_points(seed: int) -> RepeatedMotion:
        motion = planner.chain_through(planner.random_points(seed))
        return RepeatedMotion(session.robot.name, motion, 1)

    motion = session.first_safe(through_points, session.seed + _SEEDS[test])
    return session.record(_BAGS[test], motion)


def _identify(
    session: ProtocolRun, bags: dict[str, Path], power_model: str
) -> Identification:
    """Identify a model with the friction law of the paper from A, and validate it on B.

    Args:
        session: the run.
        bags: recordings by test.
        power_model: name of the power model, "physical" or "catalogue".

    Raises:
        UrEnergyError: the recordings cannot be used.
    """
    return identify(
        [bags["A"]],
        session.robot,
        validate=[bags["B"]],
        options=IdentificationOptions(friction="power_flow", power_model=power_model),
        progress=session.progress,
    )


def _catalogue_motors(robot: RobotDescription) -> CatalogueMotors | None:
    """Catalogue motors of an arm; None for an arm whose motors the paper did not choose."""
    try:
        constant = catalogue_motor_constants(robot)
    except InputError:
        return None
    return CatalogueMotors(constant, 1.0 / KT_OVER_KB)


def _motion_rows(
    paper: Paper, bags: Sequence[Path], analyses: Sequence[Analysis]
) -> list[ResultRow]:
    """Figs. 2 and 3: largest planned acceleration of both tests, and speeds of each.

    Args:
        paper: published values.
        bags: recordings of test A and of test B.
        analyses: analyses of the same recordings.
    """
    largest = 0.0
    for bag in bags:
        for batch in iterate_bag(bag):
            largest = max(largest, float(np.abs(batch["target_qdd"]).max()))
    rows = [paper.row("max_acceleration", largest)]
    for test, analysis in zip(TESTS, analyses, strict=True):
        joint_speed = float(np.abs(analysis.current.qd).max())
        tool_speed = float(analysis.flange_speed.max())
        rows.append(paper.row(f"max_speed_{test}", joint_speed))
        rows.append(paper.row(f"tool_speed_{test}", tool_speed))
    return rows


def _dissipated_row(
    session: ProtocolRun, paper: Paper, energies: EnergySummary
) -> ResultRow:
    """Energy of test B that joints feed back and no other joint uses [J] (sec. 5).

    Adds a warning to the run where the energy is a noticeable share of the supply energy.

    Args:
        session: the run.
        paper: published values.
        energies: energies of test B [J].
    """
    dissipated = max(0.0, float(energies.regeneration))
    if dissipated > DISSIPATED_SHARE * energies.model:
        session.warnings.append(
            f"on B the joints regenerate {dissipated:.0f} J that no other joint uses at the time; "
            "the model counts it as dissipated, so it overestimates by what the bus stores"
        )
    return paper.row("dissipated", dissipated)
