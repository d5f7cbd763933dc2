"""Planned trajectories: interpolation, files, measured ones, and what no plan may be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import BPoly, CubicHermiteSpline, CubicSpline

from test.energy.known_arm import ROBOT, known_model
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.trajectory.plan import LONGEST, Plan, read_plan, smooth_plan
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
        assert motion.qdd[inner] == pytest.approx(curve.derivative(2)(motion.time[inner]), abs=1e-7)


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
    names = ["time", *(f"{stem}_{i}" for i in range(6)), *(f"qd_{i}" for i in range(6)), "note"]
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header=",".join(names), comments="")
    read = read_plan(tmp_path / "t.csv", NAMES)
    assert read.q == pytest.approx(table[:, 1:7])
    assert read.qd == pytest.approx(table[:, 7:13])
    assert read.qdd is None


def test_unusable_csv_files_are_refused_with_the_reason(tmp_path: Path) -> None:
    path, header = tmp_path / "t.csv", "time,q_0,q_1,q_2,q_3,q_4,q_5\n"
    for text, problem in (
        ("", "is empty"),
        (f"{header}0,1\n", "line 2 has 2 columns"),
        (f"{header}0,0,0,x,0,0,0\n", "q_2: holds something"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=f"t.csv.*{problem}"):
            read_plan(path, NAMES)


LIMIT = ROBOT.max_acceleration


def swing(rate: float, noise: float = 0.0, jitter: float = 0.0) -> Plan:
    """Four seconds of smooth swings of all joints that start and end at rest."""
    random = np.random.default_rng(2)
    time = np.arange(round(4 * rate) + 1) / rate
    time[1:-1] += jitter / rate * random.uniform(-1, 1, len(time) - 2)
    reach = np.array([0.5, -0.4, 0.6, 0.3, -0.3, 0.5])
    q = np.outer((1 - np.cos(np.pi * time)) / 2, reach)
    return Plan(time, q + noise * random.standard_normal(q.shape))


TRUE = predict_energy(known_model(), swing(100.0)).total


@pytest.mark.parametrize(("rate", "noise", "jitter"), [(500.0, 3e-5, 0.0), (100.0, 3e-4, 0.2)])
def test_measured_positions_are_smoothed_with_a_warning(rate, noise, jitter):
    model, measured, planned = known_model(), swing(rate, noise, jitter), swing(rate)
    assert smooth_plan(planned, LIMIT) == (planned, None)
    plan, warning = smooth_plan(measured, LIMIT)
    assert warning is not None
    assert "positions look measured" in warning
    assert predict_energy(model, plan).total == pytest.approx(TRUE, rel=0.02)
    assert abs(predict_energy(model, measured).total / TRUE - 1) > abs(
        predict_energy(model, plan).total / TRUE - 1
    )
