"""A logger beside a driver: only one of them publishes the joints of the arm."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from test.energy.known_arm import ROBOT
from test.nodes.conftest import Cell
from test.nodes.driver import Driver
from ur_energy_model.nodes import logger_topics as other_publishers
from ur_energy_model.nodes.logger import LoggerNode

JOINTS = ROBOT.joint_names


@pytest.fixture
def make_driver(cell: Cell) -> Iterator[Callable[..., Driver]]:
    made: list[Driver] = []

    def make(names: tuple[str, ...] = JOINTS) -> Driver:
        made.append(Driver(cell.domain, names))
        return made[-1]

    yield make
    for each in made:
        each.close()


def start_logger(cell: Cell, host: str) -> LoggerNode:
    cell.start_process("simulated_robot", host=host, motion="hold")
    cell.observer.subscribe("/joint_states", "sensor_msgs/JointState")
    node = cell.start_node(LoggerNode, robot_ip=host, bag_directory=str(cell.folder))
    assert isinstance(node, LoggerNode)
    return node


def from_logger(cell: Cell) -> int:
    """Messages so far that hold the simulated arm's pose (the driver's are all zero)."""
    return sum(
        bool(message.name == list(JOINTS) and any(message.position))
        for message in cell.observer.history.get("/joint_states", [])
    )


def driven(cell: Cell, driver: Driver, seconds: float) -> None:
    """Let a driver publish for a while."""
    for _ in range(round(50 * seconds)):
        driver.publish()
        cell.observer.spin(0.02)


def test_a_logger_is_silent_beside_a_driver_and_takes_over_when_it_is_gone(
    cell: Cell,
    fresh_host: Callable[[], str],
    make_driver: Callable[..., Driver],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(other_publishers, "GONE_AFTER", 3.0)
    driver = make_driver()
    logger = start_logger(cell, fresh_host())
    cell.observer.wait(lambda: driver.subscribers >= 2, "the logger's look")
    driven(cell, driver, 6.0)
    assert logger._session.link.connected
    assert from_logger(cell) == 0
    stamps = [m.header.stamp for m in cell.observer.history["/joint_states"]]
    assert stamps == sorted(stamps, key=lambda each: (each.sec, each.nanosec))
    driver.close()
    cell.observer.wait(lambda: from_logger(cell) > 20, "joint_states of the logger")
    late = make_driver()
    cell.observer.wait(lambda: late.subscribers >= 2, "the logger's look")
    driven(cell, late, 3.0)
    before = from_logger(cell)
    driven(cell, late, 2.0)
    assert from_logger(cell) == before
    said = capfd.readouterr().err
    assert said.count("/joint_states is left to /driver") == 2
    assert said.count("published by this node again") == 1


def test_the_joints_of_a_gripper_do_not_silence_the_logger(
    cell: Cell, fresh_host: Callable[[], str], make_driver: Callable[..., Driver]
) -> None:
    gripper = make_driver(("finger_joint",))
    start_logger(cell, fresh_host())
    for _ in range(1000):
        driven(cell, gripper, 0.1)
        if from_logger(cell) > 20:
            break
    assert from_logger(cell) > 20
