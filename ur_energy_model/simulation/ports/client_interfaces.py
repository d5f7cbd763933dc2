"""Sessions of the primary, secondary and real-time client interfaces."""

from __future__ import annotations

from ur_energy_model.simulation.control.control_box import ControlBox
from ur_energy_model.simulation.control.program import Program, ScriptError
from ur_energy_model.simulation.control.ur_rtde_script import UrRtdeScript
from ur_energy_model.simulation.control.urscript_program import UrScriptProgram
from ur_energy_model.simulation.control.urscript_text import ScriptReader, calls_of, program_name
from ur_energy_model.simulation.ports.client_interface_packets import state_message, version_message


class ScriptSession:
    """A client that may send scripts; the server sends the stream of the port.

    Attributes:
        finished: always False; the client closes the connection.
    """

    finished = False

    def __init__(self, box: ControlBox) -> None:
        self._box = box
        self._reader = ScriptReader()

    def greeting(self) -> bytes:
        """Empty on the real-time interface."""
        return b""

    def receive(self, data: bytes) -> bytes:
        """Start the completed programs; scripts get no answer."""
        for text in self._reader.feed(data):
            self._start(text)
        return b""

    def disconnected(self) -> None:
        """The program continues without its sender."""

    def _start(self, text: str) -> None:
        name = program_name(text)
        try:
            program = self._program(name, text)
        except ScriptError as error:
            self._box.send_message(str(error), level=1)
        else:
            self._box.run(program)

    def _program(self, name: str, text: str) -> Program:
        """Program of a script.

        Raises:
            ScriptError: it cannot run.
        """
        if name == UrRtdeScript.name:
            return UrRtdeScript(self._box, text)
        calls = calls_of(text)
        if calls is None:
            raise ScriptError(f"{name} needs a URScript interpreter and was not run")
        return UrScriptProgram(self._box, name, calls)


class StateSession(ScriptSession):
    """A client of the primary or secondary interface."""

    def greeting(self) -> bytes:
        """Version, kinematics and limits, sent once."""
        return version_message(self._box) + state_message(self._box, configuration=True)
