"""Tool poses: forward, inverse, composition, and the answers of ur_rtde's script."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ur_energy_model.model.robots import available_robots, load_robot
from ur_energy_model.simulation import commands as cmd
from ur_energy_model.simulation.client_interfaces import ScriptSession
from ur_energy_model.simulation.commands import ProgramState
from ur_energy_model.simulation.kinematics import ArmKinematics, compose, matrix_of
from ur_energy_model.simulation.ur_rtde_script import COMMANDS, Registers
from ur_energy_model.simulation.urscript import ScriptReader

if TYPE_CHECKING:
    from test.simulation.conftest import StandInArm
    from ur_energy_model.simulation.control_box import ControlBox

UR5E = ArmKinematics(load_robot("ur5e"))
TOOL = np.array([0.01, -0.02, 0.15, 0.1, 0.2, -0.3])
ANGLE = st.floats(-2.5, 2.5)
numbers = st.tuples(*[ANGLE] * 6).map(np.array)


def test_pose_of_the_home_position_is_that_of_the_dh_table() -> None:
    """All joints zero: the arm lies along -x, as the maker's DH parameters have it."""
    robot = load_robot("ur5e")
    pose = UR5E.forward(np.zeros(6), np.zeros(6))
    reach = robot.a[1] + robot.a[2]
    side = -(robot.d[3] + robot.d[5])
    height = robot.d[0] - robot.d[4]
    np.testing.assert_allclose(pose[:3], [reach, side, height], atol=1e-9)


@given(numbers, numbers)
def test_composition_is_that_of_transforms(first: np.ndarray, second: np.ndarray) -> None:
    np.testing.assert_allclose(
        matrix_of(compose(first, second)), matrix_of(first) @ matrix_of(second), atol=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(numbers)
def test_jacobian_is_the_derivative_of_the_pose(q: np.ndarray) -> None:
    jacobian = UR5E.jacobian(q, TOOL)
    step = 1e-4
    for joint in range(6):
        move = np.eye(6)[joint] * step
        before, after = (matrix_of(UR5E.forward(q + sign * move, TOOL)) for sign in (-1, 1))
        linear = (after[:3, 3] - before[:3, 3]) / (2 * step)
        spin = (after[:3, :3] - before[:3, :3]) @ matrix_of(UR5E.forward(q, TOOL))[:3, :3].T
        angular = np.array([spin[2, 1], spin[0, 2], spin[1, 0]]) / (2 * step)
        np.testing.assert_allclose(jacobian[:, joint], np.r_[linear, angular], atol=1e-5)


@pytest.mark.parametrize("name", [name for name in available_robots() if name.startswith("ur")])
def test_inverse_finds_the_joint_positions_nearby(name: str) -> None:
    kinematics = ArmKinematics(load_robot(name))
    random = np.random.default_rng(1)
    home = np.array([0.3, -1.4, 1.5, -1.7, -1.4, 0.5])
    for _ in range(10):
        q = home + random.uniform(-0.5, 0.5, 6)
        found = kinematics.inverse(kinematics.forward(q, TOOL), home, TOOL)
        assert found is not None
        np.testing.assert_allclose(found, q, atol=1e-5)


def test_inverse_of_an_unreachable_pose_is_none() -> None:
    assert UR5E.inverse(np.array([3.0, 0, 0, 0, 0, 0]), np.full(6, -1.0), np.zeros(6)) is None


# What ur_rtde asks of its script


@pytest.fixture
def standing(box: ControlBox) -> ControlBox:
    """A control box with the arm at a regular position."""
    q = np.array([0.3, -1.4, 1.5, -1.7, -1.4, 0.5])
    box.values.update(actual_q=q, target_q=q)
    return box


def answer(box: ControlBox, command: int, *doubles: float) -> np.ndarray:
    for i, value in enumerate(doubles):
        box.values[f"input_double_register_{i}"] = value
    COMMANDS[command](Registers(box, 0))
    return np.array([box.values[f"output_double_register_{i}"] for i in range(6)])


def test_forward_and_inverse_kinematics_agree(standing: ControlBox) -> None:
    standing.set_tool(TOOL)
    pose = answer(standing, 43)
    np.testing.assert_allclose(answer(standing, 46, *pose), standing.values["actual_q"], atol=1e-5)
    np.testing.assert_allclose(
        answer(standing, 44, *standing.values["actual_q"], *TOOL), pose, atol=1e-12
    )
    np.testing.assert_allclose(compose(answer(standing, 58), TOOL), pose, atol=1e-9)


def test_composition_of_poses(standing: ControlBox) -> None:
    first, second = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), (0.0, 0.0, 0.1, 1.0, 0.0, 0.0)
    expected = compose(np.array(first), np.array(second))
    np.testing.assert_allclose(answer(standing, 39, *first, *second), expected)


def test_limits(standing: ControlBox) -> None:
    inside, outside = [0.0] * 6, [0.0] * 5 + [7.0]
    for command, argument, expected in (
        (37, inside, 1),
        (37, outside, 0),
        (36, answer(standing, 43).tolist(), 1),
        (36, [3.0, 0, 0, 0, 0, 0], 0),
        (60, [3.0, 0, 0, 0, 0, 0], 0),
    ):
        answer(standing, command, *argument)
        assert standing.values["output_int_register_1"] == expected


def test_tool_speed_becomes_joint_speed(standing: ControlBox, arm: StandInArm) -> None:
    wanted = [0.05, -0.02, 0.01, 0.1, 0.0, 0.0]
    answer(standing, 10, *wanted, 0.5)
    (command,) = arm.commands
    assert isinstance(command, cmd.SpeedJ)
    jacobian = standing.kinematics.jacobian(standing.values["target_q"], np.zeros(6))
    np.testing.assert_allclose(jacobian @ command.qd, wanted, atol=1e-9)


def test_payload_with_inertia(standing: ControlBox, arm: StandInArm) -> None:
    answer(standing, 65, 2.0, 0.0, 0.0, 0.1, 0.01, 0.02, 0.03, 0.0, 0.0, 0.001)
    (command,) = arm.commands
    assert isinstance(command, cmd.SetPayload)
    np.testing.assert_array_equal(command.inertia, [0.01, 0.02, 0.03, 0.0, 0.0, 0.001])


def test_reported_tool_pose_follows_the_tool(standing: ControlBox) -> None:
    flange = np.array(standing.arm.outputs["actual_TCP_pose"])
    standing.set_tool(TOOL)
    np.testing.assert_allclose(standing.values["actual_TCP_pose"], compose(flange, TOOL))


def test_watchdog_stops_a_program_without_inputs(box: ControlBox) -> None:
    ScriptSession(box).receive(b"def rtde_control():\nend\n")
    box.step()
    box.write_inputs({"input_int_register_0": 35, "input_double_register_0": 10.0})
    for _ in range(40):
        box.step()
        box.write_inputs({"input_int_register_0": 0})
    assert box.program_state == ProgramState.PLAYING
    for _ in range(49):
        box.step()
    assert box.program_state == ProgramState.PLAYING
    for _ in range(3):
        box.step()
    assert box.program_state == ProgramState.STOPPED
    assert "watchdog" in box.messages[-1].text


def test_reader_keeps_text_between_programs() -> None:
    reader = ScriptReader()
    assert reader.feed(b"stopj(1)\ndef a():\n") == ["stopj(1)"]
    assert reader.feed(b"end\nstopj(2)\n") == ["def a():\nend", "stopj(2)"]
