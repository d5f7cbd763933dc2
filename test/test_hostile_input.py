# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Hostile input: every reader reads it or refuses it in one line, in bounded time and memory."""

from __future__ import annotations

import csv
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from test.telemetry.bag.bag_files import write_bag, write_file
from test.telemetry.conftest import make_telemetry
from test.telemetry.hostile_peer import FIELDS, GREETING, KINDS, feed
from test.torture.harness import Surroundings, Verdict
from test.torture.hostile_files import (
    MCAP_BOMBS,
    NUMBERS,
    READERS,
    alias_bomb,
    csv_file,
    damaged,
    valid,
)
from test.torture.reading import ReadingWorker
from ur_energy_model.energy.counters import EnergyCounters
from ur_energy_model.energy.cycle_energies import Cycle, CycleLog
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import Channels
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.files import open_regular, user_path, write_text
from ur_energy_model.model.urdf_import import robot_content
from ur_energy_model.sinks.credentials import read_section
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.bag.retention import file_contents
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.rtde.protocol import Recipe, frame
from ur_energy_model.trajectory.plan_file import read_plan
from ur_energy_model.yaml_reader import YamlTree

CHANNELS = Channels(("a_joint", "b_joint"))
MANY = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def _in_bag(path: Path) -> Path:
    """The path is a file of a bag."""
    bag = path.parent / "bag"
    bag.mkdir()
    path.rename(bag / ("metadata.yaml" if path.suffix == ".yaml" else "bag_0.mcap"))
    return bag


def _beside(suffix: str, read: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """The path is where a file beside the named one is looked for."""
    return lambda path: read(path.rename(path.with_name("x" + suffix)).with_name("x"))


def _logged(path: Path) -> None:
    log = CycleLog(path)
    log.append(Cycle(1, 0, 10**9, MeterReading.zero(len(CHANNELS)), 10.0), CHANNELS)
    if log.problem:
        raise OSError(log.problem)


FILES: dict[str, Callable[[Path], Any]] = {
    **READERS,
    "plan": lambda path: read_plan(path, CHANNELS.joints),
    "cycles": _logged,
    "state": lambda path: EnergyCounters(CHANNELS, path),
    "journal": _beside(".journal", lambda path: EnergyCounters(CHANNELS, path)),
    "written": lambda path: write_text(path, ""),
    "opened": open_regular,
    "csv": lambda path: read_csv([path], "ur5e"),
    "bag": lambda path: read_bag(_in_bag(path)),
    "events": file_contents,
    "recovered": lambda path: recover_bag(_in_bag(path)),
    "urdf": robot_content,
    "credentials": lambda path: read_section(path, "mqtt", YamlTree.plain, None),
}
"""What reads or writes a file that a user names."""
CONTENTS = sorted({*FILES} - {"cycles", "written", "opened", "state", "journal"})


@cache
def sound(kind: str) -> bytes:
    """Content of a valid file."""
    if kind in READERS:
        return valid(kind).encode()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bag"
        if kind in ("bag", "events", "recovered"):
            write_bag(path, make_telemetry(600, fields=("actual_q", "payload")))
            return (path / "bag_0.mcap").read_bytes()
    rows = "".join(f"{100 + 0.02 * i:.2f},{i % 7},1.5\n" for i in range(100))
    return {
        "plan": "time,q_0,q_1\n" + rows,
        "csv": "timestamp,payload,speed_scaling\n" + rows,
        "urdf": '<robot name="a"><link name="b"/><joint name="c" type="fixed"/></robot>',
        "credentials": "username: a\npassword: b\n",
    }[kind].encode()


def check(kind: str, content: bytes, name: str = "x.yaml") -> Any:
    """Read a file: it is read, or refused in one line that names it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            return FILES[kind](path)
        except UrEnergyError as error:
            message = str(error)
        assert folder in message
        assert "\n" not in message
        assert message.isprintable()
        assert len(message) < 1500
        return None


# Valid files, and faults in them.


# kind, what stands there, what is put in its place, what the message says
FAULTS: list[tuple[str, str, str, str]] = [
    ("robot", "schema: 1", "schema: 99", "schema 99 .* update ur_energy_model"),
    ("robot", "name: ur5e", "nmae: ur5e", r"did you mean 'name'\?"),
    ("robot", "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0002]", "[0.0, 0.0, 0.0, 0.0, 0.0, -0.0002]",
     "principal moment"),
    ("robot", "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0002]", "[0.0, 0.0, 0.0, 0.0, 0.0, 200]", "across"),
    ("robot", "[3.637679, -0.011074", "[-36.37679, -0.011074", "not positive at"),
    ("seven", "fixed: [0]", "fixed: [8]", "link 8 must be 0 to 7"),
    ("model", "winding_resistance: {value: 0.3, unit: ohm, std: 0.0",
     "winding_resistance: {value: -0.3, unit: ohm, std: 0.2", "must not be negative"),
    ("model", "floor: {value: 0.0", "floor: {value: 26", "above the standby power"),
    ("trajectory", "repetitions: 3", "repetitions: 90000", "longer than a day"),
    ("geometry", "{link: 0", "{link: -1", "must be 0 to"),
]  # fmt: skip


def test_faults_are_refused_with_file_line_and_key(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    for kind, old, new, problem in FAULTS:
        text = valid(kind)
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(InputError, match=problem) as refusal:
            READERS[kind](path)
        assert str(refusal.value).startswith(f"{path}: line "), (kind, new)
        line = int(str(refusal.value.field).split(":")[0].split()[1])
        first = text[: text.index(old)].count("\n") + 1
        assert line in range(first, first + 1 + new.count("\n")), (kind, new)


@MANY
@given(
    kind=st.sampled_from(sorted(READERS)),
    at=st.floats(0, 0.9999),
    value=st.sampled_from([*NUMBERS, "-1e9", "[[1]]", "{a: 1}", "? ", "&a 1"]),
    key=st.booleans(),
)
def test_any_other_value_or_key(kind: str, at: float, value: str, key: bool) -> None:
    """Replace each number or key of each file in turn."""
    text = valid(kind)
    places = list(
        re.finditer(r"[A-Za-z_]\w*(?=:)" if key else r"(?<=[\[ ])-?\d[\d.e-]*", text)
    )
    found = places[int(at * len(places))]
    check(kind, (text[: found.start()] + value + text[found.end() :]).encode())


@MANY
@given(kind=st.sampled_from(CONTENTS), seed=st.integers(0, 2**32))
def test_any_damage(kind: str, seed: int) -> None:
    """What is read of a damaged bag is what was recorded; recovered is what can be read."""
    read = check(kind, damaged(sound(kind), Random(seed)), "x.mcap")
    if kind == "bag" and read is not None:
        whole = make_telemetry(600, fields=("actual_q", "payload"))
        assert np.isin(read.time, whole.time).all()


# Bombs, in a process whose time and memory are measured.


@pytest.fixture(scope="module")
def worker() -> Iterator[ReadingWorker]:
    with Surroundings() as around:
        yield ReadingWorker(around)


YAML_BOMBS: dict[str, Callable[[], str]] = {
    "many values": lambda: "a: [" + "1, " * 1_300_000 + "1]",
    "indented": lambda: "".join(" " * i + "a:\n" for i in range(1500)),
    "laughs": alias_bomb,
    "tag directives": lambda: (
        "".join(f"%TAG !{i}! tag:x:\n" for i in range(99_999)) + "---\na: 1"
    ),
    "size": lambda: "#" * 17_000_000,
}


@pytest.mark.parametrize("name", [*YAML_BOMBS, *MCAP_BOMBS, "0"])
def test_bombs_are_bounded(worker: ReadingWorker, tmp_path: Path, name: str) -> None:
    verdict = Verdict(name)
    if name in YAML_BOMBS:
        (tmp_path / "metadata.yaml").write_text(YAML_BOMBS[name]())
        jobs = [
            ("bag", tmp_path),
            *([("robot", tmp_path / "metadata.yaml")] * (name < "i")),
        ]
    elif name in MCAP_BOMBS:
        file = write_file(tmp_path / "x.mcap", MCAP_BOMBS[name]())
        # Recovery passes over the same records; half a million of them once are enough.
        jobs = [("bag", file), *([("recover", file)] * (name != "metadata"))]
    else:
        jobs = [csv_file(tmp_path, Random(int(name)))]
    outcomes = [worker.judge(verdict, kind, path) for kind, path in jobs]
    assert verdict.problems == []
    assert name.isdigit() or set(outcomes) == {"refused"}
    # on a busy machine; unbounded, some of them take an hour
    assert verdict.seconds < 60.0


# Streams and texts.

RECIPE = Recipe(FIELDS, KINDS, 1)  # type: ignore[arg-type]


def packages(times: Any) -> bytes:
    values = {"actual_q": np.zeros(6), "payload": 1.0, "robot_mode": 7}
    return b"".join(RECIPE.pack({**values, "timestamp": time}) for time in times)


CLOCK = 100.0 + np.arange(30) * 0.002
HONEST = packages(CLOCK)
PIECES = st.one_of(
    st.binary(max_size=200),
    st.builds(frame, st.integers(0, 255), st.binary(max_size=300)),
    st.lists(st.floats(), min_size=1, max_size=20).map(packages),
    st.sampled_from(
        [HONEST, frame(77, b"\x05hello\x00\x02") * 50, b"\xff\xff", bytes(3)]
    ),
)


@MANY
@given(
    pieces=st.lists(PIECES, max_size=8),
    cut=st.integers(0, len(GREETING)) | st.just(len(GREETING)),
    changes=st.dictionaries(
        st.integers(0, len(GREETING + HONEST) - 1), st.integers(0, 255)
    ),
)
def test_rtde_peers(pieces: list[bytes], cut: int, changes: dict[int, int]) -> None:
    """Anything may follow the greeting or a part of it, and any byte may change."""
    assert feed(GREETING + HONEST) == CLOCK.tolist() or changes
    data = bytearray(GREETING + HONEST)
    for place, value in changes.items():
        data[place] = value
    feed(bytes(data) if changes else GREETING[:cut] + b"".join(pieces))


# What is no regular file, and text that must not become a formula.


@pytest.mark.parametrize("kind", FILES)
def test_pipes_and_links_in_circles_are_refused_at_once(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / ("x.mcap" if kind in ("bag", "events", "recovered") else "x.yaml")
    os.mkfifo(path)
    signal.alarm(5)  # ends the tests where something blocks
    try:
        with pytest.raises((InputError, OSError, ValueError), match="not a regular file"):
            FILES[kind](path)
    finally:
        signal.alarm(0)
    path = tmp_path / "x.link"
    path.symlink_to(path)
    with suppress(InputError, OSError, ValueError):
        FILES[kind](path)


@settings(max_examples=3, deadline=None)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=5),
       mark=st.sampled_from(["=", "+", "-", "@", "\t", ""]))  # fmt: skip
def test_no_text_in_csv_files_is_a_formula(text: str, mark: str) -> None:
    from test.plant.synthetic_plant import JOINTS, Arm, Work, write_plant
    from ur_energy_model.optimization.pendant import Step, sheet_csv
    from ur_energy_model.plant.database import export_csv
    from ur_energy_model.plant.store import HistoryStore

    name = mark + text
    names = (f"{name}1", f"{name}2", *JOINTS[2:])
    with TemporaryDirectory() as folder:
        cycles, rows, sheet = (Path(folder) / f"{k}.csv" for k in range(3))
        log = CycleLog(cycles)
        channels = Channels(names)
        cycle = Cycle(1, 0, 10**9, MeterReading.zero(len(channels)), 10.0, program=name)
        log.append(cycle, channels)
        write_plant(
            Path(folder) / "plant", [Arm("A1", names, programs=(name,))], Work(days=1)
        )
        export_csv(HistoryStore(Path(folder) / "plant"), "cycles", rows)
        waypoint = (-90.0,) * 6
        sheet.write_text(
            sheet_csv([Step("moveJ", 0, waypoint, (3,), 60.0, 30.0, 80.0, 40.0)])
        )
        for path in (cycles, rows, sheet):
            with path.open(encoding="utf-8", newline="") as file:
                cells = [cell for row in csv.reader(file) for cell in row]
            texts = [cell for cell in cells if cell and not is_number(cell)]
            assert len(texts) > 5
            assert not [
                cell
                for cell in texts
                if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "\n")
            ]
            assert path == sheet or any(name in cell for cell in cells)


def is_number(cell: str) -> bool:
    """Whether a cell of a CSV file is a number."""
    return re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell) is not None


def test_links_and_paths_that_cannot_be_used(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"x" * 4096)
    (tmp_path / "state.journal").symlink_to(victim)
    with pytest.raises(InputError, match="symbolic link"):
        EnergyCounters(CHANNELS, tmp_path / "state")
    assert victim.read_bytes() == b"x" * 4096
    for path in ("~no-such-user-at-all/x", "a\0b"):
        with pytest.raises(InputError, match="write"):
            user_path(path)
