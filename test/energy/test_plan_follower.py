# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The measured energy of planned motions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from test.energy.known_arm import (
    RATE,
    ROBOT,
    changed,
    known_model,
    motion,
    packets,
    total,
)
from ur_energy_model.energy import plan_follower
from ur_energy_model.energy.live import LiveEstimator
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.plan_follower import PlanFollower, Verdict
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

START = np.array([0.0, -1.2, 1.0, -1.0, 0.3, 0.0])
WAY = np.array([0.8, -0.3, 0.4, 0.0, 0.0, 1.0])
GOAL = START + WAY
TOTAL = LiveEstimator(known_model(), ROBOT).channels.arm["total"]
Piece = tuple[float, Array]
"""Seconds, and the place at their end: a smooth move there, or a hold."""
WAIT: list[Piece] = [(1.0, START)]
THERE: list[Piece] = [(2.0, GOAL)]
BENT: list[Piece] = [(1.5, START + WAY * [1, 0, 1, 1, 1, 0]), (1.5, GOAL)]
HELD: list[Piece] = [
    (0.8, START),
    *THERE,
    (1.5, GOAL),
    (1.0, START + 0.5 * WAY),
    (0.7, GOAL),
]


def path(pieces: list[Piece], start: Array = START) -> tuple[Array, Array, Array]:
    """Times at 500 Hz, positions and speeds of pieces one after the other."""
    times = [np.zeros(1)]
    places = [start[None]]
    speeds = [np.zeros((1, 6))]
    now = 0.0
    for seconds, goal in pieces:
        u = np.arange(1, round(seconds * RATE) + 1)[:, None] / round(seconds * RATE)
        times.append(now + seconds * u[:, 0])
        places.append(start + (goal - start) * u**3 * (10 - 15 * u + 6 * u**2))
        speeds.append((goal - start) * 30 * u**2 * (1 - u) ** 2 / seconds)
        start = goal
        now = now + seconds
    return np.concatenate(times), np.concatenate(places), np.concatenate(speeds)


def plan_of(pieces: list[Piece], start: Array = START) -> Plan:
    time, q, qd = path(pieces, start)
    return Plan(time[::25], q[::25], qd[::25])


def slower(pieces: list[Piece], factor: float) -> list[Piece]:
    return [(factor * seconds, goal) for seconds, goal in pieces]


def follow(
    follower: PlanFollower,
    pieces: list[Piece],
    start: Array = START,
    *,
    packet: int = 10,
) -> tuple[list[Verdict], Callable[[float, float], float]]:
    """Verdicts while the arm moves, and the true energy between two times from its start."""
    time, q, qd = path(pieces, start)
    arm = changed(motion((len(time) - 1) / RATE), actual_q=q, actual_qd=qd)
    arm.columns["actual_current"][:] = 2.0 * qd + 0.5
    arm.columns["actual_robot_current"][:] = total(arm) / 48.0
    estimator = LiveEstimator(known_model(), ROBOT)
    found = list[Verdict]()
    for batch in packets(arm, packet):
        estimator.update(batch)
        snapshot = estimator.snapshot()
        assert snapshot is not None
        found += follower.update(snapshot)

    def truth(first: float, last: float) -> float:
        rows = (time >= first - 1e-9) & (time <= last + 1e-9)
        return float(np.trapezoid(total(arm)[rows], time[rows]))

    return found, truth


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Motions must begin within 6.5 s."""
    monkeypatch.setattr(plan_follower, "LATEST", 6.5)


@pytest.mark.parametrize(
    ("plan", "done", "begins"),
    [
        pytest.param(BENT, [*WAIT, *BENT], 1.0, id="with a stop"),
        pytest.param(HELD, [*WAIT, *HELD], 1.0, id="with holds"),
        pytest.param(
            THERE, [(0.3, START), *THERE, (1.0, START)], 0.3, id="without a rest after"
        ),
        pytest.param(
            THERE,
            [*WAIT, *slower(THERE, 2.0), (2.0, START), *WAIT, *THERE],
            8.0,
            id="after slow",
        ),
    ],
)
def test_the_motion_of_a_plan_is_measured(
    plan: list[Piece], done: list[Piece], begins: float
) -> None:
    follower = PlanFollower()
    follower.expect("plan", plan_of(plan))
    found, truth = follow(follower, [*done, (1.0, done[-1][1])])
    (measured,) = (each for _, each in found if isinstance(each, MeterReading))
    seconds = sum(piece[0] for piece in plan)
    assert measured.net[TOTAL] == pytest.approx(truth(begins, begins + seconds), rel=0.02)
    assert measured.accounted == pytest.approx(seconds, abs=0.06)


@pytest.mark.parametrize(
    ("plan", "done", "reason"),
    [
        pytest.param(
            THERE, [*WAIT, *slower(THERE, 1.2)], "instead of 2.0 s", id="at 83 %"
        ),
        pytest.param(
            BENT,
            [*WAIT, BENT[0], (1.5, BENT[0][1]), BENT[1]],
            "instead of 3.0 s",
            id="a pause",
        ),
        pytest.param(
            BENT, [*WAIT, (3.0, GOAL)], "no motion", id="another path to the same end"
        ),
        pytest.param(
            THERE,
            [*WAIT, (2.0, GOAL + 0.03)],
            "no motion",
            id="an end beside the planned one",
        ),
        pytest.param(THERE, [(8.0, START), *THERE], "no motion", id="too late"),
    ],
)
def test_another_motion_is_not_measured(
    plan: list[Piece], done: list[Piece], reason: str, impatient: None
) -> None:
    follower = PlanFollower()
    follower.expect("plan", plan_of(plan))
    ((key, text),) = follow(follower, [*done, (7.0, done[-1][1])], packet=25)[0]
    assert key == "plan"
    assert isinstance(text, str)
    assert reason in text


def test_plans_in_a_row_are_each_measured_and_few_snapshots_are_not_enough() -> None:
    back: list[Piece] = [(1.5, START)]
    done = [*WAIT, *THERE, (0.5, GOAL), *back, (1.0, START)]
    for packet in (25, 100):
        follower = PlanFollower()
        follower.expect("back", plan_of(back, GOAL))
        follower.expect("there", plan_of(THERE))
        found, truth = follow(follower, done, packet=packet)
        assert [key for key, _ in found] == ["there", "back"]
        for (_, measured), (first, last) in zip(
            found, [(1.0, 3.0), (3.5, 5.0)], strict=True
        ):
            if packet == 100:
                assert "gap" in str(measured)
            else:
                assert isinstance(measured, MeterReading)
                assert measured.net[TOTAL] == pytest.approx(truth(first, last), rel=0.02)
