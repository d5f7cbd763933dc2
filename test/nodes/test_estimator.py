"""The estimator node alone: sources, restarts, lifecycle, unusable input, predictions."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from test.energy.known_arm import ROBOT, known_model, motion, packets, total
from test.nodes.conftest import PATIENCE, Cell
from test.small_disk import SmallDisk, small_disk
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.ros import time_message
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import RecordingInfo

JOINTS = ROBOT.joint_names


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Three seconds of the known arm."""
    telemetry, path = motion(3.0), tmp_path / "bag"
    stamp = ((1_700_000_000 + telemetry.time) * 1e9).astype(np.int64)
    info = RecordingInfo(robot="ur5e", rate=500.0)
    with BagWriter(path, info, tuple(telemetry.columns)) as writer:
        for part in packets(replace(telemetry, info=info, stamp=stamp), 100):
            writer.write(part)
    return path


def ended(cell: Cell, name: str) -> Any:
    """The last value of a topic after the end of the bag."""
    observer = cell.observer
    observer.wait(
        lambda: (
            observer.status("/diagnostics", "estimator: source")["message"] == "the bag has ended"
        ),
        "the end of the bag",
    )
    observer.drain(name)  # the last one may arrive after the status, which is another topic
    return observer.latest[name].data


def test_a_bag_is_played_in_real_time_and_sets_the_clock(
    cell: Cell, model: Path, bag: Path
) -> None:
    observer = cell.observer
    for topic in ("/energy/total/energy", "/energy/total/power"):
        observer.subscribe(topic, "std_msgs/Float64")
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    clocks: list[Clock] = []
    observer.node.create_subscription(Clock, "/clock", clocks.append, 10)
    cell.start_node(
        EstimatorNode, source="bag", bag=str(bag), model_file=str(model), use_sim_time=True
    )
    last = ended(cell, "/energy/total/energy")
    telemetry = motion(3.0)
    truth = np.trapezoid(total(telemetry), telemetry.time)
    assert last == pytest.approx(truth, rel=1e-6)
    assert last == pytest.approx(estimate_energy(load_model(model), bag).supply, rel=1e-6)
    # 50 per second, once the subscriber is discovered
    assert 100 <= len(observer.history["/energy/total/energy"]) <= 152
    seconds = [clock.clock.sec for clock in clocks]
    assert seconds == sorted(seconds)
    assert 1_700_000_000 + 100 <= seconds[0] <= seconds[-1] <= 1_700_000_000 + 104


def test_a_killed_estimator_continues_its_counters(cell: Cell, model: Path, bag: Path) -> None:
    observer = cell.observer
    topic = "/energy/total/energy"
    observer.subscribe(topic, "std_msgs/Float64")
    parameters: dict[str, Any] = {
        "source": "bag",
        "bag": str(bag),
        "loop": True,
        "model_file": str(model),
        "state_file": str(cell.folder / "state.json"),
    }
    child = cell.start_process("estimator", **parameters)
    observer.wait(lambda: len(observer.history.get(topic, [])) > 20, "energies")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    observer.drain(topic)  # messages that it sent before
    before = [message.data for message in observer.history[topic]]
    child = cell.start_process("estimator", **parameters)
    observer.wait(lambda: len(observer.history[topic]) > len(before) + 10, "more energies")
    after = [message.data for message in observer.history[topic][len(before) :]]
    assert after[0] >= before[-1]
    assert after == sorted(after)
    assert cell.stop(child, signal.SIGTERM)[0] == 0


def test_joint_states_of_a_driver_in_a_namespace_with_a_prefix(cell: Cell, model: Path) -> None:
    observer = cell.observer
    names = [f"left_{joint}" for joint in JOINTS]
    topic = "/cell_7/energy/total/power"
    observer.subscribe(topic, "std_msgs/Float64")
    observer.subscribe(f"/cell_7/energy/{names[2]}/power", "std_msgs/Float64")
    cell.start_node(
        lambda **options: EstimatorNode(namespace="/cell_7", **options),
        source="joint_states",
        tf_prefix="left_",
        model_file=str(model),
    )
    publisher = observer.node.create_publisher(JointState, "/cell_7/joint_states", 10)
    observer.wait(lambda: publisher.get_subscription_count() > 0, "the subscriber")
    telemetry = motion(4.0)
    order = [5, 3, 1, 0, 2, 4]
    for i in range(0, 1500, 10):
        message = JointState(name=["left_finger_joint", *(names[k] for k in order)])
        message.header.stamp = time_message(int(telemetry.time[i] * 1e9))
        for field, column in (
            ("position", "actual_q"),
            ("velocity", "actual_qd"),
            ("effort", "actual_current"),
        ):
            setattr(message, field, [0.0, *telemetry[column][i][order].tolist()])
        publisher.publish(message)
        observer.next_message(topic)
    powers = [message.data for message in observer.history[topic]]
    truth = total(telemetry)[:1500]
    assert np.mean(powers) == pytest.approx(truth.mean(), rel=0.1)
    assert observer.history[f"/cell_7/energy/{names[2]}/power"]


def test_lifecycle_without_autostart(cell: Cell, model: Path, bag: Path) -> None:
    observer = cell.observer
    observer.subscribe("/energy/total/power", "std_msgs/Float64")
    cell.start_node(
        EstimatorNode, autostart=False, source="bag", bag=str(bag), loop=True, model_file=str(model)
    )

    def state() -> str:
        return observer.call("/estimator/get_state", GetState).current_state.label

    def change(transition: int) -> bool:
        request = ChangeState.Request()
        request.transition.id = transition
        return observer.call("/estimator/change_state", ChangeState, request).success

    assert state() == "unconfigured"
    assert change(1)
    assert state() == "inactive"
    observer.spin(0.1)
    assert "/energy/total/power" not in observer.latest
    assert change(3)
    assert state() == "active"
    observer.next_message("/energy/total/power")
    assert change(4)
    assert state() == "inactive"
    silent = observer.drain("/energy/total/power")
    observer.spin(0.2)
    assert len(observer.history["/energy/total/power"]) == silent
    assert change(2)
    assert state() == "unconfigured"
    assert change(1)
    assert change(3)
    observer.next_message("/energy/total/power")


def test_parameters_are_checked(cell: Cell, model: Path, bag: Path) -> None:
    cell.start_node(EstimatorNode, source="bag", bag=str(bag), loop=True, model_file=str(model))

    def put(name: str, value: Any) -> Any:
        request = SetParameters.Request(
            parameters=[Parameter(name, value=value).to_parameter_msg()]
        )
        return cell.observer.call("/estimator/set_parameters", SetParameters, request).results[0]

    assert put("gap_limit", 0.5).successful
    assert not put("gap_limit", 50.0).successful
    refusal = put("source", "rtde")
    assert not refusal.successful
    assert "at configuration" in refusal.reason


def test_a_new_model_file_is_used_and_a_broken_one_is_not(
    cell: Cell, model: Path, bag: Path
) -> None:
    observer = cell.observer
    observer.subscribe("/energy/standby/power", "std_msgs/Float64")
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    cell.start_node(
        EstimatorNode,
        source="bag",
        bag=str(bag),
        loop=True,
        model_file=str(model),
        reload_period=0.1,
        track_standby=False,
    )
    assert observer.next_message("/energy/standby/power").data == 25.0
    shutil.copy(model, cell.folder / "good.yaml")
    save_model(known_model(standby=31.0), model)
    observer.wait(lambda: observer.latest["/energy/standby/power"].data == 31.0, "the new model")
    model.write_text("kind: nonsense\n")
    observer.wait(
        lambda: "kind" in observer.status("/diagnostics", "estimator: model")["message"],
        "the complaint",
    )
    assert observer.next_message("/energy/standby/power").data == 31.0


def test_a_drifting_model_raises_a_warning(cell: Cell, tmp_path: Path, bag: Path) -> None:
    observer = cell.observer
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    save_model(known_model(standby=33.0), tmp_path / "high.yaml")
    cell.start_node(
        EstimatorNode,
        source="bag",
        bag=str(bag),
        loop=True,
        drift_time=1.0,
        drift_alarm=5.0,
        model_file=str(tmp_path / "high.yaml"),
    )
    model = observer.wait(
        lambda: (s := observer.status("/diagnostics", "estimator: model"))["level"] == "1" and s,
        "the alarm",
    )
    assert "drifts away" in model["message"]
    assert float(model["residual_mean_W"]) == pytest.approx(8.0, abs=0.1)


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"learn": "keep"}, "model_file: is not set, but learn is keep"),
        ({"source": "joint_states"}, "robot_model: is not set, and neither is model_file"),
        ({"model_file": "model.yaml", "source": "bag"}, "bag: is not set, but source is bag"),
        ({"model_file": "none.yaml"}, "none.yaml"),
        ({"model_file": "broken.yaml"}, "broken.yaml"),
        ({"model_file": "model.yaml", "robot_model": "ur10e"}, "is a model of ur5e"),
    ],
)
def test_unusable_parameters_are_refused_in_one_line(
    cell: Cell,
    model: Path,
    parameters: dict[str, str],
    problem: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(cell.folder)
    (cell.folder / "broken.yaml").write_text("{}")
    assert not cell.make_node(EstimatorNode, **parameters).begin()
    output = capfd.readouterr().err
    assert problem in output
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("prometheus", "127.0.0.1:9464", "a list of text"),
        ("sink_rate", 1000.0, "a number, 0.1 to 50"),
        ("cycle_output", 99, "a whole number, 0 to 17"),
        ("mqtt_json", 7, "true or false"),
        ("mqtt_group", 7, "text"),
    ],
)
def test_values_of_another_type_or_range_are_refused(
    cell: Cell, name: str, value: object, wanted: str
) -> None:
    with pytest.raises(UrEnergyError, match=f"estimator: {name} must be {wanted}"):
        cell.make_node(EstimatorNode, **{name: value})


def test_an_unusable_source_ends_the_process_with_one_error(cell: Cell, model: Path) -> None:
    child = cell.start_process("estimator", model_file=str(model), source="bag", bag="none")
    output, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == 1
    (line,) = (line for line in output.splitlines() if "[INFO]" not in line)
    assert "[ERROR]" in line
    assert "none: no such bag" in line


def test_ctrl_c_under_launch_ends_the_node_cleanly(cell: Cell, model: Path, bag: Path) -> None:
    state = cell.folder / "state.json"
    child = cell.start_process(
        "estimator",
        source="bag",
        bag=str(bag),
        loop=True,
        model_file=str(model),
        state_file=str(state),
    )
    cell.observer.subscribe("/energy/total/power", "std_msgs/Float64")
    cell.observer.next_message("/energy/total/power")
    child.send_signal(signal.SIGINT)  # ros2 launch delivers Ctrl-C twice
    code, output = cell.stop(child)
    assert code == 0, output
    assert "Traceback" not in output
    assert state.is_file()


def test_a_model_of_another_arm_has_one_warning_and_wider_intervals(
    cell: Cell, fresh_host: Callable[[], str]
) -> None:
    """Two estimators of one controller whose serial number is not the model's."""
    save_model(replace(known_model(), provenance={"serial": "20195500042"}), cell.folder / "m.yaml")
    host, observer = fresh_host(), cell.observer
    cell.start_process("simulated_robot", host=host, motion="trajectory_a", seed=7)
    children = {
        same_arm: cell.start_process(
            "estimator",
            namespace=f"/same_{same_arm}".lower(),
            robot_ip=host,
            model_file="m.yaml",
            same_arm=same_arm,
        )
        for same_arm in (False, True)
    }
    topics = {same_arm: f"/same_{same_arm}/energy".lower() for same_arm in children}
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    for topic in topics.values():
        observer.subscribe(topic, "sensor_msgs/JointState")
        observer.wait_for_messages(topic, 100)

    def error(same_arm: bool) -> float:
        """Standard uncertainty of the arm's energy, as a share of it."""
        message = observer.latest[topics[same_arm]]
        place = message.name.index("total")
        return float(message.effort[place] / message.position[place])

    assert error(same_arm=False) > 1.2 * error(same_arm=True)
    both = re.compile(r"20195500042.*arm \d{7}0007.*same_arm:=true")
    levels = {}
    for same_arm, topic in topics.items():
        status = observer.status(
            "/diagnostics", f"{topic[1:].replace('energy', 'estimator')}: model"
        )
        levels[same_arm] = bool(both.search(status["message"])) and status["level"]
    assert levels == {False: "1", True: False}
    for same_arm, child in children.items():
        code, output = cell.stop(child)
        assert code == 0
        assert len(both.findall(output)) == (0 if same_arm else 1), output


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 512) as disk_:
        yield disk_


def test_a_full_disk_ends_nothing(cell: Cell, model: Path, bag: Path, disk: SmallDisk) -> None:
    """The process starts, measures, answers and ends as ever."""
    observer, energy = cell.observer, "/energy/total/energy"
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    observer.subscribe(energy, "std_msgs/Float64")

    def counters(level: str) -> dict[str, str]:
        def found() -> dict[str, str] | None:
            status = observer.status("/diagnostics", "estimator: counters")
            return status if status["level"] == level else None

        return observer.wait(found, f"level {level}")

    disk.fill()
    child = cell.start_process(
        "estimator",
        source="bag",
        bag=str(bag),
        loop=True,
        model_file=str(model),
        state_file=str(disk.path / "state.json"),
        cycle_log=str(disk.path / "cycles.csv"),
    )
    assert "No space left" in counters("2")["message"]
    for service in ("reset_energy", "start_cycle", "start_cycle", "read_interval"):
        response = observer.call(f"/estimator/{service}")
        assert response.success
        assert service != "reset_energy" or "not saved" in response.message
        observer.wait_for_messages(energy, 3)
    disk.empty()
    counters("0")
    assert (disk.path / "state.json").stat().st_size > 0
    code, output = cell.stop(child)
    assert code == 0
    assert "Traceback" not in output
    assert "counters saved" in output
