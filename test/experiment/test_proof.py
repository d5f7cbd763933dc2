# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The saving is found in a recording of both cycles in turns, with its interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.optimization.hand_made import HOME, ROBOT, hand_made_cycle
from ur_energy_model.errors import InputError, RecordingError
from ur_energy_model.experiment.cycle_proof import (
    Proof,
    require_predicted,
    run_energies,
    saving_of,
)
from ur_energy_model.experiment.limits import RepeatedMotion, SafetyLimits, check
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

OPTIMIZED = hand_made_cycle()
REST = 0.537
BASE = 60.0


def recording(proof: Proof, *, drift: float = 0.0) -> Telemetry:
    """The run after a rest; power rises with speed and changes over time."""
    motion = proof.motion()
    time = np.arange(0.0, motion.duration + 2 * REST, 0.002)
    q, qd, _ = motion.sample(np.clip(time - REST, 0.0, motion.duration))
    power = (BASE + 20.0 * (qd**2).sum(axis=1)) * (1.0 + drift * time)
    return Telemetry(
        time + 1000.0,
        {
            "target_q": q,
            "actual_robot_voltage": np.full(len(time), 48.0),
            "actual_robot_current": power / 48.0,
            "joint_temperatures": np.repeat(30.0 + time[:, None], 6, axis=1),
        },
    )


def expected(proof: Proof, *, new: bool) -> float:
    cycle = proof.after if new else proof.before
    time = np.arange(0.0, cycle.duration, 0.001)
    return float(
        np.mean(BASE + 20.0 * (cycle.sample(time)[1] ** 2).sum(axis=1)) * cycle.duration
    )


@pytest.mark.parametrize(("cycles", "drift"), [(3, 0.0), (4, -1e-3)])
def test_every_cycle_is_found_with_its_energy_and_a_steady_drift_cancels(
    cycles: int, drift: float
) -> None:
    """Warming joints change the power by several percent over the run."""
    proof = Proof.of(OPTIMIZED, cycles)
    energy, temperature = run_energies(recording(proof, drift=drift), proof)
    truth = [expected(proof, new=new) for new in proof.order]
    assert sum(proof.order) == cycles
    assert proof.after.duration == pytest.approx(OPTIMIZED.typed_duration)
    saving = saving_of(energy, np.array(proof.order), temperature, "run")
    true = 100.0 * (1.0 - expected(proof, new=True) / expected(proof, new=False))
    assert saving.saving_percent == pytest.approx(true, abs=0.3)
    assert saving.cycles == cycles
    assert saving.temperature is not None
    assert saving.temperature.shape == (2, 6)
    if not drift:
        np.testing.assert_allclose(energy, truth, rtol=2e-3)
    else:
        assert saving.interval[0] < true < saving.interval[1]


def test_a_cycle_with_an_outage_is_left_out_with_its_pair() -> None:
    """Samples are missing in the second cycle, and the bus power of one sample in the last."""
    proof = Proof.of(OPTIMIZED, 4)
    whole = recording(proof)
    starts = np.cumsum(
        [REST, *((proof.after if new else proof.before).duration for new in proof.order)]
    )
    since = whole.time - whole.time[0]
    current = whole["actual_robot_current"].copy()
    current[np.searchsorted(since, starts[-2] + 1.0)] = np.nan
    columns = {**whole.columns, "actual_robot_current": current}
    away = (since > starts[1] + 1.0) & (since < starts[1] + 1.2)
    energy, _ = run_energies(replace(whole, columns=columns).select(~away), proof)
    usual, _ = run_energies(whole, proof)
    known = np.isfinite(energy)
    assert np.flatnonzero(~known).tolist() == [1, 7]
    np.testing.assert_allclose(energy[known], usual[known], rtol=1e-9)
    saving = saving_of(energy, np.array(proof.order), None, "run")
    assert saving.cycles == 2
    assert saving.total_source == "measured"


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Noise of 1 % per cycle on a saving of 10 %."""
    random = np.random.default_rng(11)
    order = np.array([False, True, True, False] * 2)
    inside = 0
    for _ in range(300):
        energy = np.where(order, 90.0, 100.0) * (1.0 + 0.01 * random.standard_normal(8))
        low, high = saving_of(energy, order, None, "run").interval
        inside += low < 10.0 < high
    assert 0.90 < inside / 300 < 0.985


def test_incomplete_and_other_runs_are_refused() -> None:
    energy = np.array([100.0, 90.0, np.nan, 100.0])
    saving = saving_of(energy, np.array([False, True, True, False]), None, "run")
    assert (saving.cycles, saving.saving_percent) == (1, pytest.approx(10.0))
    assert np.isnan(saving.interval).all()  # one pair shows no scatter
    assert not replace(OPTIMIZED, measured=saving).proven
    with pytest.raises(RecordingError, match="pair"):
        saving_of(np.full(2, np.nan), np.array([False, True]), None, "run")
    proof = Proof.of(OPTIMIZED, 1)
    whole = recording(proof)
    still: dict[str, Array] = {
        **whole.columns,
        "target_q": np.tile(HOME, (len(whole), 1)),
    }
    without = {"target_q": whole["target_q"]}
    recorded = replace(OPTIMIZED.cycle, measured_energy=100.0)
    optimized = replace(OPTIMIZED, cycle=recorded, energy=100.0, typed_energy=90.0)
    for factors, proven in (
        ((1.05, 0.95), True),
        ((1.3, 1.3), False),
        ((0.6, 1.0), False),
    ):
        energy = np.array([100.0, 90.0]) * factors
        saving = saving_of(energy, np.array([False, True]), None, "run")
        if proven:
            require_predicted(saving, optimized, "run")
        else:
            with pytest.raises(RecordingError, match="no saving"):
                require_predicted(saving, optimized, "run")
    for columns, problem in ((still, "does not hold cycle 1"), (without, "voltage")):
        with pytest.raises(RecordingError, match=problem):
            run_energies(replace(whole, columns=columns), proof)
    *moves, last = OPTIMIZED.cycle.moves
    astray = replace(last, q=last.q + np.linspace(0.0, 0.1, len(last.q))[:, None])
    opened = replace(OPTIMIZED, cycle=replace(OPTIMIZED.cycle, moves=(*moves, astray)))
    with pytest.raises(InputError, match="does not end where it starts"):
        Proof.of(opened, 2)


def test_limits_rise_to_what_the_recorded_cycle_reaches_and_no_further() -> None:
    """A cycle that was run at more than the robot file's acceleration may be run again."""
    usual = SafetyLimits(ArmDynamics(ROBOT), ArmGeometry(ROBOT), tool_speed=0.3)
    proof = Proof.of(OPTIMIZED, 1)
    slow_robot = replace(ROBOT, max_acceleration=np.full(6, 2.0))
    strict = replace(usual, dynamics=ArmDynamics(slow_robot))
    cycle = RepeatedMotion(proof.robot, proof.before)
    verdict = check(cycle, strict)
    assert any("acceleration" in problem for problem in verdict.problems)
    raised = proof.limits(strict)
    assert check(cycle, raised).passed
    np.testing.assert_allclose(
        raised.dynamics.robot.max_acceleration[[0, 5]], [2.2, 3.06], rtol=0.05
    )
    assert raised.dynamics.robot.max_acceleration[4] == 2.0
    np.testing.assert_array_equal(raised.dynamics.robot.max_velocity, ROBOT.max_velocity)
    assert 0.3 < raised.tool_speed < 1.5
    assert raised.clearance == usual.clearance
