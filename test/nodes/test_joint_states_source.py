# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The estimator beside a driver: no losses on a busy machine, and reports of what is wrong."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rclpy.qos import ReliabilityPolicy

from test.energy.known_arm import ROBOT, changed, counted, known_model, motion, total
from test.nodes.conftest import LEARNING_OFF, Cell
from test.nodes.driver import START, Driver
from ur_energy_model.files import share_directory
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.telemetry.samples import Telemetry

PERIOD = 2_000_000  # of the driver [ns]
COUNT = 600  # messages of a driver, more than a second
BUSY_COUNT = 900  # messages while all processors are busy
NAMES = (*ROBOT.joint_names, "finger_joint", "track_joint")


def source(
    cell: Cell, found: Callable[[dict[str, str]], Any], what: str
) -> dict[str, str]:
    """The status of the source once it fulfils a condition."""
    return cell.observer.status_that("estimator: source", found, what)


def accounted(each: dict[str, str]) -> int:
    """Number of messages that became samples, or of which it is known that they are lost.

    Drivers of these tests publish faster than those of arms, and the middleware may drop
    messages where its threads get no processor for a while.
    """
    return int(each.get("samples", 0)) + int(each.get("lost", 0))


def working(seconds: float) -> Telemetry:
    """The known arm in motion, with the currents that its motion needs."""
    telemetry = motion(seconds)
    turned = np.pi * telemetry["actual_q"]  # sine of the phase of each joint
    acceleration = -np.pi * turned
    powers = known_model().predict(
        telemetry["actual_q"], telemetry["actual_qd"], acceleration
    )
    return changed(telemetry, actual_current=powers.current)


_REST = np.zeros((1, ROBOT.dof))
RESTING = known_model().predict(_REST, _REST, _REST).current[0]
"""Currents that hold the known arm where drivers of these tests have it [n], A."""


def start(cell: Cell, model: Path, **parameters: Any) -> EstimatorNode:
    cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    given = {
        "source": "joint_states",
        "model_file": str(model),
        **LEARNING_OFF,
    } | parameters
    return cell.start_node(EstimatorNode, **given)


def energy_of(node: EstimatorNode) -> float:
    """Energy of the whole arm by all samples that its status counts [J]."""
    estimator = node._estimator()
    return float(counted(estimator)[estimator.channels.arm["total"]])


@pytest.fixture
def driver(cell: Cell) -> Iterator[Callable[..., Driver]]:
    """Makes drivers to which the estimator is connected; they are closed after the test."""
    made: list[Driver] = []

    def make(*arguments: Any, **options: Any) -> Driver:
        made.append(Driver(cell.domain, *arguments, **options))
        cell.observer.wait(lambda: made[-1].subscribers, "the subscriber")
        connected = str(sum(not each.closed for each in made))
        source(
            cell,
            lambda each: each.get("connected_publishers") == connected,
            "the connection",
        )
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_every_message_is_used_or_reported_as_lost_on_a_busy_machine(
    cell: Cell, model: Path
) -> None:
    """In a namespace, with a prefix, and with joints in any order.

    The middleware itself drops messages where its threads get no processor for long.
    """
    names = [f"left_{name}" for name in NAMES]
    random.Random(1).shuffle(names)
    cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    parameters = {"source": "joint_states", "tf_prefix": "left_", **LEARNING_OFF}
    cell.start_process(
        "estimator", namespace="/cell_7", model_file=str(model), **parameters
    )
    source(cell, lambda each: "publishers" in each, "the estimator")
    options = {
        "domain": cell.domain,
        "names": names,
        "namespace": "/cell_7",
        "count": BUSY_COUNT,
    }
    options["folder"] = str(cell.folder)
    command = [sys.executable, "-m", "test.nodes.driver", json.dumps(options)]
    child = cell.run_command(command, PYTHONPATH=str(share_directory()))
    source(cell, lambda each: each["connected_publishers"] == "1", "the driver")
    command = [sys.executable, "-S", "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    (cell.folder / "begin").touch()
    try:
        cell.observer.wait((cell.folder / "published").exists, "the last message")
    finally:
        for each in busy:
            each.kill()
            each.wait()

    def counted(each: dict[str, str]) -> bool:
        """All messages are counted, and no further one came while the status was made."""
        return accounted(each) >= BUSY_COUNT and each["samples"] == each["messages"]

    status = source(cell, counted, "each message as a sample")
    (cell.folder / "end").touch()
    cell.stop(child)
    lost = int(status["lost"])
    assert status["refused_messages"] == "0"
    assert float(status["unaccounted_s"]) <= 0.004 * lost


def test_losses_the_absence_of_a_driver_and_energies(
    cell: Cell, model: Path, driver: Callable[..., Driver]
) -> None:
    reliable = {"qos_overrides./joint_states.subscription.reliability": "reliable"}
    node = start(cell, model, method="current", effort_unit="ampere", **reliable)
    source(
        cell,
        lambda each: "no node publishes /joint_states" in each["message"],
        "a reason",
    )
    first = driver()
    source(cell, lambda each: each.get("publishers") == "/driver", "the driver")
    silent = source(cell, lambda each: "no message" in each["message"], "a reason")
    assert "which /driver should publish" in silent["message"]
    for k in range(COUNT):
        if k % 10 != 5:
            first.publish(START + k * PERIOD, effort=RESTING.tolist())
    source(cell, lambda each: accounted(each) == COUNT, "the samples")
    first.close()
    before = energy_of(node)
    restarted = driver(NAMES)
    telemetry = working(COUNT * PERIOD * 1e-9)
    for k in range(COUNT):
        columns = {
            name: [*telemetry[column][k].tolist(), 0.0, 0.0]
            for name, column in (
                ("position", "actual_q"),
                ("velocity", "actual_qd"),
                ("effort", "actual_current"),
            )
        }
        restarted.publish(START + (COUNT + 1000 + k) * PERIOD, **columns)
    published = COUNT + 1000 + COUNT
    status = source(cell, lambda each: accounted(each) >= published - 1, "the samples")
    assert accounted(status) <= published + 1
    dropped = int(status["lost"]) - (COUNT // 10 + 1000)
    assert dropped >= -1
    assert status["efforts"] == "used as motor currents in A (as stated)"
    dropped_time = max(dropped, 0) * 2 * PERIOD * 1e-9
    assert 2.001 <= float(status["unaccounted_s"]) <= 2.003 + dropped_time
    gained = energy_of(node) - before
    expected = np.trapezoid(total(telemetry)[:COUNT], telemetry.time[:COUNT])
    assert gained == pytest.approx(expected, rel=0.1)
    for k in range(4000, 4100):
        restarted.publish(START + k * PERIOD, effort=[])
    status = source(cell, lambda each: "no efforts" in each["message"], "what is lacking")
    assert status["level"] == "2"


def test_two_drivers_of_one_arm_are_noticed_and_quality_of_service_is_overridden(
    cell: Cell,
    model: Path,
    driver: Callable[..., Driver],
    capfd: pytest.CaptureFixture[str],
) -> None:
    overrides = {
        "qos_overrides./joint_states.subscription.reliability": "reliable",
        "qos_overrides./energy/total/power.publisher.reliability": "best_effort",
    }
    start(cell, model, **overrides)

    node = cell.observer.node
    for topic, look, reliable in (
        ("/joint_states", node.get_subscriptions_info_by_topic, True),
        ("/energy/total/power", node.get_publishers_info_by_topic, False),
    ):
        (found,) = cell.observer.wait(lambda: look(topic), topic)  # noqa: B023
        assert (found.qos_profile.reliability == ReliabilityPolicy.RELIABLE) == reliable
    first = driver()
    second = driver(namespace="other", topic="/joint_states")
    for k in range(100):
        first.publish(START + k * PERIOD)
        second.publish(START + k * PERIOD - PERIOD // 2)
    status = source(cell, lambda each: each.get("messages") == "200", "both drivers")
    assert int(status["refused_messages"]) > 0
    assert "second driver" in status["refused_because"]
    source(cell, lambda each: "/other/driver" in each["publishers"], "the other driver")
    assert "were refused" in capfd.readouterr().err


def test_the_clock_of_the_only_driver_is_set_back(
    cell: Cell, model: Path, driver: Callable[..., Driver]
) -> None:
    """It is no second driver, and nothing is lost."""
    reliable = {"qos_overrides./joint_states.subscription.reliability": "reliable"}
    start(cell, model, **reliable)
    only = driver()
    for k in range(COUNT):
        back = 5_000_000_000 if k >= COUNT // 2 else 0
        only.publish(START + k * PERIOD - back)
    status = source(cell, lambda each: accounted(each) == COUNT, "the messages")
    assert (status["samples"], status["refused_messages"]) == (status["messages"], "0")
    assert status["clock_steps_of_stamps"] == "1"
    assert float(status["unaccounted_s"]) < 1.0


@pytest.mark.parametrize(
    ("parameter", "unit", "said"),
    [
        ("auto", "ampere", "used as motor currents in A (recognised from the motion)"),
        (
            "auto",
            "newton_metre",
            "used as joint torques in N m (recognised from the motion)",
        ),
        (
            "ampere",
            "newton_metre",
            "not used: effort_unit is ampere, but efforts of /joint_states",
        ),
    ],
)
def test_the_unit_of_efforts_is_recognised_or_contradicted(
    cell: Cell,
    model: Path,
    driver: Callable[..., Driver],
    parameter: str,
    unit: str,
    said: str,
) -> None:
    """The same motion has the same energy whatever the unit is, and a wrong parameter shows."""
    reliable = {"qos_overrides./joint_states.subscription.reliability": "reliable"}
    node = start(cell, model, effort_unit=parameter, **reliable)
    publisher = driver()
    telemetry = working(3.0)
    # gear ratio and torque constant
    scale = 101.0 * 0.1 if unit == "newton_metre" else 1.0
    for k, (position, velocity, current) in enumerate(
        zip(
            telemetry["actual_q"].tolist(),
            telemetry["actual_qd"].tolist(),
            telemetry["actual_current"],
            strict=True,
        )
    ):
        efforts = (scale * current).tolist()
        publisher.publish(
            START + k * PERIOD, position=position, velocity=velocity, effort=efforts
        )
    count = len(telemetry)
    status = source(cell, lambda each: accounted(each) == count, "the samples")
    assert status["efforts"].startswith(said)
    contradicted = parameter != "auto"
    if contradicted:
        assert "are joint torques in N m" in status["message"]
        assert "set effort_unit:=newton_metre" in status["message"]
    assert ("effort_unit" in status["message"]) == contradicted
    expected = np.trapezoid(total(telemetry), telemetry.time)
    # Without efforts the power is that of the motion, whose accelerations are filtered.
    assert energy_of(node) == pytest.approx(expected, rel=0.05)


def test_velocities_in_other_units_are_noticed(
    cell: Cell, model: Path, driver: Callable[..., Driver]
) -> None:
    start(cell, model)
    publisher = driver()
    telemetry = working(2.0)
    velocities = np.degrees(telemetry["actual_qd"]).tolist()
    for k, position in enumerate(telemetry["actual_q"].tolist()):
        publisher.publish(START + k * PERIOD, position=position, velocity=velocities[k])
    said = source(
        cell, lambda each: "degrees per second" in each["message"], "the contradiction"
    )
    assert "rad/s" in said["message"]
