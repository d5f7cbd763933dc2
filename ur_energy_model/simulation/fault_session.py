"""The port on which faults are asked for while the controller runs: one line, one answer."""

from __future__ import annotations

from ur_energy_model.errors import InputError
from ur_energy_model.simulation.faults import FAULTS, Faults
from ur_energy_model.simulation.lines import LineSession


class FaultSession(LineSession):
    """`fault NAME[@T[+D]][:ARGUMENT]`, `clear [NAME]`, `list`, `quit`."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    def greeting(self) -> bytes:
        """Say what this port understands."""
        return b"simulated controller: fault NAME[@T[+D]][:ARGUMENT] | clear [NAME] | list | quit\n"

    def answer(self, line: str) -> str:
        """Answer to one line."""
        verb, _, rest = line.partition(" ")
        match verb:
            case "fault":
                try:
                    return f"ok {self._faults.add(rest)}"
                except InputError as error:
                    return f"refused {error}"
            case "clear":
                return f"ok {self._faults.clear(rest.strip() or None)} cleared"
            case "list":
                return "ok " + " ".join(str(fault) for fault in self._faults.faults)
            case "quit":
                self.finished = True
                return "ok"
        return f"refused: not understood; known faults: {', '.join(FAULTS)}"
