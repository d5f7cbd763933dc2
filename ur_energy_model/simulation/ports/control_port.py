"""Control port of the simulation: faults and payload at run time, one line per command."""

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
    "carry KG[,X,Y,Z] | quit\n"
)


class ControlPortSession(LineSession):
    """Injects faults, and mounts payloads without informing the controller."""

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
