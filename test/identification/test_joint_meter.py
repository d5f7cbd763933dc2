# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power of each joint from the voltage at the joints: arms whose cable and powers are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from test.identification.exact_arm import ExactArm, write_bag
from test.properties import examples
from test.truth import first_fast
from ur_energy_model.identification.cable_fit import BlockSums
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.joint_meter import (
    JointMeter,
    JointPowerMeasurement,
    NotMeasured,
)
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.cable import typical_cable
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model
from ur_energy_model.telemetry.samples import Telemetry

ARM = ExactArm()
N = ARM.robot.dof
SEGMENTS = np.array([0.11, 0.02, 0.02, 0.15, 0.11, 0.19])
STEP = 0.014332
FACTORS = np.array([1.05, 0.95, 1.0, 1.2, 0.9, 1.3])
"""Power that the joints take over that of the arm that the model is made of."""


def model_of_arm() -> EnergyModel:
    """The model with the constants of the exact arm."""
    model = generic_model(ARM.robot)
    joints = tuple(
        replace(
            joint,
            torque_constant=constant,
            back_emf_constant=constant,
            winding_resistance=ARM.resistance_factor * resistance,
        )
        for joint, constant, resistance in zip(
            model.joints, ARM.torque_constant, ARM.robot.winding_resistance, strict=True
        )
    )
    bus = replace(model.bus, driver=np.full(N, ARM.driver), drag=0.0, standby=ARM.standby)
    return replace(model, joints=joints, bus=bus, current_delay=0.0)


MODEL = model_of_arm()


def joint_powers(telemetry: Telemetry, of_losses: np.ndarray = FACTORS) -> np.ndarray:
    """True power of the joints with their drives [samples, n], W; currents without noise.

    Converted power is that of the model times FACTORS, losses times `of_losses` [n].
    """
    qd = telemetry["actual_qd"]
    load = telemetry["target_moment"]
    torque = load / ARM.robot.gear_ratio + ARM.friction(qd, load)
    current = torque / ARM.torque_constant
    speed = ARM.robot.gear_ratio * qd
    copper = ARM.resistance_factor * ARM.robot.winding_resistance * current**2
    losses = copper + ARM.driver * abs(current)
    return np.asarray(
        FACTORS * ARM.torque_constant * speed * current + of_losses * losses
    )


def with_joint_voltages(
    telemetry: Telemetry,
    *,
    seed: int = 0,
    segments: np.ndarray = SEGMENTS,
    every: int = 1,
    of_losses: np.ndarray = FACTORS,
) -> Telemetry:
    """The recording with the voltages at the joints, renewed at every so many samples."""
    random = np.random.default_rng([seed, 1])
    voltage = telemetry["actual_robot_voltage"]
    powers = joint_powers(telemetry, of_losses)
    behind = np.cumsum((powers / voltage[:, None])[:, ::-1], axis=1)[:, ::-1]
    offset = 0.2 * random.standard_normal(N)
    found = voltage[:, None] - offset - np.cumsum(segments * behind, axis=1)
    found = found + 0.018 * random.standard_normal(found.shape)
    held = np.arange(len(found)) // every * every
    found = np.rint(found[held] / STEP) * STEP
    noise = ARM.power_noise * random.standard_normal(len(voltage))
    supply = np.maximum(ARM.standby + powers.sum(axis=1), 0.0) + noise
    columns = {
        **telemetry.columns,
        "actual_joint_voltage": found,
        "actual_robot_voltage": voltage + 0.015 * random.standard_normal(len(voltage)),
        "actual_robot_current": supply / voltage,
    }
    return replace(telemetry, columns=columns)


def recording(
    seconds: float = 40.0, rate: float = 50.0, seed: int = 0, **options: object
) -> Telemetry:
    """A recording of the exact arm with joint voltages."""
    return with_joint_voltages(
        ARM.record(seconds, rate=rate, seed=seed),
        seed=seed,
        **options,  # type: ignore[arg-type]
    )


def measured(
    *telemetry: Telemetry, batch: int = 1000
) -> JointPowerMeasurement | NotMeasured:
    """Result of a meter with the arm's model."""
    meter = JointMeter(MODEL)
    for each in telemetry:
        meter.start_recording()
        for start in range(0, len(each), batch):
            meter.accumulate(each.cut(slice(start, start + batch)))
    return meter.result()


def truth(telemetry: Telemetry, of_losses: np.ndarray = FACTORS) -> np.ndarray:
    """Energy of the joints while the arm moves [n], J."""
    moving = (np.abs(telemetry["actual_qd"]) > 0.003).any(axis=1)
    return np.asarray(
        joint_powers(telemetry, of_losses)[moving].sum(axis=0) / telemetry.info.rate
    )


@pytest.mark.parametrize("rate", first_fast([5.0, 50.0, 10.0, 125.0, 500.0], 2))
def test_the_energy_of_each_joint_is_measured_within_its_interval(rate: float) -> None:
    deviations = []
    for seed in range(12):
        telemetry = recording(60.0, rate, seed)
        found = measured(telemetry)
        assert isinstance(found, JointPowerMeasurement), found
        energies = np.array([joint.measured for joint in found.joints])
        std = np.array([joint.measured_std for joint in found.joints])
        deviations.append((energies - truth(telemetry)) / std)
    z = np.array(deviations)
    # The form of the modelled power is exact here, so that the intervals may be wide.
    assert 0.5 <= np.sqrt(np.mean(z**2)) <= 1.2
    assert np.mean(np.abs(z) < 1.96) >= 0.90


def test_the_cable_is_found() -> None:
    found = measured(*(recording(60.0, 125.0, seed) for seed in range(4)))
    assert isinstance(found, JointPowerMeasurement)
    off = (found.cable.resistance - SEGMENTS) / found.cable.std
    assert np.abs(off).max() < 3.5
    assert (found.cable.std < typical_cable(N, "e-series").std).all()


def test_the_batches_of_a_recording_do_not_matter() -> None:
    telemetry = recording()
    one = measured(telemetry)
    other = measured(telemetry, batch=37)
    assert isinstance(one, JointPowerMeasurement)
    assert isinstance(other, JointPowerMeasurement)
    for a, b in zip(one.joints, other.joints, strict=True):
        assert abs(a.measured - b.measured) < 0.1 * a.measured_std


def test_readings_that_cannot_be_are_left_out() -> None:
    telemetry = recording()
    voltages = telemetry["actual_joint_voltage"].copy()
    voltages[100:2000:50] = 0.0
    voltages[33, 2] = np.nan
    damaged = replace(
        telemetry, columns={**telemetry.columns, "actual_joint_voltage": voltages}
    )
    one = measured(telemetry)
    other = measured(damaged)
    assert isinstance(one, JointPowerMeasurement)
    assert isinstance(other, JointPowerMeasurement)
    for a, b in zip(one.joints, other.joints, strict=True):
        assert abs(a.measured - b.measured) < 2 * a.measured_std


SHORT = recording(20.0, 25.0)


@given(
    st.sampled_from([np.nan, np.inf, 0.0, -50.0, 1e300]),
    st.sampled_from(
        [
            "actual_joint_voltage",
            "actual_robot_voltage",
            "actual_robot_current",
            "actual_current",
        ]
    ),
    st.integers(1, 400),
    st.floats(0.0, 1.0),
)
@examples(15)
def test_no_reading_is_an_error(
    value: float, name: str, every: int, noise: float
) -> None:
    telemetry = SHORT
    columns = dict(telemetry.columns)
    columns[name] = columns[name].copy()
    columns[name][::every] = value
    with np.errstate(over="ignore", invalid="ignore"):
        columns["actual_joint_voltage"] = noise * columns["actual_joint_voltage"]
        columns["actual_joint_voltage"] += 47.0 * (1 - noise)
        found = measured(replace(telemetry, columns=columns))
    if isinstance(found, NotMeasured):
        assert found.reason
    else:
        assert all(joint.measured_std > 0 for joint in found.joints)


def without(telemetry: Telemetry, name: str) -> Telemetry:
    """The recording without a field."""
    columns = {key: values for key, values in telemetry.columns.items() if key != name}
    return replace(telemetry, columns=columns)


def constant(telemetry: Telemetry) -> Telemetry:
    """The recording with the same voltage at all times."""
    values = np.full_like(telemetry["actual_joint_voltage"], 48.0)
    columns = {**telemetry.columns, "actual_joint_voltage": values}
    columns["actual_robot_voltage"] = np.full(len(values), 48.1)
    return replace(telemetry, columns=columns)


def at_rest(telemetry: Telemetry) -> Telemetry:
    """The recording of an arm that stands still."""
    columns = {**telemetry.columns, "actual_qd": np.zeros_like(telemetry["actual_qd"])}
    return replace(telemetry, columns=columns)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (lambda each: without(each, "actual_joint_voltage"), "actual_joint_voltage"),
        (lambda each: without(each, "actual_robot_current"), "bus power"),
        (constant, "constant"),
        (at_rest, "motion"),
        (lambda each: each.cut(slice(0, 60)), "motion"),
    ],
)
def test_where_it_cannot_measure_it_names_the_reason(changed: object, word: str) -> None:
    found = measured(changed(recording()))  # type: ignore[operator]
    assert isinstance(found, NotMeasured)
    assert word in found.reason


def test_voltages_of_something_else_than_a_chain_are_refused() -> None:
    telemetry = recording(60.0, 125.0)
    voltages = telemetry["actual_joint_voltage"][:, [3, 5, 0, 1, 4, 2]]
    columns = {**telemetry.columns, "actual_joint_voltage": voltages}
    found = measured(replace(telemetry, columns=columns))
    assert isinstance(found, NotMeasured)


def test_voltages_that_are_sampled_slowly_are_averaged_longer() -> None:
    telemetry = recording(120.0, 125.0, every=25)
    found = measured(telemetry)
    assert isinstance(found, JointPowerMeasurement)
    assert found.note is not None
    deviations = np.array([joint.measured for joint in found.joints]) - truth(telemetry)
    std = np.array([joint.measured_std for joint in found.joints])
    assert np.abs(deviations / std).max() < 3.0


def modelled_error(model: EnergyModel, telemetry: Telemetry) -> np.ndarray:
    """Relative errors of the modelled energies of the joints [n]."""
    meter = JointMeter(model)
    meter.accumulate(telemetry)
    found = meter.result()
    assert isinstance(found, JointPowerMeasurement)
    modelled = np.array([joint.modelled for joint in found.joints])
    return np.asarray(modelled / truth(telemetry, np.ones(N)) - 1.0)


def test_a_model_identified_from_joint_voltages_has_the_cable(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", recording(40.0, 60.0, 1, of_losses=np.ones(N)))
    cable = identify([bag], "ur5e").model.cable
    assert cable is not None
    assert np.abs((cable.resistance - SEGMENTS) / cable.std).max() < 4.0


@pytest.mark.truth
def test_identified_joint_energies_follow_the_joint_voltages(tmp_path: Path) -> None:
    telemetry, other = (
        recording(60.0, 125.0, seed, of_losses=np.ones(N)) for seed in (1, 2)
    )
    bag = write_bag(tmp_path / "with", telemetry)
    bare = write_bag(tmp_path / "bare", without(telemetry, "actual_joint_voltage"))
    metered = identify([bag], "ur5e").model
    alone = identify([bare], "ur5e").model
    assert alone.cable is None
    assert metered.cable is not None
    off = (metered.cable.resistance - SEGMENTS) / metered.cable.std
    assert np.abs(off).max() < 4.0
    errors = np.abs(modelled_error(metered, other))
    assert np.sqrt(np.mean(errors**2)) < 0.5 * np.sqrt(
        np.mean(modelled_error(alone, other) ** 2)
    )
    joints = evaluate(metered, write_bag(tmp_path / "other", other)).joint_power
    for row, energy in zip(joints, truth(other, np.ones(N)), strict=True):
        assert abs(row["measured_J"] - energy) < 4.0 * row["measured_std_J"]


def test_block_sums_are_the_covariances_of_block_means() -> None:
    random = np.random.default_rng(3)
    time = np.arange(1000) / 100.0
    values = random.standard_normal((1000, 4)) + 40.0
    sums = BlockSums(0.1, 4)
    for start in range(0, 1000, 7):
        sums.add(time[start : start + 7], values[start : start + 7])
    sums.finish_recording()
    means = values.reshape(100, 10, 4).mean(axis=1)
    expected = np.cov(means.T, bias=True)
    np.testing.assert_allclose(sums.covariance(0), expected, rtol=1e-9, atol=1e-12)
