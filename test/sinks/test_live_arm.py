# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""LiveArm: every sample is counted, sinks get what the estimator knows, and what may go wrong."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, changed, known_model, motion, packets
from test.sinks.peers import until
from test.telemetry.scripted_source import ScriptedSource
from ur_energy_model.energy import source_reader
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.program import parse_script
from ur_energy_model.errors import ControllerError, UrEnergyError, WrongRobotError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.sinks.live_arm import LiveArm, SinkGroup
from ur_energy_model.sinks.sink import ArmReading, Sink, SinkStatus
from ur_energy_model.telemetry.clock import HostClock
from ur_energy_model.telemetry.gaps import Losses
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus

ARM = RecordingInfo(source="script", robot="ur5e", serial="2019 1/2", rate=500.0)
SECONDS = 2.0


class Played(ScriptedSource):
    """A source of given batches, which then ends."""

    def __init__(self, batches: Iterable[Telemetry], info: RecordingInfo = ARM) -> None:
        super().__init__(info)
        self.status = LinkStatus(losses=Losses(7))
        for batch in batches:
            self.give_last(replace(batch, info=info))
        self.give_last(EOFError())


class Kept(Sink):
    """Keeps what it gets, in the thread that offers it."""

    @property
    def status(self) -> SinkStatus:
        return SinkStatus("kept")

    def __init__(self) -> None:
        self.got: list[ArmReading] = []

    def offer(self, reading: ArmReading) -> None:
        self.got.append(reading)

    def close(self) -> None:
        return


def programs() -> Telemetry:
    """Two seconds of motion in which a program starts three times."""
    telemetry = motion(SECONDS)
    state = np.where(np.arange(len(telemetry)) % 400 < 40, 1.0, 2.0)
    return changed(telemetry, runtime_state=state)


def named(info: RecordingInfo) -> tuple[EnergyModel, str]:
    return known_model(), "model.yaml"


def live_arm(source: Played) -> LiveArm:
    return LiveArm("script", lambda: source, named, LiveOptions(cycle_trigger="program"))


def run(arm: LiveArm, *sinks: Kept, rate: float = 10.0) -> None:
    arm.start(SinkGroup(sinks, rate))
    until(lambda: arm.reader.ended or arm.reader.failure is not None)


def test_sinks_get_all_energy_and_every_cycle() -> None:
    sink = Kept()
    arm = live_arm(Played(packets(programs(), 10)))
    with closing(arm):
        run(arm, sink)
    estimator = LiveEstimator(known_model(), ROBOT, LiveOptions(cycle_trigger="program"))
    estimator.update(programs())
    expected = estimator.snapshot()
    assert expected is not None
    last = sink.got[-1]
    assert last.snapshot.since_reset.net == pytest.approx(
        expected.since_reset.net, rel=1e-9
    )
    assert last.snapshot.samples == len(programs())
    assert len(sink.got) == pytest.approx(10 * SECONDS, abs=2)
    cycles = [cycle for reading in sink.got for cycle in reading.cycles]
    assert [cycle.number for cycle in cycles] == [
        each.number for each in estimator.cycles
    ]
    assert cycles
    assert (last.arm, last.model, last.joints) == (
        "2019_1_2",
        "model.yaml",
        ROBOT.joint_names,
    )
    assert last.link.losses.samples == 7


def test_the_node_in_execution_and_what_each_has_taken() -> None:
    """Lines 3 and 5 in turn, half a second each; the last sample is in the second."""
    text = """def p():\n $ 1 "A"\n movej(1)\n $ 2 "B"\n movej(2)\nend"""
    whole = motion(SECONDS)
    line = np.where(np.arange(len(whole)) // 251 % 2, 5.0, 3.0)
    source = Played(packets(changed(whole, script_control_line=line), 10))
    arm = LiveArm(
        "script", lambda: source, named, LiveOptions(), script=parse_script(text)
    )
    with closing(arm):
        run(arm)
        state = arm.state("x")
    assert state.program is not None
    assert (state.program.node, state.program.line, state.program.executions) == (
        "B",
        5,
        2,
    )
    assert state.program.seconds == pytest.approx(0.5 * SECONDS, abs=0.005)
    assert state.reading is not None
    counted = state.reading.snapshot.since_reset.net[
        state.reading.snapshot.channels.arm["total"]
    ]
    assert sum(node.energy for node in state.nodes) == pytest.approx(counted, rel=1e-9)


def test_actions_before_and_after_the_first_sample() -> None:
    arm = live_arm(Played(packets(motion(SECONDS), 10)))
    for action in (lambda: arm.actions.reset("test"), arm.actions.read_interval):
        with pytest.raises(UrEnergyError, match="not known yet"):
            action()
    with closing(arm):
        run(arm)
        interval = arm.actions.read_interval()
        assert interval["accounted_s"] == pytest.approx(SECONDS)
        arm.actions.reset("test")
        reading = arm.state("x").reading
        assert reading is not None
        assert np.abs(reading.snapshot.since_reset.net).max() == 0.0
        assert reading.snapshot.lifetime.net[0] != 0.0


def test_the_arm_is_that_of_the_model_and_may_become_known_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_reader, "RETRY_PERIOD", 0.01)
    found: list[str | None] = []

    def model_of(info: RecordingInfo) -> tuple[EnergyModel, str]:
        found.append(info.robot)
        if len(found) < 3:
            raise ControllerError("10.0.0.7", "does not name the arm", "name it")
        return named(info)

    def run_with(robot: str) -> LiveArm:
        def source() -> Played:
            return Played(packets(motion(0.1), 10), replace(ARM, robot=robot))

        arm = LiveArm("10.0.0.7", source, model_of, LiveOptions(), clock=HostClock())
        with closing(arm):
            run(arm)
        return arm

    arm = run_with("ur5e")
    assert len(found) == 3
    assert arm.state("x").reading is not None
    failure = run_with("ur10e").reader.failure
    assert isinstance(failure, WrongRobotError)
    assert "10.0.0.7: is a ur10e, but the model is of a ur5e" in str(failure)
