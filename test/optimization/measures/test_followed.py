# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a measure states is done on the simulated arm, by hand; what that saved is in its interval.

Energies are the trapezoid of voltage times current of both recordings.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.cli.conftest import Capture, answer
from test.optimization.measures.conftest import MakeOnce
from test.optimization.typed_programs import typed_into
from test.simulation.simulated_cell import (
    ABOVE_PICK,
    ABOVE_PLACE,
    PICK,
    PICK_AND_PLACE,
    STRETCHED,
    Recorded,
    SimulatedCell,
    movej,
    program,
)
from ur_energy_model.cli.main import main
from ur_energy_model.simulation.client_interfaces import DashboardSession
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

SECONDS = 42.0
FIRST = 3  # line with which the loop of `program` begins
SCRIPT = program(*PICK_AND_PLACE)


def spent(telemetry: Telemetry) -> Array:
    """Energy at the supply since the begin [samples], J."""
    power = telemetry["actual_robot_voltage"] * telemetry["actual_robot_current"]
    steps = np.diff(telemetry.time)
    return np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * steps)])


def loops(telemetry: Telemetry) -> tuple[Array, Array]:
    """Energies [J] and durations [s] of the complete loops of a program, but for the first one."""
    lines = telemetry["script_control_line"]
    begins = np.flatnonzero((lines[1:] == FIRST) & (lines[:-1] != FIRST)) + 1
    return np.diff(spent(telemetry)[begins])[1:], np.diff(telemetry.time[begins])[1:]


def ran(bag: Path, script: str, **cell: Any) -> Path:
    """A recording of a program."""
    simulated = SimulatedCell(**cell)
    simulated.run(script)
    return simulated.record(bag, SECONDS).bag


def measures(capsys: Capture, *words: object) -> list[dict[str, Any]]:
    """What `estimate` lists."""
    return list(answer(capsys, "estimate", *words)["measures"])


def the_only(found: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (measure,) = [each for each in found if each["kind"] == kind]
    return measure


def assert_saved(measure: dict[str, Any], before: Path, after: Path) -> None:
    """The saving per cycle that was measured is within the interval; the cycle is no longer."""
    energies, durations = loops(read_bag(before))
    new_energies, new_durations = loops(read_bag(after))
    assert len(energies) >= 2
    assert len(new_energies) >= 2
    low, high = measure["per_cycle"]["interval"]
    saved = energies.mean() - new_energies.mean()
    assert low <= saved <= high
    assert high - low < 2.0 * abs(saved) + 0.05 * energies.mean(), (
        "an interval that says something"
    )
    assert new_durations.mean() <= 1.01 * durations.mean()


@pytest.fixture(scope="session")
def before(made_once: MakeOnce) -> Path:
    """The program as it is."""
    return (
        made_once("measures_before", lambda folder: ran(folder / "bag", SCRIPT)) / "bag"
    )


def moved_wait(script: str, action: str, title: str) -> str:
    """The program after somebody moved a wait as a measure of the kind "pose" says."""
    (wait,) = map(int, re.findall(r"\(line (\d+)\)", title))
    (behind,) = map(int, re.findall(r"behind line (\d+)", action))
    lines = script.split("\n")
    text = lines[wait - 1]
    assert "sleep" in text
    assert "movej" in lines[behind - 1]
    lines[behind - 1] += f"\n{text}"
    del lines[wait - 1]
    return "\n".join(lines)


@pytest.mark.truth
def test_waiting_in_a_cheaper_pose(
    before: Path, model_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    pose = the_only(measures(capsys, model_file, before), "pose")
    after = ran(tmp_path / "after", moved_wait(SCRIPT, pose["action"], pose["title"]))
    assert_saved(pose, before, after)


@pytest.mark.truth
@pytest.mark.parametrize("kind", ["moves", "line"])
def test_what_the_command_prints_is_typed(
    kind: str, before: Path, model_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    found = [
        each for each in measures(capsys, model_file, before) if each["kind"] == kind
    ]
    assert len(found) == {"moves": 1, "line": 3}[kind]
    measure = found[0]
    words = shlex.split(measure["command"])
    assert words[0] == "ur_energy"
    sheet = answer(capsys, *words[1:])["sheet"]
    after = ran(tmp_path / "after", typed_into(SCRIPT, sheet))
    assert_saved(measure, before, after)


@pytest.mark.truth
def test_the_right_payload_is_set(
    as_set: Path, wrongly_set: Path, model_file: Path, capsys: Capture
) -> None:
    found = measures(capsys, model_file, wrongly_set)
    assert found[0]["kind"] == "payload", "first, as all that is predicted rests on it"
    payload = found[0]
    energies = [loops(read_bag(bag))[0].mean() for bag in (wrongly_set, as_set)]
    low, high = payload["per_cycle"]["interval"]
    assert low <= energies[0] - energies[1] <= high
    assert high - low < 0.1 * energies[0]
    right = measures(capsys, model_file, as_set)
    assert all(each["kind"] != "payload" for each in right)
    # What else is predicted is for the payload that the arm carries, whatever was set.
    for kind in ("moves", "pose"):
        saved, of_right = (the_only(each, kind)["per_cycle"] for each in (found, right))
        assert saved["energy"] == pytest.approx(of_right["energy"], rel=0.1)


# A shift that begins with work and goes on after a break.

WORKED = 20.0
BREAK = 100.0
RESTARTED = 20.0
PAUSED = program(movej(ABOVE_PICK), movej(ABOVE_PLACE))


def shift(folder: Path, *, switched_off: bool) -> Recorded:
    """Work, a break, and work again."""
    cell = SimulatedCell(robot="ur5e")
    dashboard = DashboardSession(cell.box)

    def command(text: str) -> Callable[[SimulatedCell], object]:
        def send(_: SimulatedCell) -> None:
            reply = dashboard.receive(f"{text}\n".encode())
            assert b"could not" not in reply

        return send

    again = WORKED + BREAK
    what: dict[float, Callable[[SimulatedCell], object]] = {WORKED: command("stop")}
    if switched_off:
        what[WORKED + 1.0] = command("power off")
        what[again - RESTARTED + 1.0] = command("power on")
        what[again - RESTARTED + 5.0] = command("brake release")
    what[again] = lambda cell: cell.run(PAUSED)
    cell.run(PAUSED)
    return cell.record(folder, again + 10.0, rate=25.0, at=what)


@pytest.mark.truth
def test_switching_off_in_a_pause(
    model_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    left_on = shift(tmp_path / "left_on", switched_off=False)
    pause = the_only(measures(capsys, model_file, left_on.bag), "pause")
    off = shift(tmp_path / "off", switched_off=True)
    saved = spent(left_on.telemetry)[-1] - spent(off.telemetry)[-1]
    low, high = pause["in_recording"]["interval"]
    assert low <= saved <= high
    low, high = pause["in_recording"]["wall_interval"]
    assert low <= left_on.wall[-1] - off.wall[-1] <= high
    kinds = [each["kind"] for each in measures(capsys, model_file, off.bag)]
    assert "pause" not in kinds


@pytest.mark.truth
def test_work_that_begins_right_after_other_work(tmp_path: Path, capsys: Capture) -> None:
    """A CB3 arm: its controller's cycle is four times as long, and so is what this may take."""
    cell = SimulatedCell(robot="ur5", warmth=0.0, version=(3, 15, 8))
    far = (0.9, -0.9, 1.0, -1.9, -1.5, 1.2), (-0.9, -1.9, 2.0, -0.9, -0.3, -1.0)
    cell.run(program(*(movej(q, 3.0, 12.0) for q in far), "sleep(0.5)"))
    cold, warm = (
        cell.record(tmp_path / name, 240.0, rate=25.0) for name in ("cold", "warm")
    )
    start = the_only(measures(capsys, cold.bag), "cold_start")
    low, high = start["in_recording"]["interval"]
    assert low <= spent(cold.telemetry)[-1] - spent(warm.telemetry)[-1] <= high
    assert high - low < 2.0 * start["in_recording"]["energy"]


@pytest.mark.truth
@pytest.mark.parametrize("seed", [21, 22, 23])
def test_poses_of_other_arms_without_a_model(
    seed: int, tmp_path: Path, capsys: Capture
) -> None:
    """The generic model of the type: powers of holding are those that were measured."""
    lines = (
        movej(PICK), "sleep(1)", movej(STRETCHED, 1.5), "sleep(3)", movej(ABOVE_PLACE), "sleep(1)",
    )  # fmt: skip
    script = program(*lines)
    cell = {"seed": seed, "session": seed}
    recorded = ran(tmp_path / "before", script, **cell)
    found = [each for each in measures(capsys, recorded) if each["kind"] == "pose"]
    largest = found[0]
    after = ran(
        tmp_path / "after",
        moved_wait(script, largest["action"], largest["title"]),
        **cell,
    )
    assert_saved(largest, recorded, after)


def test_it_ends_with_them_in_words(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a CB3, whose controller computes four times less often than that of a UR5e."""
    cell = SimulatedCell(robot="ur5", version=(3, 15, 8))
    cell.run(program(*PICK_AND_PLACE))
    bag = cell.record(tmp_path / "bag", 32.0, rate=25.0).bag
    monkeypatch.setenv("COLUMNS", "80")
    words = ["estimate", str(bag), "--tariff", "0.28"]
    assert main(words) == 0
    out = capsys.readouterr().out
    text = out[out.index("What can be done") :]
    assert "EUR" in text
    assert "ur_energy optimize" in text
    assert all(len(line) <= 80 for line in text.splitlines() if "$ " not in line)
