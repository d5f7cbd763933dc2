# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The estimator node: sources, restarts, lifecycle, models, sinks, unusable input, messages."""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock

from test.absent_rooms import needs_room
from test.energy.known_arm import known_model, motion, packets, total
from test.nodes.conftest import LEARNING_OFF, Cell
from test.nodes.moving_arm import MovingArm
from test.small_disk import SmallDisk, small_disk
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.errors import WrongRobotError
from ur_energy_model.files import config_file
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.nodes.estimated_arm import EstimatedArm
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.lines import OperatorLines
from ur_energy_model.nodes.parameters import NODES, EstimatorParameters
from ur_energy_model.nodes.process import begin
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

ENERGY = "/energy/total/energy"
POWER = "/energy/total/power"


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Three seconds of the known arm."""
    telemetry = motion(3.0)
    path = tmp_path / "bag"
    stamp = ((1_700_000_000 + telemetry.time) * 1e9).astype(np.int64)
    info = RecordingInfo(robot="ur5e", rate=500.0)
    with BagWriter(path, info, tuple(telemetry.columns)) as writer:
        for part in packets(replace(telemetry, info=info, stamp=stamp), 100):
            writer.write(part)
    return path


@pytest.fixture
def played(bag: Path, model: Path) -> dict[str, Any]:
    """Parameters of an estimator of the bag."""
    return {"source": "bag", "bag": str(bag), "model_file": str(model), **LEARNING_OFF}


def ended(cell: Cell, name: str) -> Any:
    """The last value of a topic after the end of the bag."""
    observer = cell.observer
    over = "the bag has ended"
    observer.status_that("estimator: source", lambda s: s["message"] == over, over)
    # the last one may arrive after the status, which is another topic
    observer.drain(name)
    return observer.latest[name].data


def test_topics_and_sinks_have_the_energies_of_a_bag(
    cell: Cell, bag: Path, played: dict[str, Any]
) -> None:
    """It is played in real time and sets the clock."""
    needs_room("sinks/foxglove")
    reader = pytest.importorskip("mcap.reader")
    pytest.importorskip("foxglove")
    observer = cell.observer
    for topic in (ENERGY, POWER):
        observer.subscribe(topic, "std_msgs/Float64")
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    clocks: list[Clock] = []
    observer.node.create_subscription(Clock, "/clock", clocks.append, 10)
    live = cell.folder / "live.mcap"
    more = {"mcap": [str(live)], "use_sim_time": True}
    node = cell.start_node(EstimatorNode, **played, **more)
    last = ended(cell, ENERGY)
    telemetry = motion(3.0)
    expected = estimate_energy(load_model(Path(played["model_file"])), bag)
    assert last == pytest.approx(np.trapezoid(total(telemetry), telemetry.time), rel=1e-6)
    assert last == pytest.approx(expected.supply, rel=1e-6)
    # 50 per second, once the subscriber is discovered
    assert 100 <= len(observer.history[ENERGY]) <= 152
    seconds = [clock.clock.sec for clock in clocks]
    assert seconds == sorted(seconds)
    assert 1_700_000_000 + 100 <= seconds[0] <= seconds[-1] <= 1_700_000_000 + 104
    sink = observer.status_that(
        "live.mcap", lambda s: int(s["delivered"]) >= 30, "readings"
    )
    assert (sink["dropped"], sink["message"]) == ("0", "works")
    node.end()
    with live.open("rb") as file:
        *_, (_, _, message) = reader.make_reader(file).iter_messages(topics=[ENERGY])
    # CDR
    assert struct.unpack("<d", message.data[4:]) == (pytest.approx(last, rel=1e-9),)


class StallingArm(MovingArm):
    """Sends nothing for a second every other second, and then all of it at once.

    Where it is the program that stalls, the read that is under way takes so long.
    """

    def __init__(self, *, program: bool) -> None:
        super().__init__()
        self._program = program
        self._reads = 0
        self._late = 0

    def read(self, timeout: float) -> Telemetry | None:
        self._reads += 1
        if self._reads % 60:
            return super().read(timeout)
        if self._late == 0 and not self._program:
            self._late = round(1.0 / timeout)
        if self._late > 1:
            self._late = self._late - 1
            self._reads = self._reads - 1
            time.sleep(timeout)
            return None
        time.sleep(1.0 if self._program else timeout)
        self._late = 0
        times = self.clock + 0.002 * np.arange(500, dtype=float)
        self.clock += 1.0
        rows = np.arange(500) % len(self._whole)
        columns = {name: values[rows] for name, values in self._whole.columns.items()}
        return Telemetry(times, columns, self.info)


@pytest.mark.parametrize(
    ("program", "expected"), [(False, "the network or the controller"), (True, "busy")]
)
def test_late_samples_are_not_a_busy_processor(
    cell: Cell, model: Path, program: bool, expected: str
) -> None:
    observer = cell.observer
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    source = StallingArm(program=program)
    cell.start_node(EstimatorNode, lambda: source, model_file=str(model), **LEARNING_OFF)

    def reported() -> dict[str, str] | None:
        status = observer.status("/diagnostics", "estimator: source")
        return status if int(status["publications_missed"]) > 40 else None

    status = observer.wait(reported, "left out publications")
    assert status["level"] == "1"
    assert expected in status["message"]


def test_a_killed_estimator_continues_its_counters_and_ctrl_c_ends_it(
    cell: Cell, played: dict[str, Any]
) -> None:
    observer = cell.observer
    state = cell.folder / "state.db"
    observer.subscribe(ENERGY, "std_msgs/Float64")
    parameters = {**played, "loop": True, "state_file": str(state)}
    child = cell.start_process("estimator", **parameters)
    observer.wait(lambda: len(observer.history.get(ENERGY, [])) > 20, "energies")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    observer.drain(ENERGY)  # messages that it sent before
    before = [message.data for message in observer.history[ENERGY]]
    child = cell.start_process("estimator", **parameters)
    observer.wait(
        lambda: len(observer.history[ENERGY]) > len(before) + 10, "more energies"
    )
    after = [message.data for message in observer.history[ENERGY][len(before) :]]
    assert after[0] >= before[-1]
    assert after == sorted(after)
    child.send_signal(signal.SIGINT)  # ros2 launch delivers Ctrl-C twice
    code, output = cell.stop(child)
    assert code == 0, output
    assert "Traceback" not in output
    assert state.is_file()


def test_lifecycle_without_autostart_and_parameters_in_its_states(
    cell: Cell, played: dict[str, Any]
) -> None:
    observer = cell.observer
    observer.subscribe(POWER, "std_msgs/Float64")
    cell.start_node(EstimatorNode, autostart=False, loop=True, **played)

    def state_after(transition: int | None) -> str:
        if transition is not None:
            request = ChangeState.Request()
            request.transition.id = transition
            assert observer.call("/estimator/change_state", ChangeState, request).success
        return observer.call("/estimator/get_state", GetState).current_state.label

    def put(name: str, value: Any) -> Any:
        made = [Parameter(name, value=value).to_parameter_msg()]
        request = SetParameters.Request(parameters=made)
        return observer.call("/estimator/set_parameters", SetParameters, request).results[
            0
        ]

    assert state_after(None) == "unconfigured"
    assert put("source", "rtde").successful
    assert put("source", "bag").successful
    assert [state_after(each) for each in (1, 3)] == ["inactive", "active"]
    observer.next_message(POWER)
    assert put("gap_limit", 0.5).successful
    assert not put("gap_limit", 50.0).successful
    assert "at configuration" in put("source", "rtde").reason
    assert state_after(4) == "inactive"
    observer.drain(POWER)
    assert [state_after(each) for each in (2, 1, 3)] == [
        "unconfigured",
        "inactive",
        "active",
    ]
    observer.next_message(POWER)


def test_a_drifting_model_is_a_warning_and_a_changed_file_is_used_unless_broken(
    cell: Cell, played: dict[str, Any]
) -> None:
    observer = cell.observer
    path = Path(played["model_file"])
    observer.subscribe("/energy/standby/power", "std_msgs/Float64")
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    save_model(known_model(standby=33.0), path)
    more = {"loop": True, "reload_period": 0.1, "track_standby": False, "drift_time": 1.0}
    cell.start_node(EstimatorNode, **played, **more)

    def warned(text: str) -> dict[str, str]:
        return observer.status_that(
            "estimator: model", lambda s: text in s["message"], text
        )

    status = warned("drifts away")
    assert status["level"] == "1"
    assert float(status["unexplained_mean_W"]) == pytest.approx(-8.0, abs=0.1)
    save_model(known_model(standby=31.0), path)
    observer.wait(
        lambda: observer.latest["/energy/standby/power"].data == 31.0, "the new model"
    )
    path.write_text("kind: nonsense\n")
    warned("kind")
    assert observer.next_message("/energy/standby/power").data == pytest.approx(31.0)


def test_models_are_checked_for_their_arm_and_read_again_once(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    path = tmp_path / "model.yaml"
    ur5e = config_file("robots", "ur5e.yaml").read_text()
    own.write_text(ur5e.replace("name: ur5e", "name: mine"))  # a robot file of the user

    def arm(robot: object = "") -> EstimatedArm:
        given = EstimatorParameters(model_file=path, reload_period=1e-9)
        lines = OperatorLines(lambda level, text: None)
        return EstimatedArm(
            given, str(robot), (), lines, threading.Lock(), lambda cycle: None
        )

    save_model(replace(known_model(), robot=str(own)), path)
    copy = shutil.copy(own, tmp_path / "copy.yaml")
    own.unlink()
    assert arm(copy).robot.name == "mine"
    save_model(known_model(), path)
    with pytest.raises(WrongRobotError, match="is a model of ur5e, not of mine"):
        arm(copy)
    watched = arm()
    assert not watched.reload()
    save_model(known_model(standby=31.0), path)
    assert [watched.reload(), watched.reload()] == [True, False]
    assert watched.base.bus.standby == 31.0
    save_model(replace(known_model(), robot=str(copy)), path)
    assert not watched.reload()
    assert "not of ur5e" in str(watched.problem)
    path.unlink()
    assert not watched.reload()
    save_model(known_model(), path)
    assert watched.reload()
    assert watched.problem is None


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    (
        {"model_file": "", "source": "joint_states"},
        "robot_model: is not set, and neither is",
    ),
    ({"bag": ""}, "bag: is not set, but source is bag"),
    ({"model_file": "broken.yaml"}, "broken.yaml"),
    ({"robot_model": "ur10e"}, "is a model of ur5e"),
    ({"prometheus": ["0.0.0.0:9464"]}, "allow_network"),
    ({"mqtt": ["mqtt://user:secret@127.0.0.1"]}, "mqtt"),
)


def test_what_cannot_be_used_is_refused_in_one_line(
    cell: Cell,
    played: dict[str, Any],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(cell.folder)
    (cell.folder / "broken.yaml").write_text("{}")
    known = {entry.name for entry in NODES["estimator"]}  # fewer without some rooms
    refused = [each for each in REFUSED if each[0].keys() <= known]
    for number, (parameters, problem) in enumerate(refused):
        given = played | parameters
        made = cell.make_node(EstimatorNode, namespace=f"/n{number}", **given)
        capfd.readouterr()
        assert not begin([made])
        lines = capfd.readouterr().err.splitlines()
        (line,) = [
            each for each in lines if "[INFO]" not in each and "[WARN]" not in each
        ]
        assert problem in line
        assert "secret" not in line
    node = cell.start_node(EstimatorNode, **played | {"bag": "none"})
    assert node.outcome is not None
    cell.observer.wait(node.outcome.done, "the end")
    assert node.outcome.result() == 1
    assert "none: no such bag" in capfd.readouterr().err


def test_a_model_of_another_arm_has_one_warning_and_wider_intervals(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two estimators of an arm whose serial number is not the model's."""
    path = cell.folder / "m.yaml"
    observer = cell.observer
    save_model(replace(known_model(), provenance={"serial": "20195500042"}), path)
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    errors = {}
    levels = {}
    both = re.compile(r"20195500042.*arm A1.*same_arm:=true")
    for space in ("other", "same"):
        given = {"model_file": str(path), "same_arm": space == "same", **LEARNING_OFF}
        cell.start_node(EstimatorNode, MovingArm, namespace=f"/{space}", **given)
        topic = f"/{space}/energy"
        observer.subscribe(topic, "sensor_msgs/JointState")
        observer.wait_for_messages(topic, 50)
        last = observer.latest[topic]
        place = last.name.index("model")  # the total is measured
        errors[space] = last.effort[place] / last.position[place]
        name = f"{space}/estimator: model"
        status = observer.status_that(name, lambda s: "standby_W" in s, "the model")
        levels[space] = bool(both.search(status["message"])) and status["level"]
        observer.wait_for_messages("/diagnostics", 2)
    assert errors["other"] > 1.2 * errors["same"]
    assert levels == {"other": "1", "same": False}
    assert len(both.findall(capfd.readouterr().err)) == 1


def test_a_full_disk_ends_nothing(
    cell: Cell, played: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The node starts, measures, answers and ends as ever."""
    with small_disk(tmp_path / "disk", 512) as disk:
        run_on_full_disk(cell, played, disk)
    assert "counters saved" in capfd.readouterr().err


def run_on_full_disk(cell: Cell, played: dict[str, Any], disk: SmallDisk) -> None:
    observer = cell.observer
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    observer.subscribe(ENERGY, "std_msgs/Float64")

    def counters(level: str) -> dict[str, str]:
        return observer.status_that(
            "estimator: counters", lambda s: s["level"] == level, level
        )

    disk.fill()
    files = {
        "state_file": disk.path / "state.db",
        "cycle_log": disk.path / "cycles.csv",
    }
    text = {name: str(path) for name, path in files.items()}
    node = cell.start_node(EstimatorNode, loop=True, **played, **text)
    assert "No space left" in counters("2")["message"]
    for service in ("reset_energy", "start_cycle", "start_cycle", "read_interval"):
        response = observer.call(f"/estimator/{service}")
        assert response.success
        assert service != "reset_energy" or "not saved" in response.message
        observer.wait_for_messages(ENERGY, 3)
    disk.empty()
    counters("0")
    assert files["state_file"].stat().st_size > 0
    node.end()
