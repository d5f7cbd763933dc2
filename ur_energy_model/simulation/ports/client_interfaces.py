"""Sessions of the ports that take scripts and stream the state: primary, secondary, real-time."""

from __future__ import annotations

from ur_energy_model.simulation.control.control_box import ControlBox
from ur_energy_model.simulation.control.ur_rtde_script import UrRtdeScript
from ur_energy_model.simulation.control.urscript_program import UrScriptProgram
from ur_energy_model.simulation.control.urscript_text import ScriptReader, plain_calls, program_name
from ur_energy_model.simulation.ports.client_interface_packets import state_message, version_message


class ScriptSession:
    """A client that may send scripts; what the port streams, the server adds.

    Attributes:
        finished: never; the client closes.
    """

    finished = False

    def __init__(self, box: ControlBox) -> None:
        self._box = box
        self._reader = ScriptReader()

    def greeting(self) -> bytes:
        """Nothing on the real-time port."""
        return b""

    def receive(self, data: bytes) -> bytes:
        """Start the programs that became complete; scripts are not answered."""
        for text in self._reader.feed(data):
            self._start(text)
        return b""

    def disconnected(self) -> None:
        """A program goes on without its sender."""

    def _start(self, text: str) -> None:
        name = program_name(text)
        calls = plain_calls(text)
        if name == UrRtdeScript.name:
            self._box.run(UrRtdeScript(text))
        elif calls is not None:
            self._box.run(UrScriptProgram(name, calls))
        else:
            self._box.say(f"{name} needs a URScript interpreter and was not run", level=1)


class StateSession(ScriptSession):
    """A client of the primary or secondary interface."""

    def greeting(self) -> bytes:
        """Version, kinematics and limits, which come once."""
        return version_message(self._box) + state_message(self._box, configuration=True)
