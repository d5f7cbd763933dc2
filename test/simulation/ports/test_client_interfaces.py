"""Uploaded scripts: splitting, plain calls, and the control loop of ur_rtde."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ur_energy_model.simulation import commands as cmd
from ur_energy_model.simulation.client_interfaces import ScriptSession
from ur_energy_model.simulation.commands import ProgramState, SafetyMode
from ur_energy_model.simulation.control_box import REPLACEMENT, ControlBox
from ur_energy_model.simulation.ur_rtde_script import UrRtdeScript
from ur_energy_model.simulation.urscript import Call, Pose, ScriptReader, calls_of

if TYPE_CHECKING:
    from test.simulation.conftest import StandInArm

LOOP = "def rtde_control():\n    global reg_offset_int = 0\nend\n"
UPPER_LOOP = LOOP.replace("= 0", "= 24")


@pytest.fixture
def session(box: ControlBox) -> ScriptSession:
    return ScriptSession(box)


def test_programs_end_at_end_and_lines_are_programs() -> None:
    reader = ScriptReader()
    text = "def a():\n  if x:\n    y()\n  end\nend\nstopj(2.0)\nsec b():\nend\n"
    programs = [program for byte in text for program in reader.feed(byte.encode())]
    assert programs == ["def a():\n  if x:\n    y()\n  end\nend", "stopj(2.0)", "sec b():\nend"]


def test_endless_programs_do_not_fill_the_memory() -> None:
    reader = ScriptReader()
    for _ in range(300):
        assert reader.feed(b"x" * 10_000) == []
    reader.feed(b"\n")
    assert reader.feed(b"stopj(1)\n") == ["stopj(1)"]


def test_plain_calls_are_read() -> None:
    calls = calls_of("def p():\n  movej([1, -2.5], a=1.2)  # go\n  movel(p[0,0,1,0,0,0])\nend")
    assert calls == [
        Call("movej", ([1, -2.5],), {"a": 1.2}),
        Call("movel", (Pose((0, 0, 1, 0, 0, 0)),), {}),
    ]
    assert calls is not None
    assert isinstance(calls[1].positional[0], Pose)


def test_old_spelling_of_digital_outputs() -> None:
    assert calls_of("digital_out[2]=True") == [Call("set_digital_out", (2, True), {})]


@pytest.mark.parametrize("body", ["while True:", "x = 1", "movej(q)", "movej([0], a=b)", "1 +"])
def test_programs_that_need_an_interpreter_are_recognised(body: str) -> None:
    assert calls_of(f"def p():\n  {body}\nend") is None


def test_a_program_executes_its_calls_in_order(
    session: ScriptSession, box: ControlBox, arm: StandInArm
) -> None:
    session.receive(
        b"def p():\n  set_payload(1.5, [0, 0, 0.1])\n  movej([1,2,3,4,5,6], a=1.5, v=0.5)\n"
        b"  sleep(0.01)\n  set_digital_out(2, True)\n  stopj(3.0)\nend\n"
    )
    arm.busy = True
    for _ in range(5):
        box.step()
    payload, move = arm.commands
    assert isinstance(payload, cmd.SetPayload)
    assert isinstance(move, cmd.MoveJ)
    np.testing.assert_array_equal(move.q, [1, 2, 3, 4, 5, 6])
    assert (move.v, move.a) == (0.5, 1.5)
    assert box.program_state == ProgramState.PLAYING
    arm.busy = False
    for _ in range(5):
        box.step()
    assert len(arm.commands) == 2, "sleep takes five cycles"
    for _ in range(5):
        box.step()
    assert box.values["actual_digital_output_bits"] == 0b100
    assert box.program_state == ProgramState.STOPPED
    assert [type(command) for command in arm.commands[2:]] == [cmd.StopJ, cmd.StopJ]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (b"force_mode(p[0,0,0,0,0,0])\n", "force_mode is not simulated"),
        (b"movej(p[9,0,0,0,0,0])\n", "cannot reach"),
        (b"servoj(p[0,0,0,0,0,0])\n", "to a pose is not simulated"),
        (b"movej([0,0,0])\n", "six numbers"),
        (b"movej([0,0,0,0,0,1e999])\n", "six numbers"),
        (b"def p():\n  while True:\n  end\nend\n", "needs a URScript interpreter"),
    ],
)
def test_programs_that_cannot_run_are_reported(
    session: ScriptSession, box: ControlBox, program: bytes, reason: str
) -> None:
    session.receive(program)
    box.step()
    box.step()
    assert box.program_state == ProgramState.STOPPED
    assert any(reason in message.text for message in box.messages)


def test_a_program_replaces_one_that_is_paused(session: ScriptSession, box: ControlBox) -> None:
    """It is no paused program that goes on: clients see that one is stopped in between."""
    session.receive(b"def p():\n  sleep(10)\nend\n")
    box.step()
    assert box.pause()
    session.receive(b"def q():\n  sleep(1)\nend\n")
    states = []
    for _ in range(round(2 * REPLACEMENT * box.rate)):
        box.step()
        states.append(box.values["runtime_state"])
    assert list(dict.fromkeys(states)) == [ProgramState.STOPPED, ProgramState.PLAYING]


def test_a_program_is_not_started_while_the_arm_is_off(
    session: ScriptSession, box: ControlBox, arm: StandInArm
) -> None:
    box.power_off()
    session.receive(LOOP.encode())
    assert box.program_state == ProgramState.STOPPED
    assert "not running" in box.messages[-1].text


def test_plain_calls_run_while_the_arm_is_off(session: ScriptSession, box: ControlBox) -> None:
    box.power_off()
    session.receive(b"set_digital_out(1, True)\n")
    box.step()
    box.step()
    assert box.values["actual_digital_output_bits"] == 0b10


def test_an_uploaded_program_replaces_the_motion(
    session: ScriptSession, box: ControlBox, arm: StandInArm
) -> None:
    assert box.play()
    session.receive(LOOP.encode())
    assert arm.commands[-1] is cmd.ProgramCommand.STOP
    for _ in range(round(REPLACEMENT * box.rate)):
        assert box.program_state == ProgramState.STOPPED
        box.step()
    assert box.values["runtime_state"] == ProgramState.PLAYING
    assert box.values["robot_status_bits"] == 0b11


class Loop:
    """Client side of ur_rtde's register handshake."""

    def __init__(self, box: ControlBox, offset: int = 0) -> None:
        self.box, self.offset = box, offset
        box.run(UrRtdeScript(box, LOOP if offset == 0 else UPPER_LOOP))
        box.step()
        assert self.state == 1

    @property
    def state(self) -> int:
        return int(self.output("int", 0))

    def output(self, kind: str, register: int) -> float:
        return float(self.box.values[f"output_{kind}_register_{register + self.offset}"])

    def write(self, command: int, doubles: list[float] | None = None, second: int = 0) -> None:
        registers: dict[str, float] = {
            f"input_int_register_{self.offset}": command,
            f"input_int_register_{self.offset + 1}": second,
        }
        for i, value in enumerate(doubles or []):
            registers[f"input_double_register_{i + self.offset}"] = value
        self.box.write_inputs(registers)
        self.box.step()


@pytest.fixture(params=[0, 24])
def loop(box: ControlBox, request: pytest.FixtureRequest) -> Loop:
    return Loop(box, request.param)


def test_a_synchronous_move_reports_done_when_the_arm_rests(loop: Loop, arm: StandInArm) -> None:
    arm.busy = True
    loop.write(1, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.5, 2.5])
    (move,) = arm.commands
    assert isinstance(move, cmd.MoveJ)
    np.testing.assert_allclose(move.q, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert (move.v, move.a) == (1.5, 2.5)
    for _ in range(10):
        loop.box.step()
        assert loop.state == 1
    arm.busy = False
    loop.box.step()
    assert loop.state == 2
    loop.box.step()
    assert loop.state == 2, "done until the client clears its command"
    assert len(arm.commands) == 1
    loop.write(0)
    assert loop.state == 1


def test_an_asynchronous_move_reports_done_at_once_and_its_progress(
    loop: Loop, arm: StandInArm
) -> None:
    before = int(loop.output("int", 2))
    arm.busy = True
    loop.write(1, [0.0] * 6 + [1.0, 1.0], second=1)
    assert loop.state == 2
    running = int(loop.output("int", 2))
    assert running >> 15 & 1 == 1
    assert running >> 24 == (before >> 24) + 1, "a new operation has a new number"
    loop.write(0)
    assert loop.state == 1
    arm.busy = False
    loop.box.step()
    finished = int(loop.output("int", 2))
    assert finished >> 15 & 1 == 0
    assert all(a >> 16 & 127 != b >> 16 & 127 for a, b in pairwise([before, running, finished]))


def test_streaming_commands_leave_the_loop_ready(loop: Loop, arm: StandInArm) -> None:
    loop.write(11, [0.1] * 6 + [0.0, 0.0, 0.002, 0.05, 400.0])
    assert loop.state == 1
    loop.write(9, [0.2] * 6 + [1.5, 0.0])
    assert loop.state == 1
    servo, speed = arm.commands
    assert isinstance(servo, cmd.ServoJ)
    assert (servo.time, servo.lookahead, servo.gain) == (0.002, 0.05, 400.0)
    assert isinstance(speed, cmd.SpeedJ)
    assert speed.a == 1.5
    loop.write(15, [10.0])
    loop.box.step()
    assert loop.state == 2, "a stop is done when the arm rests"
    assert arm.commands[-1] == cmd.StopJ(10.0)


def test_payload_keeps_its_centre_if_none_is_given(loop: Loop, arm: StandInArm) -> None:
    configured = np.array(arm.outputs["payload_cog"])
    loop.write(17, [1.5, 0.0, 0.0, 0.0])
    loop.write(0)
    loop.write(17, [2.5, 0.0, 0.0, 0.1])
    first, second = arm.commands
    assert isinstance(first, cmd.SetPayload)
    assert isinstance(second, cmd.SetPayload)
    assert first.mass == 1.5
    np.testing.assert_array_equal(first.cog, configured)
    np.testing.assert_array_equal(second.cog, [0, 0, 0.1])


def test_tool_centre_point(loop: Loop) -> None:
    offset = [0.0, 0.0, 0.1, 0.0, 0.2, 0.0]
    loop.write(29, offset)
    loop.write(0)
    loop.write(40)
    assert [loop.output("double", i) for i in range(6)] == offset
    np.testing.assert_array_equal(loop.box.values["tcp_offset"], offset)


def test_stop_command_ends_the_program(loop: Loop, arm: StandInArm) -> None:
    loop.write(255)
    assert loop.box.program_state == ProgramState.STOPPED
    assert isinstance(arm.commands[-1], cmd.StopJ)


def test_an_unsimulated_command_ends_the_program_with_a_message(loop: Loop) -> None:
    loop.write(6)
    assert loop.box.program_state == ProgramState.STOPPED
    assert "command 6" in loop.box.messages[-1].text
    assert loop.box.messages[-1].level == 0


def test_a_protective_stop_pauses_the_program(loop: Loop, arm: StandInArm) -> None:
    loop.write(31)
    assert arm.safety_mode == SafetyMode.PROTECTIVE_STOP
    loop.box.step()
    assert loop.box.program_state == ProgramState.PAUSED
    assert loop.box.values["safety_status_bits"] == 1 << 2 | 1 << 10
    assert not loop.box.play()
    loop.box.unlock()
    assert loop.box.play()
    assert loop.box.program_state == ProgramState.PLAYING
