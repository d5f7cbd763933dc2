# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy by line and node: scripts of PolyScope, calls and threads, and sums that are exact."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from test.energy.known_arm import changed, known_model, motion
from test.identification.exact_arm import write_bag
from test.properties import examples
from ur_energy_model.energy.powers import FIELDS
from ur_energy_model.energy.profile import profile_program
from ur_energy_model.energy.program import (
    LARGEST,
    LINE,
    ProgramTracker,
    parse_script,
    read_script,
)
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.energy.versions import changed_lines, compare_programs
from ur_energy_model.errors import InputError
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.client_interfaces import ScriptSession
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.trajectory.motions import Chain, Hold, move

SCRIPT = parse_script(
    """\
def cell():
  set_tcp(p[0,0,0.1,0,0,0])
  # begin: URCap Installation Node
  def grip(width=50):
    set_digital_out(8, True)
    while (get_digital_in(8) == False):
      sync()
    end
  end
  # end: URCap Installation Node
  thread Thread_1():
    while (True):
      $ 20 "Thread" "noBreak"
      sleep(0.1)
    end
  end
  global thread_handler_1 = run Thread_1()
  def Unload():
    $ 10 "Unload" "noBreak"
    $ 11 "MoveL"
    $ 12 "Above" "breakAfter"
    movel(p[0.1,0.2,0.3,0,3.14,0], a=1.2, v=0.25)
    grip(20)
  end
  while (True):
    $ 1 "Robot Program"
    $ 2 "MoveJ"
    $ 3 "Waypoint_1" "breakAfter"
    movej([0,0,0,0,0,0], a=1.4, v=1.05)
    $ 4 "Loop 3 times"
    Loop_1 = 0
    while (Loop_1 < 3):
      $ 5 "Call Unload"
      Unload()
      $ 6 "Wait: 0.5 # s"
      sleep(0.5)
      Loop_1 = Loop_1 + 1
    end
    $ 7 "RG2(100)"
    grip(100)
  end
end
"""
)


def line(text: str) -> int:
    """Number of the only line that contains this text."""
    found = [k for k, each in enumerate(SCRIPT.text) if text in each]
    assert len(found) == 1
    return found[0]


def label(number: int) -> str | None:
    node = SCRIPT.node[number]
    return None if node < 0 else SCRIPT.nodes[node].label


def test_a_script_of_polyscope() -> None:
    assert SCRIPT.name == "cell"
    assert [node.number for node in SCRIPT.nodes] == [20, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7]
    for text, node in (
        ("movej(", "Waypoint_1"),
        ("Loop_1 = 0", "Loop 3 times"),
        ("    Unload()", "Call Unload"),
        ("sleep(0.5)", "Wait: 0.5 # s"),
        ("movel(", "Above"),
        ("grip(100)", "RG2(100)"),
        ("set_tcp", None),
        ("sync()", None),
    ):
        assert label(line(text)) == node
    assert SCRIPT.threads == {"Thread_1"}
    around = SCRIPT.nodes[SCRIPT.node[line("sleep(0.5)")]].parent
    assert SCRIPT.nodes[around].label == "Loop 3 times"


def test_calls_returns_and_executions() -> None:
    """A call in a call; the thread's lines are nowhere and disturb nothing."""
    tracker = ProgramTracker(SCRIPT)
    move = line("movej(")
    call = line("    Unload()")
    inner = line("movel(")
    grip = line("sync()")
    once = [call, inner, grip, call, line("sleep(0.5)"), line("sleep(0.1)")]
    paths = [
        tracker.move(number).path
        for number in [move, *once, *once, line("grip(100)"), grip]
    ]
    functions = [[name for name, _ in path] for path in paths]
    assert functions[1:4] == [["cell"], ["cell", "Unload"], ["cell", "Unload", "grip"]]
    assert functions[6] == []
    assert functions[-1] == ["cell", "grip"]
    count = {
        SCRIPT.nodes[-1 - key].label: n
        for key, n in tracker.executions.items()
        if key < 0
    }
    assert count == {
        "Waypoint_1": 1, "Call Unload": 2, "Above": 2, "Wait: 0.5 # s": 2, "RG2(100)": 1
    }  # fmt: skip
    assert tracker.executions[grip] == 3


def test_a_call_whose_line_is_never_seen() -> None:
    """The next call in the caller, from the line before it."""
    tracker = ProgramTracker(SCRIPT)
    tracker.move(line("movej("))
    path = tracker.move(line("movel(")).path
    labels = [SCRIPT.nodes[node].label for _, node in path]
    assert labels == ["Call Unload", "Above"]


LINES = (
    0,
    line("movej("),
    line("movel("),
    line("sleep(0.5)"),
    line("sleep(0.1)"),
    500,
    2**32 - 1,
)


@examples(40)
@given(st.data())
def test_any_sequence_of_lines_keeps_the_stack_bounded(data: st.DataObject) -> None:
    tracker = ProgramTracker(SCRIPT)
    numbers = data.draw(st.lists(st.integers(-3, len(SCRIPT.text) + 3), max_size=60))
    for number in numbers:
        place = tracker.move(number)
        assert len(place.path) <= len({name for name, _ in place.path})


def test_parts_sum_to_the_estimate_and_are_what_each_line_took(tmp_path: Path) -> None:
    samples = motion(4.0)
    order = (
        np.random.default_rng(1).integers(len(LINES), size=81).repeat(25)[: len(samples)]
    )
    numbers = np.array(LINES)[order]
    recorded = changed(samples, script_control_line=numbers.astype(float))
    info = replace(samples.info, robot="ur5e")
    bag = write_bag(tmp_path / "bag", replace(recorded, info=info))
    model = known_model()
    found = profile_program(model, bag, SCRIPT, same_arm=True)
    whole = estimate_energy(model, bag, same_arm=True)
    rest = found.unattributed()
    for parts in (found.nodes(), found.lines()):
        energy = sum(part["energy"] for part in (*parts, rest))
        assert energy == pytest.approx(whole.supply, rel=1e-12)
        time = sum(part["time"] for part in (*parts, rest))
        assert time == pytest.approx(whole.duration, rel=1e-12)
    assert sum(found.stacks().values()) == pytest.approx(whole.supply, rel=1e-12)
    # Half of the step before a sample and half of the one behind it belong to its line.
    steps = np.diff(samples.time)
    weights = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
    watts = samples["actual_robot_voltage"] * samples["actual_robot_current"]
    for part in found.lines():
        own = numbers == part["lines"][0]
        assert part["energy"] == pytest.approx(float(weights[own] @ watts[own]), rel=1e-9)
        assert (part["total_source"], part["total_measured_share"]) == ("measured", 1.0)
    for part in (*found.nodes(), *found.lines(), rest):
        parts = sum(part["joints"].values())
        parts += sum(
            part[f"{name}_energy"] for name in ("driver", "standby", "regeneration")
        )
        assert parts == pytest.approx(part["model_energy"], rel=1e-9)
        missing = part["unexplained_energy"]
        assert parts + missing == pytest.approx(part["energy"], rel=1e-9)
    assert found.total_source == whole.total_source
    assert found.explained_share == pytest.approx(whole.explained_share, rel=1e-9)
    told = np.isin(numbers, [line("movej("), line("movel("), line("sleep(0.5)")])
    assert rest["time"] == pytest.approx((~told).sum() / 500.0, abs=0.002)
    content = found.as_json()
    assert content["unexplained_energy"] == pytest.approx(whole.unexplained, rel=1e-9)
    assert content["model_energy"] == pytest.approx(whole.model, rel=1e-9)
    joints = [content["joints"][name] for name in whole.names]
    np.testing.assert_allclose(joints, whole.electrical, rtol=1e-9)
    for rows in (content["lines"], content["nodes"]):
        for key in ("energy", "unexplained_energy", "driver_energy"):
            parts = sum(row[key] for row in (*rows, content["unattributed"]))
            assert parts == pytest.approx(content[key], rel=1e-9)
    assert [node["label"] for node in content["nodes"]] == [
        "Above",
        "Waypoint_1",
        "Wait: 0.5 # s",
    ]
    assert all(
        node["interval"][0] < node["energy"] < node["interval"][1]
        for node in content["nodes"]
    )
    assert compare_programs(found, found)[0]["difference"] == 0.0


@examples(40)
@given(st.text(alphabet='ab ():$"#\n\t1', max_size=200), st.text(max_size=200))
def test_any_text_is_parsed(text: str, other: str) -> None:
    for each in (text, other, f"def p():\n{text}\nend"):
        script = parse_script(each)
        assert len(script.text) == len(script.function) == len(script.node)
        for k, node in enumerate(script.nodes):
            assert {script.node[number] for number in node.lines} == {k}


HOSTILE: dict[str, Callable[[int], str]] = {
    "letters": lambda n: "a" * n,
    "words and spaces": lambda n: "a" * (n // 2) + " " * (n // 2) + "x",
    "calls": lambda n: "f(" * (n // 2),
    "names": lambda n: " ".join(f"f{k}(" for k in range(n // 8)),
    "quotes": lambda n: "\"'" * (n // 2),
    "nodes' quotes": lambda n: '$ 1 "' + '" ' * (n // 2),
    "spaces": lambda n: "def " + " " * n + "(",
    "colons": lambda n: "if " + "x:" * (n // 2) + "y",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_line_takes_time_in_proportion_to_its_length(kind: str) -> None:
    def seconds(length: int) -> float:
        text = "\n".join(["def f():", *[HOSTILE[kind](length)] * 10, "end"])
        taken = []
        for _ in range(3):
            begin = time.process_time()
            parse_script(text)
            taken.append(time.process_time() - begin)
        return min(taken)

    short = seconds(12_000)
    long = seconds(96_000)
    assert long < 3.0 * 8.0 * short + 0.002


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "  movej([0.1, -1.5, 1.5, -1.6, -1.6, 0.0], a=1.4, v=1.05)",
            marks=pytest.mark.truth,
        ),
        "x" * 90_000,
        pytest.param("\N{GRINNING FACE}" + "f(" * 200, marks=pytest.mark.truth),
        'if (\n$ 1 "a node with a label of a usual length"\n  grip()' + " " * 180,
        "",
    ],
)
def test_a_long_script_takes_memory_in_proportion_to_its_length(line: str) -> None:
    """At most 200 MB for the longest that is read; more lines or nodes than any has are refused."""
    text = (line + "\n") * ((2 << 20) // (len(line.encode()) + 1))
    tracemalloc.start()
    with suppress(InputError):
        parse_script(text)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 200e6 * (2 << 20) / LARGEST


def test_versions_of_a_long_program_are_compared_quickly() -> None:
    old = [f"movej(q{k})" for k in range(20_000)]
    new = [*old[:5000], *(f"movel(q{k})" for k in range(5000, 9000)), *old[9000:]]
    lines = changed_lines(old, new)
    assert lines == [f"- {x}" for x in old[5000:9000]] + [
        f"+ {x}" for x in new[5000:9000]
    ]
    assert changed_lines(["a", "b", "c"], ["a", "x", "c", "d"]) == ["- b", "+ x", "+ d"]


@pytest.mark.truth
def test_a_simulated_program_line_by_line(tmp_path: Path) -> None:
    """Energies at the supply by the simulator's truth; the generic model has not seen this arm."""
    random = np.random.default_rng(2)
    program = ["def cell():"]
    home = np.array([0.0, -1.6, 1.6, -1.6, -1.6, 0.0])
    for k in range(8):
        q = np.round(home + random.uniform(-0.7, 0.7, 6), 3).tolist()
        a = random.uniform(1.5, 4.0)
        v = random.uniform(1.0, 2.5)
        action = (
            f"sleep({a / 4:.2f})" if k % 4 == 3 else f"movej({q}, a={a:.2f}, v={v:.2f})"
        )
        program += [f'  $ {k} "Node {k}"', f"  {action}"]
    text = "\n".join([*program, "end\n"])
    robot = load_robot("ur5e")
    arm = SimulatedArm(robot, motion=Hold(home), seed=5, options=ArmOptions(session=1))
    identity = SimulatedIdentity.for_robot(robot, (5, 11, 1), seed=5, motion="hold")
    box = ControlBox(arm, identity)
    names = (*FIELDS, LINE, "runtime_state")
    session = ScriptSession(box)
    rows = []
    truth = []
    for cycle in range(7000):
        if cycle == 1000:
            session.receive(text.encode())
        box.step()
        rows.append([np.copy(box.values[name]) for name in names])
        truth.append((arm.energies().time, arm.energies().bus))
        if cycle > 2000 and rows[-1][-1] == 1.0:
            break
    columns = {
        name: np.array(column)
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    time, energy = np.array(truth).T
    info = RecordingInfo(robot="ur5e", rate=500.0)
    bag = write_bag(tmp_path / "bag", Telemetry(time, columns, info))
    found = profile_program(generic_model("ur5e"), bag, parse_script(text))
    step = np.diff(energy)
    line = columns[LINE][1:] * (columns["runtime_state"][1:] != 1.0)
    expected = {f"Node {k}": step[line == 2 * k + 3].sum() for k in range(8)}
    got = {part["label"]: part["energy"] for part in found.nodes()}
    assert len(got) == 8
    for name, joules in expected.items():
        assert got[name] == pytest.approx(joules, abs=0.02 * step.sum())
    clear = sorted(expected, key=lambda name: -expected[name])
    assert max(got, key=lambda name: got[name]) == clear[0]


def test_a_cycle_with_an_outage_is_not_among_the_cycles(tmp_path: Path) -> None:
    """Within the third of four cycles 0.5 s are missing, and with them the energy of that time."""
    there = np.array([0.0, -1.6, 1.6, -1.6, -1.6, 0.0])
    away = there + 0.4
    cycle = Chain([move(there, away, 1.5, 3.0, 0.5), move(away, there, 1.0, 3.0, 0.7)])
    motion = Chain([*cycle.moves] * 6)
    robot = replace(load_robot("ur5e"), rate=125.0)
    arm = SimulatedArm(robot, motion=motion, seed=5)
    telemetry = record_arm(arm, motion.duration)
    telemetry = changed(telemetry, script_control_line=np.full(len(telemetry), 3.0))
    since = telemetry.time - telemetry.time[0] - 2.3 * cycle.duration
    kept = (since < 0.0) | (since > 0.5)
    model = generic_model("ur5e")
    whole = profile_program(model, write_bag(tmp_path / "whole", telemetry)).as_json()[
        "cycles"
    ]
    bag = write_bag(tmp_path / "gap", telemetry.select(kept))
    found = profile_program(model, bag).as_json()["cycles"]
    assert found["count"] == whole["count"] - 1
    assert found["energy"] == pytest.approx(whole["energy"], rel=0.005)


def test_shifts(tmp_path: Path) -> None:
    """A recording of four seconds across six in the morning of another time zone."""
    samples = motion(4.0)
    recorded = changed(samples, script_control_line=np.full(len(samples), line("movej(")))
    begin = datetime(2026, 5, 4, 3, 59, 57, tzinfo=timezone.utc)
    stamp = int(begin.timestamp()) * 10**9 + np.arange(len(samples)) * 2_000_000
    info = replace(samples.info, robot="ur5e")
    bag = write_bag(tmp_path / "bag", replace(recorded, info=info, stamp=stamp))
    zone = timezone(timedelta(hours=2))
    model = known_model()
    found = profile_program(
        model, bag, SCRIPT, shifts=(-120, 360, 1320), zone=zone, same_arm=True
    )
    shifts = found.as_json()["shifts"]
    assert [each["begin"] for each in shifts] == [
        "2026-05-03T22:00:00+02:00", "2026-05-04T06:00:00+02:00"
    ]  # fmt: skip
    assert sum(each["energy"] for each in shifts) == pytest.approx(
        found.energy, rel=1e-12
    )
    assert shifts[0]["parts"][0]["seconds"] == pytest.approx(3.0, abs=0.003)


@pytest.mark.parametrize(
    ("content", "remedy"),
    [(None, "cannot be read"), (b"\x1f\x8b\0\0", "urp"), (b"", "is empty")],
)
def test_what_is_no_script(tmp_path: Path, content: bytes | None, remedy: str) -> None:
    path = tmp_path / "program.script"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=remedy):
        read_script(path)
