"""Protocol s0, Clochiatti et al., Robotica 2024: test motions A and B through random points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.energy.recording_energy import EnergySummary, estimate_energy
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.limits import RepeatedMotion
from ur_energy_model.identification.evaluation import Metrics
from ur_energy_model.identification.pipeline import Identification, IdentificationOptions, identify
from ur_energy_model.identification.published_current_model import (
    PublishedCurrentModel,
    PublishedErrors,
    fit_current_model,
    published_errors,
)
from ur_energy_model.identification.reflected_inertia import split_inertia
from ur_energy_model.model.drives import catalogue_motor_constants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.protocol import Outcome, ProtocolRun, Row
from ur_energy_model.report.analysis import Analysis, analyse
from ur_energy_model.report.chart import Chart
from ur_energy_model.report.recording_charts import (
    current_chart,
    current_error_chart,
    energy_chart,
    motion_chart,
    path_chart,
    power_chart,
    torque_chart,
    torque_error_chart,
)
from ur_energy_model.trajectory.named_motions import Planner
from ur_energy_model.typing import Array

# Rows of protocol s0: Tables IV to VII of Clochiatti et al., Robotica 2024, beside ours.

LARGE, WRISTS = slice(0, 3), slice(3, 6)
"""Joints of the larger and the smaller size."""
_SIZES = (("joints 1-3", "large_joints", LARGE), ("wrists", "wrists", WRISTS))
_CURRENT_LIMITS = (0.020, 0.066)
"""RMS errors of the current in Table VII by size of joint [A]."""
_DATA = ("arm and data",)
_SAME = 0.15
_ALL = "every sample as recorded, not filtered, standstill included"
_SIGNED = f"mean of model less measurement with its sign, over {_ALL}"
_OURS = "ours: filtered, samples at which the joint moves"
_SIMULATED = "simulated currents are as noisy as those recorded on UR5e arms"


def inertia_rows(
    model: EnergyModel, robot: RobotDescription, published: Mapping[str, Any]
) -> list[Row]:
    """Gear ratio and Table IV."""
    reflected = np.array([joint.reflected_inertia for joint in model.joints])
    split = split_inertia(reflected, robot)
    rotor = split.rotor
    ratio, theirs = robot.gear_ratio, published["gear_ratio"]
    here = float(ratio[0]) if (ratio == ratio[0]).all() else ratio
    same = bool((ratio == theirs).all())
    return [
        Row(
            "gear ratio",
            theirs,
            here,
            "Section 3.2",
            "HFUS-2SH gears",
            judged="agrees"
            if same
            else "differs: motor-side inertia, friction and torque constants from currents are "
            f"1 % (inertia 2 %) smaller than with {theirs:g}",
        ),
        Row(
            "reducer inertia by joint [kg m2]",
            published["reducer_inertia"],
            split.reducer,
            "Table IV",
            "catalogue value, subtracted from what is identified",
            tolerance=0.01,
        ),
        Row(
            "motor and reducer inertia by joint [kg m2]",
            None,
            split.motor_side,
            "Table IV",
            "eq. 9: from target_moment, motor side; the text gives means only",
        ),
        *(
            Row(
                f"mean motor inertia, {name} [kg m2]",
                published[f"motor_inertia_{key}"],
                _mean_of_known(rotor[joints]),
                "Table IV",
                "eq. 9 less the reducer, mean of three joints",
                _DATA,
                _SAME,
            )
            for name, key, joints in _SIZES
        ),
    ]


def friction_rows(
    model: EnergyModel, theirs: PublishedCurrentModel, published: Mapping[str, Any]
) -> list[Row]:
    """Table VI: eq. 18 on every sample beside our fit of the same law."""
    place = "Table VI"
    how = f"eq. 18, least squares over {_ALL}; the text gives means of k_t only"
    ours = "ours: the same law, filtered, moving samples, with bus power and priors"
    joints = model.joints
    own = {
        name: np.array([joint.friction.parameters.get(name, np.nan) for joint in joints])
        for name in ("viscous", "coulomb_direct", "coulomb_reverse")
    }
    constant = np.array([joint.torque_constant for joint in joints])
    rows = []
    for figure, paper, here in (
        ("k_v by joint [N m s/rad]", theirs.viscous, own["viscous"]),
        ("T_dir by joint [N m]", theirs.coulomb_direct, own["coulomb_direct"]),
        ("T_rev by joint [N m]", theirs.coulomb_reverse, own["coulomb_reverse"]),
        ("k_t by joint [N m/A]", theirs.torque_constant, constant),
    ):
        rows.append(Row(figure, None, paper, place, how))
        rows.append(Row(f"{figure}, ours", None, here, place, ours, ("method",)))
    for name, key, size in _SIZES:
        published_mean = published[f"torque_constant_{key}"]
        for label, values, definition, differs in (
            ("", theirs.torque_constant, "eq. 18, mean of three joints", _DATA),
            (", ours", constant, "mean of three joints", ("arm, data and method",)),
        ):
            mean = float(values[size].mean())
            rows.append(
                Row(
                    f"mean torque constant, {name} [N m/A]{label}",
                    published_mean,
                    mean,
                    place,
                    definition,
                    differs,
                    _SAME,
                )
            )
    return rows


def torque_rows(
    test: str, errors: PublishedErrors, metrics: Metrics, published: Mapping[str, Any]
) -> list[Row]:
    """Table V for one test motion."""
    if errors.torque is None:
        return [Row(f"torque errors, {test} [N m]", "see Table V", None, "Table V")]
    torque, largest = errors.torque, errors.torque.largest
    beyond = np.flatnonzero(largest > 1.0)
    judged = (
        "agrees; another arm and data"
        if beyond.tolist() == [0, 1]
        else f"differs: {len(beyond)} joints beyond 1 N m; arm and data differ"
    )
    r2 = torque.r2
    return [
        Row(f"torque, mean error by joint, {test} [N m]", None, torque.mean, "Table V", _SIGNED),
        Row(
            f"torque, largest error by joint, {test} [N m]",
            published["torque_peak"],
            largest,
            "Table V",
            f"largest absolute error over {_ALL}",
            judged=judged,
        ),
        Row(f"torque, RMS error by joint, {test} [N m]", None, torque.rms, "Table V", _ALL),
        Row(
            f"torque, R2 by joint, {test}",
            published["torque_r2"],
            r2,
            "Table V",
            _ALL,
            judged=f"{'agrees' if r2.min() > 0.99 else 'differs'}; another arm and data",
        ),
        *_our_rows("torque", "N m", test, metrics.torque, "Table V", "ours: as METRICS have it"),
    ]


def current_rows(
    test: str, errors: PublishedErrors, metrics: Metrics, published: Mapping[str, Any]
) -> list[Row]:
    """Table VII for one test motion."""
    current, place = errors.current, "Table VII"
    rms, r2 = current.rms, current.r2
    rows = [
        Row(f"current, mean error by joint, {test} [A]", None, current.mean, place, _SIGNED),
        Row(
            f"current, largest error by joint, {test} [A]",
            "sometimes above 1 A",
            current.largest,
            place,
            f"largest absolute error over {_ALL}",
            judged=f"{'agrees' if current.largest.max() > 1.0 else 'differs: smaller'}; another "
            "arm and data",
        ),
    ]
    for (name, key, joints), limit in zip(_SIZES, _CURRENT_LIMITS, strict=True):
        within = bool((rms[joints] <= limit).all())
        rows.append(
            Row(
                f"current, RMS error, {name}, {test} [A]",
                published[f"current_rms_{key}"],
                rms[joints],
                place,
                _ALL,
                judged="agrees; another arm and data"
                if within
                else f"differs: {rms[joints].max() / limit:.1f} times as large; {_SIMULATED}",
            )
        )
    rows.append(
        Row(
            f"current, R2 by joint, {test}",
            published["current_r2"],
            r2,
            place,
            _ALL,
            judged=f"{'agrees' if r2.min() >= 0.985 else 'differs'}; another arm and data",
        )
    )
    rows += _our_rows("current", "A", test, metrics.current, place, _OURS)
    rows.append(
        Row(
            f"current, RMS error by joint, our law, {test} [A]",
            None,
            errors.own_current.rms,
            place,
            f"our model, {_ALL}",
            ("method",),
        )
    )
    return rows


def _mean_of_known(values: Array) -> float | None:
    """Mean without NaN; None if all are NaN (the reducers of CB3 arms are unpublished)."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _our_rows(
    what: str,
    unit: str,
    test: str,
    entries: Sequence[Mapping[str, float | None]] | None,
    place: str,
    how: str,
) -> list[Row]:
    """RMS and R2 as METRICS have them; nothing where they have none."""
    if entries is None:
        return []
    return [
        Row(
            f"{what}, {name} by joint, ours, {test}{suffix}",
            None,
            [entry[key] for entry in entries],
            place,
            how,
            ("method",),
        )
        for key, name, suffix in (("rms", "RMS error", f" [{unit}]"), ("r2", "R2", ""))
    ]


# Rows of protocol s0: Table VIII of Clochiatti et al., Robotica 2024, and the catalogue motors.


def energy_rows(test: str, catalogue: EnergySummary | None, own: EnergySummary) -> list[Row]:
    """Table VIII for one test motion: the catalogue power model of the paper, and ours."""
    rows = []
    if catalogue is not None:
        how = "eq. 23-26 with the catalogue motors, from the motion; the text has no numbers"
        rows += _energies(test, catalogue, how, ())
    rows += _energies(f"{test}, ours", own, "eq. 24-26 with our power model", ("method",))
    measured = float("nan") if own.bus is None else own.bus
    supply = [own.supply, measured] + ([] if catalogue is None else [catalogue.supply])
    rows.append(
        Row(
            f"energy at the supply, {test}: ours, measured, catalogue [J]",
            None,
            supply,
            "Section 5",
            "motors, drivers and standby; the paper did not measure it, and its standby here is "
            "the one fitted to the bus",
        )
    )
    return rows


def catalogue_rows(
    model: EnergyModel,
    metrics: Sequence[tuple[str, Metrics, Metrics]],
    published: Mapping[str, Any],
) -> list[Row]:
    """What the catalogue motors cost against the measured bus.

    Args:
        model: with the catalogue power model.
        metrics: test motion, METRICS of the catalogue model and of ours.
        published: figures of the paper.
    """
    joints = model.joints
    motors = [
        joint.torque_constant / np.sqrt(joint.winding_resistance) if joint.winding_resistance else 0
        for joint in joints
    ]
    ratio = float(joints[0].torque_constant / joints[0].back_emf_constant)
    rows = [
        Row(
            "k_m of the catalogue model by joint [N m/sqrt(W)]",
            published["motor_constants"],
            motors,
            "Section 5",
            "TBM2G-06826 and TBM2G-05008, assumed",
            tolerance=1e-3,
        ),
        Row(
            "k_t/k_b of the catalogue model",
            published["kt_over_kb"],
            ratio,
            "Section 5",
            "assumed for all motors",
            tolerance=1e-3,
        ),
    ]
    for test, theirs, ours in metrics:
        for label, entry in (("catalogue", theirs), ("ours", ours)):
            for power, how in (
                (entry.power_from_motion, "motion"),
                (entry.power, "measured currents"),
            ):
                rows.append(
                    Row(
                        f"power at the supply from {how}, {label}, {test}: RMSE [W], energy [%]",
                        None,
                        [
                            None if power is None else power[key]
                            for key in ("rmse", "energy_error_percent")
                        ],
                        "Section 5",
                        "against the measured bus, which the paper did not have",
                    )
                )
    return rows


def _energies(test: str, found: EnergySummary, how: str, differs: tuple[str, ...]) -> list[Row]:
    total_mechanical, total = float(found.mechanical.sum()), float(found.electrical.sum())
    return [
        Row(f"{figure}, {test}", None, here, "Table VIII", how, differs)
        for figure, here in (
            ("mechanical energy by joint [J]", found.mechanical),
            ("electrical energy by joint [J]", found.electrical),
            ("efficiency by joint", found.efficiency),
            (
                "mechanical, electrical energy [J] and efficiency of the arm",
                [total_mechanical, total, total_mechanical / total if total else float("nan")],
            ),
        )
    ]


# Pictures of protocol s0: test motions A and B, their torques, currents, powers and energies.


def draw_test_motions(session: ProtocolRun, analyses: Sequence[Analysis]) -> None:
    """Draw the figures of both test motions, A and B.

    Args:
        session: run of the protocol.
        analyses: of A and B.
    """
    figures: list[tuple[str, str, Chart | None]] = [
        ("Fig. 10", "a_b", torque_error_chart(analyses)),
        ("Fig. 13", "a_b", current_error_chart(analyses)),
    ]
    for test, analysis, numbers in zip(
        "ab", analyses, ((2, 8, 11, 14), (3, 9, 12, 15)), strict=True
    ):
        motion, torque, current, power = (f"Fig. {number}" for number in numbers)
        figures += [
            (motion, test, motion_chart(analysis)),
            ("Fig. 4", test, path_chart(analysis)),
            (torque, test, torque_chart(analysis)),
            (current, test, current_chart(analysis)),
            (power, test, power_chart(analysis)),
            (power, test, energy_chart(analysis)),
        ]
    for place, test, chart in figures:
        if chart is not None:
            title = f"{chart.title}, {' and '.join(test.upper().split('_'))}"
            named = replace(chart, key=f"s0_{chart.key}_{test}", title=title, caption="")
            session.picture(named, place)


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
