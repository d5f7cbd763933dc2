"""What an installation holds: the executables, the share folder and the ament marker."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXECUTABLES = (
    "ur_energy", "cell_node", "logger_node", "identification_node", "estimator_node",
    "simulated_robot_node",
)  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that `pip install .` makes, from a copy so that the checkout stays clean."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    unwanted = (".*", "build", "demo_output", "*.egg-info", "__pycache__", "test")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*unwanted))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--disable-pip-version-check",
            "-w",
            str(folder),
            str(source),
        ],
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_wheel_puts_executables_where_ros2_run_looks(wheel: zipfile.ZipFile) -> None:
    for name in EXECUTABLES:
        entry = wheel.getinfo(f"ur_energy_model-0.1.0.data/data/lib/ur_energy_model/{name}")
        assert (entry.external_attr >> 16) & stat.S_IXUSR, f"{name} is not executable"


def test_wheel_holds_share_files(wheel: zipfile.ZipFile) -> None:
    data = "ur_energy_model-0.1.0.data/data/share/"
    names = set(wheel.namelist())
    assert f"{data}ament_index/resource_index/packages/ur_energy_model" in names
    assert f"{data}ur_energy_model/package.xml" in names
    for folder in ("config", "launch"):
        for path in (ROOT / folder).rglob("*.*"):
            if "__pycache__" not in path.parts and path.is_file():
                assert f"{data}ur_energy_model/{path.relative_to(ROOT).as_posix()}" in names


def test_wheel_holds_every_module(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    for path in (ROOT / "ur_energy_model").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.relative_to(ROOT).as_posix() in names


def test_installed_executables_start() -> None:
    prefix = Path(sys.prefix)
    for name in EXECUTABLES:
        forwarder = prefix / "lib" / "ur_energy_model" / name
        assert os.access(forwarder, os.X_OK), f"{forwarder} is missing; run make setup"
    done = subprocess.run(
        [prefix / "lib/ur_energy_model/ur_energy", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("ur_energy ")


def test_versions_agree_and_manifest_is_ament_python() -> None:
    from ur_energy_model import __version__

    manifest = ElementTree.parse(ROOT / "package.xml").getroot()
    assert manifest.get("format") == "3"
    assert manifest.findtext("name") == "ur_energy_model"
    assert manifest.findtext("version") == __version__
    assert manifest.findtext("license") == "Apache-2.0"
    assert manifest.findtext("export/build_type") == "ament_python"
    assert f'version="{__version__}"' in (ROOT / "setup.py").read_text(encoding="utf-8")
