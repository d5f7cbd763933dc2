# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ordinary mistakes at the command line: exit code 1 or 2, and one line that helps."""

from __future__ import annotations

import itertools
import math
import re
import shlex
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.cli.conftest import Capture, end_of
from test.contracts.surface import of_an_absent_room
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.cli.listing import all_commands
from ur_energy_model.cli.main import main
from ur_energy_model.cli.options import options_of_tables
from ur_energy_model.cli.parser import command_tables
from ur_energy_model.model.robots import load_robot
from ur_energy_model.rooms import has_room

NOBODY = "127.0.15.97"  # an address at which nothing listens


OPTIONS = {
    name: options_of_tables(command_tables(command))
    for name, command in all_commands().items()
}
"""Options of every command, those of `history` included."""

MISTAKES: dict[str, tuple[str, ...]] = {  # what the line must name, remedy included
    "": ("COMMAND", "--help"),
    "optimize {model} {bag} --duration 3": ("--cycle-time",),
    "optimize {model} {bag} --pareto --front-point 2": ("--execute",),
    "optimize {model} {bag} --pareto --pareto-points 1": ("2",),
    "excite --robot ur5e --objective conditon -o t.yaml": ("condition",),
    "protocol s5 --simulated -o new": ("s0", "s4"),
    "estimate {bag} {model}": ("model comes first",),
    "history add {bag} {store}": ("store",),
    "live": ("--host", "--bag"),
    "import {csv} -o new": ("--robot",),
    "excite --execute ur5e": ("--host",),
    "optimize {model} {bag} --execute --host {nobody}": ("-o",),
    "estimate {nameless}": ("--robot",),
    "evaluate {model} {bag}/metadata.yaml": ("folder of the bag: ",),
    "inspect {csv}": ("ur_energy import",),
    "evaluate {bag} {bag}": ("MODEL.yaml",),
    "excite --for-gap {bag} -o t.yaml": ("MODEL.yaml",),
    "simulate --robot ur5e --host {own} --motion nowhere": ("nowhere",),
    "record --host {nobody} -o {bag}": ("exists",),
    "excite --execute ur5e --host {nobody} -o {bag}": ("exists",),
    "protocol s1 --simulated --host {nobody} -o new": ("one of them",),
    "report {model} {bag} -o {text}/r.html": ("not a folder", "check path"),
    "estimate {model} {bag} --robot ur10e": ("ur5e", "--robot"),
    "evaluate {model} {other_bag}": ("ur10e",),
    "record --host {nobody} -o new": (NOBODY, "check"),
    "excite --execute ur5e --host {nobody} -o new --yes": (NOBODY, "check"),
    "simulate --robot ur5e --host 192.0.2.1": ("--allow-network",),
    "simulate --robot ur5e --host {busy}": ("30004", "free address"),
    "live --bag {bag} --prometheus {taken}": ("port", "another"),
    "record --host {nobody} -o new --duration 60s": ("--duration", "write 60"),
    "estimate {model} {bag} --payload 2kg": ("--payload", "write 2"),
    "estimate {model} {bag} --payload 500": ("--payload", "0.5 for 500 g"),
    "evaluate {model} {bag} --payload 2000": ("--payload", "2 for 2000 g"),
    "simulate --robot ur5e --host {own} --payload 2000": ("--payload", "2 for 2000 g"),
    "simulate --robot ur5e --host {own} --carried 500": ("--carried", "0.5 for 500 g"),
    "excite --robot ur5e --payload 500 -o t.yaml": ("--payload", "0.5 for 500 g"),
    "identify {bag} --payload 1500 -o t.yaml": ("--payload", "1.5 for 1500 g"),
    "record --host {nobody} -o new --duration 2m": ("--duration", "write 120"),
    "record --host http://{nobody}:30004/ -o new": ("--host", "write {nobody}"),
    "live --host {nobody}:30004": ("--host", "write {nobody}"),
    "history summary {store} --tariff 28ct": ("--tariff", "write 0.28"),
    "history summary {store} --tariff 28": ("--tariff", "write 0.28"),
    "history summary {store} --co2 380": ("--co2", "0.38 for 380 g"),
    "history summary {store} --supply-efficiency 90": (
        "--supply-efficiency",
        "0.9 for 90 %",
    ),
    "simulate --robot ur5e --host {own} --mounting wall": ("degrees",),
    "excite --execute ur5e --host {nobody} -o new --speed-fraction 50": (
        "--speed-fraction",
    ),
    "history summary {store} --time-zone Berlin": ("Europe/Berlin",),
    "history sql {store} 'DELETE FROM seconds'": ("SELECT",),
    "optimize {model} {bag}": ("cycle",),
    "payload {bag}": ("model is missing", "identify"),
    "evaluate {bag}": ("model is missing", "identify"),
    "optimize {bag}": ("model is missing", "identify"),
    "estimate {model} {bag} --csv {text}": ("exists", "--overwrite"),
    "estimate {model} {bag} --bag {bag}": ("itself",),
    "estimate {model} {bag} --bag {other_bag}": ("exists", "--overwrite"),
    "import {csv} --robot ur5e -o {bag}": ("exists", "--overwrite"),
    "profile {bag} -o {folder}": ("has files", "--overwrite"),
    "profile {bag} --html {text}": ("exists", "--overwrite"),
    "report {model} {bag} -o {text}": ("exists", "--overwrite"),
    "report {model} {bag} --html new.html --figures {folder}": (
        "has files",
        "--overwrite",
    ),
    "optimize {model} {bag} -o {folder}": ("has files", "--overwrite"),
    "optimize {model} {bag} --html {text}": ("exists", "--overwrite"),
    "identify {bag} --robot ur5e -o {model}": ("exists", "--overwrite"),
    "learn {bag} --model {model} -o {model}": ("exists", "--overwrite"),
    "learn {bag} --robot ur5e -o new.yaml --figure {picture}": ("exists", "--overwrite"),
    "payload {model} {bag} --known-payload 1 -o {model}": ("exists", "--overwrite"),
    "excite --robot ur5e -o {text}": ("exists", "--overwrite"),
    "excite --export ur5e -o {text}": ("exists", "--overwrite"),
    "simulate --robot ur5e --host {own} --truth {text}": ("exists", "--overwrite"),
    "layouts -o {folder}": ("has files", "--overwrite"),
    "history report {store} -o {text}": ("exists", "--overwrite"),
    "history export {store} -o {text}": ("exists", "--overwrite"),
    "protocol s1 --simulated -o {folder}": ("not an empty folder",),
    "demo -o {folder}": ("not from an earlier demo",),
}


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory,
    bag: Path,
    model: Path,
    fresh_host: Callable[[], str],
) -> Iterator[Callable[[str], list[str]]]:
    """Replaces the names in braces by what a new user has."""
    place = tmp_path_factory.mktemp("mistakes")
    busy = fresh_host()
    for name, content in (("folder", "notes.txt"),):
        (place / name).mkdir()
        (place / name / content).write_text("of someone else")
    (place / "picture.png").write_text("of someone else")
    (place / "text").write_text("speed = fast\n")
    (place / "csv.csv").write_text("time,actual_q_0\n0.0,1.0\n0.1,1.0\n")
    arms = (
        ("ur5e", "nameless", None),
        ("ur10e", "other_bag", "ur10e"),
    )
    for robot, name, named in arms:
        seen = ExactArm(load_robot(robot)).record(20.0, seed=31)
        write_bag(place / name, replace(seen, info=replace(seen.info, robot=named)))
    (place / "store").mkdir()
    if has_room("plant"):
        assert main(["history", "add", str(place / "store"), str(bag)]) == 0
    given: dict[str, object] = {path.stem: path for path in place.iterdir()}
    given |= {
        "bag": bag,
        "model": model,
        "nobody": NOBODY,
        "own": fresh_host(),
        "busy": busy,
    }
    given["text"] = (place / "text").rename(place / "text.txt")
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        socket.create_server((busy, 30004)),
    ):
        given["taken"] = f"127.0.0.1:{taken.getsockname()[1]}"
        yield lambda command: shlex.split(command.format_map(given))


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_line_with_a_remedy(
    command: str,
    filled: Callable[[str], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = filled(command)
    if of_an_absent_room(arguments):
        pytest.skip("a command or an option of a room that is not there")
    code, out, err = end_of(arguments, capsys)
    lines = [line for line in err.splitlines() if not line.endswith("...")]
    assert code in (1, 2), (code, out, err)
    assert len(lines) == 1, err
    assert out == "" or "waiting for" in out
    for word in MISTAKES[command]:
        assert word.format(nobody=NOBODY) in lines[0]


OUTPUTS = ("--output", "--csv", "--html", "--figures", "--figure", "--truth")
NEVER_REPLACED = ("record", "demo", "protocol")
"""Commands whose output must be new: what stands there is never replaced."""


def test_every_command_with_an_output_has_the_one_rule_for_what_exists() -> None:
    for name, options in OPTIONS.items():
        flags = {flag for option in options for flag in option.flags}
        if flags & set(OUTPUTS) and name not in NEVER_REPLACED:
            assert "--overwrite" in flags, name


# Any option of any command, also of those to come, with values that nobody expects.

NUMBERS = (
    "nan", "inf", "-inf", "-1", "0", "1e300", "-1e300", "1e-300", "5e-324", "1" + "0" * 400,
    "0x10", "1_000", "1,5", "", " ", "x" * 100_000, "\udcff", "\x1b[2J", "\u0663",
)  # fmt: skip


def numbers_in(value: object) -> Iterator[float]:
    if isinstance(value, tuple):
        for each in value:
            yield from numbers_in(each)
    elif isinstance(value, float):
        yield value


def test_numbers_of_options_are_finite_or_refused() -> None:
    for option in itertools.chain(*OPTIONS.values()):
        if option.kind is bool:
            continue
        for text in NUMBERS:
            words: Any = text if option.count == 1 else [text] * option.count
            if option.many or option.several:
                words = [words]
            try:
                value = option.read(words)
            except ValueError:
                continue
            assert all(map(math.isfinite, numbers_in(value))), (option.name, text)


HOSTILE = [
    "inspect {bag}",
    "evaluate {model} {bag}",
    "estimate {model} {bag}",
    "payload {model} {bag}",
    "identify {bag} --robot ur5e -o {out}",
]
if has_room("learning"):
    HOSTILE.append("learn {bag} --robot ur5e -o {out}")


def test_no_command_prints_a_number_that_is_none(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Joints that never move, no bus power, no temperature, and hardly any motion at all."""
    whole = ExactArm().record(6.0, seed=5, still=(1, 4))
    some = {
        name: values for name, values in whole.columns.items() if "robot_" not in name
    }
    still = {
        name: np.zeros_like(values) for name, values in some.items() if name != "actual_q"
    }
    contents = (
        some | {"joint_temperatures": np.full_like(some["actual_q"], np.nan)},
        some | still | {"actual_q": 0.0 * some["actual_q"]},
    )
    for number, (columns, options) in enumerate(
        zip(contents, ((), ("--json",)), strict=True)
    ):
        bag = write_bag(tmp_path / f"bag{number}", replace(whole, columns=columns))
        for words in HOSTILE:
            line = shlex.split(
                words.format(bag=bag, model=model, out=tmp_path / "new.yaml")
            )
            _, *printed = end_of([*line, *options], capsys)
            found = re.search(r"(?i)(?<![\w./-])(nan|inf|infinity)\b", " ".join(printed))
            assert found is None, words
