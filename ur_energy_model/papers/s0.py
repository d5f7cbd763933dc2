# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocol s0, Clochiatti et al., Robotica 2024: test motions A and B through random points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.meter import efficiency
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.limits import RepeatedMotion
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.evaluation import Metrics
from ur_energy_model.identification.filtered_motion import MOVING_SPEED
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.identification.reflected_inertia import split_inertia
from ur_energy_model.model.drives import (
    KT_OVER_KB,
    motor_constant,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.geometry import load_capsules
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.power_models import catalogue_motor_constants
from ur_energy_model.papers.protocol import Outcome, Paper, ProtocolRun, ResultRow, cell
from ur_energy_model.papers.published_models import (
    PublishedCurrentModel,
    PublishedSeries,
    fit_current_model,
    plain_inertia,
    published_series,
    torque_errors,
)
from ur_energy_model.report.analysis import Analysis, analyse
from ur_energy_model.report.chart import BoxChart, Chart, Role
from ur_energy_model.report.model_charts import comparison_chart, joints_chart
from ur_energy_model.report.recording_charts import motion_chart, path_chart, torque_chart
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.trajectory.named_motions import Planner
from ur_energy_model.typing import Array

DISSIPATED_SHARE = 0.01
"""Share of the supply energy above which dissipated regenerated energy is reported."""
# joints of the larger and the smaller size
LARGE = slice(0, 3)
WRISTS = slice(3, 6)
_SIZES = (("large_joints", LARGE), ("wrists", WRISTS))
_SEEDS = {"trajectory_a": 11, "trajectory_b": 23}
_TESTS = ("A", "B")
_KINDS = {
    "": "eq. 9 as printed",
    "_cylinders": "eq. 9, links of cylinders",
    "_ours": "ours",
}
_UNITS = {"": 1.0, "m": 1e-3, "\N{MICRO SIGN}": 1e-6}
_SEEN = 0.02  # least part of its unit that an axis shows well
_FRICTION = (
    "k_v by joint [N m s/rad]",
    "T_dir by joint [N m]",
    "T_rev by joint [N m]",
    "k_t by joint [N m/A]",
)


def run(session: ProtocolRun, paper: Paper) -> Outcome:
    """Fit on motion A; errors and energies of A and B by the paper's definitions, and ours.

    Args:
        session: the arm, the output folder, and how motions are run.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with what was found, written to the folder, too.

    Raises:
        UrEnergyError: a motion or an identification is not possible.
    """
    bags = [_record(session, name) for name in _SEEDS]
    found = _identify(session, bags, "physical")
    model = found.model
    robot = session.robot
    save_model(model, session.folder / "model.yaml")
    motors = _motors(robot)
    catalogue = None
    if motors is None:
        session.warnings.append(
            "the paper chose catalogue motors for joints of 150 and 28 N m only: no eq. 23"
        )
    else:
        catalogue = _identify(session, bags, "catalogue")
    by_test = dict(zip(_TESTS, bags, strict=True))
    analyses = [analyse(model, bag, label=test) for test, bag in by_test.items()]
    rows = _motion_rows(paper, bags, analyses)
    more, series = recorded_rows(paper, model, by_test, session.simulated, motors=motors)
    rows += [*inertia_rows(paper, model, robot, bags[0], session.simulated), *more]
    metrics = dict(zip(_TESTS, (found.fit[0], found.validation[0]), strict=True))
    for test, own in metrics.items():
        rows += _our_rows(paper, "torque", test, own.torque)
        rows += _our_rows(paper, "current", test, own.current)
    rows += our_friction_rows(paper, model)
    for test, bag in by_test.items():
        energies = estimate_energy(model, bag)
        rows += our_energy_rows(paper, test, energies)
        if test == "B":
            rows.append(_dissipated_row(session, paper, energies))
    if catalogue is not None:
        save_model(catalogue.model, session.folder / "model_catalogue.yaml")
        rows += catalogue_rows(paper, catalogue, found)
    draw_test_motions(session, analyses, series)
    return session.finish(paper, rows)


def _motion_rows(
    paper: Paper, bags: Sequence[Path], analyses: Sequence[Analysis]
) -> list[ResultRow]:
    """Largest acceleration of both tests, and speeds of each one."""
    planned = 0.0
    for bag in bags:
        for batch in iterate_bag(bag):
            planned = max(planned, float(np.abs(batch["target_qdd"]).max()))
    rows = [paper.row("max_acceleration", planned)]
    for test, motion in zip(_TESTS, analyses, strict=True):
        joint_speed = float(np.abs(motion.current.qd).max())
        rows.append(paper.row(f"max_speed_{test}", joint_speed))
        rows.append(paper.row(f"tool_speed_{test}", float(motion.flange_speed.max())))
    return rows


def _dissipated_row(
    session: ProtocolRun, paper: Paper, energies: EnergySummary
) -> ResultRow:
    """What the joints feed back on test B and no other joint uses, with a warning if it counts."""
    dissipated = max(0.0, float(energies.regeneration))
    if dissipated > DISSIPATED_SHARE * energies.model:
        session.warnings.append(
            f"on B the joints regenerate {dissipated:.0f} J that no other joint uses at the time; "
            "the model counts it as dissipated, so it overestimates by what the bus stores"
        )
    return paper.row("dissipated", dissipated)


def recorded_rows(
    paper: Paper,
    model: EnergyModel,
    bags: Mapping[str, Path],
    simulated: bool,
    *,
    motors: tuple[Array, float] | None = None,
) -> tuple[list[ResultRow], dict[str, PublishedSeries]]:
    """Tables V to VIII by the paper's own definitions.

    Args:
        paper: published values.
        model: of the arm.
        bags: recordings by the name of the test; the first one is fitted.
        simulated: whether the arm is simulated.
        motors: see `published_series`.

    Returns:
        Rows, and the series of each test.
    """
    first = next(iter(bags.values()))
    currents = fit_current_model(model, first)
    derived = fit_current_model(model, first, reference=False)
    rows = friction_rows(paper, currents)
    series = {}
    for test, bag in bags.items():
        series[test] = found = published_series(model, bag, currents, motors)
        plain = published_series(model, bag, derived, reference=False)
        rows += torque_rows(paper, test, torque_errors(model, bag), simulated)
        rows += current_rows(paper, test, found, plain)
        if found.energies is not None:  # eq. 23 with the coefficients of Table VI
            rows += _energies(paper, "energy", test, *found.energies)
    return rows, series


def _motors(robot: RobotDescription) -> tuple[Array, float] | None:
    """Motor constants k_m [n] and k_b / k_t of the catalogue; None for an arm without them."""
    try:
        return catalogue_motor_constants(robot), 1.0 / KT_OVER_KB
    except InputError:
        return None


def _record(session: ProtocolRun, name: str) -> Path:
    """Record six random points joined by trapezoidal speed profiles."""
    planner = Planner(session.robot)

    def through_points(seed: int) -> RepeatedMotion:
        motion = planner.chain_through(planner.random_points(seed))
        return RepeatedMotion(session.robot.name, motion, 1)

    return session.record(
        name, session.first_safe(through_points, session.seed + _SEEDS[name])
    )


def _identify(session: ProtocolRun, bags: list[Path], power_model: str) -> Identification:
    return identify(
        bags[:1],
        session.robot,
        validate=bags[1:],
        options=IdentificationOptions(friction="power_flow", power_model=power_model),
        progress=session.progress,
    )


def cylinder_tensors(robot: RobotDescription) -> Array:
    """Inertia tensors of links that are unions of cylinders (Table III).

    The cylinders are the capsules that enclose the links, without their round ends, of one
    density in a link.

    Args:
        robot: with n links that move.

    Returns:
        Tensors about the links' centres of mass, in their DH frames [n, 3, 3], kg m^2.
    """
    tensors = np.zeros((robot.dof, 3, 3))
    capsules, _ = load_capsules(robot.name)
    for link, mass in enumerate(robot.mass[~robot.fixed]):
        own = [each for each in capsules if each.link == link + 1]
        ends = np.array([[each.start, each.end] for each in own])
        axis = ends[:, 1] - ends[:, 0]
        middle = ends.mean(axis=1)
        radius = np.array([each.radius for each in own])
        length = np.linalg.norm(axis, axis=1)
        flat = length == 0.0  # a sphere: a cylinder as long as wide
        axis[flat] = [0.0, 0.0, 1.0]
        length[flat] = 2 * radius[flat]
        axis /= np.linalg.norm(axis, axis=1)[:, None]
        share = radius**2 * length
        share *= mass / share.sum()
        offset = middle - share @ middle / mass
        across = share * (3 * radius**2 + length**2) / 12
        along = share * radius**2 / 2 - across
        square = np.einsum("ci,ci->c", offset, offset)
        tensors[link] = (across + share * square).sum() * np.eye(3)
        tensors[link] += np.einsum("c,ci,cj->ij", along, axis, axis)
        tensors[link] -= np.einsum("c,ci,cj->ij", share, offset, offset)
    return tensors


def inertia_rows(
    paper: Paper, model: EnergyModel, robot: RobotDescription, bag: Path, simulated: bool
) -> list[ResultRow]:
    """Gear ratio and Table IV: eq. 9 as printed, with the controller's tensors and with cylinders.

    A simulated controller computes target_moment with the inertias that eq. 9 then finds:
    no evidence for their size.

    Args:
        paper: published values.
        model: of the arm.
        robot: its type.
        bag: recording of motion A.
        simulated: whether the arm is simulated.
    """
    ratio = robot.gear_ratio
    theirs = paper["gear_ratio"]
    here = float(ratio[0]) if (ratio == ratio[0]).all() else ratio
    rows = [
        paper.row("gear_ratio", here),
        paper.row("reducer_inertia", robot.reducer_inertia),
        paper.row("rated_torque", robot.max_torque[[0, -1]]),
    ]
    reflected = np.array([joint.reflected_inertia for joint in model.joints])
    tensors = robot.inertia.copy()
    tensors[~robot.fixed] = cylinder_tensors(robot)
    found = {
        "": plain_inertia(model, bag, robot),
        "_cylinders": plain_inertia(model, bag, replace(robot, inertia=tensors)),
        "_ours": split_inertia(reflected, robot)[0],
    }
    for kind, values in found.items():
        rows.append(paper.row("motor_and_reducer", values, kind=_KINDS[kind]))
        for size, joints in _SIZES:
            rotor = (values - robot.reducer_inertia)[joints]
            finite = rotor[np.isfinite(rotor)]  # the reducers of CB3 arms are unpublished
            mean = float(finite.mean()) if len(finite) else None
            key = f"motor_inertia_{size}"
            rows.append(paper.row(key, mean, kind=_KINDS[kind], evidence=not simulated))
    rotor = found[""] - robot.reducer_inertia
    known = [float(rotor[joints].mean()) for _, joints in _SIZES]
    torque = [float(robot.max_torque[joints].mean()) / theirs for _, joints in _SIZES]
    return [
        *rows,
        paper.row("catalogue_inertia", known, evidence=not simulated),
        paper.row("catalogue_torque", torque),
    ]


def torque_rows(
    paper: Paper, test: str, torque: ErrorStatistics | None, simulated: bool
) -> list[ResultRow]:
    """Table V for one test motion; a simulated controller has the model that is compared.

    Args:
        paper: published values.
        test: "A" or "B".
        torque: errors of the torque; None where it was not recorded: no rows.
        simulated: whether the arm is simulated.
    """
    if torque is None:
        return []
    return [
        paper.row(f"torque_{key}", here, test=test, evidence=not simulated)
        for key, here in (
            ("mean", torque.mean), ("peak", torque.largest), ("rms", torque.rms), ("r2", torque.r2)
        )
    ]  # fmt: skip


def friction_rows(paper: Paper, theirs: PublishedCurrentModel) -> list[ResultRow]:
    """Table VI: eq. 18 on every sample."""
    rows = [
        paper.row("friction", here, name=name)
        for name, here in zip(
            _FRICTION,
            (
                theirs.viscous,
                theirs.coulomb_direct,
                theirs.coulomb_reverse,
                theirs.torque_constant,
            ),
            strict=True,
        )
    ]
    constant: list[Any] = [
        float(own.mean()) if (own > 0.0).all() else "not identifiable"
        for own in (theirs.torque_constant[part] for _, part in _SIZES)
    ]
    for (size, _), mean in zip(_SIZES, constant, strict=True):
        rows.append(paper.row(f"torque_constant_{size}", mean))
    both = (
        constant
        if all(isinstance(each, float) for each in constant)
        else cell(constant, "/")
    )
    low, high = np.transpose(paper["k_t_ranges"])
    return [*rows, paper.row("catalogue_k_t", both, within=(0.9 * low, 1.1 * high))]


def our_friction_rows(paper: Paper, model: EnergyModel) -> list[ResultRow]:
    """Our fit of the same law beside Table VI."""
    joints = model.joints
    names = ("viscous", "coulomb_direct", "coulomb_reverse")
    constant = np.array([joint.torque_constant for joint in joints])
    own = [
        np.array([each.friction.parameters.get(name, np.nan) for each in joints])
        for name in names
    ]
    rows = [
        paper.row("friction_ours", here, name=name)
        for name, here in zip(_FRICTION, (*own, constant), strict=True)
    ]
    for size, part in _SIZES:
        rows.append(
            paper.row(f"torque_constant_{size}_ours", float(constant[part].mean()))
        )
    return rows


def current_rows(
    paper: Paper, test: str, series: PublishedSeries, derived: PublishedSeries
) -> list[ResultRow]:
    """Table VII for one test motion.

    Args:
        paper: published values.
        test: "A" or "B".
        series: measured and modelled currents along the reference motion.
        derived: the same by accelerations that are derived from the speed.
    """
    current, plain, own = (ErrorStatistics(series.measured.shape[1]) for _ in range(3))
    current.accumulate(series.measured, series.modelled)
    plain.accumulate(derived.measured, derived.modelled)
    own.accumulate(series.measured, series.own)
    rows = [
        paper.row("current_mean", current.mean, test=test),
        paper.row("current_peak", current.largest, test=test),
    ]
    for size, joints in _SIZES:
        limit = paper["current_limits"][size]
        rms = current.rms[joints]
        note = f"{rms.max() / limit:.1f} times the limit, see Errata"
        rows.append(
            paper.row(
                f"current_rms_{size}", rms, test=test, within=(0.0, limit), note=note
            )
        )
    return [
        *rows,
        paper.row("current_r2", current.r2, test=test),
        paper.row("current_deviation", series.measured.std(axis=0), test=test),
        *(
            paper.row("current_part", part, test=test, part=name)
            for name, part in _error_parts(series).items()
        ),
        paper.row("current_rms_derived", plain.rms, test=test),
        paper.row("current_rms_our_law", own.rms, test=test),
    ]


def _error_parts(series: PublishedSeries) -> dict[str, Array]:
    """RMS error of the current [n], A, moving and at standstill, and its white noise.

    White noise is what neighbouring samples do not have in common: by second differences.
    """
    moving = np.abs(series.qd) > MOVING_SPEED
    square = np.square(series.modelled - series.measured)
    with np.errstate(invalid="ignore"):
        means = {
            name: np.sqrt(np.where(rows, square, 0.0).sum(axis=0) / rows.sum(axis=0))
            for name, rows in (("moving", moving), ("at standstill", ~moving))
        }
    noise = np.diff(series.measured, 2, axis=0).std(axis=0) / np.sqrt(6.0)
    return {**means, "of white noise": np.asarray(noise)}


def _our_rows(
    paper: Paper,
    what: str,
    test: str,
    entries: Sequence[Mapping[str, float | None]] | None,
) -> list[ResultRow]:
    """RMS and R2 of our model; nothing where it has none."""
    if entries is None:
        return []
    return [
        paper.row(f"{what}_{key}_ours", [entry[key] for entry in entries], test=test)
        for key in ("rms", "r2")
    ]


def our_energy_rows(paper: Paper, test: str, own: EnergySummary) -> list[ResultRow]:
    """Table VIII by our power model, and the energy at the supply."""
    rows = _energies(paper, "energy_ours", test, own.mechanical, own.electrical)
    supply = [own.model, float("nan") if own.bus is None else own.bus]
    return [*rows, paper.row("supply_energy", supply, test=test)]


def _energies(
    paper: Paper, key: str, test: str, mechanical: Array, electrical: Array
) -> list[ResultRow]:
    whole = [float(mechanical.sum()), float(electrical.sum())]
    values = {
        "mechanical energy by joint [J]": mechanical,
        "electrical energy by joint [J]": electrical,
        "efficiency by joint": efficiency(mechanical, electrical),
        "mechanical, electrical energy [J] and efficiency of the arm": [
            *whole,
            whole[0] / whole[1],
        ],
    }
    return [paper.row(key, here, what=what, test=test) for what, here in values.items()]


def catalogue_rows(
    paper: Paper, catalogue: Identification, own: Identification
) -> list[ResultRow]:
    """What the catalogue motors cost against the measured bus, beside our model.

    Args:
        paper: published values.
        catalogue: identification with the catalogue's power model.
        own: identification with ours.
    """
    joints = catalogue.model.joints
    motors = [
        motor_constant(each.torque_constant, each.winding_resistance) for each in joints
    ]
    rows = [
        paper.row("motor_constants", motors),
        paper.row("kt_over_kb", joints[0].torque_constant / joints[0].back_emf_constant),
    ]
    for test, part in zip(_TESTS, ("fit", "validation"), strict=True):
        for label, found in (("catalogue", catalogue), ("ours", own)):
            entry: Metrics = getattr(found, part)[0]
            for source, power in (
                ("motion", entry.power_from_motion),
                ("measured currents", entry.power),
            ):
                here = [power and power[key] for key in ("rmse", "energy_error_percent")]
                rows.append(
                    paper.row("supply_power", here, source=source, label=label, test=test)
                )
    return rows


def draw_test_motions(
    session: ProtocolRun,
    analyses: Sequence[Analysis],
    series: Mapping[str, PublishedSeries],
) -> None:
    """Draw the figures of both test motions.

    Args:
        session: with the folder of pictures.
        analyses: of the tests, for motion and torque.
        series: currents and powers by the paper's model, by test.
    """
    names = session.robot.joint_names
    torques = [
        each.torque.modelled - each.torque.recorded for each in analyses if each.torque
    ]
    currents = [each.modelled - each.measured for each in series.values()]
    figures: list[tuple[str, Chart | None]] = [
        (place, _boxes(what, unit, names, errors, size, joints))
        for place, what, unit, errors in (
            ("Fig. 10", "torque", "N m", torques),
            ("Fig. 13", "current", "A", currents),
        )
        for size, joints in _SIZES
    ]
    for (test, found), analysis, numbers in zip(
        series.items(), analyses, ((2, 8, 11, 14), (3, 9, 12, 15)), strict=True
    ):
        motion, torque, current, power = (f"Fig. {number}" for number in numbers)
        time = found.time - found.time[0]
        end = f", test {test}"
        curves: list[tuple[str, Role, Array]] = [
            ("measured", "measured", found.measured),
            ("eq. 17", "model", found.modelled),
            ("ours", "truth", found.own),
        ]
        title = f"Current, measured, by eq. 17 and by our law, every sample{end}"
        figures += [
            (motion, _named(motion_chart(analysis), test)),
            ("Fig. 4", _named(path_chart(analysis), test)),
            (torque, _named(torque_chart(analysis), test)),
            (
                current,
                comparison_chart(f"s0_current_{test}", title, time, curves, names, "A"),
            ),
        ]
        if found.electrical is not None:
            steps = np.diff(time, prepend=time[0])[:, None]
            values = {
                "electrical power [W]": found.electrical,
                "mechanical power [W]": found.mechanical,
                "electrical energy [J]": np.cumsum(steps * found.electrical, axis=0),
            }
            title = f"Power of each motor by eq. 23, and its energy{end}"
            figures.append(
                (power, joints_chart(f"s0_power_{test}", title, time, values, names))
            )
    for place, chart in figures:
        if chart is not None:
            session.picture(chart, place)


def _named(chart: Chart | None, test: str) -> Chart | None:
    """A chart of the report under the name of its test."""
    if chart is None:
        return None
    title = f"{chart.title}, test {test}"
    return replace(chart, key=f"s0_{chart.key}_{test}", title=title, caption="")


def _boxes(
    what: str,
    unit: str,
    names: Sequence[str],
    errors: Sequence[Array],
    size: str,
    joints: slice,
) -> BoxChart | None:
    """Errors [samples, n] of both tests; whiskers to the last value within 1.5 quartile ranges."""
    if not errors:
        return None

    def box(error: Array) -> list[float]:
        first, middle, third = np.percentile(error, (25, 50, 75))
        reach = 1.5 * (third - first)
        inside = error[(error >= first - reach) & (error <= third + reach)]
        low = float(inside.min())
        high = float(inside.max())
        return [low, low, first, middle, third, high, high]

    boxes = np.array([[box(column) for column in each[:, joints].T] for each in errors])
    reach = np.abs(boxes).max()
    prefix = next((each for each, one in _UNITS.items() if reach > _SEEN * one), "")
    return BoxChart(
        key=f"s0_{what}_error_{size}",
        title=f"{what.capitalize()} errors of the paper's model, tests A and B, without outliers",
        y_label=f"error [{prefix}{unit}]",
        categories=names[joints],
        series=_TESTS,
        boxes=boxes / _UNITS[prefix],
    )
