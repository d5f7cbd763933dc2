"""Values of RTDE fields, from whoever knows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ur_energy_model.simulation.arm.parameters import constants
from ur_energy_model.simulation.control.arm_interface import ArmInterface
from ur_energy_model.simulation.control.kinematics import compose


class RtdeValues(dict[str, Any]):
    """Values of RTDE fields by name: those of the control box, and else those of the arm.

    The arm's values, and what is derived from them, are looked up only when somebody asks, for
    some are costly.

    Attributes:
        tool: tool centre point in the flange frame [6] (rotation vector), m and rad.
    """

    def __init__(self, arm: ArmInterface) -> None:
        super().__init__()
        self._arm = arm
        self.tool = np.zeros(6)

    def __missing__(self, name: str) -> Any:
        derive = _DERIVED.get(name)
        if derive is not None:
            return derive(self._arm.outputs)
        value = self._arm.outputs[name]
        if name in _POSES and self.tool.any():
            return compose(value, self.tool)
        return value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in _DERIVED or name in self._arm.outputs


def _deviation_ratio(outputs: Mapping[str, Any]) -> float:
    error = np.abs(np.subtract(outputs["target_q"], outputs["actual_q"])).max()
    return float(error / constants()["servo"]["following_error"])


_POSES = ("actual_TCP_pose", "target_TCP_pose")
"""Fields that an arm gives for its flange, and a controller for the tool centre point."""
_DERIVED: dict[str, Callable[[Mapping[str, Any]], float]] = {
    "safety_status": lambda outputs: float(outputs["safety_mode"]),
    "tcp_force_scalar": lambda outputs: float(np.linalg.norm(outputs["actual_TCP_force"][:3])),
    "joint_position_deviation_ratio": _deviation_ratio,
}
