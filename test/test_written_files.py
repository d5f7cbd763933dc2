# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Everything that a command writes is loaded again by the reader that a user would take.

One table has the commands that write files, another one the readers by the kind of file.
A command with an option for a file that is not in the first table, and a file without a
reader in the second one, fail.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
import yaml

from test.absent_rooms import needs_room
from test.contracts.bag_readers import by_mcap, by_rosbags
from test.contracts.surface import FIXTURES, options_of_commands, ur_energy
from test.model.other_arms import SIX_AXES
from ur_energy_model.files import config_file
from ur_energy_model.model.capsules import load_shape
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.trajectory.fourier import load_trajectory

MODEL = FIXTURES / "model.yaml"
WORK = FIXTURES / "work"
EXCITATION = FIXTURES / "excitation"
RECORDING = FIXTURES / "recording.csv"
TRAJECTORY = FIXTURES / "trajectory.yaml"
# The genetic search has no time limit, so its result is the same on every machine.
GENETIC = (
    "--optimizer", "genetic", "--population", "30", "--generations", "1", "--clearance",
    "0", "--seed", "2", "--period", "20", "--harmonics", "3",
)  # fmt: skip


# Readers by the kind of file.


def finite(text: str) -> float:
    """A number of JSON that every reader accepts: no NaN and no infinity."""
    raise AssertionError(f"{text} is not JSON")


def strict_json(path: Path) -> Any:
    """JSON by the standard's own rules."""
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=finite)


def rows_of_csv(path: Path) -> list[list[str]]:
    """A table: a header of different names, and rows of the same width."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
    header = rows[0]
    assert len(set(header)) == len(header)
    assert len(rows) > 1
    for row in rows[1:]:
        assert len(row) == len(header)
        for entry in row:
            assert entry.lower() not in {"nan", "inf", "-inf"}, (path, entry)
    return rows


class Tags(HTMLParser):
    """Counts the elements of a page."""

    found = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found += 1


def page(path: Path) -> int:
    """An HTML page with elements."""
    tags = Tags()
    tags.feed(path.read_text(encoding="utf-8"))
    assert tags.found > 20
    return tags.found


def any_yaml(path: Path) -> Any:
    """YAML by its key `type` or its content: trajectory, robot, model, geometry, bag or plain."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    for number in numbers_in(content):
        assert math.isfinite(number), path
    if "rosbag2_bagfile_information" in content:
        return by_rosbags(path.parent)
    if content.get("type") == "fourier_trajectory":
        return load_trajectory(path)
    if "kinematics" in content:
        return load_robot(path)
    if "capsules" in content:
        return load_shape(path, content["robot"])
    if "joints" in content:
        return load_model(path)
    return content


def numbers_in(content: Any) -> list[float]:
    """All numbers of nested lists and mappings."""
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list):
        return [number for item in content for number in numbers_in(item)]
    return [content] if isinstance(content, float) else []


def arrays(path: Path) -> dict[str, Any]:
    """The arrays of an npz file, without pickled objects."""
    with np.load(path, allow_pickle=False) as content:
        return dict(content)


def matlab(path: Path) -> dict[str, Any]:
    """The variables of a MATLAB file."""
    from scipy.io import loadmat

    return dict(loadmat(path))


def picture(path: Path) -> Any:
    """A picture, whose header names the kind of its suffix."""
    from matplotlib.image import imread

    return imread(path)


def portable_document(path: Path) -> bool:
    """A PDF from its header to its end."""
    content = path.read_bytes()
    return content.startswith(b"%PDF-") and b"%%EOF" in content[-32:]


def program_of_a_robot(path: Path) -> int:
    """URScript: every block ends, brackets are balanced, and numbers are finite.

    The package has no interpreter of URScript with loops over time; the programs of
    `excite` run in test/experiment/test_exports.py.
    """
    text = path.read_text(encoding="utf-8")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    begins = [line for line in lines if line.endswith(":") and not line.startswith("el")]
    assert len(begins) == lines.count("end") > 0
    for opening, closing in ("()", "[]"):
        assert text.count(opening) == text.count(closing)
    assert not {"nan", "inf"} & set(text.lower().replace(",", " ").split())
    return len(lines)


def columns_of_parquet(path: Path) -> list[str]:
    """The columns of a Parquet file."""
    parquet = pytest.importorskip("pyarrow.parquet")
    return list(parquet.read_schema(path).names)


READERS: dict[str, Callable[[Path], Any]] = {
    ".json": strict_json,
    ".csv": rows_of_csv,
    ".html": page,
    ".yaml": any_yaml,
    ".yml": any_yaml,
    ".rviz": any_yaml,
    ".xml": Xml.parse,
    ".svg": Xml.parse,
    ".npz": arrays,
    ".mat": matlab,
    ".png": picture,
    ".pdf": portable_document,
    ".urdf": load_robot,
    ".mcap": lambda path: by_mcap(path.parent),
    ".parquet": columns_of_parquet,
    ".md": lambda path: path.read_text(encoding="utf-8").splitlines()[0],
    ".txt": lambda path: path.read_text(encoding="utf-8").splitlines()[0],
    ".script": program_of_a_robot,
}


# Commands that write, each as cheaply as possible.


WRITERS: dict[str, tuple[tuple[object, ...], ...]] = {
    "import": (("import", RECORDING, "--robot", "ur5e", "-o", "imported"),),
    "identify": (("identify", EXCITATION, "--friction", "power", "-o", "model.yaml"),),
    "base-parameters": (
        ("base-parameters", EXCITATION, "--export", "fit.npz", "--urdf", "arm.urdf"),
        ("base-parameters", EXCITATION, "--export", "fit.mat"),
        ("base-parameters", EXCITATION, "--export", "fit.csv"),
    ),
    "payload": (
        ("payload", MODEL, WORK, "--known-payload", "1", "-o", "calibrated.yaml"),
    ),
    "estimate": (
        ("estimate", MODEL, WORK, "--csv", "power.csv", "--bag", "energy"),
    ),
    "learn": (
        ("learn", WORK, "--model", MODEL, "-o", "learned.yaml", "--figure", "learned.png"),
    ),
    "report": (
        (
            *("report", MODEL, WORK, "-o", "report.html", "--figures", "figures"),
            *("--format", "png", "--format", "svg", "--format", "pdf"),
        ),
    ),
    "optimize": (
        ("optimize", MODEL, WORK, "-o", "cheaper", "--html", "cheaper.html"),
        ("optimize", MODEL, WORK, "--pareto", "--pareto-points", "3", "-o", "front"),
    ),
    "excite": (
        ("excite", "--robot", "ur5e", *GENETIC, "-o", "designed.yaml"),
        ("excite", "--robot", SIX_AXES, *GENETIC, "--tool-speed", "20", "-o", "own.yaml"),
        ("excite", "--export", TRAJECTORY, "-o", "motion.script"),
        ("excite", "--export", TRAJECTORY, "-o", "motion.csv"),
    ),
    "layouts": (("layouts", "-o", "layouts"),),
    "history add": (
        ("history", "add", "plant", WORK, "--model", MODEL, "--workers", "1"),
        ("history", "export", "plant", "-o", "seconds.csv"),
        ("history", "export", "plant", "--table", "cycles", "-o", "cycles.csv"),
        ("history", "report", "plant", "-o", "plant.html"),
    ),
    "simulate": (
        ("simulate", "--robot", "ur5e", "--host", "{host}", "--duration", "1",
         "--truth", "truth.json"),
    ),
}  # fmt: skip
ELSEWHERE = {
    "history export": "with history add",
    "history report": "with history add",
    "record": "test/contracts/test_files.py",
    "live": "test/sinks",
    "protocol": "test/papers/test_other_arms.py",
    "demo": "test/demo",
    "profile": "test/energy/test_profile.py",
    "history watch": "as history add",
}
"""Commands whose files other tests load."""
WRITING = {"output", "csv", "bag", "html", "figures", "figure", "export", "truth", "urdf"}
"""Names of options for what a command writes."""


def test_every_command_that_writes_is_in_the_table() -> None:
    for name, options in options_of_commands().items():
        outputs = {option.name for option in options if not option.positional}
        if outputs & WRITING and "overwrite" in outputs:
            command = name.removeprefix("ur_energy ")
            assert command in WRITERS or command in ELSEWHERE, command


SLOW = {
    "base-parameters",
    "estimate",
    "excite",
    "identify",
    "learn",
    "optimize",
    "payload",
    "report",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.truth) if name in SLOW else name
        for name in WRITERS
    ],
)
def test_what_a_command_writes_loads_again(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh_host: Callable[[], str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in WRITERS[name]:
        if "genetic" in words:
            needs_room("papers")
        stated = [fresh_host() if word == "{host}" else word for word in words]
        written = ur_energy(*stated)
        assert written.code == 0, written.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    files = [path for path in files if "_delta_log" not in path.parts]
    assert files
    for path in sorted(files):
        assert path.suffix in READERS, f"{name} writes {path.name}: no reader"
        assert READERS[path.suffix](path) is not None
    for bag in tmp_path.rglob("metadata.yaml"):
        if "/rtde/joint_telemetry" in by_mcap(bag.parent).counts:
            assert len(read_bag(bag.parent))


def test_what_a_command_writes_is_input_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package's own commands take it, where the file is for them."""
    needs_room("experiment")
    monkeypatch.chdir(tmp_path)
    chain: tuple[tuple[object, ...], ...] = (
        ("excite", "--check", TRAJECTORY),
        ("excite", "--export", TRAJECTORY, "-o", "motion.csv"),
        ("predict", MODEL, "motion.csv"),
        ("import", RECORDING, "--robot", "ur5e", "-o", "imported"),
        ("inspect", "imported"),
        ("estimate", "imported", "--csv", "power.csv"),
        ("recover", "imported"),
    )
    for words in chain:
        done = ur_energy(*words)
        assert done.code == 0, (words, done.err)


def test_included_files_load() -> None:
    for path in config_file("geometry").glob("*.yaml"):
        assert any_yaml(path).capsules
    for path in config_file("excitation").glob("*.yaml"):
        assert any_yaml(path).robot == path.stem
    for path in config_file("models").glob("*.yaml"):
        assert any_yaml(path).robot == path.stem


def test_completion_scripts_are_scripts(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = tmp_path / "completion.sh"
    script.write_text(ur_energy("completion", "bash").out)
    subprocess.run(["bash", "-n", script], check=True)
