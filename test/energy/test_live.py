# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The live estimator, against energies known in closed form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import (
    DRIVER,
    ROBOT,
    STANDBY,
    changed,
    electrical,
    known_model,
    motion,
    packets,
    total,
    without_bus,
)
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.meter import bridged_steps
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.energy.supply import BusCapacitor
from ur_energy_model.model.drives import MOTION_STD, MOTION_TIME
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.telemetry.samples import Telemetry


def fed(
    telemetry: Telemetry, *, size: int = 3, model: EnergyModel | None = None
) -> LiveEstimator:
    estimator = LiveEstimator(model or known_model(), ROBOT)
    for batch in packets(telemetry, size):
        estimator.update(batch)
    return estimator


def seen(estimator: LiveEstimator) -> Snapshot:
    snapshot = estimator.snapshot()
    assert snapshot is not None
    return snapshot


def energy(snapshot: Snapshot, channel: str) -> float:
    return float(snapshot.since_reset.net[snapshot.channels.arm[channel]])


@pytest.mark.parametrize("size", [7, 1000])
def test_current_delay_and_bus_capacitor_do_not_depend_on_batches(size: int) -> None:
    telemetry = motion(4.0)
    model = known_model()
    braking = (
        np.where(telemetry.time % 1.0 < 0.5, -2.0, 2.0)[:, None] * telemetry["actual_qd"]
    )
    telemetry = without_bus(changed(telemetry, actual_current=braking))
    model = replace(
        model, current_delay=1e-3, bus=replace(model.bus, capacitor_energy=3.0)
    )
    snapshot = seen(fed(telemetry, size=size, model=model))
    time = telemetry.time
    qd = telemetry["actual_qd"]
    earlier = np.vstack([qd[:1], 0.5 * (qd[1:] + qd[:-1])])  # 1 ms is half a step
    powers = electrical(changed(telemetry, actual_qd=earlier))
    drivers = DRIVER * np.abs(telemetry["actual_current"]).sum(axis=1)
    supply = BusCapacitor(3.0)(
        bridged_steps(time), STANDBY + drivers + powers.sum(axis=1)
    )
    assert (supply == 0.0).sum() > 50
    each = snapshot.since_reset.net[snapshot.channels.per_joint["electrical_power"]]
    assert each == pytest.approx(np.trapezoid(powers, time, axis=0))
    assert energy(snapshot, "total") == pytest.approx(np.trapezoid(supply, time))


def test_deviation_of_a_modelled_total_energy() -> None:
    telemetry = without_bus(motion(4.0))
    snapshot = seen(fed(telemetry, size=10))
    current = telemetry["actual_current"]
    qd = telemetry["actual_qd"]
    of_emf = np.trapezoid(0.001 * 101.0 * qd * current, telemetry.time, axis=0)
    joints, whole = snapshot.channels.deviations(snapshot.since_reset.net)
    # Sensitivities are worked out now and then and held, hence the tolerance.
    assert joints == pytest.approx(np.abs(of_emf), abs=0.05)
    session = 2.5 * 4.0  # its standby was never seen
    moving = MOTION_STD**2 * MOTION_TIME * 4.0
    expected = np.sqrt(2.0**2 + session**2 + moving + of_emf.sum() ** 2)
    assert whole == pytest.approx(expected, abs=0.1)


def test_the_motion_method_needs_no_current() -> None:
    telemetry = without_bus(motion(2.0))
    columns = {k: v for k, v in telemetry.columns.items() if k != "actual_current"}
    model = known_model()
    n = len(telemetry)
    target = {
        "target_q": columns["actual_q"],
        "target_qd": columns["actual_qd"],
        "target_qdd": np.gradient(columns["actual_qd"], telemetry.time, axis=0),
        "payload": np.full(n, 2.0),
    }
    snapshot = seen(
        fed(Telemetry(telemetry.time, {**columns, **target}), size=10, model=model)
    )
    loaded = replace(model.setup, payload=replace(model.setup.payload, mass=2.0))
    truth = model.predict(
        target["target_q"],
        target["target_qd"],
        target["target_qdd"],
        dynamics=model.dynamics(setup=loaded),
        temperature=np.full(6, 30.0),
    )
    whole = np.trapezoid(truth.total_power, telemetry.time)
    assert energy(snapshot, "total") == pytest.approx(whole, rel=1e-3)
    assert snapshot.payload == 2.0


def test_the_inductive_term_is_counted() -> None:
    telemetry = without_bus(motion(2.0))
    inductance = 0.05
    # From 4 A to where the motion ends: an integral that does not cancel over periods.
    current = telemetry["actual_current"] + np.linspace(3.0, 0.0, len(telemetry))[:, None]
    telemetry = changed(telemetry, actual_current=current)
    model = known_model()
    model = replace(model, bus=replace(model.bus, inductance=np.full(6, inductance)))
    stored = inductance / 2 * (current[-1] ** 2 - current[0] ** 2).sum()
    estimators = (fed(telemetry, model=model), fed(telemetry))
    found, without = (energy(seen(each), "total") for each in estimators)
    found -= without
    assert abs(stored) > 1.0
    assert found == pytest.approx(stored, rel=0.02)


def test_the_controllers_own_counter_continues_over_its_restart() -> None:
    telemetry = motion(2.0)
    n = len(telemetry)
    counter = 5000.0 + np.arange(float(n)) * 0.1
    counter[600:] -= counter[600]
    with_counter = changed(telemetry, actual_robot_energy_consumed=counter)
    snapshot = seen(fed(with_counter, size=1))
    assert snapshot.controller_energy == pytest.approx(0.1 * (599 + (n - 601)))


def test_reset_and_interval(tmp_path: Path) -> None:
    telemetry = motion(3.0)
    estimator = LiveEstimator(
        known_model(), ROBOT, LiveOptions(state_file=tmp_path / "s.json")
    )
    power = total(telemetry)
    time = telemetry.time
    estimator.update(telemetry.cut(slice(0, 501)))
    estimator.reset("shift change")
    estimator.update(telemetry.cut(slice(501, 1001)))
    second = estimator.read_interval()
    estimator.update(telemetry.cut(slice(1001, None)))
    column = estimator.channels.arm["total"]
    assert second.net[column] == pytest.approx(np.trapezoid(power[:1001], time[:1001]))
    third = estimator.read_interval()
    assert third.net[column] == pytest.approx(np.trapezoid(power[1000:], time[1000:]))
    snapshot = seen(estimator)
    since = np.trapezoid(power[500:], time[500:])
    assert energy(snapshot, "total") == pytest.approx(since)
    assert snapshot.lifetime.net[column] == pytest.approx(np.trapezoid(power, time))
    assert snapshot.reset_reason == "shift change"
    estimator.close()
