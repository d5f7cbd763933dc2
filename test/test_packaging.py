# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What an installation contains and requires: executables, share folder, metadata."""

from __future__ import annotations

import ast
import itertools
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email.message import Message
from email.parser import Parser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ur_energy_model import __version__
from ur_energy_model.errors import IN_UBUNTU, NAMES_ON_PYPI
from ur_energy_model.nodes.launch_checks import VIEWERS

ROOT = Path(__file__).resolve().parents[1]
DATA = f"ur_energy_model-{__version__}.data/data"
INFO = f"ur_energy_model-{__version__}.dist-info"
EXECUTABLES = (
    "ur_energy", "cell_node", "logger_node", "identification_node", "estimator_node",
    "simulated_robot_node",
)  # fmt: skip


@pytest.fixture(scope="module")
def wheel(made_once: Callable[[str, Callable[[Path], object]], Path]) -> zipfile.ZipFile:
    """The wheel that `pip install .` makes."""
    (path,) = made_once("wheel", make_wheel).glob("*.whl")
    return zipfile.ZipFile(path)


def make_wheel(folder: Path) -> None:
    """Build the wheel in a folder, from a copy so that the checkout stays clean."""
    source = folder / "source"
    unwanted = (".*", "build", "demo_output", "*.egg-info", "__pycache__", "test")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*unwanted))
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
    ]
    command += ["--disable-pip-version-check", "-w", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)


def test_wheel_holds_executables_modules_and_share_files(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    share = f"{DATA}/share/"
    for name in EXECUTABLES:  # where ros2 run looks
        entry = wheel.getinfo(f"{DATA}/lib/ur_energy_model/{name}")
        assert (entry.external_attr >> 16) & stat.S_IXUSR, f"{name} is not executable"
        assert os.access(Path(sys.prefix) / "lib" / "ur_energy_model" / name, os.X_OK)
    entries = wheel.read(f"{INFO}/entry_points.txt").decode()
    assert set(re.findall(r"^(\w+) = ", entries, re.M)) == set(EXECUTABLES)
    assert not [name for name in names if name.startswith(f"{DATA}/bin/")]  # pip's
    assert f"{share}ament_index/resource_index/packages/ur_energy_model" in names
    assert f"{share}ur_energy_model/package.xml" in names
    assert f"{share}ur_energy_model/LICENSE" in names
    own = f"{share}ur_energy_model/"
    for folder, place in (("config", own), ("launch", own), ("ur_energy_model", "")):
        for path in (ROOT / folder).rglob("*.*"):
            if "__pycache__" not in path.parts and path.is_file():
                assert f"{place}{path.relative_to(ROOT).as_posix()}" in names
    forwarder = Path(sys.prefix) / "lib" / "ur_energy_model" / "ur_energy"
    shown = subprocess.run(
        [forwarder, "--version"], capture_output=True, text=True, timeout=240
    )
    assert (shown.returncode, shown.stdout) == (0, f"ur_energy {__version__}\n")


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(wheel.read(f"{INFO}/METADATA").decode())


@pytest.fixture(scope="module")
def manifest() -> ElementTree.Element:
    return ElementTree.parse(ROOT / "package.xml").getroot()


def test_metadata_are_the_same_everywhere(
    metadata: Message, manifest: ElementTree.Element
) -> None:
    assert metadata["Version"] == manifest.findtext("version") == __version__
    assert f"\n{__version__} (" in (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(
        encoding="utf-8"
    )
    assert metadata["Name"] == manifest.findtext("name") == "ur_energy_model"
    assert metadata["License"] == manifest.findtext("license") == "Apache-2.0"
    (maintainer,) = manifest.iter("maintainer")
    stated = f"{maintainer.text} <{maintainer.get('email')}>"
    assert metadata["Maintainer-Email"] == stated
    urls = {line.split(", ")[1] for line in metadata.get_all("Project-URL") or ()}
    assert urls == {element.text for element in manifest.iter("url")}
    assert len(urls) == 3


ROS_EXPORTED = re.compile(
    r"rclpy|launch(_ros)?|ament_index_python|\w+_(msgs|srvs|interfaces)"
)


ON_PYPI = NAMES_ON_PYPI | {
    "foxglove": "foxglove-sdk",
    "google": "protobuf",
    "paho": "paho-mqtt",
    "prometheus_client": "prometheus-client",
    "rtde_control": "ur-rtde",
    "rtde_receive": "ur-rtde",
}


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


def test_dependencies_are_declared_with_lower_bounds(
    metadata: Message, manifest: ElementTree.Element
) -> None:
    """What is imported, what messages name, and what launch files start."""
    lines = metadata.get_all("Requires-Dist") or ()
    required = {re.split(r"[\s;<>=\[]", line)[0] for line in lines}
    executed = {element.text for element in manifest.iter("exec_depend")}
    names = imported_packages()
    of_ros = {name for name in names if ROS_EXPORTED.fullmatch(name)}
    assert of_ros <= executed
    assert {ON_PYPI.get(name, name) for name in names - of_ros} <= required
    assert set(NAMES_ON_PYPI.values()) <= required
    assert {NAMES_ON_PYPI.get(name, name) for name in IN_UBUNTU} <= required
    assert "ros" in (metadata.get_all("Provides-Extra") or ())
    for line in lines:
        assert "==" not in line.partition(";")[0]
        assert ">=" in line or line.startswith("ur_energy_model["), line
    started = set(itertools.chain.from_iterable(VIEWERS.values()))
    text = (ROOT / "ur_energy_model" / "nodes" / "launch_files.py").read_text(
        encoding="utf-8"
    )
    assert set(re.findall(r'Started\("(\w+)"', text)) == started | {"cell_node"}
    assert started <= executed


def test_colcon_scripts_run_with_the_python_of_the_shell(tmp_path: Path) -> None:
    """As colcon calls setup.py: with the interpreter of colcon, which is not that of the venv."""
    workspace = tmp_path / "workspace"  # with the links of colcon build --symlink-install
    workspace.mkdir()
    names = (
        "setup.py setup.cfg package.xml LICENSE resource config launch ur_energy_model"
    )
    for name in names.split():
        (workspace / name).symlink_to(ROOT / name)
    for linked in (False, True):
        prefix = tmp_path / f"prefix_{linked}"
        scripts = prefix / "lib" / "ur_energy_model"
        library = prefix / "python"
        library.mkdir(parents=True)
        build = f"{workspace}/build_{linked}"
        words = ["develop", "--editable", f"--build-directory={build}", "--no-deps"]
        words += [f"--script-dir={scripts}", f"--install-dir={library}"]
        if not linked:
            words = [
                "egg_info",
                f"--egg-base={workspace}",
                "build",
                f"--build-base={build}",
            ]
            words += ["install", f"--install-scripts={scripts}", f"--prefix={prefix}"]
            words += [
                "--single-version-externally-managed",
                f"--record={workspace}/install.log",
            ]
        subprocess.run(
            [sys.executable, "-W", "ignore", "setup.py", "-q", *words],
            cwd=workspace,
            env=os.environ | {"PYTHONPATH": str(library)},
            check=True,
            capture_output=True,
            timeout=240,
        )
        assert {path.name for path in scripts.iterdir()} == set(EXECUTABLES)
        for path in scripts.iterdir():
            assert path.read_text(encoding="utf-8").startswith("#!/usr/bin/env python3\n")


def test_catkin_pkg_accepts_the_manifest() -> None:
    """As colcon, rosdep and bloom read it; ur_rtde is left to pip unless somebody has a key."""
    package = pytest.importorskip(
        "catkin_pkg.package", reason="catkin_pkg is not installed here"
    )
    warnings: list[str] = []
    manifest = package.parse_package(str(ROOT / "package.xml"), warnings=warnings)
    manifest.validate(warnings)
    assert warnings == []
    assert manifest.get_build_type() == "ament_python"
    for variables, resolved in (({}, False), ({"UR_RTDE_FROM_ROSDEP": "1"}, True)):
        manifest.evaluate_conditions(variables)
        needed = {each.name for each in manifest.exec_depends if each.evaluated_condition}
        assert ("python3-ur-rtde-pip" in needed) == resolved


def test_bloom_reads_the_changelog() -> None:
    """A section for each version, with bullets only."""
    changelog = pytest.importorskip(
        "catkin_pkg.changelog", reason="catkin_pkg is not installed"
    )
    found = changelog.get_changelog_from_path(str(ROOT / "CHANGELOG.rst"))
    versions = {version: content for version, _, content in found.foreach_version()}
    assert __version__ in versions
    for version, content in versions.items():
        assert content, version
        assert all(isinstance(each, changelog.BulletList) for each in content), version


def test_colcon_runs_pytest() -> None:
    """It looks for pytest in the extra `test` of setup.py."""
    program = (
        "from distutils.core import run_setup\n"
        "print(repr(run_setup('setup.py', stop_after='config').extras_require['test']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import setuptools\n" + program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert any(each.startswith("pytest") for each in ast.literal_eval(done.stdout))


def test_colcon_can_evaluate_what_setup_py_declares() -> None:
    """colcon reads the repr of every public attribute of the distribution as a Python literal."""
    program = (
        "from distutils.core import run_setup\n"
        "found = run_setup('setup.py', script_args=('--dry-run',), stop_after='config')\n"
        "names = found.display_option_names\n"
        "print(repr({key: value for key, value in vars(found).items()\n"
        "    if key[0] != '_' and not callable(value) and key not in names\n"
        "    and key not in ('cmdclass', 'distclass', 'ext_modules', 'metadata')}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import setuptools\n" + program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    declared = ast.literal_eval(done.stdout)
    assert declared["python_requires"] == ">=3.10"
    assert ("bin", ["resource/bin/ur_energy"]) in declared["data_files"]
    assert len(declared["entry_points"]["console_scripts"]) == len(EXECUTABLES)
