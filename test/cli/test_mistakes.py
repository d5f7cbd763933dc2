"""Ordinary mistakes at the command line: exit code 1 or 2, and one line that helps."""

from __future__ import annotations

import argparse
import math
import random
import shlex
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from test.cli.conftest import Capture, end_of
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.cli.main import build_parser, main
from ur_energy_model.model.robots import load_robot

NOBODY = "127.0.15.97"
"""An address at which nothing listens."""

MISTAKES: dict[str, tuple[str, ...]] = {  # what the line must name, remedy included
    "identfy {bag}": ("identify",),
    "": ("COMMAND", "--help"),
    "history": ("COMMAND", "--help"),
    "estimate {model} {bag} --wrokers 2": ("--workers",),
    "record --hots 127.0.0.1 -o new": ("--host",),
    "live --ip 127.0.0.1": ("--host",),
    "optimize {model} {bag} --duration 3": ("--cycle-time",),
    "excite --robot ur5e --objective conditon -o t.yaml": ("condition",),
    "protocol s5 --simulated -o new": ("s0", "s4"),
    "identify {bag} -o m.yaml --friction coulomb_viscos": ("coulomb_viscous",),
    "import {csv} --robot ur5e --layout logg -o new": ("layout",),
    "estimate {bag} {model}": ("model comes first",),
    "report {bag} {model} -o r.html": ("model comes first",),
    "history add {bag} {store}": ("store",),
    "estimate {model}": ("recording", "bag"),
    "identify {bag}": ("--output",),
    "live": ("--host", "--bag"),
    "import {csv} -o new": ("--robot",),
    "excite -o t.yaml": ("--robot",),
    "excite --execute ur5e": ("--host",),
    "optimize {model} {bag} --execute --host {nobody}": ("-o",),
    "optimize {model} {bag} --another-arm": ("--execute",),
    "protocol s1 -o new": ("--host", "--simulated"),
    "estimate {nameless}": ("--robot",),
    "live --bag {nameless}": ("--robot",),
    "evaluate {model} {bag}/metadata.yaml": ("folder of the bag: ",),
    "estimate nomodel.yaml {bag}": ("nomodel.yaml", "check"),
    "inspect {csv}": ("ur_energy import",),
    "inspect {text}": ("text.txt",),
    "recover {folder}": ("folder",),
    "evaluate {bag} {bag}": ("MODEL.yaml",),
    "predict {model} {bag}": ("TRAJECTORY.csv",),
    "import {bag} --robot ur5e -o new": ("bag",),
    "import nowhere.csv --robot ur5e -o new": ("nowhere.csv",),
    "excite --check {model}": ("trajectory",),
    "excite --for-gap {bag} -o t.yaml": ("MODEL.yaml",),
    "simulate --robot ur5e --host {own} --motion nowhere": ("nowhere",),
    "history watch {store} nowhere": ("nowhere",),
    "identify {bag} -o {folder}": ("folder",),
    "record --host {nobody} -o {bag}": ("exists",),
    "import {csv} --robot ur5e -o {bag}": ("exists", "--overwrite"),
    "excite --execute ur5e --host {nobody} -o {bag}": ("exists",),
    "protocol s1 --host {nobody} -o {bag}": ("another folder",),
    "protocol s1 --simulated --host {nobody} -o new": ("one of them",),
    "protocol all --host {nobody} -o new": ("--simulated",),
    "layouts -o {model}": ("model.yaml",),
    "report {model} {bag} -o {text}/r.html": ("not a folder", "check path"),
    "excite --export ur5e -o {folder}": (".script",),
    "identify {bag} --robot ur5 -o m.yaml": ("ur5e", "--robot"),
    "estimate {model} {bag} --robot ur10e": ("ur5e", "--robot"),
    "evaluate {model} {other_bag}": ("ur10e",),
    "record --host {nobody} -o new": (NOBODY, "check"),
    "excite --execute ur5e --host {nobody} -o new --yes": (NOBODY, "check"),
    "record --host http://127.0.0.1 -o new": ("address",),
    "simulate --robot ur5e --host 192.0.2.1": ("--allow-network",),
    "simulate --robot ur5e --host {busy}": ("30004", "free address"),
    "live --bag {bag} --prometheus {taken}": ("port", "another"),
    "live --bag {bag} --prometheus 9464": ("ADDRESS:PORT",),
    "live --bag {bag} --mqtt 127.0.0.1:1883": ("mqtt://",),
    "estimate {model} {bag} {bag} --scheduler 127.0.0.1": ("tcp://",),
    "record --host {nobody} -o new --duration -5": ("--duration",),
    "record --host {nobody} -o new --duration 60s": ("--duration", "unit: 60"),
    "record --host {nobody} -o new --rate 1,5": ("--rate", "1.5"),
    "record --host {nobody} -o new --fields actual_Q": ("actual_q",),
    "estimate {model} {bag} --workers 0": ("--workers",),
    "estimate {model} {bag} --payload 2kg": ("--payload",),
    "evaluate {model} {bag} --payload identify": ("--payload", "KG"),
    "optimize {model} {bag} --tool-speed 250": ("--tool-speed", "M/S"),
    "simulate --robot ur5e --host {own} --mounting wall": ("degrees",),
    "simulate --robot ur5e --host {own} --payload 2kg": ("KG",),
    "excite --robot ur5e -o t.yaml --payload x": ("KG",),
    "simulate --robot ur5e --controller-version five": ("5.11.1",),
    "simulate --robot ur5e --host {own} --fault lightning": ("lightning",),
    "excite --execute ur5e --host {nobody} -o new --speed-fraction 50": ("--speed-fraction",),
    "history summary {store} --time-zone Berlin": ("Europe/Berlin",),
    "history sql {store} 'SELECT * FROM second'": ("seconds",),
    "history sql {store} 'DELETE FROM seconds'": ("SELECT",),
    "optimize {model} {bag}": ("cycle",),
}


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory, bag: Path, model: Path, fresh_host: Callable[[], str]
) -> Iterator[Callable[[str], list[str]]]:
    """Replaces the names in braces by what a new user has."""
    place, busy = tmp_path_factory.mktemp("mistakes"), fresh_host()
    (place / "folder").mkdir()
    (place / "text").write_text("speed = fast\n")
    (place / "csv.csv").write_text("time,actual_q_0\n0.0,1.0\n0.1,1.0\n")
    for robot, name, named in (("ur5e", "nameless", None), ("ur10e", "other_bag", "ur10e")):
        seen = ExactArm(load_robot(robot)).record(20.0, seed=31)
        write_bag(place / name, replace(seen, info=replace(seen.info, robot=named)))
    assert main(["history", "add", str(place / "store"), str(bag)]) == 0
    given: dict[str, object] = {path.stem: path for path in place.iterdir()}
    given |= {"bag": bag, "model": model, "nobody": NOBODY, "own": fresh_host(), "busy": busy}
    given["text"] = (place / "text").rename(place / "text.txt")
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server((busy, 30004)):
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
    code, out, err = end_of(filled(command), capsys)
    lines = [line for line in err.splitlines() if not line.endswith("...")]
    assert code in (1, 2), (code, out, err)
    assert len(lines) == 1, err
    assert out == "" or "waiting for" in out
    for word in MISTAKES[command]:
        assert word in lines[0]


# Any option of any command, also of those to come, with values that nobody expects.

NUMBERS = (
    "nan", "inf", "-inf", "-1", "0", "1e300", "-1e300", "1e-300", "5e-324", "1" + "0" * 400,
    "0x10", "1_000", "1,5", "", " ", "x" * 100_000, "\udcff", "\x1b[2J", "\u0663",
)  # fmt: skip
TEXTS = (
    "", ".", "-", "missing/folder/x", "n" * 300, "a/" * 3000, "\udcff\udcfe", "\x1b[2J",
    "new\nline", "/proc/x", "*" * 100_000,
)  # fmt: skip
LONG = ("demo", "live", "simulate", "protocol", "history")
"""Commands that run until they are stopped, and those with commands of their own."""
ACTIONS = [
    (name, parser, action)
    for each in build_parser()._actions
    if isinstance(each, argparse._SubParsersAction)
    for name, parser in each.choices.items()
    for action in parser._actions
    if action.nargs != 0 and not isinstance(action, argparse._SubParsersAction)
]


def test_numbers_of_options_are_finite_or_refused() -> None:
    for _, _, action in ACTIONS:
        for text in NUMBERS if callable(action.type) and action.type is not Path else ():
            try:
                value = action.type(text)
            except (argparse.ArgumentTypeError, ValueError):
                continue
            assert not isinstance(value, float) or math.isfinite(value), (action.dest, text)


@pytest.mark.parametrize("seed", range(2))
def test_any_text_is_refused_in_one_line(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    chance = random.Random(seed)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    free = [each for each in ACTIONS if each[0] not in LONG and each[2].type in (None, Path)]
    for name, parser, hostile in chance.sample(free, 30):
        words = [name]
        needed = [each for each in parser._actions if each.required or each.dest == "robot"]
        for action in dict.fromkeys([*needed, hostile]):
            value = "127.1.2.3" if action.dest == "host" else "empty"  # nobody listens there
            if action is hostile:
                value = chance.choice(TEXTS)
            elif action.choices is not None:
                value = str(chance.choice(list(action.choices)))
            if action.option_strings:
                words.append(f"{action.option_strings[-1]}={value}")
            else:
                words.append(value if not value.startswith("-") else f"./{value}")
        code, _, err = end_of(words, capsys)
        shown = f"{[word[:80] for word in words]}: {err[-2000:]}"
        assert code in (0, 1, 2, 3), shown
        assert "Traceback" not in err, shown
        assert code == 0 or max(map(len, err.splitlines())) < 1500, shown
