"""Levels are followed over minutes and weeks, and a step is reported once."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.learning.drift_filter import DriftFilter, DriftNoise
from ur_energy_model.learning.friction_clock import LevelChange, LevelDetector, WatchLimits

NOISE = DriftNoise(
    usual=0.1, wear=0.006, session=0.05, common=0.05, wander=0.015, slope=0.01, least=0.005
)
C = 4
WARM = np.full(C, 35.0)


def watch() -> LevelDetector:
    return LevelDetector(NOISE, WatchLimits(least=0.095), C)


def run(
    follower: LevelDetector, level: np.ndarray, minutes: int, seed: int = 0
) -> list[tuple[int, LevelChange]]:
    """Minutes of noisy levels after the last ones; (minute, change) of what is reported."""
    random = np.random.default_rng(seed)
    begin = follower.state()["time"]
    start = 0.0 if np.isnan(begin) else float(begin)
    out = []
    for k in range(1, minutes + 1):
        value = level + 0.004 * random.standard_normal(C)
        found = follower.observe(start + 60.0 * k, value, 1e-5 * np.eye(C), WARM)
        out += [(k, change) for change in found]
    return out


@pytest.mark.parametrize("size", [0.14, -0.15])
def test_a_step_is_reported_once_with_size_and_onset(size):
    follower = watch()
    assert run(follower, np.zeros(C), 40) == []
    onset = float(follower.state()["time"])
    level = np.array([0.0, size, 0.0, 0.0])
    ((minute, change),) = run(follower, level, 120, seed=1)
    assert minute <= 5
    assert (change.channel, change.time) == (1, onset)
    assert abs(change.size - size) < 0.02
    assert abs(change.size - size) < 4 * change.std
    assert follower.changed.tolist() == [False, True, False, False]


def test_a_return_is_silent_and_the_next_step_is_reported_again():
    follower = watch()
    up = np.array([0.15, 0.0, 0.0, 0.0])
    run(follower, np.zeros(C), 40)
    assert len(run(follower, up, 40, seed=1)) == 1
    assert run(follower, np.zeros(C), 40, seed=2) == []
    assert not follower.changed.any()
    assert len(run(follower, up, 40, seed=3)) == 1


def test_one_bad_minute_is_no_change():
    follower = watch()
    run(follower, np.zeros(C), 40)
    assert run(follower, np.array([0.5, 0.0, 0.0, 0.0]), 1) == []
    assert run(follower, np.zeros(C), 60, seed=2) == []


def test_the_usual_scatter_of_sessions_is_no_change():
    follower, random = watch(), np.random.default_rng(4)
    for day in range(30):
        follower.start_session(86400.0 * day, 1.0)
        level = 0.05 * random.uniform(-1.5, 1.5) + 0.05 * random.uniform(-1.5, 1.5, C)
        assert run(follower, level, 15, seed=day) == []


def test_a_lasting_change_between_sessions_is_reported_within_some_of_them():
    follower, random = watch(), np.random.default_rng(5)
    reported = None
    for day in range(24):
        follower.start_session(86400.0 * day, 1.0)
        level = 0.02 * random.standard_normal() + 0.02 * random.standard_normal(C)
        level = level + (0.22 * np.eye(C)[2] if day >= 16 else 0.0)
        found = run(follower, level, 15, seed=day)
        if found and reported is None:
            reported = day
            assert found[0][1].channel == 2
            assert 0.1 < found[0][1].size < 0.3
    assert reported is not None
    assert 16 <= reported <= 18


def test_temperature_slope_is_learned_and_predicts_a_cold_start():
    """The level falls by 1 % per kelvin; a day of warming up shows it."""
    model = DriftFilter(NOISE, 1)
    one = np.eye(1)
    for _ in range(3):
        model.start_session(1.0)
        for temperature in np.linspace(25.0, 40.0, 60):
            model.advance(60.0)
            level = np.array([-0.01 * (temperature - 35.0)])
            model.update(level, 1e-6 * one, np.array([temperature]))
    cold, cold_std = model.usual_level(np.array([22.0]))
    assert abs(cold[0] - 0.13) < 0.04
    assert abs(cold[0] - 0.13) < 2.0 * cold_std[0]
    assert cold_std[0] < 0.12
    now, now_std = model.level(np.array([40.0]))
    assert abs(now[0] + 0.05) < 0.01
    assert now_std[0] < 0.02


def test_wear_is_followed_over_weeks():
    model = DriftFilter(NOISE, 1)
    for day in range(120):
        model.start_session(1.0)
        for _ in range(3):
            model.advance(60.0)
            model.update(np.array([-0.0015 * day]), 1e-5 * np.eye(1), np.array([35.0]))
    assert abs(model.usual[0] + 0.18) < 0.04


def test_a_restart_changes_nothing():
    level = np.array([0.0, 0.14, 0.0, 0.0])
    kept, restarted = watch(), watch()
    run(kept, np.zeros(C), 30)
    run(kept, level, 2, seed=1)
    restarted.restore(kept.state())
    first, second = run(kept, level, 20, seed=2), run(restarted, level, 20, seed=2)
    assert len(first) == 1
    assert first == second


def test_a_state_of_another_kind_is_refused():
    state = watch().state()
    with pytest.raises(ValueError, match="another filter"):
        LevelDetector(NOISE, WatchLimits(least=0.1), C + 1).restore(state)
    with pytest.raises(ValueError, match="another filter"):
        watch().restore({**state, "filter_mean": np.full(4 * C + 1, np.nan)})
    with pytest.raises(KeyError):
        watch().restore({})
