# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The front of energy against peak power: its points, its ends and its picture."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from test.benchmarks.bench_optimization import search
from test.energy.work_cycles import (
    LIFT,
    PICK,
    PLACE,
    ROBOT,
    arm_model,
    bag_of,
    pick_and_place,
    recorded,
)
from test.optimization.hand_made import sampled
from ur_energy_model.energy.prediction import PlanPowers, predict_energy
from ur_energy_model.errors import InputError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.optimization.cycle import OptimizationOptions, motion_of
from ur_energy_model.optimization.optimize import optimize_cycle
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.optimization.page import front_chart, front_table
from ur_energy_model.optimization.path import PathLimits
from ur_energy_model.optimization.plan_optimization import optimize_plan
from ur_energy_model.optimization.power_front import (
    PEAK_WINDOW,
    FrontPoint,
    PowerFront,
    window_means,
)
from ur_energy_model.trajectory.motions import Chain, move
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

TEMPERATURE = np.full(6, 32.0)
"""Of the made-up recordings [degC]."""
POINTS = 3
FINE = 0.001  # sample period of the test's own window means [s]


def there_and_back(wait: float = 1.5) -> Chain:
    """Two moves on the same path, and a wait."""
    above = PLACE + LIFT
    return Chain([move(PICK, above, 2.5, 5.0), move(above, PICK, 2.5, 5.0, wait)])


def front_of(
    folder: Path,
    chain: Chain,
    options: OptimizationOptions,
    *,
    rate: float = 500.0,
    model: EnergyModel | None = None,
) -> tuple[OptimizedCycle, PowerFront]:
    """The optimized cycle of a motion that repeats, with its front."""
    bag = bag_of(folder, recorded(chain, 2.4 * chain.duration + 0.5, rate))
    found = optimize_cycle(model or arm_model(), bag, options)
    assert found.power_front is not None
    return found, found.power_front


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> OptimizedCycle:
    folder = tmp_path_factory.mktemp("front")
    options = OptimizationOptions(front_points=POINTS, session=False)
    return front_of(folder, there_and_back(), options)[0]


def plan_of(point: FrontPoint) -> Plan:
    """The set points of a cycle at the controller's rate."""
    motion = motion_of("front", point.stretches)
    return Plan(*sampled(motion))


def front_in(found: OptimizedCycle) -> PowerFront:
    assert found.power_front is not None
    return found.power_front


def require_front(front: PowerFront) -> None:
    """Energies rise and both peaks fall from point to point, each window below its peak."""
    points = [point.predicted for point in front.points]
    for before, after in pairwise(points):
        assert after.energy > before.energy
        assert after.peak_power < before.peak_power
    for each in (*points, front.recorded):
        assert each.window_peak_power <= each.peak_power
        low, high = each.window_peak_power_interval
        assert low < each.window_peak_power < high


def own_window_peak(plan: Plan) -> float:
    """Window peak power of a motion that starts and ends at rest, by a sum over samples [W]."""
    powers = PlanPowers(arm_model(), TEMPERATURE, std=False)
    dynamics = arm_model().dynamics()
    power = np.concatenate([powers(part, dynamics)[1] for part in plan.motion(FINE)])
    width = round(PEAK_WINDOW / FINE)
    return float(np.convolve(power, np.full(width, 1.0 / width), "valid").max())


def test_energy_and_peaks_are_those_of_the_motions(found: OptimizedCycle) -> None:
    front = front_in(found)
    assert len(front.points) == POINTS
    require_front(front)
    for point in front.points:
        plan = plan_of(point)
        truth = predict_energy(arm_model(), plan, temperature=TEMPERATURE)
        stated = point.predicted
        assert plan.duration == pytest.approx(found.duration, abs=1e-6)
        assert stated.energy == pytest.approx(truth.total, rel=2e-3)
        assert stated.peak_power == pytest.approx(truth.peak_power, rel=0.01)
        assert stated.window_peak_power == pytest.approx(own_window_peak(plan), rel=0.01)


def test_the_ends_are_the_least_energy_and_a_lower_peak_within_the_same_limits(
    found: OptimizedCycle,
) -> None:
    front = front_in(found)
    first = front.points[0].predicted
    last = front.points[-1].predicted
    assert first.energy == pytest.approx(found.new_energy, rel=1e-3)
    assert first.energy < front.recorded.energy
    assert last.peak_power < 0.9 * first.peak_power
    way = PLACE + LIFT - PICK
    for point in front.points:
        _, q, qd, qdd = plan_of(point).sampled()
        share = (q - PICK) @ way / np.sum(way**2)
        np.testing.assert_allclose(q, PICK + share[:, None] * way, atol=1e-3)
        assert share.min() == pytest.approx(0.0, abs=1e-3)
        assert share.max() == pytest.approx(1.0, abs=1e-3)
        assert (np.abs(qd) <= ROBOT.max_velocity).all()
        assert (np.abs(qdd) <= ROBOT.max_acceleration).all()


def test_json_has_the_front_only_where_it_is_asked_for(found: OptimizedCycle) -> None:
    whole = found.as_json()
    without = replace(found, power_front=None).as_json()
    assert whole["power_front"]["window"] == PEAK_WINDOW
    assert [point["point"] for point in whole["power_front"]["points"]] == [1, 2, 3]
    assert {*whole} - {*without} == {"power_front"}
    with pytest.raises(InputError, match="from 1 to 3"):
        front_in(found).point(4)


def test_the_picture_has_the_points_and_the_recorded_cycle(found: OptimizedCycle) -> None:
    front = front_in(found)
    chart = front_chart(front)
    table = front_table(front)
    assert chart is not None
    assert table is not None
    stated = [point.predicted for point in reversed(front.points)]
    peaks = [point.window_peak_power for point in stated]
    energies = [point.energy for point in stated]
    (panel,) = chart.panels
    curve, *marks = panel.lines
    assert curve.x.tolist() == peaks
    assert curve.y.tolist() == energies
    assert [mark.x.item() for mark in marks] == peaks
    assert [mark.y.item() for mark in marks] == energies
    assert f"{front.recorded.window_peak_power:.0f} W" in panel.note
    assert len(table.rows) == 1 + POINTS
    assert (front_chart(None), front_table(None)) == (None, None)


@given(st.lists(st.floats(0.0, 500.0), min_size=2, max_size=60), st.floats(0.01, 1.0))
def test_window_means_are_means_of_the_straight_power(
    watts: list[float], window: float
) -> None:
    power = np.array(watts)
    time = np.linspace(7.0, 7.0 + 0.02 * (len(power) - 1), len(power))
    means = window_means(time, power, window)
    if window > time[-1] - time[0]:
        exact = [np.trapezoid(power, time) / (time[-1] - time[0])]
    else:
        exact = []
        for start in time[: len(means)]:
            exact.append(straight_mean(time, power, start, start + window))
    np.testing.assert_allclose(means, exact, rtol=1e-6, atol=1e-6)
    assert power.min() - 1e-6 <= means.min()
    assert means.max() <= power.max() + 1e-6


def straight_mean(time: Array, power: Array, start: float, end: float) -> float:
    """Mean of a straight-line power over a time, by its corners."""
    inside = time[(time > start) & (time < end)]
    corners = np.concatenate([[start], inside, [end]])
    values = np.interp(corners, time, power)
    return float(np.trapezoid(values, corners) / (end - start))


@pytest.mark.truth
def test_where_nothing_can_give_way_the_front_is_a_point(
    found: OptimizedCycle, tmp_path: Path
) -> None:
    """Every move kept, and a cycle time at the limits of the arm."""
    kept = OptimizationOptions(front_points=4, keep=(1, 2, 3), session=False)
    at_limits = OptimizationOptions(
        front_points=4, cycle_time=1.0002 * found.time_optimal_duration, session=False
    )
    for name, options in (("kept", kept), ("limits", at_limits)):
        optimized, front = front_of(tmp_path / name, there_and_back(), options)
        require_front(front)
        if name == "kept":
            assert len(front.points) == 1
            assert front.kept_peak == front.points[0].predicted.peak_power
            assert {*front.notes()} < {*optimized.notes}
        least = front.points[0].predicted.peak_power
        assert front.points[-1].predicted.peak_power > 0.97 * least


@pytest.mark.truth
@pytest.mark.parametrize(
    ("rate", "options"),
    [
        (10.0, OptimizationOptions(front_points=3)),
        (50.0, OptimizationOptions(front_points=3, jerk=60.0, keep_slow=False)),
        (500.0, OptimizationOptions(front_points=3, max_speedup=1.2)),
        (125.0, OptimizationOptions(front_points=3, recorded_limits=True)),
        (125.0, OptimizationOptions(front_points=12, keep=(1,))),
    ],
)
def test_recordings_of_any_rate_and_any_limits_have_a_front(
    tmp_path: Path, rate: float, options: OptimizationOptions
) -> None:
    optimized, front = front_of(tmp_path, pick_and_place(), options, rate=rate)
    require_front(front)
    assert len(front.points) > 1
    for point in front.points:
        duration = sum(stretch.plan.duration for stretch in point.stretches)
        assert duration == pytest.approx(optimized.duration, abs=1e-3)
        energy = point.predicted.energy
        assert energy <= 1.001 * optimized.energy or point is front.points[-1]


@pytest.mark.truth
def test_an_arm_that_regenerates_has_a_front(tmp_path: Path) -> None:
    """A heavy part on the way down, without a capacitor: its power is lost at the supply."""
    heavy = Setup(payload=Payload(5.0, np.array([0.0, 0.0, 0.1])))
    model = replace(arm_model(capacitor=0.0), setup=heavy)
    stretched = Chain(
        [
            move(PICK - 3.0 * LIFT, PICK + 4.0 * LIFT, 2.0, 5.0),
            move(PICK + 4.0 * LIFT, PICK - 3.0 * LIFT, 2.0, 5.0, 2.0),
        ]
    )
    options = OptimizationOptions(front_points=4, session=False)
    _, front = front_of(tmp_path, stretched, options, model=model)
    require_front(front)
    assert front.points[-1].predicted.peak_power < front.recorded.peak_power


LIMITS = PathLimits.of_robot(ROBOT)


@pytest.mark.truth
@pytest.mark.parametrize("share", [0.9, 0.75])
def test_an_independent_search_finds_no_less_energy_at_the_same_peak(
    share: float,
) -> None:
    """Another time law, another search, judged by `predict`: at most 0.1 % below."""
    segment = move(PICK, PLACE, 3.0, 6.0)
    time = np.linspace(0.0, segment.duration, 400)
    plan = Plan(time, *segment.sample(time))
    duration = 2.5 * segment.duration
    model = arm_model()
    free_plan = optimize_plan(model, plan, duration=duration, limits=LIMITS)
    free = predict_energy(model, free_plan)
    limit = model.bus.standby + share * (free.peak_power - model.bus.standby)
    below = replace(LIMITS, power=limit)
    law = optimize_plan(model, plan, duration=duration, limits=below)
    found = predict_energy(model, law)
    assert found.peak_power < 1.03 * limit
    at_peak = replace(LIMITS, power=found.peak_power)
    best = search(PICK, PLACE, duration, at_peak, 5, generations=15)
    assert 0.999 * free.total < found.total < 1.001 * best
    assert best < 1.03 * found.total  # the search came near
