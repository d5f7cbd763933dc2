# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The cycle of a recording: its moves, its repetition, its signals, its tool, and switching off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from test.energy.work_cycles import (
    LIFT,
    PICK,
    PLACE,
    bag_of,
    pick_and_place,
    recorded,
)
from test.optimization.hand_made import HOME, ROBOT
from ur_energy_model.energy.found_cycles import (
    FoundCycles,
    find_cycles,
    program_begin,
)
from ur_energy_model.energy.recorded_motion import (
    RecordedMotion,
    find_moves,
    read_motion,
    recorded_tool,
)
from ur_energy_model.errors import RecordingError
from ur_energy_model.optimization.recorded_cycle import recorded_switching
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.kinematics import ArmKinematics
from ur_energy_model.trajectory.motions import Chain, move


def found(
    folder: Path, telemetry: Telemetry, **columns: np.ndarray
) -> tuple[RecordedMotion, FoundCycles]:
    motion = read_motion(bag_of(folder, telemetry, **columns), ROBOT)
    return motion, find_cycles(motion, find_moves(motion))


@pytest.mark.parametrize("rate", [10.0, 500.0])
def test_repetition_is_found_at_any_rate_of_samples(tmp_path: Path, rate: float) -> None:
    chain = pick_and_place(1.2, 1.5)
    motion, cycles = found(tmp_path, recorded(chain, 2.6 * chain.duration, rate))
    assert cycles.found_by == "repetition"
    assert [len(moves) for moves in cycles.moves] == [6, 6]
    starts = [motion.time[moves[0].first] for moves in cycles.moves]
    assert np.diff(starts) == pytest.approx(chain.duration, abs=2.0 / rate)


def test_a_cycle_of_a_signal_begins_as_the_program_does(tmp_path: Path) -> None:
    """The gripper closes after the second move; program and cycle begin before the first one."""
    chain = pick_and_place()
    lead = 1.1
    telemetry = recorded(chain, 4.4 * chain.duration, lead=lead)
    into = np.mod(telemetry.time - 60.0 - lead, chain.duration)
    two = sum(segment.duration for segment in chain.moves[:2])
    bits = (
        (into > two - 0.1) & (into < two + 2.0) & (telemetry.time > 60.0 + lead)
    ).astype(float)
    playing = np.where(telemetry.time < 60.3, 1.0, 2.0)
    motion, cycles = found(
        tmp_path, telemetry, actual_digital_output_bits=bits, runtime_state=playing
    )
    assert cycles.found_by == "repetition"
    starts = [motion.time[moves[0].first] - 60.0 - lead for moves in cycles.moves]
    assert starts == pytest.approx(chain.duration * np.arange(len(starts)), abs=0.02)
    assert len(starts) >= 3
    assert cycles.lead == pytest.approx(lead - 0.3, abs=0.01)


def test_incomplete_copies_of_the_work_have_lines_too(tmp_path: Path) -> None:
    """A program that is written out: each move of the recording has a line of its own."""
    chain = pick_and_place()
    rest = chain.moves[0].duration - 0.1
    telemetry = recorded(chain, 3.6 * chain.duration, begin=rest)
    motion, _ = found(tmp_path / "without", telemetry)
    moves = find_moves(motion)
    lines = np.zeros(len(telemetry))
    for number, span in enumerate(moves, 10):
        lines[span.first : span.last + 1] = number
    motion, cycles = found(tmp_path / "with", telemetry, script_control_line=lines)
    assert len(cycles.moves) == 3
    every = sorted(run.move.line(motion) for runs in cycles.runs for run in runs)
    assert every == [*range(10, 10 + len(moves))]
    assert len(every) > 18
    assert cycles.others == []


def test_other_work_between_the_cycles_is_found(tmp_path: Path) -> None:
    chain = pick_and_place(short=0.5, wait=0.6)
    aside = Chain(
        [move(PICK + LIFT, PLACE, 1.0, 2.0, 0.5), move(PLACE, PICK + LIFT, 1.0, 2.0, 0.6)]
    )
    parts = [chain, chain, aside, chain, chain]
    moves = [each for part in parts for each in part.moves]
    whole = Chain(moves)
    _, cycles = found(tmp_path, recorded(whole, whole.duration))
    assert [len(each) for each in cycles.moves] == [6] * 3
    assert len(cycles.others) == 2
    assert all(len(runs) == 4 for runs in cycles.runs[:-1])


@pytest.mark.parametrize(
    ("begin", "lines"),
    [
        ("plain", [5, 6, 9, 12]),
        ("a loop within the loop", [10, 11, 12, 11, 12, 11, 12, 14]),
        ("a function called three times", [20, 3, 6, 24, 3, 6, 27, 3, 6, 31]),
        ("functions that call functions", [30, 9, 3, 4, 12, 33, 3, 4, 36, 40]),
    ],
)
def test_a_program_begins_with_its_loop(begin: str, lines: list[int]) -> None:
    """Wherever the recording does."""
    for turn in range(len(lines)):
        turned = lines[turn:] + lines[:turn]
        at = program_begin(turned)
        assert turned[at] == lines[0]


def test_the_tool_is_that_of_the_standing_arm() -> None:
    """The arm moves, then stands; the first sample's pose is late."""
    tool = np.array([0.01, -0.02, 0.15, 0.1, 0.2, -0.3])
    pose = ArmKinematics(ROBOT).forward(HOME, tool)
    columns = {
        "actual_q": np.stack([HOME, HOME]),
        "actual_qd": np.stack([np.ones(6), np.zeros(6)]),
        "actual_TCP_pose": np.stack([pose + 0.01, pose]),
    }
    telemetry = Telemetry(np.array([0.0, 0.1]), columns)
    assert recorded_tool(telemetry, ROBOT) == pytest.approx(tool, abs=1e-9)


def test_time_energy_and_power_are_read_from_the_recording() -> None:
    """Running at 40 W, 1 s of change at 60 W, 10 s off at 8 W, 2 s of change at 70 W, running."""
    time = np.arange(3000) / 100.0
    modes = np.full(3000, 7.0)
    power = np.full(3000, 40.0)
    for first, last, mode, watt in ((5, 6, 5, 60), (6, 16, 3, 8), (16, 18, 5, 70)):
        rows = (time >= first) & (time < last)
        modes[rows] = mode
        power[rows] = watt
    bus = {
        "actual_robot_voltage": np.full(3000, 48.0),
        "actual_robot_current": power / 48.0,
    }
    found = recorded_switching(Telemetry(time, {"robot_mode": modes, **bus}))
    assert found is not None
    assert found.time == pytest.approx(3.0, abs=0.05)
    assert found.power == pytest.approx(8.0)
    assert found.energy == pytest.approx(60.0 + 140.0, rel=0.03)
    assert recorded_switching(Telemetry(time, {"robot_mode": modes})) is None


def test_freedrive_is_refused(tmp_path: Path) -> None:
    chain = pick_and_place()
    telemetry = recorded(chain, 2.2 * chain.duration)
    mode = np.full(len(telemetry), 7.0)
    mode[1000:1200] = 6.0
    with pytest.raises(RecordingError, match="freedrive"):
        found(tmp_path, telemetry, robot_mode=mode)
