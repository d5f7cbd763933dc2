# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`estimate_energy`, report, live estimator and bag playback give the same, correct energies.

The truth is the simulated arm's own ledger over sessions that switch off, idle, stop,
brake, change payload and speed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import (
    changed,
    counted,
    live,
    live_from_bag,
)
from test.identification.exact_arm import write_bag
from test.truth import first_fast
from ur_energy_model.energy.live import LIVE_FIELDS, LiveEstimator
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.report.analysis import recording_powers
from ur_energy_model.report.shift import read_shift
from ur_energy_model.rooms import has_room
from ur_energy_model.simulation import arm_commands as cmd
from ur_energy_model.simulation.parameters import ArmParameters
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = load_robot("ur5e")
TRUTH = "actual_robot_energy_consumed"  # RTDE field that carries the truth
SECONDS = 2.0
AWAY = np.array([0.6, -1.1, 1.0, -1.0, -1.2, 0.5])


def true_model(p: ArmParameters) -> EnergyModel:
    """The model that a perfect identification of a simulated arm would find."""
    law = LAWS["coulomb_viscous"]
    joints = tuple(
        JointModel(
            name,
            gear_ratio=float(p.gear_ratio[j]),
            reflected_inertia=float(p.reflected_inertia[j]),
            torque_constant=float(p.torque_constant[j]),
            winding_resistance=float(p.effective_resistance[j]),
            back_emf_constant=float(p.torque_constant[j]),
            friction=Friction(law, dict.fromkeys(law.parameters, 0.0), law.default_shape),
        )
        for j, name in enumerate(ROBOT.joint_names)
    )
    n = len(joints)
    bus = BusModel(
        "physical",
        p.standby_power,
        np.full(n, p.driver_loss),
        np.zeros(n),
        capacitor_energy=3.1,
    )
    return EnergyModel("ur5e", Setup(), "given", joints, bus, current_delay=1e-3)


@dataclass
class MixedSession:
    """Recording with the column TRUTH [J], model of its arm, start and end of each part [s]."""

    telemetry: Telemetry
    model: EnergyModel
    parts: dict[str, tuple[float, float]]

    def truth(self, start: float, end: float) -> float:
        """Energy that the supply gave between two times [s], J."""
        given = self.telemetry.columns[TRUTH]
        return float(np.diff(np.interp([start, end], self.telemetry.time, given))[0])


@cache
def mixed_session(seed: int, rate: float) -> MixedSession:
    """Work of an arm whose controller computes at a rate [Hz]."""
    robot = replace(ROBOT, rate=rate)
    arm = SimulatedArm(robot, motion=named_motion("hold", ROBOT, Setup()), seed=seed)
    home = named_motion("hold", ROBOT, Setup()).sample(np.zeros(1))[0][0]
    off: list[tuple[cmd.Command, ...]] = [
        (cmd.PowerCommand.OFF,),
        (cmd.PowerCommand.ON,),
        (cmd.PowerCommand.RELEASE_BRAKES,),
    ]
    scenes: dict[str, list[tuple[cmd.Command, ...]]] = {
        "moves": [(cmd.MoveJ(AWAY),), (cmd.MoveJ(home),), (cmd.MoveJ(AWAY),)],
        "loaded": [(cmd.SetPayload(2.0, np.array([0.0, 0.0, 0.06])), cmd.MoveJ(home))],
        "slow": [(cmd.SpeedSlider(0.4), cmd.MoveJ(home)), (cmd.SpeedSlider(1.0),)],
        "stopped": [
            (cmd.MoveJ(AWAY),),
            (cmd.SafetyCommand.PROTECTIVE_STOP,),
            (cmd.SafetyCommand.UNLOCK,),
        ],
        "off": off,
        "off again": off,
    }
    order = list(scenes)
    np.random.default_rng(seed).shuffle(order)
    pieces = []
    parts = {}
    for name in ["standstill", *order]:
        start = arm.time
        for commands in scenes.get(name, [()]):
            for command in commands:
                arm.command(command)
            pieces.append(with_truth(arm, SECONDS))
        parts[name] = (start, arm.time)
    return MixedSession(concatenate(pieces), true_model(arm.parameters), parts)


def with_truth(arm: SimulatedArm, seconds: float) -> Telemetry:
    """Telemetry of an arm, with the energy that its supply has truly given [J]."""
    pieces = []
    given = []
    for _ in range(round(seconds * arm.rate / 5)):
        pieces.append(record_arm(arm, 5 / arm.rate, LIVE_FIELDS))
        given.append(arm.energies().bus)
    whole = concatenate(pieces)
    return changed(whole, **{TRUTH: np.interp(whole.time, whole.time[4::5], given)})


def thinned(telemetry: Telemetry, rate: float) -> Telemetry:
    assert telemetry.info.rate is not None
    step = round(telemetry.info.rate / rate)
    columns = {name: values[::step] for name, values in telemetry.columns.items()}
    return Telemetry(telemetry.time[::step], columns, replace(telemetry.info, rate=rate))


@pytest.mark.parametrize(
    ("rate", "of_controller"), first_fast([(5.0, 250.0), (500.0, 500.0)])
)
def test_all_calculations_agree_and_are_right(
    tmp_path: Path, rate: float, of_controller: float
) -> None:
    session = mixed_session(1, of_controller)
    telemetry = thinned(session.telemetry, rate)
    model = session.model
    save_model(model, tmp_path / "model.yaml")
    model = load_model(tmp_path / "model.yaml")
    bag = write_bag(tmp_path / "session", telemetry)
    offline = estimate_energy(model, bag)
    at_once = live(model, telemetry, len(telemetry))
    whole = counted(at_once)
    channels = at_once.channels
    for size in (1, 250) if rate == 5.0 else (13,):
        np.testing.assert_allclose(
            counted(live(model, telemetry, size)), whole, 1e-6, 1e-6
        )
    final = counted(at_once)
    total = final[channels.arm["total"]]
    assert offline.supply == pytest.approx(total, rel=1e-12)
    standby_error = abs(offline.standby - final[channels.arm["standby"]])
    assert standby_error < float(channels.deviation_of_standby(final))
    assert offline.supply_std == pytest.approx(channels.deviations(final)[1], rel=1e-9)
    np.testing.assert_allclose(
        offline.electrical, whole[channels.per_joint["electrical_power"]], 1e-6, 1e-6
    )
    report = recording_powers(model, telemetry)
    assert report.total_energy[-1] == pytest.approx(offline.supply, rel=1e-9)
    assert report.duration == pytest.approx(offline.duration, rel=1e-9)
    assert read_shift(model, [bag]).energy == pytest.approx(offline.supply, rel=1e-9)
    if has_room("plant"):
        agrees_with_history(model, bag, tmp_path, offline.supply)
    played = live_from_bag(model, bag)
    assert counted(played)[channels.arm["total"]] == pytest.approx(total, rel=1e-12)
    assert offline.bus is not None
    truth = session.truth(telemetry.time[0], telemetry.time[-1])
    assert offline.supply == pytest.approx(truth, rel=0.01)
    assert offline.bus == pytest.approx(truth, rel=0.01)


def agrees_with_history(
    model: EnergyModel, bag: Path, folder: Path, energy: float
) -> None:
    """The history of a plant has the same energy [J] of a bag."""
    from ur_energy_model.plant.add import BagWork

    history = BagWork(str(folder / "store"), model, "model")(bag)
    assert not isinstance(history, str)
    assert history.record.energy == pytest.approx(energy, rel=1e-9)


@pytest.mark.parametrize(
    ("nominal", "sessions"), first_fast([(36.0, 1), (29.0, 1), (36.0, 2)])
)
def test_standstill_at_the_end_determines_the_standby_of_all_motion_before_it(
    tmp_path: Path, nominal: float, sessions: int
) -> None:
    robot = replace(ROBOT, rate=125.0)
    arm = SimulatedArm(robot, motion=named_motion("hold", robot, Setup()), seed=4)
    pieces = []
    for target in (AWAY, -0.5 * AWAY, AWAY):
        arm.command(cmd.MoveJ(target))
        pieces.append(record_arm(arm, 3.0, LIVE_FIELDS))
    whole = concatenate(pieces)
    speed = np.abs(whole["actual_qd"]).max(axis=1)
    moving = np.flatnonzero(speed > 0.01)  # without the waits between the moves
    kept = np.arange(moving[0], len(whole))
    first = whole.select(kept[(speed[kept] > 0.01) | (kept > moving[-1])])
    first = replace(first, time=np.arange(len(first)) / robot.rate)
    watts = np.asarray(first.bus_power)
    # The supply of another session takes 4 W more, which only a voltage at the same
    # current shows.
    other = changed(
        first, actual_robot_voltage=(watts + 4.0) / first["actual_robot_current"]
    )
    parts = [first, replace(other, time=first.time + 3600.0)][:sessions]
    telemetry = concatenate(parts)
    rest = first.time[-1] + 1.0 / robot.rate
    true = true_model(arm.parameters)
    model = replace(true, bus=replace(true.bus, standby=nominal))
    summary = estimate_energy(model, write_bag(tmp_path / "bag", telemetry))
    measured = [
        float(np.trapezoid(np.asarray(part.bus_power), part.time)) for part in parts
    ]
    assert summary.bus == pytest.approx(sum(measured), rel=1e-3)
    assert summary.supply == pytest.approx(summary.bus, rel=1e-12)
    assert summary.model == pytest.approx(sum(measured), rel=0.01)
    standby = true.bus.standby + 4.0 * (sessions - 1)
    assert summary.session.standby == pytest.approx(standby, abs=0.5)
    if sessions == 1:
        standby_energy = summary.session.standby * summary.duration
        assert summary.standby == pytest.approx(standby_energy, rel=2e-3)
    estimator = live(model, telemetry, 50)
    total = estimator.channels.arm["total"]
    assert float(counted(estimator)[total]) == pytest.approx(summary.supply, rel=1e-12)
    metrics = evaluate(model, tmp_path / "bag")
    assert metrics.power is not None
    error = 100 * (summary.model / sum(measured) - 1)
    assert metrics.power["energy_error_percent"] == pytest.approx(error, abs=0.05)
    assert metrics.session["standby"] == pytest.approx(summary.session.standby)
    assert rest > 3.0


def test_every_part_is_right() -> None:
    session = mixed_session(1, 250.0)
    estimator = LiveEstimator(session.model, ROBOT)
    time = session.telemetry.time
    before = 0.0
    for name, (start, end) in session.parts.items():
        truth = session.truth(start, end)
        inside = np.flatnonzero((time > start) & (time <= end + 1e-9))
        estimator.update(
            session.telemetry.cut(slice(int(inside[0]), int(inside[-1]) + 1))
        )
        now = float(counted(estimator)[estimator.channels.arm["total"]])
        assert now - before == pytest.approx(truth, rel=0.01, abs=0.5), name
        before = now
