"""The truth file: content, and consistency of arrays and sums."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import START_TIME, SimulatedArm
from ur_energy_model.simulation.supply import ARM_ENERGIES, JOINT_ENERGIES, TruthLog
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = load_robot("ur5e")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Truth of 4 s of trajectory A: JSON content, arrays, the arm, and samples of its shafts."""
    path = tmp_path_factory.mktemp("truth") / "truth.json"
    arm = SimulatedArm(ROBOT, motion=named_motion("trajectory_a", ROBOT), seed=8, truth=path)
    rows = []
    for _ in range(2000):
        arm.tick()
        rows.append([arm.outputs["actual_qd"], arm.outputs["actual_current"]])
    arm.close()
    content = json.loads(path.read_text())
    with np.load(path.with_suffix(".npz")) as file:
        arrays = dict(file)
    return content, arrays, arm, np.array(rows)


def test_it_has_the_names_of_an_estimate(written):
    content, _, arm, _ = written
    assert [joint["name"] for joint in content["joints"]] == list(ROBOT.joint_names)
    for entry in (*content["joints"], content["total"]):
        assert entry["mechanical_energy"] == pytest.approx(
            entry["efficiency"] * entry["electrical_energy"]
        )
    assert content["duration"] == pytest.approx(4.0)
    assert content["controller_time"]["start"] == START_TIME
    assert content["seed"] == 8
    for joint, constant in zip(content["joints"], arm.parameters.torque_constant, strict=True):
        assert joint["torque_constant"] == constant
    assert content["simulated"] is True
    assert content["gravity"] == [0.0, 0.0, -9.82]


def test_joint_energies_add_up_to_the_bus_energy(written):
    total = written[0]["total"]
    assert total["bus_energy"] == pytest.approx(
        total["electrical_energy"]
        + total["driver_energy"]
        + total["standby_energy"]
        + total["braking_energy"],
        abs=0.1,
    )
    assert written[0]["bus_energy"] == total["bus_energy"]


def test_mechanical_energy_is_the_integral_of_motor_torque_times_speed(written):
    content, _, arm, rows = written
    power = arm.parameters.current_to_torque * rows[:, 0] * rows[:, 1]
    energy = np.array([joint["mechanical_energy"] for joint in content["joints"]])
    assert power.sum(axis=0) * 0.002 == pytest.approx(energy, rel=0.02, abs=0.2)


def test_arrays_give_the_energies_of_any_interval(written):
    content, arrays, _, _ = written
    assert np.all(np.diff(arrays["timestamp"]) > 0)
    assert np.median(np.diff(arrays["timestamp"])) == pytest.approx(0.02)
    for key in JOINT_ENERGIES:
        assert arrays[key].shape == (len(arrays["timestamp"]), 6)
        assert arrays[key][-1] - arrays[key][0] == pytest.approx(
            [joint[key] for joint in content["joints"]]
        )
    for key in ARM_ENERGIES:
        assert arrays[key].shape == arrays["timestamp"].shape


def test_friction_is_that_of_the_recording_s_temperatures(written):
    content, _, arm, _ = written
    p = arm.parameters
    factor = p.friction_factor(np.array(content["mean_temperature"]))
    assert (factor > 1.05).all()  # colder than its calibration, the arm turns less easily
    speed = np.full(6, 1.5)
    curve = p.friction.torque(speed, factor) - p.friction.torque(-speed, factor)
    whole = 0.5 * curve + p.flex_spline_coulomb + p.flex_spline_viscous * speed
    line = [
        p.gear_ratio[j] * (joint["coulomb"] + p.gear_ratio[j] * speed[j] * joint["viscous"])
        for j, joint in enumerate(content["joints"])
    ]
    assert line == pytest.approx(whole, rel=0.06)


def test_the_name_of_the_array_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="json file"):
        TruthLog(tmp_path / "truth.npz")


def test_an_arm_without_truth_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm = SimulatedArm(ROBOT, motion=named_motion("hold", ROBOT))
    arm.tick()
    arm.close()
    assert list(tmp_path.iterdir()) == []
