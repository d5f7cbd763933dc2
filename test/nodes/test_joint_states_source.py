"""The estimator beside a driver: no losses on a busy machine, and it says what is wrong."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rclpy.qos import ReliabilityPolicy

from test.energy.known_arm import ROBOT
from test.nodes.conftest import PATIENCE, Cell
from test.nodes.driver import START, Driver
from ur_energy_model.files import share_directory
from ur_energy_model.nodes.estimator import EstimatorNode

PERIOD = 2_000_000
"""Of the driver [ns]."""
NAMES = (*ROBOT.joint_names, "finger_joint", "track_joint")


@pytest.fixture
def make_busy() -> Iterator[Callable[[], None]]:
    """Starts twice as many busy processes as there are processors."""
    children: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        command = [sys.executable, "-S", "-c", "while True: pass"]
        children.extend(subprocess.Popen(command) for _ in range(2 * (os.cpu_count() or 1)))

    yield start
    for child in children:
        child.kill()
        child.wait()


def source(cell: Cell, found: Callable[[dict[str, str]], Any], what: str) -> dict[str, str]:
    """The status of the source once it fulfils a condition."""

    def look() -> dict[str, str] | None:
        status = cell.observer.status("/diagnostics", "estimator: source")
        return status if found(status) else None

    return cell.observer.wait(look, what)


def start(cell: Cell, model: Path, **parameters: Any) -> None:
    cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    cell.start_node(EstimatorNode, source="joint_states", model_file=str(model), **parameters)


@pytest.fixture
def driver(cell: Cell) -> Iterator[Callable[..., Driver]]:
    """Makes drivers that are closed after the test."""
    made: list[Driver] = []

    def make(*arguments: Any, **options: Any) -> Driver:
        made.append(Driver(cell.domain, *arguments, **options))
        cell.observer.wait(lambda: made[-1].subscribers, "the subscriber")
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("reliable", [True, False])
def test_no_message_is_lost_on_a_busy_machine(
    cell: Cell, model: Path, reliable: bool, make_busy: Callable[[], None]
) -> None:
    names = [f"left_{name}" for name in NAMES]
    random.Random(1).shuffle(names)
    cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    parameters = {"source": "joint_states", "tf_prefix": "left_", "model_file": str(model)}
    cell.start_process("estimator", namespace="/cell_7", **parameters)
    source(cell, lambda each: "publishers" in each, "the estimator")
    make_busy()
    options = {
        "domain": cell.domain,
        "names": names,
        "namespace": "/cell_7",
        "reliable": reliable,
        "seconds": 6.0,
    }
    command = [sys.executable, "-m", "test.nodes.driver", json.dumps(options)]
    child = cell.run_command(command, PYTHONPATH=str(share_directory()))
    output, _ = child.communicate(timeout=PATIENCE)
    assert output.split() == ["3000"], output
    status = source(cell, lambda each: int(each.get("samples", 0)) >= 3000, "all samples")
    assert status["samples"] == status["messages"] == "3000"
    assert status["refused_messages"] == "0"
    assert float(status["unaccounted_s"]) == 0.0


def test_losses_and_the_absence_of_a_driver_are_counted(
    cell: Cell, model: Path, driver: Callable[..., Driver]
) -> None:
    start(cell, model)
    source(cell, lambda each: "no node publishes /joint_states" in each["message"], "a reason")
    first = driver()
    source(cell, lambda each: each.get("publishers") == "/driver", "the driver")
    assert (
        "which /driver should publish"
        in source(cell, lambda each: "no message" in each["message"], "a reason")["message"]
    )
    for k in range(100):
        if k % 10 != 5:
            first.publish(START + k * PERIOD)
    status = source(cell, lambda each: each.get("samples") == "90", "the samples")
    first.close()
    restarted = driver()
    for k in range(1100, 1200):
        restarted.publish(START + k * PERIOD)
    status = source(cell, lambda each: each.get("samples") == "190", "the samples")
    assert abs(int(status["lost"]) - (10 + 1000)) <= 1
    assert float(status["unaccounted_s"]) == pytest.approx(2.002, abs=1e-3)


def test_two_drivers_of_one_arm_are_noticed(
    cell: Cell, model: Path, driver: Callable[..., Driver], capfd: pytest.CaptureFixture[str]
) -> None:
    start(cell, model)
    first, second = driver(), driver(namespace="other", topic="/joint_states")
    for k in range(100):
        first.publish(START + k * PERIOD)
        second.publish(START + k * PERIOD - PERIOD // 2)
    status = source(cell, lambda each: each.get("messages") == "200", "both drivers")
    assert int(status["refused_messages"]) > 0
    assert "second driver" in status["refused_because"]
    source(cell, lambda each: "/other/driver" in each["publishers"], "the other driver")
    assert "were refused" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("parameters", "names", "columns", "said"),
    [
        ({"tf_prefix": "left_"}, NAMES, {}, "lack left_shoulder_pan_joint"),
        ({}, NAMES[1:], {}, "lack shoulder_pan_joint (they name shoulder_lift_joint"),
        ({}, NAMES, {"velocity": []}, "no velocities"),
        ({}, NAMES, {"position": [float("nan")] * len(NAMES)}, "not finite"),
        ({"method": "current"}, NAMES, {"effort": []}, "no efforts"),
        ({}, NAMES, {"stamp": 0}, "no time stamp"),
    ],
)
def test_messages_that_cannot_be_used_say_what_is_missing(
    cell: Cell,
    model: Path,
    driver: Callable[..., Driver],
    parameters: dict[str, Any],
    names: tuple[str, ...],
    columns: dict[str, Any],
    said: str,
) -> None:
    start(cell, model, **parameters)
    subject = driver(names)
    stamp = START

    def told() -> bool:
        nonlocal stamp
        stamp += PERIOD
        subject.publish(**{"stamp": stamp, **columns})
        status = cell.observer.status("/diagnostics", "estimator: source")
        return said in status["message"] and status["level"] == "2"

    cell.observer.wait(told, said)


def test_quality_of_service_can_be_overridden_for_one_topic(cell: Cell, model: Path) -> None:
    overrides = {
        "qos_overrides./joint_states.subscription.reliability": "reliable",
        "qos_overrides./energy/total/power.publisher.depth": 3,
        "qos_overrides./energy/total/power.publisher.reliability": "best_effort",
    }
    start(cell, model, **overrides)

    def reliability(topic: str, *, of: str) -> ReliabilityPolicy:
        look = getattr(cell.observer.node, f"get_{of}_info_by_topic")
        (found,) = cell.observer.wait(lambda: look(topic), topic)
        return ReliabilityPolicy(found.qos_profile.reliability)

    assert reliability("/joint_states", of="subscriptions") == ReliabilityPolicy.RELIABLE
    assert reliability("/energy/total/power", of="publishers") == ReliabilityPolicy.BEST_EFFORT
    assert reliability("/energy/total/energy", of="publishers") == ReliabilityPolicy.RELIABLE
