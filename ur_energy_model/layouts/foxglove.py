"""Layout of Foxglove (JSON): plots, the arm in 3D, diagnostics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ur_energy_model import topics_and_services as topics
from ur_energy_model.layouts.arm_topics import COLORS, WINDOW, ArmTopics

ARM = "3D!arm"
LEGEND_WIDTH = 190
"""Width of a plot's legend, beside its curves."""
CAMERA = {
    "distance": 2.6,
    "perspective": True,
    "phi": 65,
    "thetaOffset": 45,
    "targetOffset": [0, 0, 0.35],
    "target": [0, 0, 0],
    "targetOrientation": [0, 0, 0, 1],
    "fovy": 45,
    "near": 0.01,
    "far": 100,
}
"""View of a whole arm [m, deg]."""


def foxglove_layout(arm: ArmTopics) -> str:
    """The layout, for live topics and for bags.

    The arm in 3D needs robot_description as a topic, and its transforms.
    """
    panels: dict[str, Any] = {}
    for number, (title, curves) in enumerate(arm.plots().items()):
        panels[f"Plot!energy{number}"] = {
            **_titled(title),
            "paths": [
                {
                    "value": f"{arm.energies}.{curve.field}[{arm.index_of(curve)}]",
                    "label": curve.legend,
                    "enabled": True,
                    "color": color,
                    "timestampMethod": "headerStamp",
                }
                for curve, color in zip(curves, COLORS, strict=False)
            ],
            "showLegend": True,
            "legendDisplay": "left",
            "sidebarDimension": LEGEND_WIDTH,
            "xAxisVal": "timestamp",
            "followingViewWidth": WINDOW,
            "isSynced": True,
        }
    plots = list(panels)
    panels[ARM] = _arm_in_3d(arm)
    for name, topic, title in (
        ("energy", topics.DIAGNOSTICS, "Health"),
        ("summary", topics.ENERGY_SUMMARY, "Summary"),
    ):
        panels[f"DiagnosticSummary!{name}"] = {
            **_titled(title),
            "topicToRender": arm.name_of(topic),
            "minLevel": 0,
        }
    layout = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": {
            "direction": "row",
            "first": _stacked(plots),
            "second": {
                "direction": "column",
                "first": ARM,
                "second": _stacked([name for name in panels if name not in (*plots, ARM)]),
                "splitPercentage": 55,
            },
            "splitPercentage": 60,
        },
    }
    return json.dumps(layout, indent=2) + "\n"


def _arm_in_3d(arm: ArmTopics) -> dict[str, Any]:
    grid = {
        "visible": True,
        "label": "Grid",
        "instanceId": "grid",
        "layerId": "foxglove.Grid",
        "size": 2,
        "divisions": 10,
    }
    # A layer, since only /robot_description without namespace is shown by itself.
    robot = {
        "visible": True,
        "label": "Arm",
        "instanceId": "arm",
        "layerId": "foxglove.Urdf",
        "sourceType": "topic",
        "topic": arm.name_of(topics.ROBOT_DESCRIPTION),
        "framePrefix": "",
        "displayMode": "auto",
    }
    return {
        **_titled("Arm, coloured by power"),
        "followTf": arm.base_frame,
        "cameraState": CAMERA,
        "scene": {"transforms": {"showLabel": False, "axisScale": 0.15}},
        "topics": {arm.name_of(topics.ENERGY_MARKERS): {"visible": True}},
        "layers": {"grid": grid, "arm": robot},
    }


def _titled(title: str) -> dict[str, str]:
    """Title of a panel; Lichtblick has another key than Foxglove."""
    return {"foxglovePanelTitle": title, "lichtblickPanelTitle": title}


def _stacked(names: Sequence[str]) -> Any:
    """Panels in one column, as a tree of splits."""
    if len(names) == 1:
        return names[0]
    return {
        "direction": "column",
        "first": names[0],
        "second": _stacked(names[1:]),
        "splitPercentage": 100 / len(names),
    }
