"""Control port of the simulation: faults and changes of the arm at run time, a line each."""

from __future__ import annotations

import math

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.setup import Payload
from ur_energy_model.simulation.arm.payload_limits import FARTHEST, HEAVIEST, is_possible
from ur_energy_model.simulation.control.arm_interface import ArmInterface
from ur_energy_model.simulation.ports.faults import FAULTS, Faults
from ur_energy_model.simulation.ports.line_session import LineSession

GREETING = (
    "simulated controller: fault NAME[@T[+D]][:ARGUMENT] | clear [NAME] | list | "
    "carry KG[,X,Y,Z] | friction JOINT FACTOR | gravity X,Y,Z | quit\n"
)

_LEAST_FACTOR, _LARGEST_FACTOR = 0.1, 10.0
"""Factors on the friction of a joint."""
_LARGEST_GRAVITY = 20.0
"""Of the mounting [m/s^2]."""


class ControlPortSession(LineSession):
    """Injects faults, and changes the arm without informing the controller."""

    def __init__(self, arm: ArmInterface, faults: Faults) -> None:
        super().__init__()
        self._arm = arm
        self._faults = faults

    def greeting(self) -> bytes:
        """List of the commands."""
        return GREETING.encode()

    def answer(self, line: str) -> str:
        """Answer to one line."""
        verb, _, rest = line.partition(" ")
        match verb:
            case "fault":
                try:
                    return f"ok {self._faults.inject(rest)}"
                except InputError as error:
                    return f"refused: {error}"
            case "clear":
                return f"ok {self._faults.clear(rest.strip() or None)} cleared"
            case "list":
                return " ".join(["ok", *map(str, self._faults.faults)])
            case "carry":
                return self._carry(rest)
            case "friction":
                return self._change_friction(rest)
            case "gravity":
                return self._tilt(rest)
            case "quit":
                self.finished = True
                return "ok"
        return f"refused: unknown command; known faults: {', '.join(FAULTS)}"

    def _carry(self, text: str) -> str:
        try:
            mass, *center = map(float, text.split(","))
        except ValueError:
            mass, center = math.nan, []
        payload = Payload(mass, np.array(center or (0.0, 0.0, 0.0)))
        if len(center) not in (0, 3) or not is_possible(payload):
            return (
                "refused: write carry KG or carry KG,X,Y,Z "
                f"(up to {HEAVIEST:g} kg, and {FARTHEST:g} m in the flange frame)"
            )
        self._arm.carry(payload)
        return f"ok carrying {mass:g} kg"

    def _change_friction(self, text: str) -> str:
        names = self._arm.robot.joint_names
        joint, _, number = text.strip().rpartition(" ")
        try:
            factor = float(number)
        except ValueError:
            factor = math.nan
        if joint not in names or not _LEAST_FACTOR <= factor <= _LARGEST_FACTOR:
            return (
                f"refused: write friction JOINT FACTOR (joints {', '.join(names)}; factor "
                f"{_LEAST_FACTOR:g} to {_LARGEST_FACTOR:g} on the present friction)"
            )
        self._arm.change_friction(names.index(joint), factor)
        return f"ok friction of {joint} times {factor:g}"

    def _tilt(self, text: str) -> str:
        try:
            gravity = np.array([float(part) for part in text.split(",")])
        except ValueError:
            gravity = np.zeros(0)
        if gravity.shape != (3,) or not np.linalg.norm(gravity) <= _LARGEST_GRAVITY:
            return f"refused: write gravity X,Y,Z in m/s^2 (up to {_LARGEST_GRAVITY:g})"
        self._arm.tilt(gravity)
        return f"ok gravity {', '.join(f'{value:g}' for value in gravity)} m/s^2"
