# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocol s2, Heredia et al., EcBot: sinusoids, dynamic model per joint and free power model.

EcBot's models are trained on sinusoids of all joints and tested on others, by its own
definitions (eq. 11 to 24), for arms of several makers; the models of `ur_energy identify`
stand beside them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.limits import RepeatedMotion
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.protocol import Outcome, ProtocolRun
from ur_energy_model.papers.published import Paper, ResultRow
from ur_energy_model.papers.s2_models import Ecbot, EcbotTest, Measured
from ur_energy_model.report.chart import BarChart, Bars, Line, LineChart, Panel
from ur_energy_model.trajectory.motions import Sinusoids
from ur_energy_model.trajectory.named_motions import is_articulated
from ur_energy_model.typing import Array

_OPEN = np.array([0.0, -np.pi / 2, np.pi / 3, -np.pi / 2, -np.pi / 4, 0.0])
"""Joint positions with clearance on all sides for every UR arm [rad]; at the home position the hand
of a UR5 is too close to its forearm for sinusoids."""
_RECORDINGS = 2  # recordings of training, which together have the samples of the paper
_QUICK_SECONDS = 20.0
"""Duration of a recording of a quick run [s], which has one recording of training."""
_TEST_FREQUENCY = 0.8  # frequencies of testing over frequencies of training
_FREQUENCIES = (0.12, 0.4)  # lowest and highest frequency of a joint in training [Hz]
_WIDTH = 0.6  # largest amplitude of a UR arm [rad]
_OTHER_WIDTH = 0.45  # largest amplitude of an arm with other kinematics [rad]
_SPEED_SHARE = 0.5  # share of the speed limits that the sinusoids use
_ACCELERATION_SHARE = 0.6  # share of the acceleration limits that the sinusoids use
_CENTRE_SPREAD = 0.2  # the centre of the sinusoids varies by so much [rad]
_SEARCHES = (("corners", 1.0), ("anywhere", 1.0), ("anywhere", 0.6), ("anywhere", 0.3))
"""Candidates for the centre of the sinusoids, and parts of the usual amplitude, in the order in
which they are tried."""
_CENTRES = 200  # random positions that are candidates
_LEAST_CLEARANCE = 0.03  # distance that all neighbours of a centre keep [m]
_TRIES = 20  # positions about each candidate at which its clearance is evaluated
_PARTS = {"train": "training", "test": "testing"}


def run(session: ProtocolRun, paper: Paper) -> Outcome:
    """Train EcBot's models on sinusoids and test them on others; our physical model beside.

    Args:
        session: the arm, the output folder, and how motions are run.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with the values found here, written to the folder, too.

    Raises:
        UrEnergyError: a motion or an identification is not possible.
    """
    robot = session.robot
    if session.quick:
        count = 1
        seconds = _QUICK_SECONDS
        test_seconds = _QUICK_SECONDS
    else:
        count = _RECORDINGS
        seconds = math.ceil(paper["samples"] / (count * robot.rate))
        test_seconds = float(paper["test_seconds"])
    training = []
    for k in range(count):
        name = "training" if k == 0 else f"training_{k + 1}"
        motion = _safe_sinusoids(session, 1.0, seconds, session.seed + k)
        training.append(session.record(name, motion))
    test_motion = _safe_sinusoids(
        session, _TEST_FREQUENCY, test_seconds, session.seed + count
    )
    testing = session.record("testing", test_motion)
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
    _draw_power(session, tests["test"])
    _draw_errors(session, tests)
    return session.finish(paper, rows)


def _safe_sinusoids(
    session: ProtocolRun, frequency_factor: float, duration: float, seed: int
) -> RepeatedMotion:
    """Seeded sinusoids of all joints around an open position (eq. 24) that pass all checks.

    Args:
        session: the run, whose arm limits the amplitudes.
        frequency_factor: factor on the frequencies of all joints.
        duration: duration of the motion [s].
        seed: seed of the frequencies and of the centre.

    Raises:
        MotionRefusedError: no motion passes the checks.
    """
    robot = session.robot
    home, width = open_position(robot)
    largest = np.full(robot.dof, width)

    def sinusoids(seed: int) -> RepeatedMotion:
        random = np.random.default_rng(seed)
        frequencies = random.permutation(np.linspace(*_FREQUENCIES, robot.dof))
        frequency = frequency_factor * frequencies
        angular = 2 * np.pi * frequency
        by_speed = _SPEED_SHARE * robot.max_velocity / angular
        by_acceleration = _ACCELERATION_SHARE * robot.max_acceleration / angular**2
        amplitude = np.minimum.reduce([largest, by_speed, by_acceleration])
        centre = home + random.uniform(-_CENTRE_SPREAD, _CENTRE_SPREAD, robot.dof)
        motion = Sinusoids(centre, amplitude, frequency, duration)
        return RepeatedMotion(robot.name, motion)

    return session.first_safe(sinusoids, seed)


def open_position(robot: RobotDescription) -> tuple[Array, float]:
    """Centre [n] and largest amplitude of the sinusoids, rad.

    For arms other than UR's the centre is the position with most clearance in its
    neighbourhood, among the positions with every joint at zero or half a turn and random
    ones. The amplitude is smaller where no neighbourhood of the usual size is clear.

    Raises:
        MotionRefusedError: no neighbourhood is clear.
    """
    if is_articulated(robot):
        return _OPEN, _WIDTH
    corners = np.pi * np.array(list(product((0.0, 1.0), repeat=robot.dof)))
    random = np.random.default_rng(0)
    around = random.uniform(-1.0, 1.0, (_TRIES, robot.dof))
    reach = np.minimum(np.pi, robot.max_position)
    anywhere = robot.middle_position + reach * random.uniform(
        -1.0, 1.0, (_CENTRES, robot.dof)
    )
    geometry = ArmGeometry(robot)
    for candidates, factor in _SEARCHES:
        width = factor * _OTHER_WIDTH
        positions = {"corners": corners, "anywhere": anywhere}[candidates]
        farthest = np.abs(positions - robot.middle_position) + width
        centres = positions[(farthest <= robot.max_position).all(axis=1)]
        if not len(centres):
            continue
        nearby = (centres[:, None] + width * around).reshape(-1, robot.dof)
        clearance = geometry.distances(nearby).min(axis=1)
        least = clearance.reshape(len(centres), _TRIES).min(axis=1)
        if least.max() > _LEAST_CLEARANCE:
            return np.asarray(centres[np.argmax(least)]), width
    raise MotionRefusedError(
        f"{robot.name} is nowhere clear of itself and the table for sinusoids; check its "
        "position limits and its capsules (--geometry FILE)"
    )


@dataclass(frozen=True)
class PublishedErrors:
    """Table II: errors of one arm on one data set; None for values that the paper lacks.

    Attributes:
        dynamics_rmse: RMSE_D (eq. 25) [A or N m].
        dynamics_percent: %RMSE_D (eq. 26) [%].
        power_rmse: RMSE (eq. 22) [W].
        power_percent: %RMSE (eq. 23) [%].
        power_r2: coefficient of determination of the power.
    """

    dynamics_rmse: float | None = None
    dynamics_percent: float | None = None
    power_rmse: float | None = None
    power_percent: float | None = None
    power_r2: float | None = None

    @classmethod
    def of(
        cls, paper: Paper, robot: str, part: str, measured: Measured
    ) -> PublishedErrors:
        """The errors that the paper prints.

        Args:
            paper: published values.
            robot: name of the arm.
            part: "train" or "test".
            measured: quantity that the arm measures here; errors of the dynamic model
                have no published value where the arm of the paper measured another one.
        """
        table = paper.inputs.get(robot)
        if table is None:
            return cls()
        dynamics = [None, None]
        if table["measured"] == measured:
            dynamics = table[f"dynamics_{part}"]
        return cls(*dynamics, *table[part])


def error_rows(
    paper: Paper, robot: str, part: str, test: EcbotTest, ecbot: Ecbot
) -> list[ResultRow]:
    """Table II for training or testing, figure by figure.

    Args:
        paper: published values; an arm that the paper does not have gets rows without.
        robot: name of the arm.
        part: "train" or "test".
        test: errors of EcBot's models.
        ecbot: fitted models of EcBot.
    """
    words: dict[str, Any] = {
        "part": _PARTS[part],
        "what": "joint torque",
        "unit": "N m",
        "equations": "11, 17",
        "differs": ("arm and data",),
    }
    if ecbot.measured == "current":
        words |= {"what": "current", "unit": "A", "equations": "12, 16"}
    if robot not in paper.inputs:
        words["differs"] = ("type of arm and data",)
    theirs = PublishedErrors.of(paper, robot, part, ecbot.measured)
    rows = []
    for key, published, here in (
        ("dynamics_rmse", theirs.dynamics_rmse, test.dynamics.rmse),
        ("dynamics_percent", theirs.dynamics_percent, test.dynamics.rmse_percent),
        ("rmse", theirs.power_rmse, test.power.rmse),
        ("rmse_percent", theirs.power_percent, test.power.rmse_percent),
        ("rmse_measured", None, test.power_from_measured.rmse),
    ):
        rows.append(paper.row(key, here, published=published, **words))
    if theirs.power_r2 is not None:
        tolerance = paper.published_row("rmse").tolerance or 0.0
        words["published"] = theirs.power_r2
        words["within"] = _r2_within(theirs.power_r2, tolerance)
    rows.append(paper.row("r2", float(test.power.r2[0]), **words))
    return rows


def _r2_within(r2: float, tolerance: float) -> tuple[float, float]:
    """Range of r2 for an RMSE within a tolerance.

    1 - r2 is the square of the RMSE over the variance of the measured power.

    Args:
        r2: published coefficient of determination.
        tolerance: relative tolerance of the RMSE.
    """
    low = 1 - (1 - r2) * (1 + tolerance) ** 2
    high = 1 - (1 - r2) * (1 - tolerance) ** 2
    return low, high


_DECIMALS = {"d": 3, "a": 3, "mass": 2, "first_centre": 3}  # decimal places of Table I
_ROUNDING = 0.51  # half a unit of the last place, and a little for binary numbers


def _table_1(paper: Paper, robot: RobotDescription) -> list[ResultRow]:
    """Table I beside the robot file, whose values the table should round."""
    ours = {
        "d": robot.d,
        "a": robot.a,
        "mass": robot.mass,
        "first_centre": robot.center_of_mass[0],
    }
    if robot.name not in paper["table_1"]:
        return [paper.row(key, here) for key, here in ours.items()]
    rows = []
    for key, published in paper["table_1"][robot.name].items():
        here = ours[key]
        rounding = _ROUNDING * 10.0 ** -_DECIMALS[key]
        within = np.array(published) - rounding, np.array(published) + rounding
        wrong = np.flatnonzero(np.abs(here - published) > rounding) + 1
        note = f"entry {', '.join(map(str, wrong))}"
        rows.append(paper.row(key, here, published=published, within=within, note=note))
    return rows


def _parameter_rows(paper: Paper, ecbot: Ecbot) -> list[ResultRow]:
    """Section III-C: constants by eq. 18-21, which the paper does not print."""
    dynamics = ecbot.dynamics
    equation = "12" if ecbot.measured == "current" else "11"
    found = {
        "torque_constant": dynamics.torque_constant,
        "viscous": dynamics.viscous,
        "coulomb": dynamics.coulomb,
        "inertia": dynamics.inertia,
        "constant_power": float(ecbot.coefficients[0]),
    }
    return [
        paper.row(key, here, law=equation)
        for key, here in found.items()
        if here is not None
    ]


def _our_rows(
    session: ProtocolRun, paper: Paper, training: list[Path], testing: Path
) -> list[ResultRow]:
    """RMSE [W], RMSE [% of range] and R2 of the power on the testing data, by our fits.

    Both power models of `ur_energy identify` are fitted, EcBot's free one and the physical
    one, and saved to the folder of the run.

    Args:
        session: the run.
        paper: published values.
        training: recordings that are fitted.
        testing: recording that is predicted.

    Raises:
        UrEnergyError: the recordings cannot be used.
    """
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


def _draw_power(session: ProtocolRun, test: EcbotTest) -> None:
    """Draw Fig. 4: power, measured and predicted from the motion [W], over time [s].

    Args:
        session: the run, with the robot and the folder of pictures.
        test: curves of the testing data.
    """
    lines = (
        Line("measured", test.time, test.measured_power, role="measured"),
        Line("model", test.time, test.model_power, joint=0),
    )
    chart = LineChart(
        key="s2_power",
        title="Power over time, testing",
        x_label="time [s]",
        y_label="power [W]",
        panels=(Panel(session.robot.name, lines),),
        columns=1,
    )
    session.picture(chart, "Fig. 4")


def _draw_errors(session: ProtocolRun, tests: Mapping[str, EcbotTest]) -> None:
    """Draw Fig. 5: RMSE of the power [W] in training and in testing, as bars.

    Args:
        session: the run, with the folder of pictures.
        tests: errors by part of the data, "train" and "test".
    """
    rmse = np.array([tests[part].power.rmse for part in _PARTS])
    chart = BarChart(
        key="s2_rmse",
        title="RMSE of power",
        y_label="RMSE [W]",
        categories=tuple(_PARTS.values()),
        bars=(Bars("RMSE", rmse),),
    )
    session.picture(chart, "Fig. 5")
