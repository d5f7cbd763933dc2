"""Layouts of an arm with namespace and prefix: live topics, and the bag of its logger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from test.energy.known_arm import ROBOT, known_model
from test.layouts.viewers import (
    foxglove_paths,
    foxglove_topics,
    foxglove_value,
    messages_of_bag,
    plotjuggler_curves,
    plotjuggler_series,
    plotjuggler_subscriptions,
)
from test.nodes.conftest import Cell
from ur_energy_model.layouts.files import ArmTopics, layout_files
from ur_energy_model.model.model_file import save_model

TYPES = {
    "/cell1/energy": "sensor_msgs/JointState",
    "/cell1/energy/summary": "diagnostic_msgs/DiagnosticArray",
    "/cell1/energy/markers": "visualization_msgs/MarkerArray",
    "/diagnostics": "diagnostic_msgs/DiagnosticArray",
}


def test_every_curve_exists_live_and_in_the_bag(
    cell: Cell, fresh_host: Callable[[], str], tmp_path: Path
) -> None:
    model, bags, host, observer = (
        tmp_path / "model.yaml",
        tmp_path / "bags",
        fresh_host(),
        cell.observer,
    )
    save_model(known_model(), model)
    common = {"robot_ip": host, "tf_prefix": "left_"}
    cell.start_process("simulated_robot", host=host, motion="trajectory_b")
    cell.start_process(
        "estimator",
        namespace="/cell1",
        model_file=str(model),
        publish_robot_description=True,
        **common,
    )
    for topic, kind in TYPES.items():
        observer.subscribe(topic, kind)
    observer.subscribe("/cell1/robot_description", "std_msgs/String", latched=True)
    observer.wait(lambda: {*TYPES, "/cell1/robot_description"} <= set(observer.latest), "topics")
    logger = cell.start_process(
        "logger", namespace="/cell1", record=True, bag_directory=str(bags), **common
    )
    observer.wait(lambda: list(bags.glob("*/*.mcap")), "bag")
    observer.wait_for_messages("/cell1/energy", 100)
    observer.wait_for_messages("/cell1/energy/summary", 2)
    assert cell.stop(logger)[0] == 0
    (bag,) = bags.iterdir()
    recorded, live = messages_of_bag(bag), observer.latest
    files = layout_files(ArmTopics(tuple(ROBOT.joint_names), "cell1", "left_"))
    for name in ("plotjuggler/energy.xml", "plotjuggler/energy_bag.xml"):
        curves = plotjuggler_curves(files[name])
        assert curves <= plotjuggler_series(live)
        assert curves <= plotjuggler_series(recorded)
    assert set(plotjuggler_subscriptions(files["plotjuggler/energy.xml"])) <= set(live)
    foxglove = files["foxglove/energy.json"]
    for path in foxglove_paths(foxglove):
        foxglove_value(live, path)
        foxglove_value(recorded, path)
    assert foxglove_topics(foxglove) <= set(live)
    assert "/cell1/energy/summary" in recorded
