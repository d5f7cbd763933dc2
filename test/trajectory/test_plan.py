# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Planned trajectories: interpolation, files, measured ones, and what no plan may be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.interpolate import BPoly, CubicHermiteSpline, CubicSpline

from test.energy.known_arm import ROBOT, known_model
from test.properties import examples
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.trajectory.motions import move
from ur_energy_model.trajectory.plan import LONGEST, Plan
from ur_energy_model.trajectory.plan_check import checked_plan
from ur_energy_model.trajectory.plan_file import read_plan
from ur_energy_model.typing import Array


def random_points(points: int) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(points)
    time = 7.0 + np.cumsum(rng.uniform(0.05, 0.5, points))
    return time, *rng.normal(size=(3, points, 6))


@pytest.mark.parametrize("points", [2, 3, 12])
def test_the_motion_is_the_polynomial_of_the_points(points: int) -> None:
    time, q, qd, qdd = random_points(points)
    knots = time - time[0]
    derivatives = np.stack([q, qd, qdd], axis=1)
    for plan, curve in (
        (Plan(time, q), CubicSpline(knots, q, bc_type="clamped")),
        (Plan(time, q, qd), CubicHermiteSpline(knots, q, qd)),
        (Plan(time, q, qd, qdd), BPoly.from_derivatives(knots, derivatives)),
    ):
        (motion,) = plan.motion()
        assert motion.time[-1] == pytest.approx(knots[-1])
        assert np.diff(motion.time).max() <= 0.008 + 1e-12
        assert motion.q == pytest.approx(curve(motion.time), abs=1e-9)
        assert motion.qd == pytest.approx(curve.derivative(1)(motion.time), abs=1e-9)
        inner = slice(0, -1)  # scipy extrapolates at the very last point
        assert motion.qdd[inner] == pytest.approx(
            curve.derivative(2)(motion.time[inner]), abs=1e-7
        )


def test_impossible_points_are_refused() -> None:
    for end, problem in (
        (2147483647.0, "lasts 2.14748e.09 s.*in parts"),
        (np.nextafter(LONGEST, np.inf), "longer than 3600 s"),
        (np.nan, "not finite"),
        (5e-324, "does not increase at point 1"),
    ):
        with pytest.raises(InputError, match=problem):
            Plan(np.array([0.0, end]), np.zeros((2, 6)))
    with pytest.raises(InputError, match="impossible"):
        Plan(np.array([0.0, 1.0]), np.full((2, 6), 1e300))


NAMES = load_robot("ur5e").joint_names


@pytest.mark.parametrize("stem", ["q", "actual_q"])
def test_a_csv_file_is_read(tmp_path: Path, stem: str) -> None:
    table = np.random.default_rng(1).random((5, 14))
    table[:, 0] = np.linspace(0.0, 2.0, 5)
    names = [
        "time",
        *(f"{stem}_{i}" for i in range(6)),
        *(f"qd_{i}" for i in range(6)),
        "note",
    ]
    np.savetxt(
        tmp_path / "t.csv", table, delimiter=",", header=",".join(names), comments=""
    )
    read = read_plan(tmp_path / "t.csv", NAMES)
    assert read.q == pytest.approx(table[:, 1:7])
    assert read.qd == pytest.approx(table[:, 7:13])
    assert read.qdd is None


@pytest.mark.parametrize("title", ["time [ms]", "t [ms]"])
def test_a_csv_file_of_a_spreadsheet_is_read(tmp_path: Path, title: str) -> None:
    """Semicolons, decimal commas, UTF-16, a unit of the time."""
    table = np.random.default_rng(1).random((30, 7))
    table[:, 0] = 1e3 * np.linspace(0.0, 2.0, 30)
    names = [title, *(f"q_{i}" for i in range(6))]
    rows = [";".join(f"{value:.9f}".replace(".", ",") for value in row) for row in table]
    text = "\r\n".join(["sep=;", ";".join(names), *rows])
    (tmp_path / "t.csv").write_text(text, encoding="utf-16")
    read = read_plan(tmp_path / "t.csv", NAMES)
    assert read.time == pytest.approx(table[:, 0] / 1e3)
    assert read.q == pytest.approx(table[:, 1:], abs=1e-8)


def test_a_plan_in_milliseconds_is_doubted() -> None:
    time = np.linspace(0.0, 4.0, 200)
    q = np.outer(np.sin(time), np.ones(6))
    assert checked_plan(Plan(time, q), LIMIT)[1] == []
    (line,) = checked_plan(Plan(1e3 * time[:180], q[:180]), LIMIT)[1]
    assert "time [ms]" in line


def test_unusable_csv_files_are_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    header = "time,q_0,q_1,q_2,q_3,q_4,q_5\n"
    for text, problem in (
        ("", "is empty"),
        (f"{header}0,1\n", "line 2 has 2 columns"),
        (f"{header}0,0,0,x,0,0,0\n", "q_2: holds something"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=f"t.csv.*{problem}"):
            read_plan(path, NAMES)


LIMIT = ROBOT.max_acceleration
MODEL = known_model()


def swing(time: Array) -> tuple[Array, Array, Array]:
    """Smooth swings of all joints that start and end at rest, over whole seconds."""
    angle = np.pi * time
    reach = np.array([0.5, -0.4, 0.6, 0.3, -0.3, 0.5])
    parts = (
        (1 - np.cos(angle)) / 2,
        np.pi / 2 * np.sin(angle),
        np.pi**2 / 2 * np.cos(angle),
    )
    q, qd, qdd = (np.outer(part, reach) for part in parts)
    return q, qd, qdd


@pytest.mark.parametrize(
    ("rate", "noise", "jitter"), [(500, 3e-5, 0.0), (100, 3e-4, 0.2)]
)
def test_measured_positions_are_smoothed_with_a_warning(rate, noise, jitter):
    random = np.random.default_rng(2)
    time = np.arange(4 * rate + 1) / rate
    true = predict_energy(MODEL, Plan(time, swing(time)[0])).total
    q = swing(time)[0] + noise * random.standard_normal((len(time), 6))
    time[1:-1] += jitter / rate * random.uniform(-1, 1, len(time) - 2)
    plan, lines = checked_plan(Plan(time, q), LIMIT)
    assert any("positions look measured" in line for line in lines)
    assert predict_energy(MODEL, plan).total == pytest.approx(true, rel=0.02)
    assert abs(predict_energy(MODEL, Plan(time, q)).total / true - 1) > 0.02


def fourier(time: Array, seed: int) -> tuple[Array, Array, Array]:
    """Five harmonics of 0.1 Hz for each joint, within the limits of the arm."""
    size = np.random.default_rng(seed).normal(size=(2, 5, 6, 1))
    pace = 0.2 * np.pi * np.arange(1, 6)[:, None, None]
    angle = pace * time
    waves = (np.sin(angle), -np.cos(angle)), (np.cos(angle), np.sin(angle))
    q, qd = (
        sum(size * wave / pace ** (1 - d)).sum(axis=0).T for d, wave in enumerate(waves)
    )
    qdd = (pace * (size[1] * np.cos(angle) - size[0] * np.sin(angle))).sum(axis=0).T
    limits = (q, 3.0), (qd, 3.0), (qdd, LIMIT)
    share = 0.9 * min((limit / np.abs(part).max(axis=0)).min() for part, limit in limits)
    return share * q, share * qd, share * qdd


def trapezoid(time: Array, seed: int) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    start, end = random.uniform(-2.0, 2.0, (2, 6))
    return move(start, end, random.uniform(0.5, 3.0), random.uniform(1.0, 6.0)).sample(
        time
    )


def between(time: Array, seed: int) -> tuple[Array, Array, Array]:
    """Random accelerations within the limits, constant between the points."""
    qdd = np.random.default_rng(seed).uniform(-1.0, 1.0, (len(time), 6)) * LIMIT
    step = np.diff(time, prepend=time[0])[:, None]
    qd = np.cumsum(step * qdd, axis=0)
    return np.cumsum(step * (qd - 0.5 * step * qdd), axis=0), qd, qdd


PLANS = {
    "motion": st.sampled_from([fourier, trapezoid, between]),
    "seed": st.integers(0, 2**32 - 1),
    "rate": st.floats(5.0, 500.0),
    "derivatives": st.integers(0, 2),
}


@given(**PLANS, uneven=st.floats(0.0, 1.0), digits=st.sampled_from([9, 6, 3]))
# 0.2 ms steps
@example(motion=fourier, seed=0, rate=237.0, derivatives=1, uneven=1.0, digits=6)
@example(motion=fourier, seed=0, rate=453.0, derivatives=1, uneven=0.0, digits=6)
@example(motion=trapezoid, seed=1072, rate=466.25, derivatives=1, uneven=0.0, digits=6)
@examples(50)
def test_clean_plans_stay_as_they_are(motion, seed, rate, derivatives, uneven, digits):
    """Of any kind and rate, with stamps that are even, uneven (by up to a period), rounded."""
    random = np.random.default_rng(seed)
    period = 1.0 / rate
    if digits == 3:  # of a planner that rounds: its period is whole milliseconds
        period = max(round(period, 3), 0.002)
    index = np.arange(random.integers(2, max(6, round(4.0 / period))))
    time = np.unique((index + uneven * random.uniform(-0.5, 0.5, len(index))) * period)
    time = np.append(
        time[np.diff(time, append=np.inf) > 0.01 * period], time[-1] + 1.37 * period
    )
    if digits == 3:
        time = np.unique(time.round(3))
    parts = motion(time, seed)
    plan = Plan(time.round(digits), *parts[: 1 + derivatives])
    found, lines = checked_plan(plan, LIMIT)
    if motion is between:  # rough as noise, but with its own times
        assert not any("jitter" in line for line in lines)
    else:
        assert found is plan, lines


@given(**PLANS, late=st.booleans())
@examples(15)
def test_jittered_plans_are_spaced_evenly(motion, seed, rate, derivatives, late):
    """With velocities, energy is that of the plan; of a smooth one its peak as well.

    Where a trapezoid has its corners between the points is left open by them, and with it
    the peak.
    """
    random = np.random.default_rng(seed)
    derivatives = max(derivatives, 1)
    time = np.arange(max(40, round(4.0 * rate)) + 1) / rate
    parts = (fourier if motion is between else motion)(time, seed)[: 1 + derivatives]
    # fewer can be uneven by chance
    assume((np.abs(parts[1]).max(axis=1) > 0.0).sum() > 16)
    jitter = random.uniform(0.0 if late else -1.0, 1.0, len(time)) / rate
    stamps = np.sort(time + jitter)
    stamps += np.maximum.accumulate(np.append(0, np.maximum(1e-6 - np.diff(stamps), 0)))
    true = predict_energy(MODEL, Plan(time, *parts))
    plan, lines = checked_plan(Plan(stamps, *parts), LIMIT)
    assert len(lines) == 1
    assert "jitter" in lines[0]
    found = predict_energy(MODEL, plan)
    assert found.total == pytest.approx(true.total, rel=0.02)
    if motion is not trapezoid:
        assert found.peak_power == pytest.approx(true.peak_power, rel=0.05)


def test_points_that_contradict_one_another_are_refused_with_the_place() -> None:
    time = np.arange(401) / 100
    q, qd, _ = swing(time)
    step = 0.2 * (time > 2.495)[:, None]
    with pytest.raises(
        InputError, match=r"between points 249 and 250 .* joint . would need"
    ):
        checked_plan(Plan(time, q + step, qd), LIMIT)
    with pytest.raises(InputError, match="leave the velocities out"):
        checked_plan(Plan(time, q, np.degrees(qd)), LIMIT)
