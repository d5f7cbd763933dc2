"""Values of RTDE fields: those of the control box, and those of the arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ur_energy_model.simulation.arm.parameters import constants
from ur_energy_model.simulation.control.arm_interface import ArmInterface
from ur_energy_model.simulation.control.kinematics import compose


class RtdeValues(dict[str, Any]):
    """Values of RTDE fields by name.

    The dictionary holds the fields of the control box. Fields of the arm, and fields derived from
    them, are looked up on access because some are expensive to compute.

    Attributes:
        tcp_offset: tool centre point in the flange frame [6] (rotation vector), m and rad.
    """

    def __init__(self, arm: ArmInterface) -> None:
        super().__init__()
        self._arm = arm
        self.tcp_offset = np.zeros(6)

    def __missing__(self, name: str) -> Any:
        derive = _DERIVED.get(name)
        if derive is not None:
            return derive(self._arm.outputs)
        value = self._arm.outputs[name]
        if name in _POSES and self.tcp_offset.any():
            return compose(value, self.tcp_offset)
        return value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in _DERIVED or name in self._arm.outputs


def _deviation_ratio(outputs: Mapping[str, Any]) -> float:
    error = np.abs(np.subtract(outputs["target_q"], outputs["actual_q"])).max()
    return float(error / constants()["servo"]["following_error"])


_POSES = ("actual_TCP_pose", "target_TCP_pose")
"""Poses that the arm reports for the flange, and the controller for the tool centre point."""
_DERIVED: dict[str, Callable[[Mapping[str, Any]], float]] = {
    "safety_status": lambda outputs: float(outputs["safety_mode"]),
    "tcp_force_scalar": lambda outputs: float(np.linalg.norm(outputs["actual_TCP_force"][:3])),
    "joint_position_deviation_ratio": _deviation_ratio,
}
