"""Protocol s4, Machines 2024, 12(9), 595: self and general verification, known payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.experiment.design import Design
from ur_energy_model.experiment.design_problem import DesignRequest
from ur_energy_model.experiment.limits import PeriodicMotion, sample_period
from ur_energy_model.identification.base_parameter_bags import identify_base_parameters
from ur_energy_model.identification.base_parameters import FullRegressor, Regrouping, regroup
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.payload import payload_difference
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.papers.protocol import Outcome, ProtocolRun, Row
from ur_energy_model.papers.s4_measured_run import (
    JointFriction,
    MeasuredRun,
    Noise,
    check_load,
    least_squares,
    predict,
    processed,
    simulate,
)
from ur_energy_model.report.chart import Line, LineChart, Panel
from ur_energy_model.report.model_charts import comparison_chart, joints_chart
from ur_energy_model.typing import Array

# Pictures of protocol s4 on the paper's own robot.

_RATE = 100.0
"""Of the pictures of trajectories [Hz]."""
_PATHS = {"Fig. 4": ("Fig. 11", "Tool path of the exciting trajectory"),
          "Fig. 16": ("Fig. 6", "Tool path of the general trajectory")}  # fmt: skip
"""Figures with the tool paths of the trajectories of other figures."""
_ALSO = {"Fig. 16": "Fig. 5"}
"""The simulation's second trajectory is the general one here."""


def draw_motion(
    session: ProtocolRun, motion: PeriodicMotion, key: str, place: str, title: str
) -> None:
    """Joints over one period, and the path of the flange."""
    time, q, qd, qdd = sample_period(motion, _RATE)
    values = {"position [rad]": q, "speed [rad/s]": qd, "acceleration [rad/s²]": qdd}
    names = session.robot.joint_names
    session.picture(joints_chart(key, title, time, values, names), place)
    if place in _ALSO:
        angles = {"position [rad]": q}
        chart = joints_chart(f"{key}_angles", f"{title}: joint angles", time, angles, names)
        session.picture(chart, _ALSO[place])
    path = ArmDynamics(session.robot).flange_pose(q)[:, :3, 3]
    figure, caption = _PATHS[place]
    views = (("From above", 0, 1), ("From the front", 0, 2), ("From the side", 1, 2))
    chart = LineChart(
        key=f"{key}_path",
        title=caption,
        caption="",
        x_label="[m]",
        y_label="[m]",
        panels=tuple(
            Panel(f"{view}: {'xyz'[i]}, {'xyz'[k]}", (Line("path", path[:, i], path[:, k]),))
            for view, i, k in views
        ),
        equal=True,
    )
    session.picture(chart, figure)


def draw_processing(session: ProtocolRun, raw: MeasuredRun, clean: MeasuredRun) -> None:
    """Accelerations by central differences, and torque before and after filtering."""
    names = session.robot.joint_names
    title = "Joint accelerations by central differences of the smoothed speed"
    values = {"acceleration [rad/s²]": clean.qdd}
    session.picture(joints_chart("s4_acceleration", title, clean.time, values, names), "Fig. 13")
    first = raw.torque[: len(clean.time)]
    chart = comparison_chart(
        "s4_filtering",
        "Torque of one period as measured, and averaged and smoothed",
        clean.time,
        (("measured", "measured", first), ("processed", "model", clean.torque)),
        names,
        "torque [N m]",
    )
    session.picture(chart, "Fig. 14")


def draw_verification(
    session: ProtocolRun, measured: MeasuredRun, predicted: np.ndarray, key: str, place: str
) -> None:
    """Measured and predicted torque of every joint."""
    chart = comparison_chart(
        key,
        "Torque, measured and predicted by the identified base parameters",
        measured.time,
        (("measured", "measured", measured.torque), ("predicted", "model", predicted)),
        session.robot.joint_names,
        "torque [N m]",
    )
    session.picture(chart, place)


# Protocol s4 on the paper's own robot, simulated: Qin et al., Machines 2024, 12(9), 595.
#
# Base parameters from a rigid multibody simulation (Table 5), then with friction and measurement
# noise as in the experiment (Table 9), verified on the same and on another trajectory (Figs. 15
# and 17), and the load check (Tables 6 and 7).

ROBOT = "qin2024"
"""Name of the paper's robot in config/robots."""
_REPETITIONS = 3
_TORQUE_NOISE = 0.02
"""Noise of the drives' torque over its root mean square, assumed."""
_POSITION_NOISE, _SPEED_NOISE = 1e-6, 2e-3
"""Of the encoders [rad, rad/s], assumed."""
_DECIMALS = 4
"""Digits of base parameters that are kept [kg m^2, kg m, ...]."""
_NOTEWORTHY = 0.05
"""Differences from here on show in the digits of Table 5."""


@dataclass(frozen=True)
class BaseModel:
    """Regressor of the arm with friction or without, and its base parameters as in the paper.

    Attributes:
        regressor: of all parameters.
        regrouping: onto the base columns that the paper chose.
    """

    regressor: FullRegressor
    regrouping: Regrouping

    @classmethod
    def of(cls, robot: RobotDescription, names: list[str], *, friction: bool) -> BaseModel:
        """Of an arm; `names` are the inertial base columns."""
        gravity = _setup(robot).gravity
        regressor = FullRegressor(robot, gravity, friction=friction, motor_inertia=False)
        own = [name for name in regressor.names if name.split("_")[0] in {"fc", "fv"}]
        return cls(regressor, regroup(regressor, [*names, *own]))

    @property
    def true(self) -> dict[str, float]:
        """Base parameters of the robot file by name; frictions are zero."""
        values = self.regrouping.combination @ self.regressor.nominal()
        return self.by_name(values)

    def by_name(self, values: Array) -> dict[str, float]:
        """Base parameters [rank] by name."""
        names = (self.regrouping.names[column] for column in self.regrouping.base)
        return dict(zip(names, map(float, np.round(values, _DECIMALS) + 0.0), strict=True))

    def identified(self, run: MeasuredRun) -> Array:
        """Base parameters [rank] from a processed run."""
        return least_squares(run, self.regressor, self.regrouping)

    def predicted(self, run: MeasuredRun, values: Array) -> Array:
        """Torque [samples, n], N m, of a processed run by base parameters [rank]."""
        return predict(run, self.regressor, self.regrouping, values)


def run_on_own_robot(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """The paper's simulation and experiment on a simulated arm."""
    robot, names = session.robot, published["base_names"]
    request = DesignRequest(robot, _setup(robot), tool_speed=float("inf"))
    population = 40 if session.quick else published["population"]
    design = session.design("excitation", session.seed, request, population=population)
    other = session.design("general", session.seed + 1, request, population=population)
    rows = _input_rows(robot, published) + _design_rows(published, design, session)
    rows += _simulation_rows(session, published, design, names)
    rows += _experiment_rows(session, published, design, other)
    rows += check_load(session, published)
    return session.finish("s4", published, rows)


def _setup(robot: RobotDescription) -> Setup:
    """Upright, with the gravity of the paper's load check."""
    return Setup(gravity=np.array([0.0, 0.0, -robot.controller_gravity]))


def _input_rows(robot: RobotDescription, published: Mapping[str, Any]) -> list[Row]:
    """What the robot file has from the paper."""
    degrees = {
        "max_velocity": np.degrees(robot.max_velocity),
        "max_acceleration": np.degrees(robot.max_acceleration),
    }
    as_read = "as listed; signs of alpha and theta, lost in the copy at hand, are assumed"
    return [
        Row("a by joint [m]", published["a"], robot.a, "Table 1", as_read, (), 1e-9),
        Row("d by joint [m]", published["d"], robot.d, "Table 1", as_read, (), 1e-9),
        Row("rated speed [deg/s]", published["max_velocity"], degrees["max_velocity"],
            "Table 4", "as listed", (), 1e-6),
        Row("largest acceleration [deg/s2]", published["max_acceleration"],
            degrees["max_acceleration"], "Table 4", "as listed", (), 1e-6),
        Row("gear ratio by joint", published["gear_ratios"], robot.gear_ratio, "Table 6",
            "magnitude; the sign is the direction of turning", (), 1e-9),
    ]  # fmt: skip


def _design_rows(published: Mapping[str, Any], design: Design, session: ProtocolRun) -> list[Row]:
    place, trajectory = "Section 4", design.trajectory
    how = "genetic algorithm on the condition number, limits of Table 4"
    differs = ("method",) if session.quick else ()
    return [
        Row("harmonics", published["harmonics"], trajectory.harmonics, place, how, (), 0.0),
        Row("base frequency [Hz]", published["base_frequency"], 1 / trajectory.period, place,
            how, (), 1e-9),
        Row("condition number", None, design.condition_number, place,
            f"{how}; the regressor includes motor inertias", differs),
    ]  # fmt: skip


def _simulation_rows(
    session: ProtocolRun, published: Mapping[str, Any], design: Design, names: list[str]
) -> list[Row]:
    """Table 5: an ideal arm, then the paper's processing."""
    motion = design.trajectory.repeated(_REPETITIONS)
    raw = simulate(ArmDynamics(session.robot, _setup(session.robot)), motion)
    clean = processed(raw, _REPETITIONS)
    model = BaseModel.of(session.robot, names, friction=False)
    found, true = model.by_name(model.identified(clean)), model.true
    pairs = zip(published["theoretical"], published["simulated"], strict=True)
    theirs = dict(zip(names, pairs, strict=True))
    place = "Table 5"
    how = "rigid-body simulation without friction, averaged, smoothed, central differences"
    rows = []
    for link in range(1, session.robot.dof + 1):
        own = [name for name in names if name.endswith(f"_{link}")]
        kinds = " ".join(name.split("_")[0] for name in own)
        label = f"link {link}: {kinds}"
        theoretical, simulated = ([theirs[name][k] for name in own] for k in (0, 1))
        actual, recovered = ([values[name] for name in own] for values in (true, found))
        rows += [
            Row(f"{label}, true", theoretical, actual, place, "theoretical values",
                judged=f"{_same(theoretical, actual)}: our links are chosen to have them"),
            Row(f"{label}, recovered", simulated, recovered, place, how, ("data",),
                judged=_same(actual, recovered, "the true values")),
        ]  # fmt: skip
    errors = np.array([abs(found[name] - true[name]) for name in names])
    their_errors = np.array([abs(theirs[name][1] - theirs[name][0]) for name in names])
    rows += [
        Row("largest difference of true and recovered", float(their_errors.max()),
            float(errors.max()), place, how, ("data",),
            judged="agrees: no larger than theirs" if errors.max() <= their_errors.max() else ""),
        Row("parameters that differ by 0.05 or more", int((their_errors >= _NOTEWORTHY).sum()),
            int((errors >= _NOTEWORTHY).sum()), place, how, ("data",)),
    ]  # fmt: skip
    draw_motion(session, design.trajectory, "s4_excitation", "Fig. 4", "Exciting trajectory")
    return rows


def _experiment_rows(
    session: ProtocolRun, published: Mapping[str, Any], design: Design, other: Design
) -> list[Row]:
    """Table 9 and both verifications: friction and noise as of an experiment."""
    robot, names = session.robot, published["base_names"]
    friction = JointFriction(np.array(published["coulomb"]), np.array(published["viscous"]))
    runs = [
        _measured(session, each, friction, session.seed + k)
        for k, each in enumerate((design, other))
    ]
    clean = [processed(each, _REPETITIONS) for each in runs]
    model = BaseModel.of(robot, names, friction=True)
    values = model.identified(clean[0])
    found, true = model.by_name(values), model.true
    inertial = model.regrouping.rank - 2 * robot.dof
    joints = range(1, robot.dof + 1)
    coulomb, viscous = ([found[f"{kind}_{j}"] for j in joints] for kind in ("fc", "fv"))
    place, how = "Table 9", "least squares on one period, averaged and smoothed"
    rows = [
        Row("base parameters", published["base_parameters"], model.regrouping.rank, place,
            "36 inertial, 12 of friction, motor inertias not counted", (), 0.0),
        Row("of these inertial", 36, inertial, place, "rank of the regressor without friction",
            (), 0.0),
        Row("Coulomb friction by joint [N m]", published["coulomb"], coulomb, place,
            f"{how}; the simulated arm has the published values", ("data",), 0.1),
        Row("viscous friction by joint [N m s/rad]", published["viscous"], viscous, place,
            f"{how}; the simulated arm has the published values", ("data",), 0.1),
        Row("inertial base parameters, largest deviation from the true ones", None,
            max(abs(found[name] - true[name]) for name in names), place,
            f"{how}; the paper's arm has no known truth, and its values in Table 9 are ten times "
            "those of Table 5"),
    ]  # fmt: skip
    draw_processing(session, runs[0], clean[0])
    draw_motion(session, other.trajectory, "s4_general", "Fig. 16", "General trajectory")
    for kind, place, words, measured in (
        ("self", "Fig. 15", "joints 1, 2, 6 consistent; 3, 4, 5 with local deviations", clean[0]),
        (
            "general",
            "Fig. 17",
            "joints 1, 2, 6 satisfactory; 3, 4, 5 with wrong amplitude",
            clean[1],
        ),
    ):
        predicted = model.predicted(measured, values)
        rows += _verification_rows(kind, place, words, measured.torque, predicted)
        draw_verification(session, measured, predicted, f"s4_{kind}_torque", place)
    return rows


def _measured(
    session: ProtocolRun, design: Design, friction: JointFriction, seed: int
) -> MeasuredRun:
    """A run with friction and noise."""
    dynamics = ArmDynamics(session.robot, _setup(session.robot))
    motion = design.trajectory.repeated(_REPETITIONS)
    plain = simulate(dynamics, motion.repeated(1), friction=friction).torque
    noise = Noise(_POSITION_NOISE, _SPEED_NOISE, _TORQUE_NOISE * np.sqrt(np.mean(plain**2, axis=0)))
    return simulate(dynamics, motion, friction=friction, noise=noise, seed=seed)


def _verification_rows(
    kind: str, place: str, words: str, measured: Array, predicted: Array
) -> list[Row]:
    errors = ErrorStatistics(measured.shape[1])
    errors.accumulate(measured, predicted)
    how = f"{kind}-trajectory verification over one period, averaged and smoothed"
    said = "see text: closer, as the simulated arm has no coupled wrist drives"
    return [
        Row(f"torque error by joint, RMS, {kind} verification [N m]", words, errors.rms, place, how,
            ("arm", "data"), judged=said),
        Row(f"torque R2 by joint, {kind} verification", words, errors.r2, place, how,
            ("arm", "data"), judged=said),
    ]  # fmt: skip


def _same(first: list[float], second: list[float], to: str = "") -> str:
    """Verdict on two lists of base parameters, within an absolute limit."""
    worst = max(abs(a - b) for a, b in zip(first, second, strict=True))
    target = f" from {to}" if to else ""
    return "agrees" if worst < _NOTEWORTHY else f"differs:{target} by up to {worst:.2g}"


PAYLOAD = 1.0
"""Known mass [kg]; every arm can carry it."""
DIFFERS = ("arm", "data", "method")


def run(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Verify without payload on the same and on another motion, then identify a known payload.

    The paper's own robot exists in simulation only, with parts of the experiment that others lack.
    """
    if session.robot.name == ROBOT:
        return run_on_own_robot(session, published)
    if session.mount is not None:
        session.mount(0.0)
    design = session.design("excitation", session.seed)
    other = session.design("general", session.seed + 1)
    fitted = session.record("excitation_unloaded", design.trajectory)
    general = session.record("general_unloaded", other.trajectory)
    base = identify_base_parameters(
        [fitted], session.robot, validate=[general], progress=session.progress
    )
    found = identify([fitted], session.robot, validate=[general], progress=session.progress)
    save_model(found.model, session.folder / "model.yaml")
    session.warnings += base.warnings
    verification = base.verification
    parameters = base.parameters
    rows = [
        Row(
            "base parameters (published without, here with motor inertias)",
            published["base_parameters"],
            parameters.regrouping.rank,
            "Table 9",
            "rank of the regressor with friction",
            ("arm", "method"),
            0.0,
        ),
        Row(
            "torque error by joint, RMS, self verification [N m]",
            None,
            parameters.torque_rms,
            "Fig. 15",
            "prediction of the fitted motion; torque from measured currents",
            DIFFERS,
        ),
        Row(
            "torque error by joint, RMS, general verification [N m]",
            None,
            None if verification is None else verification.torque_rms,
            "Fig. 17",
            "prediction of another motion; torque from measured currents",
            DIFFERS,
        ),
        Row(
            "torque R2 by joint, general verification",
            None,
            None if verification is None else verification.torque_r2,
            "Fig. 17",
            "prediction of another motion; torque from measured currents",
            DIFFERS,
        ),
    ]
    rows += identify_known_payload(session, published, design.trajectory, found, fitted)
    return session.finish("s4", published, rows)


def identify_known_payload(
    session: ProtocolRun,
    published: Mapping[str, Any],
    motion: PeriodicMotion,
    found: Identification,
    unloaded: Path,
) -> list[Row]:
    """Rows about a known payload, from loaded minus unloaded currents; empty without a mount.

    Args:
        session: run of the protocol.
        published: figures of the paper.
        motion: motion to repeat with the payload.
        found: model identified without payload.
        unloaded: bag of the motion without payload.
    """
    if session.mount is None:
        session.warnings.append(
            "the part with a payload was skipped: somebody has to mount it; run without --yes"
        )
        return []
    session.mount(PAYLOAD)
    try:
        loaded = session.record("excitation_loaded", motion)
    finally:
        session.mount(0.0)
    ratio = published["payload_torque_estimated"] / published["payload_torque_applied"]
    mass, std = payload_difference(found.model, loaded, unloaded, progress=session.progress)
    place, how = "Section 5.2", "loaded minus unloaded currents of one motion, all joints"
    return [
        Row("known payload [kg]", None, PAYLOAD, place, "mounted, not declared to the controller"),
        Row("payload found [kg]", None, mass, place, how),
        Row("its standard deviation [kg]", None, std, place, how),
        Row("estimated over applied load", ratio, mass / PAYLOAD, place, how, DIFFERS, 0.05),
    ]
