# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocol s4, Machines 2024, 12(9), 595: self and general verification, known payload.

On the paper's own robot, which exists in simulation only, the protocol has all parts:
simulated base parameters (Table 5), the experiment with friction and noise (Table 9, Figs.
13 to 17) and the load check (Tables 6 and 7). On other arms it identifies, verifies on the
same and on another motion, and finds a known payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.experiment.design import Design
from ur_energy_model.experiment.design_problem import DesignRequest
from ur_energy_model.experiment.limits import (
    PeriodicMotion,
    RepeatedMotion,
    sample_period,
)
from ur_energy_model.identification.base_parameter_fit import identify_base_parameters
from ur_energy_model.identification.base_parameters import (
    FullRegressor,
    Regrouping,
    regroup,
)
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.payload import identify_payload
from ur_energy_model.identification.physical_consistency import nearest_possible
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.low_pass import low_pass
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.papers.protocol import Outcome, Paper, ProtocolRun, ResultRow
from ur_energy_model.report.chart import Line, LineChart, Panel
from ur_energy_model.report.model_charts import comparison_chart, joints_chart
from ur_energy_model.trajectory.motions import Sinusoids
from ur_energy_model.typing import Array

PAYLOAD = 1.0  # known mass [kg]; every arm can carry it
ROBOT = "qin2024"  # name of the paper's robot in config/robots
_REPETITIONS = 3
_TORQUE_NOISE = 0.02  # noise of the drives' torque over its root mean square, assumed
# of the encoders [rad, rad/s], assumed
_POSITION_NOISE = 1e-6
_SPEED_NOISE = 2e-3
_DECIMALS = 4  # digits of base parameters that are kept [kg m^2, kg m, ...]
_UNBOUNDED = 1e4  # spread of parameters that are free [kg, kg m, kg m^2]
_NOTEWORTHY = 0.05  # differences from here on show in the digits of Table 5


def run(session: ProtocolRun, paper: Paper) -> Outcome:
    """Verify without payload on the same and on another motion, then identify a known payload.

    The paper's own robot exists in simulation only, with parts of the experiment that
    others lack.

    Args:
        session: the arm, the output folder, and how motions are run.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with what was found, written to the folder, too.

    Raises:
        UrEnergyError: a motion or an identification is not possible.
    """
    if session.robot.name == ROBOT:
        return run_on_own_robot(session, paper)
    if session.mount is not None:
        session.mount(0.0)
    design = session.design("excitation", session.seed)
    other = session.design("general", session.seed + 1)
    fitted = session.record("excitation_unloaded", design.trajectory)
    general = session.record("general_unloaded", other.trajectory)
    base = identify_base_parameters(
        [fitted], session.robot, validate=[general], progress=session.progress
    )
    found = identify(
        [fitted], session.robot, validate=[general], progress=session.progress
    )
    save_model(found.model, session.folder / "model.yaml")
    session.warnings += base.warnings
    parameters = base.parameters
    verification = base.verification
    rows = [
        paper.row("other_base_parameters", parameters.regrouping.rank),
        paper.row("other_self_rms", parameters.torque_rms),
        paper.row("other_general_rms", verification and verification.torque_rms),
        paper.row("other_general_r2", verification and verification.torque_r2),
        *identify_known_payload(session, paper, design.trajectory, found, fitted),
    ]
    return session.finish(paper, rows)


def identify_known_payload(
    session: ProtocolRun,
    paper: Paper,
    motion: PeriodicMotion,
    found: Identification,
    unloaded: Path,
) -> list[ResultRow]:
    """Rows about a known payload, from loaded minus unloaded currents.

    Args:
        session: whose arm gets the payload.
        paper: published values.
        motion: of the loaded run.
        found: the model without payload.
        unloaded: recording of the motion without payload.

    Returns:
        The rows; none, with a warning, where nobody can mount a payload.
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
    shown = identify_payload(
        found.model, loaded, empty=unloaded, progress=session.progress
    )
    mass = shown.shown_mass
    std = shown.mass_std
    return [
        paper.row("payload", PAYLOAD),
        paper.row("payload_found", mass),
        paper.row("payload_std", std),
        paper.row("payload_ratio", mass / PAYLOAD),
    ]


# The paper's own robot, simulated: base parameters from a rigid multibody simulation
# (Table 5), then with friction and noise as in the experiment (Table 9), verified on the
# same and on another trajectory (Figs. 15 and 17), and the load check (Tables 6 and 7).


def run_on_own_robot(session: ProtocolRun, paper: Paper) -> Outcome:
    """The paper's simulation and experiment on a simulated arm."""
    robot = session.robot
    friction = (f"{kind}_{j + 1}" for kind in ("fc", "fv") for j in range(robot.dof))
    base = (*paper["base_names"], *friction)
    request = DesignRequest(robot, _setup(robot), tool_speed=float("inf"), base=base)
    population = 40 if session.quick else paper["population"]
    design, other = (
        session.design(
            name, session.seed + k, request, population=population, binary=True
        )
        for k, name in enumerate(("excitation", "general"))
    )
    middle = np.mean(paper["angles"], axis=1)  # zero of the robot file
    trajectory = design.trajectory
    differs = ("method",) if session.quick else ()
    # A turn of the first joint turns the whole upright arm, which no torque shows.
    offset = "joint 1 counts from a quarter turn away, which changes no torque"
    theta = np.abs(np.round(np.degrees(robot.theta) - middle, _DECIMALS))
    rows = [
        paper.row("theta", theta, note=offset),
        paper.row("a", robot.a),
        paper.row("d", robot.d),
        paper.row(
            "angles", middle[:, None] + np.degrees(robot.max_position)[:, None] * [-1, 1]
        ),
        paper.row("max_velocity", np.degrees(robot.max_velocity)),
        paper.row("max_acceleration", np.degrees(robot.max_acceleration)),
        paper.row("gear_ratios", robot.gear_ratio),
        paper.row("harmonics", trajectory.harmonics),
        paper.row("base_frequency", 1 / trajectory.period),
        paper.row("condition_number", design.condition_number, differs=differs),
        *_simulation_rows(session, paper, design),
        *_experiment_rows(session, paper, design, other),
        *check_load(session, paper),
    ]
    return session.finish(paper, rows)


def _setup(robot: RobotDescription) -> Setup:
    """Upright, with the gravity of the paper's load check."""
    return Setup(gravity=np.array([0.0, 0.0, -robot.controller_gravity]))


@dataclass(frozen=True)
class BaseModel:
    """Base parameters by the columns that the paper chose.

    Attributes:
        regressor: of all parameters, with friction or without.
        regrouping: the base columns, and what each base parameter combines.
    """

    regressor: FullRegressor
    regrouping: Regrouping

    @classmethod
    def of(
        cls, robot: RobotDescription, names: list[str], *, friction: bool
    ) -> BaseModel:
        """The model of an arm.

        Args:
            robot: type of the arm.
            names: inertial base columns of the paper.
            friction: whether Coulomb and viscous friction are parameters, too.
        """
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
        return dict(
            zip(names, map(float, np.round(values, _DECIMALS) + 0.0), strict=True)
        )

    def identified(self, run: MeasuredRun) -> Array:
        """Base parameters [rank] from a processed run by ordinary least squares (eq. 17)."""
        part = slice(None, None, _THINNING)
        columns = self.regressor(run.q[part], run.qd[part], run.qdd[part])
        flat = columns[:, :, self.regrouping.base].reshape(-1, self.regrouping.rank)
        return np.asarray(np.linalg.lstsq(flat, run.torque[part].ravel(), rcond=None)[0])

    def predicted(self, run: MeasuredRun, values: Array) -> Array:
        """Torque [samples, n], N m, of a processed run by base parameters [rank]."""
        parts = np.array_split(np.arange(len(run.time)), max(1, len(run.time) // 1000))
        base = self.regrouping.base
        columns = (
            self.regressor(run.q[part], run.qd[part], run.qdd[part]) for part in parts
        )
        return np.concatenate([each[:, :, base] @ values for each in columns])


def _simulation_rows(
    session: ProtocolRun, paper: Paper, design: Design
) -> list[ResultRow]:
    """Table 5: an ideal arm, then the paper's processing."""
    names = paper["base_names"]
    motion = design.trajectory.repeated(_REPETITIONS)
    raw = simulate(ArmDynamics(session.robot, _setup(session.robot)), motion)
    clean = processed(raw, _REPETITIONS)
    model = BaseModel.of(session.robot, names, friction=False)
    found = model.by_name(model.identified(clean))
    true = model.true
    theoretical = dict(zip(names, paper["theoretical"], strict=True))
    simulated = dict(zip(names, paper["simulated"], strict=True))
    rows = []
    for link in range(1, session.robot.dof + 1):
        own = [name for name in names if name.endswith(f"_{link}")]
        label = f"link {link}: {'/'.join(name.split('_')[0] for name in own)}"
        theirs, recovered, actual, ours = (
            [values[name] for name in own]
            for values in (theoretical, simulated, true, found)
        )
        rows += [
            paper.row(
                "link_true", actual, published=theirs, link=label, within=_about(theirs)
            ),
            paper.row(
                "link_recovered",
                ours,
                published=recovered,
                link=label,
                within=_about(actual),
            ),
        ]
    errors = np.array([abs(found[name] - true[name]) for name in names])
    their_errors = np.array([abs(simulated[name] - theoretical[name]) for name in names])
    largest = float(errors.max())
    most = float(their_errors.max())
    counts = [int((each >= _NOTEWORTHY).sum()) for each in (errors, their_errors)]
    rows += [
        paper.row("largest_difference", largest, published=most, within=(0.0, most)),
        paper.row("noteworthy", counts[0], published=counts[1], within=(0, counts[1])),
    ]
    draw_motion(
        session, design.trajectory, "s4_excitation", "Fig. 4", "Exciting trajectory"
    )
    return rows


def _experiment_rows(
    session: ProtocolRun, paper: Paper, design: Design, other: Design
) -> list[ResultRow]:
    """Table 9 and both verifications: friction and noise as of an experiment."""
    robot = session.robot
    names = paper["base_names"]
    friction = np.array([paper["coulomb"], paper["viscous"]])
    runs = [
        _measured(session, each, friction, session.seed + k)
        for k, each in enumerate((design, other))
    ]
    clean = [processed(each, _REPETITIONS) for each in runs]
    model = BaseModel.of(robot, names, friction=True)
    values = model.identified(clean[0])
    found = model.by_name(values)
    true = model.true
    joints = range(1, robot.dof + 1)
    rows = [
        paper.row("base_parameters", model.regrouping.rank),
        paper.row("inertial", model.regrouping.rank - 2 * robot.dof),
        paper.row("coulomb", [found[f"fc_{j}"] for j in joints]),
        paper.row("viscous", [found[f"fv_{j}"] for j in joints]),
        paper.row(
            "inertial_deviation", max(abs(found[name] - true[name]) for name in names)
        ),
    ]
    rows += _possible_rows(paper, robot)
    draw_processing(session, runs[0], clean[0])
    draw_motion(session, other.trajectory, "s4_general", "Fig. 16", "General trajectory")
    for kind, place, measured in (
        ("self", "Fig. 15", clean[0]),
        ("general", "Fig. 17", clean[1]),
    ):
        predicted = model.predicted(measured, values)
        errors = ErrorStatistics(robot.dof)
        errors.accumulate(measured.torque, predicted)
        rows += [
            paper.row(f"{kind}_rms", errors.rms),
            paper.row(f"{kind}_r2", errors.r2),
        ]
        draw_verification(session, measured, predicted, f"s4_{kind}_torque", place)
    return rows


def _possible_rows(paper: Paper, robot: RobotDescription) -> list[ResultRow]:
    """Table 9 beside the nearest base parameters that any links can have."""
    names = paper["base_names"]
    theirs = dict(zip(names, paper["identified"], strict=True))
    model = BaseModel.of(robot, names, friction=False)
    combination = model.regrouping.combination
    nominal = model.regressor.nominal()
    wanted = np.array([theirs[model.regrouping.names[k]] for k in model.regrouping.base])
    anywhere = np.full(len(nominal), _UNBOUNDED)
    found = nearest_possible(
        np.eye(len(wanted)), combination, wanted, nominal, anywhere, robot.dof
    )
    nearest = model.by_name(combination @ found)
    rows = []
    for link in range(1, robot.dof + 1):
        own = [name for name in names if name.endswith(f"_{link}")]
        label = f"link {link}: {'/'.join(name.split('_')[0] for name in own)}"
        published, here = ([values[name] for name in own] for values in (theirs, nearest))
        worst = max(abs(a - b) for a, b in zip(published, here, strict=True))
        found_here: dict[str, Any] = {"published": published, "within": _about(published)}
        note = f"by up to {worst:.4g}"
        rows.append(paper.row("possible", here, link=label, note=note, **found_here))
    return rows


def _measured(
    session: ProtocolRun, design: Design, friction: Array, seed: int
) -> MeasuredRun:
    """A run with friction and noise."""
    dynamics = ArmDynamics(session.robot, _setup(session.robot))
    motion = design.trajectory.repeated(_REPETITIONS)
    plain = simulate(dynamics, motion.repeated(1), friction=friction).torque
    noise = (
        _POSITION_NOISE,
        _SPEED_NOISE,
        _TORQUE_NOISE * np.sqrt(np.mean(plain**2, axis=0)),
    )
    return simulate(dynamics, motion, friction=friction, noise=noise, seed=seed)


def _about(values: list[float]) -> tuple[Array, Array]:
    """Range of numbers that Table 5 would print alike."""
    return np.array(values) - _NOTEWORTHY, np.array(values) + _NOTEWORTHY


# Section 5.3: motion and torque of an arm that measures its torque, and their processing:
# averaged over the periods, smoothed without phase, acceleration by central differences
# of the speed, least squares on the base parameters with friction.

CUTOFF = 10.0  # of the smoothing [Hz]; the motion has components up to 0.5 Hz
_THINNING = 10  # one of so many samples enters the least squares


@dataclass(frozen=True)
class MeasuredRun:
    """Samples of one arm with n joints.

    Attributes:
        time: evenly sampled [samples], s.
        q: joint positions [samples, n], rad.
        qd: joint speeds [samples, n], rad/s.
        qdd: joint accelerations [samples, n], rad/s^2.
        torque: joint side [samples, n], N m.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    torque: Array

    @property
    def period(self) -> float:
        """Step of the samples [s]."""
        return float(self.time[1] - self.time[0])


def simulate(
    dynamics: ArmDynamics,
    motion: PeriodicMotion,
    *,
    friction: Array | None = None,
    noise: Sequence[Any] = (0.0, 0.0, 0.0),
    seed: int = 0,
) -> MeasuredRun:
    """An arm that follows a motion exactly, as joint drives do in a multibody simulation.

    Args:
        dynamics: the arm in its setup.
        motion: sampled at the rate of the arm, all repetitions.
        friction: Coulomb and viscous, joint side [2, n], N m and N m s/rad; None for
            none.
        noise: standard deviations of position [rad], speed [rad/s] and torque ([n], N m).
        seed: of the noise.
    """
    rate = dynamics.robot.rate
    time = np.arange(round(motion.duration * rate)) / rate
    q, qd, qdd = motion.sample(time)
    torque = dynamics.inverse_dynamics(q, qd, qdd)
    if friction is not None:
        torque = torque + friction[0] * np.sign(qd) + friction[1] * qd
    random = np.random.default_rng([seed, 595])
    q, qd, torque = (
        values + std * random.standard_normal(q.shape)
        for values, std in zip((q, qd, torque), noise, strict=True)
    )
    return MeasuredRun(time, q, qd, qdd, torque)


def processed(run: MeasuredRun, repetitions: int, cutoff: float = CUTOFF) -> MeasuredRun:
    """One period: the average of all, smoothed, with acceleration by central differences.

    Args:
        run: whole repetitions of a periodic motion.
        repetitions: their number.
        cutoff: of the zero-phase filter [Hz].
    """
    samples = len(run.time) // repetitions
    kept = slice(0, samples * repetitions)

    def smooth(values: Array) -> Array:
        mean = values[kept].reshape(repetitions, samples, -1).mean(axis=0)
        # The motion is periodic, so it goes on at either end.
        around = low_pass(np.concatenate([mean] * 3), run.period, cutoff)
        return around[samples : 2 * samples]

    qd = smooth(run.qd)
    qdd = (np.roll(qd, -1, axis=0) - np.roll(qd, 1, axis=0)) / (2 * run.period)
    return MeasuredRun(run.time[:samples], smooth(run.q), qd, qdd, smooth(run.torque))


# Pictures of the paper's own robot.

_RATE = 100.0  # of the pictures of trajectories [Hz]
_PATHS = {"Fig. 4": ("Fig. 11", "Tool path of the exciting trajectory"),
          "Fig. 16": ("Fig. 6", "Tool path of the general trajectory")}  # fmt: skip
"""Figures with the tool paths of the trajectories of other figures."""


def draw_motion(
    session: ProtocolRun, motion: PeriodicMotion, key: str, place: str, title: str
) -> None:
    """Draw the joints over one period, and the path of the flange.

    Args:
        session: with the folder of pictures.
        motion: periodic.
        key: of the charts.
        place: figure of the paper, "Fig. 4" or "Fig. 16".
        title: of the chart of the joints.
    """
    time, q, qd, qdd = sample_period(motion, _RATE)
    values = {"position [rad]": q, "speed [rad/s]": qd, "acceleration [rad/s²]": qdd}
    names = session.robot.joint_names
    session.picture(joints_chart(key, title, time, values, names), place)
    if place == "Fig. 16":  # the simulation's second trajectory is the general one here
        angles = {"position [rad]": q}
        chart = joints_chart(
            f"{key}_angles", f"{title}: joint angles", time, angles, names
        )
        session.picture(chart, "Fig. 5")
    path = ArmDynamics(session.robot).flange_pose(q)[:, :3, 3]
    figure, caption = _PATHS[place]
    views = (("From above", 0, 1), ("From the front", 0, 2), ("From the side", 1, 2))
    chart = LineChart(
        key=f"{key}_path",
        title=caption,
        x_label="[m]",
        y_label="[m]",
        panels=tuple(
            Panel(
                f"{view}: {'xyz'[i]}, {'xyz'[k]}", (Line("path", path[:, i], path[:, k]),)
            )
            for view, i, k in views
        ),
        equal=True,
    )
    session.picture(chart, figure)


def draw_processing(session: ProtocolRun, raw: MeasuredRun, clean: MeasuredRun) -> None:
    """Draw accelerations by central differences, and torque before and after filtering.

    Args:
        session: with the folder of pictures.
        raw: all periods as measured.
        clean: one period, processed.
    """
    names = session.robot.joint_names
    title = "Joint accelerations by central differences of the smoothed speed"
    values = {"acceleration [rad/s²]": clean.qdd}
    session.picture(
        joints_chart("s4_acceleration", title, clean.time, values, names), "Fig. 13"
    )
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
    session: ProtocolRun,
    measured: MeasuredRun,
    predicted: np.ndarray,
    key: str,
    place: str,
) -> None:
    """Draw measured and predicted torque of every joint, and their difference.

    Args:
        session: with the folder of pictures.
        measured: processed run.
        predicted: torque by the base parameters, joint side [samples, n], N m.
        key: of the chart.
        place: figure of the paper.
    """
    difference = predicted - measured.torque
    chart = comparison_chart(
        key,
        "Torque, measured and predicted",
        measured.time,
        (
            ("measured", "measured", measured.torque),
            ("predicted", "model", predicted),
            ("difference", "truth", difference),
        ),
        session.robot.joint_names,
        "torque [N m]",
    )
    session.picture(chart, place)


# Load check of Machines 2024, sec. 5.2: the torque coefficient of joint 3 from a known
# load. With and without load the forearm swings through the horizontal twice. There the
# load's torque is its weight times its lever; the difference of the drive's torque
# values, times torque coefficient and gear ratio, should be the same.

JOINT = 2
_WINDOW = 0.05  # averaged before and after the horizontal [s]
_SWING = 0.5  # amplitude of the forearm about the horizontal [rad]
_PERIOD = 10.0
_NOISE = 3.0  # standard deviation of one torque value [drive units], assumed
# largest error of the coefficient in the drive's software, relative
_COEFFICIENT_ERROR = 0.03


@dataclass(frozen=True)
class Swing:
    """Torque of joint 3 over two cycles of a simulated swing of the forearm.

    Attributes:
        run: motion and torque.
        values: torque values of the drive [samples], units of the drive.
        means: mean values about each of four passages of the horizontal.
    """

    run: MeasuredRun
    values: Array
    means: list[float]


def check_load(session: ProtocolRun, paper: Paper) -> list[ResultRow]:
    """Load check (sec. 5.2): rows of Tables 6 and 7, and pictures of Figs. 9 and 10.

    The torque coefficient of joint 3 follows from a known load: with and without load the
    forearm swings through the horizontal, where the load's torque is its weight times its
    lever.
    """
    random = np.random.default_rng([session.seed, 213])
    given = paper["torque_coefficients"][JOINT]
    mass = paper["load_mass"]
    ratio = float(session.robot.gear_ratio[JOINT])
    true = given * (1 + random.uniform(-_COEFFICIENT_ERROR, _COEFFICIENT_ERROR))
    unloaded, loaded = (
        _swing(session, paper, each, 1 / (true * ratio), random) for each in (0.0, mass)
    )
    # Cycles of the loaded run against cycles of the unloaded one, at both crossings:
    # eight.
    differences = [
        abs(loaded.means[2 * i + side] - unloaded.means[2 * k + side])
        for i, k, side in product(range(2), range(2), range(2))
    ]
    applied = float(mass * session.robot.controller_gravity * paper["load_arm"])
    mean = float(np.mean(differences))
    estimated = mean * given * ratio
    _draw_load(session, unloaded, loaded)
    return [
        paper.row("load_differences", differences),
        paper.row("mean_difference", mean),
        paper.row("load_torque", applied),
        paper.row("load_torque_estimated", estimated),
        paper.row("load_ratio", estimated / applied),
        paper.row("coefficients", paper["torque_coefficients"]),
        paper.row("calibrated", applied / (mean * ratio), true=f"{true:.5f}"),
    ]


def _swing(
    session: ProtocolRun, paper: Paper, mass: float, scale: float, random: Any
) -> Swing:
    """Four passages of the horizontal by the forearm with a mass at the paper's distance.

    Args:
        session: with the arm.
        paper: published values.
        mass: of the load [kg].
        scale: units of the drive per torque of joint 3 [1/(N m)].
        random: generator of the noise.
    """
    robot = session.robot
    level = _horizontal(ArmDynamics(robot))
    amplitude = np.zeros(robot.dof)
    frequency = np.full(robot.dof, 1 / _PERIOD)
    amplitude[JOINT] = _SWING
    motion = RepeatedMotion(
        robot.name, Sinusoids(level, amplitude, frequency, 2.5 * _PERIOD, fade_time=1.0)
    )
    gravity = np.array([0.0, 0.0, -robot.controller_gravity])
    # from the axis of joint 3
    flange = np.linalg.norm(_forearm(ArmDynamics(robot), level))
    centre = np.array([0.0, 0.0, paper["load_arm"] - flange])
    dynamics = ArmDynamics(robot, Setup(gravity=gravity, payload=Payload(mass, centre)))
    friction = np.array([paper["coulomb"], paper["viscous"]])
    run = simulate(dynamics, motion, friction=friction)
    values = run.torque[:, JOINT] * scale + _NOISE * random.standard_normal(len(run.time))
    angle = run.q[:, JOINT] - level[JOINT]
    edge = round(0.25 * _PERIOD / run.period)
    inside = slice(edge, len(angle) - edge)
    crossings = np.flatnonzero(np.diff(angle[inside] > 0)) + edge
    half = round(_WINDOW / run.period)
    return Swing(
        run, values, [float(values[k - half : k + half + 1].mean()) for k in crossings]
    )


def _horizontal(dynamics: ArmDynamics) -> Array:
    """Joint positions [n], rad, with a horizontal forearm and a wrist in line with it."""
    q = np.zeros(dynamics.dof)
    quarter = np.pi / 2

    def height(angle: float) -> float:
        q[JOINT] = angle
        return float(_forearm(dynamics, q)[2])

    # Of the form a cos q + b sin q; its root.
    q[JOINT] = np.arctan2(-height(0.0), height(quarter))

    def along(angle: float) -> float:
        q[4] = angle
        forearm = _forearm(dynamics, q)
        return float(dynamics.frames(q[None])[0][0, -1, :3, 2] @ forearm)

    # Of the same form; its maximum.
    straight = np.arctan2(along(quarter), along(0.0))
    q[4] = straight
    return q


def _forearm(dynamics: ArmDynamics, q: Array) -> Array:
    """From the axis of joint 3 to the flange [3], m, base frame."""
    links, joints = dynamics.frames(q[None])
    return np.asarray(links[0, -1, :3, 3] - joints[0, JOINT, :3, 3])


def _draw_load(session: ProtocolRun, unloaded: Swing, loaded: Swing) -> None:
    time = unloaded.run.time
    motion = (
        Panel(
            "",
            (Line("angle", time, unloaded.run.q[:, JOINT], joint=JOINT),),
            y_label="rad",
        ),
        Panel(
            "",
            (Line("speed", time, unloaded.run.qd[:, JOINT], joint=JOINT),),
            y_label="rad/s",
        ),
    )
    values = tuple(
        Line(label, time, swing.values, joint=joint)
        for joint, (label, swing) in enumerate((("no load", unloaded), ("load", loaded)))
    )
    for key, title, place, panels in (
        ("s4_swing", "Angle and speed of joint 3 in the load check", "Fig. 9", motion),
        (
            "s4_load",
            "Torque values of joint 3",
            "Fig. 10",
            (Panel("", values, y_label="units"),),
        ),
    ):
        chart = LineChart(
            key=key,
            title=title,
            x_label="time [s]",
            panels=panels,
            columns=1,
        )
        session.picture(chart, place)
