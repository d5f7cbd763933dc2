"""What an installation contains and requires: executables, share folder, metadata."""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ur_energy_model import __version__
from ur_energy_model.scripts import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
DATA = f"ur_energy_model-{__version__}.data/data"
INFO = f"ur_energy_model-{__version__}.dist-info"
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
        entry = wheel.getinfo(f"{DATA}/lib/ur_energy_model/{name}")
        assert (entry.external_attr >> 16) & stat.S_IXUSR, f"{name} is not executable"


def test_wheel_holds_share_files(wheel: zipfile.ZipFile) -> None:
    data = f"{DATA}/share/"
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


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(wheel.read(f"{INFO}/METADATA").decode())


@pytest.fixture(scope="module")
def manifest() -> ElementTree.Element:
    return ElementTree.parse(ROOT / "package.xml").getroot()


def test_version_is_the_same_everywhere(metadata: Message, manifest: ElementTree.Element) -> None:
    assert metadata["Version"] == manifest.findtext("version") == __version__
    assert f"\n## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_name_and_licence_are_the_same_everywhere(
    metadata: Message, manifest: ElementTree.Element
) -> None:
    assert metadata["Name"] == manifest.findtext("name") == "ur_energy_model"
    assert metadata["License"] == manifest.findtext("license") == "Apache-2.0"


def test_manifest_is_ament_python(manifest: ElementTree.Element) -> None:
    assert manifest.get("format") == "3"
    assert manifest.findtext("export/build_type") == "ament_python"


def test_wheel_declares_scripts(wheel: zipfile.ZipFile) -> None:
    entries = wheel.read(f"{INFO}/entry_points.txt").decode()
    assert set(re.findall(r"^(\w+) = ", entries, re.M)) == set(EXECUTABLES)


DISTRIBUTIONS = {
    "pinocchio": "pin",
    "rtde_control": "ur-rtde",
    "rtde_receive": "ur-rtde",
    "yaml": "PyYAML",
}
"""What PyPI calls a package, where the name that Python imports is another."""
ROS_EXPORTED = re.compile(r"ament_index_python|rclpy|launch(_ros)?|\w+_(msgs|srvs|interfaces)")


def imported_packages() -> set[str]:
    """Names of all packages outside the standard library that the package imports."""
    found = set()
    for folder in ("ur_energy_model", "launch"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    found.add((node.module or "").partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"ur_energy_model"}


def test_imports_are_declared_dependencies(
    metadata: Message, manifest: ElementTree.Element
) -> None:
    required = {
        re.split(r"[\s;<>=\[]", line)[0] for line in metadata.get_all("Requires-Dist") or ()
    }
    names = imported_packages()
    of_ros = {name for name in names if ROS_EXPORTED.fullmatch(name)}
    assert of_ros <= {element.text for element in manifest.iter("exec_depend")}
    assert {DISTRIBUTIONS.get(name, name) for name in names - of_ros} <= required


def test_dependencies_have_lower_bounds_and_no_pins(metadata: Message) -> None:
    for line in metadata.get_all("Requires-Dist") or ():
        assert "==" not in line.partition(";")[0]
        assert ">=" in line or line.startswith("ur_energy_model["), line


def test_extras_that_messages_name_exist(metadata: Message) -> None:
    assert set(EXTRAS.values()) <= set(metadata.get_all("Provides-Extra") or ())
