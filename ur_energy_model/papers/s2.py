"""Protocol s2, Heredia et al., EcBot: sinusoids, dynamic model per joint and free power model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.experiment.limits import RepeatedMotion
from ur_energy_model.identification.ecbot import Ecbot, EcbotTest
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.protocol import Outcome, ProtocolRun, Row
from ur_energy_model.report.chart import BarChart, Bars, Line, LineChart, Panel
from ur_energy_model.trajectory.motions import Sinusoids
from ur_energy_model.typing import Array

_OPEN = np.array([0.0, -np.pi / 2, np.pi / 3, -np.pi / 2, -np.pi / 4, 0.0])
"""Joint positions with clearance on all sides for every UR arm [rad]; at the home position the hand
of a UR5 is too close to its forearm for sinusoids."""
_SECONDS, _QUICK_SECONDS = 60.0, 20.0
"""Duration of one recording [s]."""
_WIDTH, _SEVEN_JOINT_WIDTH = 0.6, 0.45
"""Largest amplitude of six and of seven joints [rad]."""
_TRIES = 20
"""Positions about each candidate at which its clearance is evaluated."""
_TOLERANCE, _R2_TOLERANCE = 0.25, 0.02
_DATA = "Section IV-A"
_TABLE = "Table II"
_PARTS = {"train": "training", "test": "testing"}
_OURS = "physical model of this package, held-out recording; RMSE [W], [% of range], R2"


def run(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Train EcBot's models on sinusoids and test them on others; our physical model beside."""
    count = training_runs(session, published["samples"])
    training = [
        _record(session, "training" if k == 0 else f"training_{k + 1}", 1.0, k)
        for k in range(count)
    ]
    testing = _record(session, "testing", 0.8, count)
    robot = session.robot
    ecbot = Ecbot(robot, training)
    tests = {"train": ecbot.test(training), "test": ecbot.test([testing])}
    theirs = published.get(robot.name)
    differs = ("arm and data",) if theirs is not None else ("type of arm and data",)
    rows = _data_rows(ecbot, tests["test"], published)
    for part, test in tests.items():
        rows += _error_rows(part, test, ecbot, theirs, differs)
    rows += _parameter_rows(ecbot)
    rows += _our_rows(session, training[:1], testing)
    _draw(session, tests)
    return session.finish("s2", published, rows)


def training_runs(session: ProtocolRun, samples: int) -> int:
    """Recordings that give so many samples; one in a quick run."""
    if session.quick:
        return 1
    return max(2, math.ceil(samples / (session.robot.rate * _SECONDS)))


def _record(session: ProtocolRun, name: str, factor: float, offset: int) -> Path:
    motion = session.first_safe(_sinusoids(session, factor), session.seed + offset)
    return session.record(name, motion)


def _sinusoids(session: ProtocolRun, frequency_factor: float) -> Callable[[int], RepeatedMotion]:
    """One minute of seeded sinusoids of all joints around an open position (eq. 24)."""
    robot = session.robot
    home = _open_position(robot)
    duration = _QUICK_SECONDS if session.quick else _SECONDS

    def motion(seed: int) -> RepeatedMotion:
        random = np.random.default_rng(seed)
        frequency = frequency_factor * random.permutation(np.linspace(0.12, 0.4, robot.dof))
        speed = 2 * np.pi * frequency
        amplitude = np.minimum.reduce(
            [
                np.full(robot.dof, _WIDTH if robot.dof == len(_OPEN) else _SEVEN_JOINT_WIDTH),
                0.5 * robot.max_velocity / speed,
                0.6 * robot.max_acceleration / speed**2,
            ]
        )
        centre = home + random.uniform(-0.2, 0.2, robot.dof)
        return RepeatedMotion(robot.name, Sinusoids(centre, amplitude, frequency, duration))

    return motion


def _open_position(robot: RobotDescription) -> Array:
    """Centre of the sinusoids [n], rad.

    For arms other than UR's, of the positions with every joint at zero or half a turn, the one
    with most clearance in its neighbourhood.
    """
    if robot.dof == len(_OPEN):
        return _OPEN
    corners = np.pi * np.array(list(product((0.0, 1.0), repeat=robot.dof)))
    corners = corners[(corners <= robot.max_position).all(axis=1)]
    width = _SEVEN_JOINT_WIDTH
    around = np.random.default_rng(0).uniform(-width, width, (_TRIES, robot.dof))
    tries = (corners[:, None] + around).reshape(-1, robot.dof)
    clearance = ArmGeometry(robot).distances(tries).min(axis=1).reshape(len(corners), -1)
    return np.asarray(corners[np.argmax(clearance.min(axis=1))])


def _data_rows(ecbot: Ecbot, test: EcbotTest, published: Mapping[str, Any]) -> list[Row]:
    least, seconds = published["samples"], float(test.time[-1])
    enough = ecbot.samples >= least
    return [
        Row(
            "training samples",
            least,
            ecbot.samples,
            _DATA,
            "samples of sinusoids with other amplitudes, frequencies and centres",
            judged="agrees: at least as many" if enough else "differs: fewer, a quick run",
        ),
        Row(
            "testing [s]",
            published["test_seconds"],
            seconds,
            _DATA,
            "another recording",
            tolerance=0.1,
        ),
    ]


def _error_rows(
    part: str,
    test: EcbotTest,
    ecbot: Ecbot,
    theirs: Mapping[str, Any] | None,
    differs: tuple[str, ...],
) -> list[Row]:
    """Row of Table II for training or testing, figure by figure."""
    unit = "A" if ecbot.measured == "current" else "N m"
    what = "current" if ecbot.measured == "current" else "joint torque"
    alike = theirs is not None and theirs["measured"] == ecbot.measured
    dynamics = theirs[f"dynamics_{part}"] if theirs is not None and alike else (None, None)
    power = (None, None, None) if theirs is None else theirs[part]
    how = "power predicted from positions, speeds and accelerations alone (eq. 12, 16)"
    return [
        Row(
            f"{figure}, {_PARTS[part]}",
            value,
            here,
            _TABLE,
            definition,
            differs,
            None if value is None else _R2_TOLERANCE if figure.startswith("r2") else _TOLERANCE,
        )
        for figure, value, here, definition in (
            (
                f"RMSE_D of {what} [{unit}]",
                dynamics[0],
                test.dynamics.rmse,
                "eq. 25: all joints and samples, predicted from the motion",
            ),
            (
                f"%RMSE_D of {what} [%]",
                dynamics[1],
                test.dynamics.rmse_percent,
                "eq. 26: mean over the joints of RMSE over range",
            ),
            ("RMSE of power [W]", power[0], test.power.rmse, f"eq. 22: {how}"),
            ("RMSE of power [% of range]", power[1], test.power.rmse_percent, f"eq. 23: {how}"),
            ("r2 of power", power[2], test.power.r2, how),
            (
                f"RMSE of power from measured {what} [W]",
                None,
                test.power_from_measured.rmse,
                "not in the paper: the same coefficients on measured values",
            ),
        )
    ]


def _parameter_rows(ecbot: Ecbot) -> list[Row]:
    """What eq. 18-21 found; the paper does not print it."""
    dynamics = ecbot.dynamics
    rows = [
        ("k_v by joint [N m s/rad]", dynamics.viscous, "eq. 11: viscous friction"),
        ("k_s by joint [N m]", dynamics.coulomb, "eq. 11: Coulomb friction"),
        (
            "inertia about the own axis by joint [kg m2]",
            dynamics.inertia,
            "eq. 10: the motor's, and of the links what cannot be told from it",
        ),
        ("P_c [W]", float(ecbot.coefficients[0]), "eq. 20: constant power"),
    ]
    if dynamics.torque_constant is not None:
        rows.insert(
            0, ("k_m by joint [N m/A]", dynamics.torque_constant, "eq. 12: joint torque per ampere")
        )
    return [Row(figure, None, here, "Section III-C", how) for figure, here, how in rows]


def _our_rows(session: ProtocolRun, training: list[Path], testing: Path) -> list[Row]:
    """Power of both models of `ur_energy identify` on the testing data, as METRICS have it."""
    rows = []
    for kind, label in (("ecbot", "free model"), ("physical", "physical model")):
        found = identify(
            training,
            session.robot,
            validate=[testing],
            options=IdentificationOptions(power_model=kind),
            progress=session.progress,
        )
        save_model(found.model, session.folder / f"model_{kind}.yaml")
        metrics = found.validation[0]
        for power, how in (
            (metrics.power, "measured currents"),
            (metrics.power_from_motion, "motion"),
        ):
            here = [(power or {}).get(key) for key in ("rmse", "rmse_percent", "r2")]
            rows.append(
                Row(f"power from {how}, ours, {label}", None, here, _TABLE, _OURS, ("method",))
            )
    return rows


def _draw(session: ProtocolRun, tests: Mapping[str, EcbotTest]) -> None:
    test = tests["test"]
    name = session.robot.name
    session.picture(
        LineChart(
            key="s2_power",
            title="Power over time",
            caption=f"Power of the {name} in testing, measured and predicted from the motion alone",
            x_label="time [s]",
            y_label="power [W]",
            panels=(
                Panel(
                    name,
                    (
                        Line("measured", test.time, test.measured_power, role="measured"),
                        Line("model", test.time, test.model_power, joint=0),
                    ),
                ),
            ),
            columns=1,
        ),
        "Fig. 4",
    )
    values: Array = np.array([each.power.rmse for each in tests.values()])
    session.picture(
        BarChart(
            key="s2_rmse",
            title="RMSE of power",
            caption=f"RMSE of the predicted power of the {name}, training and testing",
            y_label="RMSE [W]",
            categories=tuple(_PARTS.values()),
            bars=(Bars("RMSE", values),),
        ),
        "Fig. 5",
    )
