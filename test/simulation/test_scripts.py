# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Uploaded scripts: splitting, plain calls, the control loop of ur_rtde, and hostile ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from test.torture.scripts import ONE_LINERS
from ur_energy_model.simulation import arm_commands as cmd
from ur_energy_model.simulation import control_box
from ur_energy_model.simulation.arm_commands import ProgramState, SafetyMode
from ur_energy_model.simulation.client_interfaces import (
    ScriptSession,
    realtime_packet,
    state_message,
)
from ur_energy_model.simulation.control_box import MESSAGE_LENGTH, REPLACEMENT, ControlBox
from ur_energy_model.simulation.simulated_controller import Simulation
from ur_energy_model.simulation.ur_rtde_script import UrRtdeScript
from ur_energy_model.simulation.urscript import (
    MAX_PROGRAM,
    Pose,
    ScriptCall,
    ScriptReader,
    calls_of,
)
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.rtde.protocol import Recipe
from ur_energy_model.trajectory.kinematics import ScriptError

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
    body = "movej([1, -2.5], a=1.2)  # go\n  movel(p[0,0,1,0,0,0])"
    assert calls_of(f"def p():\n  {body}\nend") == [
        ScriptCall("movej", ([1, -2.5],), {"a": 1.2}),
        ScriptCall("movel", (Pose((0, 0, 1, 0, 0, 0)),), {}),
    ]
    assert calls_of("digital_out[2]=True") == [
        ScriptCall("set_digital_out", (2, True), {})
    ]
    for body in (
        "x = 1",
        "movej(q)",
        "f(*[1])",
        "f()()",
        "f(\x00)",
        "f(1, 2",
        "end",
        "while (x):",
    ):
        with pytest.raises(ScriptError, match=r"line 3 needs a URScript interpreter"):
            calls_of(f"def p():\n  sync()\n  {body}\nend")
    with pytest.raises(ScriptError, match=r"line 3: the end of a loop"):
        calls_of("def p():\n  while True:\nend")


def test_loops_and_functions_of_a_program(
    session: ScriptSession, box: ControlBox
) -> None:
    text = (
        "def p():\n  def f():\n    sleep(0.01)\n    textmsg(1)\n  end\n  while (True):\n"
    )
    text += "    f()\n    sleep(0.02)\n  end\nend\n"
    session.receive(text.encode())
    lines = []
    for _ in range(200):
        box.step()
        lines.append(box.values["script_control_line"])
    seen = [line for line, _ in groupby(lines) if line]
    assert seen[:5] == [3, 8, 3, 8, 3]
    assert box.program_state == ProgramState.PLAYING
    session.receive(b"def p():\n  def f():\n    f()\n  end\n  f()\nend\n")
    steps(box, 40 + round(2 * REPLACEMENT * box.rate))
    assert "nested too deep" in box.messages[-1].text


REFUSED = {
    b"force_mode(p[0,0,0,0,0,0])": "force_mode is not simulated",
    b"movej(p[9,0,0,0,0,0])": "cannot reach",
    b"movej([0,0,0,0,0,1e999])": "six numbers",
    b'sleep("nan")': "sleep: t must be a number, not 'nan'",
    b"set_digital_out(1000000000,True)": "n must be a whole number from 0 to 17",
    b"sleep()\x1b[2J\xff": "needs a URScript interpreter",
    b"movej([0,0,0,0,0,0], b=1)": "b is unknown",
    LOOP.format(47).encode(): "reg_offset_int is 47",
    b"def f():\n" + b"sync()\n" * 6000 + b"end": "has 6000 lines",
}


def test_programs_that_cannot_run_are_reported(session, box) -> None:
    for program, reason in REFUSED.items():
        session.receive(program + b"\n")
        steps(box, 2 + round(2 * REPLACEMENT * box.rate))
        assert box.program_state == ProgramState.STOPPED
        assert reason in box.messages[-1].text


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("  if (get_digital_in(1)):", "needs a URScript interpreter"),
        ("  force_mode(p[0,0,0,0,0,0])", "force_mode is not simulated"),
        ("  movej(p[9,0,0,0,0,0])", "cannot reach"),
        ("  movel(p[9,0,0,0,0,0], a=1, v=1)", "line 4"),
        ("  sleep(-1)", "sleep: t must be"),
    ],
)
def test_a_refusal_names_the_line_of_the_program(
    line: str, reason: str, session, box
) -> None:
    session.receive(
        f"def cell():\n  sync()\n  # a comment\n{line}\n  sync()\nend\n".encode()
    )
    steps(box, 40 + round(2 * REPLACEMENT * box.rate))
    text = box.messages[-1].text
    assert reason in text
    assert "line 4" in text
    assert text.startswith("cell")


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


# The control loop of ur_rtde.


class Loop:
    """Client side of ur_rtde's register handshake."""

    def __init__(self, box: ControlBox) -> None:
        self.box = box
        box.run(UrRtdeScript(box, LOOP.format(24)))
        box.step()
        assert box.values["output_int_register_24"] == 1

    def write(self, command: int, *doubles: float) -> None:
        registers: dict[str, float] = {
            "input_int_register_24": command,
            "input_int_register_25": 0,
        }
        for i, value in enumerate(doubles):
            registers[f"input_double_register_{i + 24}"] = value
        self.box.write_inputs(registers)
        self.box.step()


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


# Hostile scripts and inputs: the arm keeps running in time, with finite values.

# bound of one call's processor time [s]; the worst measured is 0.06 s
LONGEST_CYCLE = 2.0


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
    ScriptSession(box).receive(script)
    for _ in range(cycles):
        # a busy machine takes longer, but not more processor time
        began = time.thread_time()
        box.step()
        assert time.thread_time() - began < LONGEST_CYCLE
    names = tuple(
        name for name in FIELDS if name in box.values and not name.startswith("input_")
    )
    Recipe(names, tuple(FIELDS[name].kind for name in names), 1).pack(box.values)
    assert realtime_packet(box)
    assert state_message(box)
    wrong = [
        name
        for name in names
        if not np.isfinite(np.asarray(box.values[name], float)).all()
    ]
    assert wrong == []
    assert all(len(message.text) <= MESSAGE_LENGTH for message in box.messages)


def test_hostile_scripts_end_with_a_message_at_most(moving_box: ControlBox) -> None:
    for line in ONE_LINERS:
        run(moving_box, line.encode() + b"\n", 10)
        moving_box.command(cmd.SafetyCommand.UNLOCK)
    run(
        moving_box,
        b"set_tcp(p[0,0,0,0,0,0])\nset_payload(0)\nset_digital_out(3, True)\n",
        1,
    )
    assert moving_box.values["actual_digital_output_bits"] >> 3 & 1, (
        "the next script runs"
    )
