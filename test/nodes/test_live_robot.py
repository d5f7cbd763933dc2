# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The estimator with a controller that is switched, loaded, moved and disturbed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from test.energy.known_arm import ROBOT, known_model
from test.nodes.conftest import LEARNING_OFF, Cell
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.plan_messages import duration_message
from ur_energy_model.simulation.simulated_controller import CONTROL_PORT
from ur_energy_model.telemetry.rtde.dashboard_client import PORT as DASHBOARD_PORT
from ur_energy_model.telemetry.rtde.source import RtdeSource

SCRIPT_PORT = 30002
JOINTS = ROBOT.joint_names


class Robot:
    """A simulated robot in a process of its own, and its estimator."""

    def __init__(self, cell: Cell, host: str) -> None:
        self.cell = cell
        self.host = host
        self.observer = cell.observer
        save_model(known_model(), cell.folder / "model.yaml")
        cell.start_process("simulated_robot", host=host, motion="hold")
        cell.start_node(
            EstimatorNode,
            robot_ip=host,
            model_file=str(cell.folder / "model.yaml"),
            state_file=str(cell.folder / "state.db"),
            **LEARNING_OFF,
        )
        for topic in ("energy/summary", "energy/prediction", "diagnostics"):
            self.observer.subscribe(
                f"/{topic}",
                "diagnostic_msgs/DiagnosticArray",
                latched=topic.endswith("prediction"),
            )
        self.observer.next_message("/energy/summary")

    def ask(self, port: int, line: str) -> str:
        """Response of a server that greets and then answers each line."""
        with socket.create_connection((self.host, port), 10.0) as link:
            answers = link.makefile("r")
            answers.readline()
            link.sendall(f"{line}\n".encode())
            return answers.readline().strip()

    def run(self, script: str) -> None:
        """Upload a script."""
        with socket.create_connection((self.host, SCRIPT_PORT), 10.0) as link:
            link.sendall(f"{script}\n".encode())

    def await_state(self, **wanted: str) -> dict[str, str]:
        """Wait until the state in energy/summary has these values."""

        return self.observer.status_that(
            "state", lambda s: wanted.items() <= s.items(), str(wanted), "/energy/summary"
        )

    def figure(self, name: str, key: str) -> float:
        """A figure of the newest energy/summary."""
        return float(self.observer.status("/energy/summary", name)[key])

    def switch_on(self) -> None:
        """Return to the state in which each test starts."""
        self.ask(DASHBOARD_PORT, "unlock protective stop")
        self.ask(DASHBOARD_PORT, "brake release")  # powers on
        self.await_state(robot_mode="running", safety_mode="normal", message="standstill")


@pytest.fixture(scope="module")
def robot(
    tmp_path_factory: pytest.TempPathFactory,
    fresh_host: Callable[[], str],
    fresh_domain_of_module: Callable[[], int],
) -> Iterator[Robot]:
    cell = Cell(tmp_path_factory.mktemp("robot"), fresh_domain_of_module())
    try:
        yield Robot(cell, fresh_host())
    finally:
        cell.close()


def test_payload_and_speed_scaling_are_followed(robot: Robot) -> None:
    robot.switch_on()
    for mass in ("1.7", "0"):
        robot.run(f"set_payload({mass}, [0, 0, 0.05])")
        robot.await_state(payload_kg=mass)
    rtde_io = pytest.importorskip("rtde_io")
    slider = rtde_io.RTDEIOInterface(robot.host)
    for fraction in (0.4, 1.0):
        assert slider.setSpeedSlider(fraction)
        robot.await_state(speed_scaling=f"{fraction:g}")
    slider.disconnect()


def test_every_mode_has_its_power(robot: Robot) -> None:
    robot.switch_on()
    figures = ("off_time_s", "braked_time_s", "braked_energy_J", "protective_stop_time_s")
    before = {name: robot.figure("state", name) for name in figures}
    robot.observer.next_message("/energy/summary")  # a second at standstill
    standing = robot.figure("total", "power_W")

    def is_close_to_bus() -> bool:
        return (
            abs(robot.figure("total", "power_W") - robot.figure("bus", "power_W")) < 0.5
        )

    powers = []
    for command, state, mode in (("off", "off", "power off"), ("on", "braked", "idle")):
        robot.ask(DASHBOARD_PORT, f"power {command}")
        robot.await_state(message=state, robot_mode=mode)
        # means over this mode only
        robot.observer.wait_for_messages("/energy/summary", 2)
        robot.observer.wait(is_close_to_bus, "the power of this mode")
        powers.append(robot.figure("total", "power_W"))
    assert powers[0] < powers[1] < standing
    robot.switch_on()
    robot.run("movej([9, -1.5, 1.5, 0, 0, 0], a=1.0, v=0.3)")  # beyond the joint's range
    robot.await_state(message="protective stop", safety_mode="protective stop")
    robot.switch_on()
    for name, figure in before.items():
        assert robot.figure("state", name) > figure
    parts = ("off", "braked", "standstill", "moving", "protective_stop")
    whole = sum(robot.figure("state", f"{part}_energy_J") for part in parts)
    assert whole == pytest.approx(robot.figure("total", "energy_J"), rel=1e-4)


def test_gaps_are_unaccounted_and_reconnections_counted(robot: Robot) -> None:
    robot.switch_on()
    before = robot.figure("counters", "unaccounted_ever_s")
    robot.ask(CONTROL_PORT, "fault skipped_packets@0:200")
    robot.observer.wait(
        lambda: robot.figure("counters", "unaccounted_ever_s") > before + 0.35, "the gap"
    )
    assert robot.figure("counters", "unaccounted_ever_s") == pytest.approx(
        before + 0.4, abs=0.01
    )
    source = "estimator: source"
    status = robot.observer.status_that(source, lambda s: s["gaps"] != "0", "the gap")
    assert float(status["unaccounted_s"]) >= 0.35
    connections = int(status["reconnects"])
    robot.ask(CONTROL_PORT, "fault closed_socket")
    robot.observer.status_that(
        source,
        lambda s: int(s["reconnects"]) > connections and s["level"] == "0",
        "a connection",
    )


def test_a_plan_is_predicted_and_measured(robot: Robot) -> None:
    robot.switch_on()
    observer = robot.observer
    topic = "/energy/prediction"
    publisher = observer.node.create_publisher(
        JointTrajectory, "/energy/planned_trajectory", 10
    )
    observer.wait(lambda: publisher.get_subscription_count() > 0, "the subscriber")
    seconds = 0.3 / 0.3 + 0.3 / 1.0  # trapezoid with 0.3 rad/s and 1 rad/s^2

    def answer(*keys: str) -> dict[str, str]:
        def is_there(found: dict[str, str]) -> bool:
            return found["plan_stamp"] == stamp and bool(found.keys() & set(keys))

        return observer.status_that("total", is_there, keys[0], topic)

    for attempt in range(5):  # where the machine is busy, the arm moves late
        with RtdeSource(robot.host, fields=("actual_q",)) as source:
            batch = source.read(10.0)
        assert batch is not None
        here = batch["actual_q"][-1]
        stamp = f"{attempt}.000000000"
        goal = here + 0.3 * (1 if here[1] < -1.5 else -1)
        point = JointTrajectoryPoint(positions=goal.tolist())
        point.time_from_start = duration_message(seconds)
        plan = JointTrajectory(joint_names=list(JOINTS), points=[point])
        plan.header.stamp.sec = attempt
        publisher.publish(plan)
        observer.wait(lambda: topic in observer.latest, "an answer")
        predicted = answer("energy_J")
        assert "measured_energy_J" not in predicted
        assert float(predicted["duration_s"]) == pytest.approx(seconds)
        robot.run(f"movej([{', '.join(map(str, goal))}], a=1.0, v=0.3)")
        measured = answer("measured_energy_J", "not_measured")
        if "not_measured" not in measured:
            break
    assert measured["energy_J"] == predicted["energy_J"]
    assert float(measured["measured_duration_s"]) == pytest.approx(seconds, abs=0.25)
    # The model is of another arm; only its standby power has been tracked.
    for key in ("measured_energy_J", "measured_bus_energy_J"):
        assert float(measured[key]) == pytest.approx(
            float(predicted["energy_J"]), rel=0.5
        )
    for joint in JOINTS:
        assert "measured_electrical_energy_J" in observer.status(topic, joint)
