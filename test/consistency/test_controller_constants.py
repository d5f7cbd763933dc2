# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The controller's torque constants from target_current and target_moment, with known truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from test.properties import examples
from ur_energy_model.consistency.controller_constants import ControllerConstantsFit
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

ROBOT = load_robot("ur5e")
NOMINAL = ROBOT.gear_ratio * ROBOT.torque_constant
STATED = NOMINAL * np.array([1.157, 1.073, 1.145, 0.936, 1.05, 0.97])
REST = 4.0  # duration of each standstill between two moves [s]
MOVE = 3.0  # [s]


def recording(
    rate: float, *, moves: int = 8, seed: int = 1, offset: float = 0.0
) -> Telemetry:
    """Poses of different load with moves between them; friction compensation only in motion.

    Args:
        rate: of the samples [Hz].
        moves: number of moves.
        seed: of the poses.
        offset: deviation of the target current of a move, over that of the rated torque.
    """
    random = np.random.default_rng(seed)
    count = round((REST + MOVE) * rate)
    time = np.arange(moves * count) / rate
    phase = np.clip((time % (REST + MOVE) - REST) / MOVE, 0.0, 1.0)
    move = np.minimum((time // (REST + MOVE)).astype(int), moves - 1)
    targets = random.uniform(-2.0, 2.0, (moves + 1, 6))
    distance = np.diff(targets, axis=0)
    shape = 0.5 - 0.5 * np.cos(np.pi * phase)
    q = targets[move] + distance[move] * shape[:, None]
    qd = distance[move] * (0.5 * np.pi / MOVE * np.sin(np.pi * phase))[:, None]
    qd[phase <= 0.0] = 0.0
    load = np.array([6.0, 50.0, 25.0, 3.0, 0.4, 0.1])
    moment = load * np.sin(q + 0.3) + 0.2 * load * np.cos(3.0 * q)
    compensation = np.sign(qd) * (0.6 + 0.9 * np.abs(qd) - 0.2 * qd**2) + 0.02 * np.sign(
        qd
    ) * (np.abs(moment) / STATED)
    offsets = (
        offset * ROBOT.max_torque / NOMINAL * random.standard_normal((moves, 6))[move]
    )
    columns: dict[str, Array] = {
        "target_q": q,
        "target_qd": qd,
        "target_qdd": np.gradient(qd, 1.0 / rate, axis=0),
        "target_moment": moment,
        "target_current": moment / STATED + compensation + offsets,
    }
    return Telemetry(time, columns)


@pytest.mark.parametrize("rate", [5.0, 10.0, 50.0, 125.0, 500.0])
def test_constants_are_found_at_any_rate(rate: float) -> None:
    fit = ControllerConstantsFit(ROBOT)
    fit.accumulate(recording(rate))
    found = fit.result()
    assert found.known.all()
    relative = found.torque_per_ampere / STATED - 1.0
    assert np.abs(relative).max() < 0.005


def test_batches_of_any_length_give_the_same_constants() -> None:
    whole = ControllerConstantsFit(ROBOT)
    whole.accumulate(recording(50.0))
    parts = ControllerConstantsFit(ROBOT)
    telemetry = recording(50.0)
    for start in range(0, len(telemetry), 37):
        parts.accumulate(telemetry.cut(slice(start, start + 37)))
    difference, _ = whole.result().difference(parts.result())
    assert np.abs(difference).max() < 1e-9


def test_intervals_cover_the_truth_where_currents_have_offsets() -> None:
    scores = []
    for seed in range(20):
        fit = ControllerConstantsFit(ROBOT)
        fit.accumulate(recording(20.0, seed=seed, offset=3e-4))
        found = fit.result()
        error = found.torque_per_ampere - STATED
        scores.append((error / found.std)[found.known])
    every = np.concatenate(scores)
    assert np.mean(np.abs(every) < 1.96) >= 0.9


def test_standstill_alone_states_the_loaded_joints() -> None:
    telemetry = recording(50.0)
    still = telemetry.cut(slice(0, round(REST * 50.0)))
    fit = ControllerConstantsFit(ROBOT)
    fit.accumulate(still)
    found = fit.result()
    assert found.known[1:3].all()
    assert np.abs(found.torque_per_ampere[1:3] / STATED[1:3] - 1.0).max() < 1e-6


def test_arms_are_told_apart() -> None:
    fit = ControllerConstantsFit(ROBOT)
    fit.accumulate(recording(50.0))
    own = fit.result()
    fit = ControllerConstantsFit(ROBOT)
    fit.accumulate(recording(125.0, seed=7))
    again = fit.result()
    other = ControllerConstants(own.torque_per_ampere * 1.04, own.std)
    assert own.same_arm(again) is True
    assert own.same_arm(other) is False
    assert own.same_arm(ControllerConstants.unknown(6)) is None


def test_recorded_arms_have_their_own_constants(recordings: Path) -> None:
    found = {}
    for name in ("ur5e_pick_place_50hz_24s", "ur5e_other_day_10hz_21s", "ur5e_other_arm_125hz_11s",
                 "ur5e_streamed_move_500hz_6s"):  # fmt: skip
        fit = ControllerConstantsFit(ROBOT)
        fit.accumulate(read_csv([recordings / f"{name}.csv.gz"], "ur5e"))
        found[name] = fit.result()
    first, same, other, third = found.values()
    assert np.abs(first.torque_per_ampere[:4] / STATED[:4] - 1.0).max() < 0.002
    assert first.same_arm(same) is True
    assert first.same_arm(other) is False
    assert first.same_arm(third) is False
    assert other.same_arm(third) is False


@pytest.mark.parametrize("field", ["target_current", "target_moment"])
def test_another_unit_is_a_contradiction_and_its_constants_are_not_used(
    field: str,
) -> None:
    telemetry = recording(50.0)
    columns = {**telemetry.columns, field: 1e3 * telemetry[field]}
    fit = ControllerConstantsFit(ROBOT)
    fit.accumulate(Telemetry(telemetry.time, columns))
    assert not fit.result().known.any()
    found = fit.contradiction()
    assert found is not None
    assert found.subject == "torque_constants"
    right = ControllerConstantsFit(ROBOT)
    right.accumulate(telemetry)
    assert right.contradiction() is None


def test_a_simulator_with_proportional_currents_states_its_constants() -> None:
    telemetry = recording(50.0)
    columns = {
        **telemetry.columns,
        "target_current": telemetry["target_moment"] / NOMINAL,
    }
    fit = ControllerConstantsFit(ROBOT)
    fit.accumulate(Telemetry(telemetry.time, columns))
    found = fit.result()
    assert found.known.all()
    assert np.allclose(found.torque_per_ampere, NOMINAL, rtol=1e-6)


def _without(name: str) -> Telemetry:
    telemetry = recording(50.0)
    columns = {key: values for key, values in telemetry.columns.items() if key != name}
    return Telemetry(telemetry.time, columns)


def _with(name: str, values: Array) -> Telemetry:
    telemetry = recording(50.0)
    shape = telemetry[name].shape
    return Telemetry(
        telemetry.time, {**telemetry.columns, name: np.broadcast_to(values, shape)}
    )


@pytest.mark.parametrize(
    "telemetry",
    [
        _without("target_current"),
        _without("target_moment"),
        _without("target_qd"),
        _with("target_current", np.zeros(6)),
        _with("target_current", np.full(6, 0.7)),
        _with("target_moment", np.zeros(6)),
        _with("target_current", np.full(6, np.nan)),
        recording(50.0).cut(slice(0, 1)),
        recording(50.0).cut(slice(0, 0)),
    ],
    ids=[
        "no current",
        "no moment",
        "no speed",
        "zero current",
        "constant current",
        "zero moment",
        "NaN",
        "one sample",
        "none",
    ],
)
def test_fields_that_state_nothing_leave_the_constants_unknown(
    telemetry: Telemetry,
) -> None:
    fit = ControllerConstantsFit(ROBOT)
    fit.accumulate(telemetry)
    assert not fit.result().known.any()
    assert fit.contradiction() is None


def test_an_arm_with_another_number_of_joints_is_left_out() -> None:
    fit = ControllerConstantsFit(load_robot("gen3"))
    fit.accumulate(recording(50.0))
    found = fit.result()
    assert found.torque_per_ampere.shape == (7,)
    assert not found.known.any()


_ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(
    values=arrays(np.float64, (4, 40, 6), elements=_ANY),
    time=arrays(np.float64, 40, elements=_ANY),
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=6),
)
@examples(20)
def test_any_values_give_positive_constants_or_none(
    values: Array, time: Array, sizes: list[int]
) -> None:
    names = ("target_moment", "target_current", "target_qd", "target_qdd")
    fit = ControllerConstantsFit(ROBOT)
    fit.accumulate(recording(20.0, moves=2))
    start = 0
    for size in sizes:
        rows = slice(start, start + size)
        part = {name: each[rows] for name, each in zip(names, values, strict=True)}
        fit.accumulate(Telemetry(time[rows], part))
        start += size
    fit.accumulate(recording(20.0, moves=2, seed=3))
    found = fit.result()
    assert (found.torque_per_ampere[found.known] > 0.0).all()
    assert (found.std[found.known] >= 0.0).all()
    # The loaded joints are known from standstill whatever lies between.
    assert np.allclose(found.torque_per_ampere[1:3], STATED[1:3], rtol=0.02)


def test_a_clock_that_begins_again_and_jumps_changes_nothing() -> None:
    telemetry = recording(50.0)
    time = telemetry.time.copy()
    half = len(time) // 2
    time[half:] -= time[half]
    time[half + half // 2 :] += 1e6
    fit = ControllerConstantsFit(ROBOT)
    fit.accumulate(Telemetry(time, telemetry.columns))
    found = fit.result()
    assert np.abs(found.torque_per_ampere / STATED - 1.0).max() < 0.005


def test_recordings_of_one_arm_are_joined_by_their_variances() -> None:
    sharp = ControllerConstants(np.array([10.0, np.nan]), np.array([0.02, np.inf]))
    vague = ControllerConstants(np.array([11.0, 8.0]), np.array([0.5, 0.1]))
    joined = ControllerConstants.joined([sharp, vague], 2)
    assert joined.torque_per_ampere[0] == pytest.approx(10.0, abs=0.02)
    assert joined.std[0] < 0.03
    assert joined.torque_per_ampere[1] == pytest.approx(8.0)
    assert joined.known.all()
    assert not ControllerConstants.joined([], 2).known.any()
    unknown = ControllerConstants.unknown(2)
    assert not ControllerConstants.joined([unknown, unknown], 2).known.any()
