"""Protocol s0, Clochiatti et al., Robotica 2024: test motions A and B through random points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.power_options import PowerOptions
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.periodic_motion import RepeatedMotion
from ur_energy_model.experiment.protocols.outcome import Outcome, Row
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.experiment.protocols.random_point_energies import catalogue_rows, energy_rows
from ur_energy_model.experiment.protocols.random_point_pictures import draw_test_motions
from ur_energy_model.experiment.protocols.random_point_tables import (
    current_rows,
    friction_rows,
    inertia_rows,
    torque_rows,
)
from ur_energy_model.identification.evaluation.published_current_model import (
    fit_current_model,
    published_errors,
)
from ur_energy_model.identification.pipeline import Identification, IdentificationOptions, identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.model_file import save_model
from ur_energy_model.model.motor_constant import catalogue_motor_constants
from ur_energy_model.report.analysis import Analysis, analyse
from ur_energy_model.trajectory.planner import Planner

REPETITIONS = 2
DISSIPATED_SHARE = 0.01
"""Share of the supply energy above which dissipated regenerated energy is reported."""
_SEEDS = {"trajectory_a": 11, "trajectory_b": 23}
_TESTS = ("A", "B")


def run(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Fit on motion A; errors and energies of A and B by the paper's definitions, and ours."""
    bags = [_record(session, name) for name in _SEEDS]
    found = _identify(session, bags, "physical")
    save_model(found.model, session.folder / "model.yaml")
    catalogue = _catalogue(session, bags)
    currents = fit_current_model(found.model, bags[0])
    metrics = (found.fit[0], found.validation[0])
    analyses = [
        analyse(found.model, bag, label=test) for test, bag in zip(_TESTS, bags, strict=True)
    ]
    rows = _motion_rows(analyses, published) + inertia_rows(found.model, session.robot, published)
    errors = [published_errors(found.model, bag, currents) for bag in bags]
    for test, each, own in zip(_TESTS, errors, metrics, strict=True):
        rows += torque_rows(test, each, own, published)
    rows += friction_rows(found.model, currents, published)
    for test, each, own in zip(_TESTS, errors, metrics, strict=True):
        rows += current_rows(test, each, own, published)
    for test, bag in zip(_TESTS, bags, strict=True):
        theirs = None if catalogue is None else _motion_energy(catalogue.model, bag)
        energies = estimate_energy(found.model, bag)
        rows += energy_rows(test, theirs, energies)
        if test == "B":
            rows.append(_dissipated_row(session, energies))
    if catalogue is not None:
        save_model(catalogue.model, session.folder / "model_catalogue.yaml")
        beside = (catalogue.fit[0], catalogue.validation[0])
        rows += catalogue_rows(
            catalogue.model, list(zip(_TESTS, beside, metrics, strict=True)), published
        )
    draw_test_motions(session, analyses)
    return session.finish("s0", published, rows)


def _record(session: ProtocolRun, name: str) -> Path:
    """Record six random points joined by trapezoidal speed profiles, twice."""
    planner = Planner(session.robot)

    def through_points(seed: int) -> RepeatedMotion:
        motion = planner.chain_through(planner.random_points(seed))
        return RepeatedMotion(session.robot.name, motion, 1 if session.quick else REPETITIONS)

    return session.record(name, session.first_safe(through_points, session.seed + _SEEDS[name]))


def _identify(session: ProtocolRun, bags: list[Path], power_model: str) -> Identification:
    return identify(
        bags[:1],
        session.robot,
        validate=bags[1:],
        options=IdentificationOptions(friction="power_flow", power_model=power_model),
        progress=session.progress,
    )


def _catalogue(session: ProtocolRun, bags: list[Path]) -> Identification | None:
    """The same with the paper's power model; None for an arm for which it chose no motors."""
    try:
        catalogue_motor_constants(session.robot)
    except InputError:
        session.warnings.append(
            "the paper chose catalogue motors for joints of 150 and 28 N m only: no eq. 23"
        )
        return None
    return _identify(session, bags, "catalogue")


def _motion_energy(model: EnergyModel, bag: Path) -> EnergySummary:
    """Energies of a recording from its motion alone, as the paper computes them."""
    return estimate_energy(model, bag, options=PowerOptions(method="motion"))


def _motion_rows(analyses: list[Analysis], published: Mapping[str, Any]) -> list[Row]:
    rows = []
    for test, place, each in zip(_TESTS, ("Fig. 2", "Fig. 3"), analyses, strict=True):
        rows += [
            Row(
                f"largest joint speed, {test} [rad/s]",
                published["max_speed"],
                float(np.abs(each.current.qd).max()),
                place,
                "trapezoidal speed profile through six random points",
                tolerance=0.1,
            ),
            Row(
                f"largest speed of the flange, {test} [m/s]",
                published["tool_speed_limit"],
                float(each.flange_speed.max()),
                place,
                "roughly where the paper's controller limited it; planned to stay below it here",
                ("method",),
                0.1,
            ),
        ]
    return rows


def _dissipated_row(session: ProtocolRun, energies: EnergySummary) -> Row:
    """Energy that the joints give back and the model counts as burned; warns where it is much."""
    dissipated = energies.regeneration
    if dissipated > DISSIPATED_SHARE * energies.supply:
        session.warnings.append(
            f"on B the joints regenerate {dissipated:.0f} J that no other joint uses at the time; "
            "the model counts it as dissipated, so it overestimates by what the bus stores"
        )
    return Row(
        "of that given back and counted as burned, B [J]",
        None,
        float(dissipated),
        "Section 5",
        "the paper counts it as gained",
    )
