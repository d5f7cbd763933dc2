# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nodes and commands where only some packages are installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from test.absent_rooms import needs_room
from test.identification.exact_arm import ExactArm
from test.truth import first_fast
from ur_energy_model import scripts
from ur_energy_model.rooms import has_room

ABSENT = (
    "clarabel", "lz4", "numba", "rtde_control", "shtab", "typing_extensions", "zstandard",
)  # fmt: skip
"""Without a rosdep key; numba, which only the simulated arm needs; too old on Ubuntu 22.04."""


def run_without(
    packages: tuple[str, ...], program: str
) -> subprocess.CompletedProcess[str]:
    """Run Python code where some packages are absent."""
    absent = f"import sys\nsys.modules.update(dict.fromkeys({packages!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", absent + program],
        capture_output=True,
        text=True,
        timeout=240,
    )


NODES = ("cell", "logger", "estimator", "identification")
COMMANDS = (
    "telemetry.recording.recorder", "telemetry.bag.reader", "identification.pipeline",
    "identification.quality_check", "energy.recording_energy", "report.report",
)  # fmt: skip
MOTIONS = ("experiment.design_problem", "experiment.motion_process")


def test_nodes_and_commands_load_without_packages_of_pypi() -> None:
    pytest.importorskip("rclpy", reason="needs ROS 2")
    modules = [*COMMANDS, *(f"nodes.{node}" for node in NODES)]
    if has_room("experiment"):
        modules += MOTIONS
    done = run_without(
        ABSENT, "".join(f"import ur_energy_model.{module}\n" for module in modules)
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("bags")
    return [
        str(ExactArm().bag(folder / str(seed), seed=seed, seconds=5)) for seed in (1, 2)
    ]


NEEDS = {
    "pyarrow": ["history add {store} {bags} --robot ur5e"],
    "deltalake": ["history add {store} {bags} --robot ur5e"],
    "duckdb": ["history summary {store}"],
    "distributed": ["estimate {bags} --robot ur5e --scheduler tcp://127.0.0.1:1"],
    "zstandard": ["inspect {bag}"],
    "shtab": ["completion bash"],
    "paho": ["record --host 127.0.0.1 -o {store}/new --meter mqtt://127.0.0.1/meter"],
    "pymodbus": [
        "record --host 127.0.0.1 -o {store}/new --meter modbus://127.0.0.1/1?profile=eastron_sdm"
    ],
}


OF_PLANT = {"pyarrow", "deltalake", "duckdb", "distributed"}
"""Packages that only the history and many bags on many machines need."""


@pytest.mark.parametrize("package", first_fast(NEEDS, 3))
def test_commands_name_what_they_need(
    package: str, bags: list[str], tmp_path: Path
) -> None:
    if package in OF_PLANT:
        needs_room("plant")
    pytest.importorskip(package, reason=f"{package} is absent anyway")
    lines = [
        words.format(store=tmp_path, bags=" ".join(bags), bag=bags[0]).split()
        for words in NEEDS[package]
    ]
    program = f"from ur_energy_model.cli.main import main\nprint([main(each) for each in {lines}])"
    done = run_without((package,), program)
    assert done.stdout == f"{[1] * len(lines)}\n", done.stderr
    named = f"the Python package {package!r} is not installed"
    assert sum(named in line for line in done.stderr.splitlines()) == len(lines)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("module", "remedy"),
    [
        ("rclpy.node", "source ROS 2's setup file"),
        ("toppra", "pip install toppra"),
        ("ur_energy_model.cli.main", None),  # a fault of our own is not hidden
    ],
)
def test_missing_package_is_one_line(
    module: str,
    remedy: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def main() -> int:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("ur_energy_model.cli.main.main", main)
    monkeypatch.setattr("ur_energy_model.interrupts.exit_at_once", lambda code: None)
    monkeypatch.setattr("ur_energy_model.interrupts.ignore", lambda: None)
    if remedy is None:
        with pytest.raises(ModuleNotFoundError):
            scripts.ur_energy()
        return
    assert scripts.ur_energy() == scripts.NOT_INSTALLED
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{module.partition('.')[0]!r} is not installed" in line
    assert remedy in line
