# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocol s2, Heredia et al., EcBot: sinusoids, dynamic model per joint and free power model.

EcBot's models are trained on sinusoids of all joints and tested on others, by its own
definitions (eq. 11 to 24), for arms of several makers; the models of `ur_energy identify`
stand beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.experiment.limits import RepeatedMotion
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.protocol import Outcome, Paper, ProtocolRun, ResultRow
from ur_energy_model.papers.published_models import Ecbot, EcbotTest
from ur_energy_model.report.chart import BarChart, Bars, Line, LineChart, Panel
from ur_energy_model.trajectory.motions import Sinusoids
from ur_energy_model.typing import Array

_OPEN = np.array([0.0, -np.pi / 2, np.pi / 3, -np.pi / 2, -np.pi / 4, 0.0])
"""Joint positions with clearance on all sides for every UR arm [rad]; at the home position the hand
of a UR5 is too close to its forearm for sinusoids."""
_RECORDINGS = 2  # of training, which together have the samples of the paper
# duration of a recording of a quick run [s]; it has one of training
_QUICK_SECONDS = 20.0
# largest amplitude of six and of seven joints [rad]
_WIDTH = 0.6
_SEVEN_JOINT_WIDTH = 0.45
_TRIES = 20  # positions about each candidate at which its clearance is evaluated
_PARTS = {"train": "training", "test": "testing"}


def run(session: ProtocolRun, paper: Paper) -> Outcome:
    """Train EcBot's models on sinusoids and test them on others; our physical model beside.

    Args:
        session: the arm, the output folder, and how motions are run.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with what was found, written to the folder, too.

    Raises:
        UrEnergyError: a motion or an identification is not possible.
    """
    robot = session.robot
    count = 1
    seconds = _QUICK_SECONDS
    test_seconds = _QUICK_SECONDS
    if not session.quick:
        count = _RECORDINGS
        test_seconds = float(paper["test_seconds"])
        seconds = math.ceil(paper["samples"] / (count * robot.rate))
    training = [
        _record(session, "training" if k == 0 else f"training_{k + 1}", 1.0, k, seconds)
        for k in range(count)
    ]
    testing = _record(session, "testing", 0.8, count, test_seconds)
    ecbot = Ecbot(robot, training)
    tests = {"train": ecbot.test(training), "test": ecbot.test([testing])}
    rows = [
        paper.row("samples", ecbot.samples, note="a quick run"),
        paper.row("test_seconds", float(tests["test"].time[-1])),
    ]
    for part, test in tests.items():
        rows += error_rows(paper, robot.name, part, test, ecbot)
    rows += _parameter_rows(paper, ecbot)
    rows += _table_1(paper, robot)
    rows += _our_rows(session, paper, training, testing)
    _draw(session, tests)
    return session.finish(paper, rows)


def _record(
    session: ProtocolRun, name: str, factor: float, offset: int, duration: float
) -> Path:
    motions = _sinusoids(session, factor, duration)
    motion = session.first_safe(motions, session.seed + offset)
    return session.record(name, motion)


def _sinusoids(
    session: ProtocolRun, frequency_factor: float, duration: float
) -> Callable[[int], RepeatedMotion]:
    """Seeded sinusoids of all joints around an open position (eq. 24).

    Args:
        session: with the arm, whose limits of speed and acceleration bound the amplitudes.
        frequency_factor: on the frequencies of all joints.
        duration: of the motion [s].

    Returns:
        A function that makes the motion of a seed.
    """
    robot = session.robot
    home = _open_position(robot)

    def motion(seed: int) -> RepeatedMotion:
        random = np.random.default_rng(seed)
        frequency = frequency_factor * random.permutation(
            np.linspace(0.12, 0.4, robot.dof)
        )
        speed = 2 * np.pi * frequency
        amplitude = np.minimum.reduce(
            [
                np.full(
                    robot.dof, _WIDTH if robot.dof == len(_OPEN) else _SEVEN_JOINT_WIDTH
                ),
                0.5 * robot.max_velocity / speed,
                0.6 * robot.max_acceleration / speed**2,
            ]
        )
        centre = home + random.uniform(-0.2, 0.2, robot.dof)
        return RepeatedMotion(
            robot.name, Sinusoids(centre, amplitude, frequency, duration)
        )

    return motion


def _open_position(robot: RobotDescription) -> Array:
    """Centre of the sinusoids [n], rad.

    For arms other than UR's, of the positions with every joint at zero or half a turn,
    the one with most clearance in its neighbourhood.
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


def error_rows(
    paper: Paper, robot: str, part: str, test: EcbotTest, ecbot: Ecbot
) -> list[ResultRow]:
    """Table II for training or testing, figure by figure.

    Args:
        paper: published values; an arm that it does not have gets rows without them.
        robot: name of the arm.
        part: "train" or "test".
        test: errors of EcBot's models.
        ecbot: the models.
    """
    theirs = paper.inputs.get(robot)
    differs = ("arm and data",) if theirs is not None else ("type of arm and data",)
    dynamics: list[Any] = [None, None]
    power: list[Any] = [None, None, None]
    if theirs is not None:
        power = theirs[part]
        if theirs["measured"] == ecbot.measured:
            dynamics = theirs[f"dynamics_{part}"]
    current = ecbot.measured == "current"
    words = {
        "part": _PARTS[part],
        "what": "current" if current else "joint torque",
        "unit": "A" if current else "N m",
        "equations": "12, 16" if current else "11, 17",
    }
    named: dict[str, Any] = {"differs": differs, **words}
    rows = [
        paper.row(key, here, published=published, **named)
        for key, published, here in (
            ("dynamics_rmse", dynamics[0], test.dynamics.rmse),
            ("dynamics_percent", dynamics[1], test.dynamics.rmse_percent),
            ("rmse", power[0], test.power.rmse),
            ("rmse_percent", power[1], test.power.rmse_percent),
            ("rmse_measured", None, test.power_from_measured.rmse),
        )
    ]
    if theirs is not None:  # 1 - r2 is the square of the RMSE over the variance
        factor = 1 + (rows[2].tolerance or 0.0) * np.array([1, -1])
        named |= {"within": tuple(1 - (1 - power[2]) * factor**2), "published": power[2]}
    return [*rows, paper.row("r2", float(test.power.r2[0]), **named)]


_DIGITS = {"d": 3, "a": 3, "mass": 2, "first_centre": 3}  # decimal places of Table I


def _table_1(paper: Paper, robot: RobotDescription) -> list[ResultRow]:
    """Table I beside the robot file, which it should round."""
    ours = {
        "d": robot.d, "a": robot.a, "mass": robot.mass, "first_centre": robot.center_of_mass[0],
    }  # fmt: skip
    if robot.name not in paper["table_1"]:
        return [paper.row(key, here) for key, here in ours.items()]
    rows = []
    for key, theirs in paper["table_1"][robot.name].items():
        rounding = 0.51 * 10.0 ** -_DIGITS[key]
        within = np.array(theirs) - rounding, np.array(theirs) + rounding
        off = np.flatnonzero(np.abs(ours[key] - theirs) > rounding) + 1
        note = f"entry {', '.join(map(str, off))}"
        rows.append(paper.row(key, ours[key], published=theirs, within=within, note=note))
    return rows


def _parameter_rows(paper: Paper, ecbot: Ecbot) -> list[ResultRow]:
    """What eq. 18-21 found; the paper does not print it."""
    dynamics = ecbot.dynamics
    law = "12" if ecbot.measured == "current" else "11"
    found = {
        "torque_constant": dynamics.torque_constant,
        "viscous": dynamics.viscous,
        "coulomb": dynamics.coulomb,
        "inertia": dynamics.inertia,
        "constant_power": float(ecbot.coefficients[0]),
    }
    return [
        paper.row(key, here, law=law) for key, here in found.items() if here is not None
    ]


def _our_rows(
    session: ProtocolRun, paper: Paper, training: list[Path], testing: Path
) -> list[ResultRow]:
    """Power of both models of `ur_energy identify` on the testing data."""
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
        for source, power in (
            ("measured currents", metrics.power),
            ("motion", metrics.power_from_motion),
        ):
            here = [(power or {}).get(key) for key in ("rmse", "rmse_percent", "r2")]
            rows.append(paper.row("ours", here, source=source, label=label))
    return rows


def _draw(session: ProtocolRun, tests: Mapping[str, EcbotTest]) -> None:
    test = tests["test"]
    lines = (
        Line("measured", test.time, test.measured_power, role="measured"),
        Line("model", test.time, test.model_power, joint=0),
    )
    power: dict[str, Any] = {"x_label": "time [s]", "y_label": "power [W]", "columns": 1}
    panels = (Panel(session.robot.name, lines),)
    curves = LineChart(
        key="s2_power", title="Power over time, testing", panels=panels, **power
    )
    session.picture(curves, "Fig. 4")
    bars = (Bars("RMSE", np.array([each.power.rmse for each in tests.values()])),)
    names = tuple(_PARTS.values())
    title: dict[str, Any] = {
        "key": "s2_rmse",
        "title": "RMSE of power",
        "y_label": "RMSE [W]",
    }
    session.picture(BarChart(categories=names, bars=bars, **title), "Fig. 5")
