"""Uploaded scripts: splitting, plain calls, the control loop of ur_rtde, and hostile ones."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from test.torture.scripts import ONE_LINERS, hostile_script
from ur_energy_model.simulation import commands as cmd
from ur_energy_model.simulation import control_box
from ur_energy_model.simulation.client_interfaces import (
    ScriptSession,
    realtime_packet,
    state_message,
)
from ur_energy_model.simulation.commands import ProgramState, SafetyMode
from ur_energy_model.simulation.control_box import MESSAGE_LENGTH, REPLACEMENT, ControlBox
from ur_energy_model.simulation.kinematics import compose
from ur_energy_model.simulation.simulated_controller import Simulation
from ur_energy_model.simulation.ur_rtde_script import UrRtdeScript
from ur_energy_model.simulation.urscript import MAX_PROGRAM, Call, Pose, ScriptReader, calls_of
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.rtde.protocol import Recipe

LOOP = "def rtde_control():\n    global reg_offset_int = {}\nend\n"
HOME = np.array([0.3, -1.4, 1.5, -1.7, -1.4, 0.5])
TOOL = np.array([0.01, -0.02, 0.15, 0.1, 0.2, -0.3])


@pytest.fixture
def session(box: ControlBox) -> ScriptSession:
    return ScriptSession(box)


def steps(box: ControlBox, count: int) -> None:
    for _ in range(count):
        box.step()


def test_programs_end_at_end_and_lines_are_programs() -> None:
    reader = ScriptReader()
    programs = ["def a():\n  if x:\n    y()\n  end\nend", "stopj(2.0)", "sec b():\nend"]
    text = "\n".join(programs) + "\n"
    assert [each for byte in text for each in reader.feed(byte.encode())] == programs
    assert reader.feed(text.encode()) == programs
    assert reader.feed(b"x" * (MAX_PROGRAM + 1)) == []  # dropped: memory stays bounded
    assert reader.feed(b"\nstopj(1)\n") == ["stopj(1)"]


def test_plain_calls_are_read_and_what_needs_an_interpreter_is_recognised() -> None:
    text = (
        "def p():\n  movej([1, -2.5], a=1.2)  # go\n  movel(p[0,0,1,0,0,0])\n  f(0x1F, '\\d')\nend"
    )
    calls = calls_of(text)
    assert calls == [
        Call("movej", ([1, -2.5],), {"a": 1.2}),
        Call("movel", (Pose((0, 0, 1, 0, 0, 0)),), {}),
        Call("f", (31, "\\d"), {}),
    ]
    assert calls is not None
    assert [call.line for call in calls] == [2, 3, 4]
    assert isinstance(calls[1].positional[0], Pose)
    assert calls_of("digital_out[2]=True") == [Call("set_digital_out", (2, True), {})]
    for body in (
        "while True:", "x = 1", "movej(q)", "movej([0], a=b)", "1 +", "f(None)", "f(1j)", "f(*[1])",
        "f(**{})", "f(q[0])", "f()()", "f(-True)", "f(p[1:2])", "f(\x00)", "f(1, 2",
    ):  # fmt: skip
        assert calls_of(f"def p():\n  {body}\nend") is None, body


def test_a_program_executes_its_calls_in_order(
    session: ScriptSession, box: ControlBox, arm: Any
) -> None:
    session.receive(
        b"def p():\n  set_payload(1.5, [0, 0, 0.1])\n  movej([1,2,3,4,5,6], a=1.5, v=0.5)\n"
        b"  sleep(0.01)\n  set_digital_out(2, True)\n  stopj(3.0)\nend\n"
    )
    arm.busy = True
    steps(box, 5)
    payload, move = arm.commands
    assert isinstance(payload, cmd.SetPayload)
    assert (move.q.tolist(), move.v, move.a) == ([1, 2, 3, 4, 5, 6], 0.5, 1.5)
    assert box.program_state == ProgramState.PLAYING
    arm.busy = False
    steps(box, 5)
    assert len(arm.commands) == 2, "sleep takes five cycles"
    steps(box, 5)
    assert box.values["actual_digital_output_bits"] == 0b100
    assert box.program_state == ProgramState.STOPPED
    calls = "".join(f"set_digital_out({i % 8}, True)\n" for i in range(50))
    session.receive(f"def f():\n{calls}end\n".encode())
    states = []
    for _ in range(4):
        box.step()
        states.append(box.program_state)
    assert states.index(ProgramState.STOPPED) == 2, "a long program takes several cycles"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (b"force_mode(p[0,0,0,0,0,0])", "force_mode is not simulated"),
        (b"movej(p[9,0,0,0,0,0])", "cannot reach"),
        (b"servoj(p[0,0,0,0,0,0])", "to a pose is not simulated"),
        (b"movej([0,0,0,0,0,1e999])", "six numbers"),
        (b"def p():\n  while True:\n  end\nend", "needs a URScript interpreter"),
        (b'sleep("nan")', "sleep: t must be a number, not 'nan'"),
        (b"movej()", "needs an argument q"),
        (b"set_digital_out(1000000000,True)", "n must be a whole number from 0 to 17"),
        (b"sleep()\x1b[2J\xff", "needs a URScript interpreter"),
        (b"movej([0,0,0,0,0,0], 1, 1, 0, 0, 0)", "at most 5 arguments"),
        (b"movej([0,0,0,0,0,0], b=1)", "b is unknown"),
        (b"movel(p[200,0,0,0,0,0])", "up to 100 m"),
        (b"write_output_integer_register(99, 1)", "no register output_int_register_99"),
        (LOOP.format(47).encode(), "reg_offset_int is 47"),
        (b"def f():\n" + b"sync()\n" * 6000 + b"end", "has 6000 lines"),
    ],
)
def test_programs_that_cannot_run_are_reported(session, box, program, reason) -> None:
    session.receive(program + b"\n")
    steps(box, 2)
    assert box.program_state == ProgramState.STOPPED
    assert any(reason in message.text for message in box.messages)


def test_a_program_replaces_another_and_clients_see_a_stop_between(session, box, arm) -> None:
    session.receive(b"def p():\n  sleep(10)\nend\n")
    box.step()
    session.receive(b"def q():\n  sleep(1)\nend\n")
    states = []
    for _ in range(round(2 * REPLACEMENT * box.rate)):
        box.step()
        states.append(box.values["runtime_state"])
    assert list(dict.fromkeys(states)) == [ProgramState.STOPPED, ProgramState.PLAYING]
    assert box.pause()
    assert box.program_state == ProgramState.PAUSED


def test_of_an_arm_that_is_off_only_plain_calls_run(session, box) -> None:
    box.command(cmd.PowerCommand.OFF)
    session.receive(LOOP.format(0).encode())
    assert box.program_state == ProgramState.STOPPED
    assert "not running" in box.messages[-1].text
    session.receive(b"set_digital_out(1, True)\n")
    steps(box, 2)
    assert box.values["actual_digital_output_bits"] == 0b10


# The control loop of ur_rtde.


class Loop:
    """Client side of ur_rtde's register handshake."""

    def __init__(self, box: ControlBox, offset: int = 0) -> None:
        self.box, self.offset = box, offset
        box.run(UrRtdeScript(box, LOOP.format(offset)))
        box.step()
        assert self.state == 1

    @property
    def state(self) -> int:
        return int(self.output("int", 0))

    def output(self, kind: str, register: int) -> float:
        return float(self.box.values[f"output_{kind}_register_{register + self.offset}"])

    def write(self, command: int, *doubles: float, second: int = 0) -> None:
        registers: dict[str, float] = {
            f"input_int_register_{self.offset}": command,
            f"input_int_register_{self.offset + 1}": second,
        }
        for i, value in enumerate(doubles):
            registers[f"input_double_register_{i + self.offset}"] = value
        self.box.write_inputs(registers)
        self.box.step()

    def answer(self, command: int, *doubles: float) -> list[float]:
        self.write(0)
        self.write(command, *doubles)
        return [self.output("double", i) for i in range(6)]


@pytest.mark.parametrize("offset", [0, 24])
def test_moves_report_when_they_are_done(box: ControlBox, arm: Any, offset: int) -> None:
    loop = Loop(box, offset)
    arm.busy = True
    loop.write(1, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.5, 2.5)
    (move,) = arm.commands
    assert (move.q.tolist(), move.v, move.a) == ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 1.5, 2.5)
    steps(box, 10)
    assert loop.state == 1
    arm.busy = False
    for _ in range(2):
        box.step()
        assert loop.state == 2, "done until the client clears its command"
    loop.write(0)
    assert (loop.state, len(arm.commands)) == (1, 1)


def test_what_ends_and_what_pauses_the_program(box, arm) -> None:
    loop = Loop(box)
    loop.write(6)
    assert "command 6" in box.messages[-1].text
    loop = Loop(box)
    loop.write(31)
    assert arm.safety_mode == SafetyMode.PROTECTIVE_STOP
    box.step()
    assert box.program_state == ProgramState.PAUSED
    assert box.values["safety_status_bits"] == 1 << 2 | 1 << 10
    assert not box.play()
    box.command(cmd.SafetyCommand.UNLOCK)
    assert box.play()
    loop.write(0)
    loop.write(35, 10.0)  # the watchdog: 50 cycles
    loop.write(0)
    steps(box, 50)
    assert box.program_state == ProgramState.PLAYING
    box.step()
    assert "watchdog" in box.messages[-1].text


def test_speeds_of_the_tool_and_questions_of_the_script(box, arm) -> None:
    """Beyond what test_ur_rtde.py asks."""
    loop = Loop(box)
    box.values.update(actual_q=HOME, target_q=HOME)
    box.set_tool(TOOL)
    pose = loop.answer(43)
    np.testing.assert_allclose(loop.answer(44, *HOME, *TOOL), pose, atol=1e-12)
    np.testing.assert_allclose(compose(np.array(loop.answer(58)), TOOL), pose, atol=1e-9)
    expected = compose(np.array(pose), TOOL)
    np.testing.assert_allclose(loop.answer(39, *pose, *TOOL), expected)
    speed = [0.05, -0.02, 0.01, 0.1, 0.0, 0.0]
    loop.answer(10, *speed, 0.5)
    jacobian = box.kinematics.jacobian(HOME, TOOL)
    np.testing.assert_allclose(jacobian @ arm.commands[-1].qd, speed, atol=1e-9)
    loop.answer(65, 2.0, 0.0, 0.0, 0.1, 0.01, 0.02, 0.03, 0.0, 0.0, 0.001)
    np.testing.assert_array_equal(arm.commands[-1].inertia, [0.01, 0.02, 0.03, 0.0, 0.0, 0.001])


# Hostile scripts and inputs: the arm keeps running in time, with finite values.

LONGEST_CYCLE = 2.0
"""Bound of one call [s], for busy machines; the worst measured is 0.06 s."""
HOSTILE_NUMBERS = (0.1, -1.5, 1e300, -1e300, 1e-300, np.nan, np.inf, -np.inf, 0.0)


@pytest.fixture(scope="module")
def moving_box(fresh_host: Callable[[], str]) -> Iterator[ControlBox]:
    """Control box of a simulated arm with physics; no client is connected to its ports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_box, "REPLACEMENT", 0.0)
        _, controller = Simulation("ur5e", host=fresh_host(), motion="hold").build()
        yield controller.box
        controller._server.close()


def run(box: ControlBox, script: bytes, cycles: int) -> None:
    """Every value stays finite and can be sent, in time."""
    began = time.monotonic()
    ScriptSession(box).receive(script)
    assert time.monotonic() - began < LONGEST_CYCLE
    for _ in range(cycles):
        began = time.monotonic()
        box.step()
        assert time.monotonic() - began < LONGEST_CYCLE
    names = tuple(name for name in FIELDS if name in box.values and not name.startswith("input_"))
    Recipe(names, tuple(FIELDS[name].kind for name in names), 1).pack(box.values)
    assert realtime_packet(box)
    assert state_message(box)
    wrong = [name for name in names if not np.isfinite(np.asarray(box.values[name], float)).all()]
    assert wrong == []
    assert all(len(message.text) <= MESSAGE_LENGTH for message in box.messages)


def test_hostile_scripts_end_with_a_message_at_most(moving_box: ControlBox) -> None:
    for line in ONE_LINERS:
        run(moving_box, line.encode() + b"\n", 10)
        moving_box.command(cmd.SafetyCommand.UNLOCK)
    run(moving_box, b"set_tcp(p[0,0,0,0,0,0])\nset_payload(0)\nset_digital_out(3, True)\n", 1)
    assert moving_box.values["actual_digital_output_bits"] >> 3 & 1, "the next script runs"


def test_scripts_and_registers_of_a_fuzzer(moving_box: ControlBox) -> None:
    box, draw = moving_box, random.Random(0)
    for _ in range(60):
        if draw.random() < 0.3:
            numbers = {
                f"input_double_register_{i}": draw.choice(HOSTILE_NUMBERS) for i in range(14)
            }
            box.write_inputs({**numbers, "input_int_register_0": draw.randrange(-1, 72)})
        if draw.random() < 0.1:
            fraction = draw.choice(HOSTILE_NUMBERS)
            box.write_inputs({"speed_slider_mask": 1, "speed_slider_fraction": fraction})
        run(box, hostile_script(draw), draw.choice((1, 5, 20)))
        if draw.random() < 0.3:
            box.command(cmd.SafetyCommand.UNLOCK)
