"""The benchmark's own arithmetic, on recordings and figures whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from test.benchmarks.peers.cases import TRAIN, Bag, Truth, pairs, weighings
from test.benchmarks.peers.figures import CurrentError, EnergyError, joint_rms, table
from test.benchmarks.peers.methods import ECBOT_POWER, THREE, TWENTY_LINES, BaseParameters
from test.benchmarks.peers.ours import CommandError, command, friction_at
from test.benchmarks.peers.recorded import Recorded
from test.identification.exact_arm import ExactArm
from ur_energy_model.identification.power_structures import PowerRows
from ur_energy_model.model.model_file import load_model

ARM = ExactArm(
    torque_constant=ExactArm().robot.torque_constant.copy(), resistance_factor=1.3, power_noise=0.0
)
"""With the robot file's torque constants, which base parameters take for true."""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> tuple[Recorded, Recorded]:
    folder = tmp_path_factory.mktemp("bags")
    first, second = (ARM.bag(folder, f"bag_{seed}", seed=seed) for seed in (1, 2))
    return Recorded(first, ARM.robot), Recorded(second, ARM.robot)


@pytest.mark.parametrize("method", [TWENTY_LINES, BaseParameters()], ids=lambda m: m.name)
def test_currents_are_predicted_as_well_as_their_noise_lets_it(recordings, method):
    train, judged = recordings
    (predicted,) = method.predict(train, [judged])
    error = joint_rms(predicted - judged.current, judged.moving)
    # What is left is the difference of friction by direction, 20 % of it, which neither has.
    assert (error < 0.25 * joint_rms(judged.current, judged.moving)).all()
    assert (error < 0.2).all()


def supply(*, driver: float, seed: int) -> PowerRows:
    """Speeds, currents and the power of an arm that has a loss of `driver` W/A."""
    arm = ExactArm(
        driver=driver, standby=100.0, resistance_factor=1.3, torque_constant=ARM.torque_constant
    )
    random = np.random.default_rng(seed)
    time = np.arange(2000) / 100
    angle = 2 * np.pi * random.uniform(0.2, 1.0, 6) * time[:, None]
    qd, current = 0.3 * np.sin(angle), np.cos(1.7 * angle + random.uniform(0, 6, 6))
    return PowerRows(time, qd, current, arm.power(qd, current), np.full(2000, 7.0))


def test_three_coefficients_recover_the_power_that_has_their_form():
    rows, other = supply(driver=0.0, seed=1), supply(driver=0.0, seed=2)
    found = THREE.fit(rows, ARM.robot)
    assert found == pytest.approx([100.0, 1.3, 1.0])
    assert THREE.power(found, other, ARM.robot) == pytest.approx(other.power)


def test_ecbot_has_4n_plus_1_coefficients_and_finds_the_drivers_loss():
    rows, other = supply(driver=0.25, seed=1), supply(driver=0.25, seed=2)
    found = ECBOT_POWER.fit(rows, ARM.robot)
    assert found.shape == (25,)
    assert found[0] == pytest.approx(100.0)
    assert found[1 + 12 : 1 + 18] == pytest.approx(0.25)
    assert ECBOT_POWER.power(found, other, ARM.robot) == pytest.approx(other.power)


def test_motion_energy_does_not_count_what_standby_is_wrong_by():
    time = np.arange(0.0, 20.0, 0.01)
    still = time < 5.0
    measured = np.where(still, 30.0, 80.0)
    error = EnergyError.of(time, measured + 10.0, measured, still)
    assert error.motion == pytest.approx(0.0, abs=1e-9)
    assert error.supply == pytest.approx(100 * 10.0 / measured.mean(), rel=1e-2)
    higher = EnergyError.of(time, np.where(still, 30.0, 85.0), measured, still)
    assert higher.motion == pytest.approx(10.0)


def test_percentages_are_of_ranges_and_of_joints_that_move():
    rms, span = np.array([0.1, 0.3]), np.array([2.0, 0.01])
    found = CurrentError.of(rms, np.array([0.2, np.nan]), span)
    assert found.rms == pytest.approx(np.sqrt(0.05))
    assert found.percent == pytest.approx(5.0)
    assert (found.moving_rms, found.moving_percent) == pytest.approx((0.2, 10.0))
    assert np.isnan(CurrentError.of(rms, np.full(2, np.nan), span).percent)


def bag(name: str, arm: str, day: str, *, told: bool = True, simulated: bool = False) -> Bag:
    truth = Truth(np.ones(6), np.ones(6), np.ones(6)) if simulated else None
    return Bag(name, Path(), "ur5e", arm, day, None if told else 2.0, told, truth)


def test_pairs_say_what_the_judged_recording_is_to_the_fitted_one():
    real = [
        bag("a", "A", "1"),
        bag("b", "A", "1"),
        bag("c", "A", "2"),
        bag("d", "B", "1"),
        bag("loaded", "A", "2", told=False),
    ]
    simulated = [bag(f"s{k}", "A", str(k), simulated=True) for k in (TRAIN, 2)]
    groups = {(p.train.name, p.judged.name): p.group for p in pairs(real + simulated)}
    assert groups["a", "b"] == "real, another recording"
    assert groups["c", "a"] == "real, another day"
    assert groups["d", "a"] == "real, another arm"
    assert groups["s1", "s2"] == "simulated, other sessions"
    assert ("s2", "s1") not in groups
    assert not any("loaded" in pair for pair in groups)
    assert [found.name for found in weighings(real, real[0])] == ["loaded"]
    assert weighings(real, real[3]) == []


def test_the_model_s_friction_is_read_with_its_deviation(recordings, tmp_path):
    file = tmp_path / "model.yaml"
    command(
        "identify", recordings[0].bag, "--robot", "ur5e", "--friction", "power_flow", "-o", file
    )
    value, std = friction_at(load_model(file), 0.5, np.full(6, 30.0), same_session=True)
    qd = np.array([[0.5] * 6, [-0.5] * 6])
    true = 0.5 * np.diff(ARM.friction(qd, np.zeros_like(qd))[::-1], axis=0)[0]
    assert value == pytest.approx(true, rel=0.15)
    assert (std > 0).all()
    assert (std < 0.3 * value).all()


def test_a_command_that_fails_says_why(tmp_path):
    with pytest.raises(CommandError, match="nowhere"):
        command("estimate", tmp_path / "nowhere.yaml", tmp_path)


def test_tables_are_markdown():
    assert table(("a", "method"), [("12345", "x")]).splitlines() == [
        "| a     | method |",
        "| ----- | ------ |",
        "| 12345 | x      |",
    ]
