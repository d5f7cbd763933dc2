"""Configuration of rviz (YAML): markers of power, robot model, grid."""

from __future__ import annotations

from typing import Any

import yaml

from ur_energy_model import topics_and_services as topics
from ur_energy_model.layouts.arm_topics import ArmTopics


def rviz_layout(arm: ArmTopics) -> str:
    """The configuration; its fixed frame is the arm's base."""
    layout = {
        "Panels": [{"Class": "rviz_common/Displays", "Name": "Displays"}],
        "Visualization Manager": {
            "Class": "",
            "Global Options": {"Fixed Frame": arm.base_frame, "Frame Rate": 30},
            "Displays": _displays(arm),
            "Tools": [{"Class": "rviz_default_plugins/MoveCamera"}],
            "Views": {
                "Current": {
                    "Class": "rviz_default_plugins/Orbit",
                    "Name": "Current View",
                    "Distance": 2.5,
                    "Pitch": 0.4,
                    "Yaw": 0.8,
                    "Target Frame": arm.base_frame,
                },
            },
        },
    }
    return yaml.safe_dump(layout, sort_keys=False)


def _displays(arm: ArmTopics) -> list[dict[str, Any]]:
    return [
        {
            "Class": "rviz_default_plugins/Grid",
            "Name": "Grid",
            "Enabled": True,
            "Cell Size": 0.25,
            "Plane Cell Count": 12,
        },
        {
            "Class": "rviz_default_plugins/RobotModel",
            "Name": "Arm",
            "Enabled": True,
            "Description Source": "Topic",
            "Alpha": 0.6,
            "Description Topic": _topic(arm, topics.ROBOT_DESCRIPTION),
        },
        {
            "Class": "rviz_default_plugins/MarkerArray",
            "Name": "Power",
            "Enabled": True,
            "Topic": _topic(arm, topics.ENERGY_MARKERS),
        },
    ]


def _topic(arm: ArmTopics, topic: topics.Topic) -> dict[str, Any]:
    return {
        "Value": arm.name_of(topic),
        "Depth": 5,
        "History Policy": "Keep Last",
        "Reliability Policy": "Reliable",
        "Durability Policy": "Transient Local" if topic.latched else "Volatile",
    }
