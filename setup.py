# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What pyproject.toml cannot say: the files below share/ and lib/, where ROS 2 looks for them.

colcon runs this file in a ROS 2 workspace, pip through pyproject.toml anywhere else.
Setuptools before 61 (Ubuntu 22.04 has 59.6) does not read [project], so name, version,
maintainer and scripts are passed here too, read from where they are defined.
"""

import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from setuptools import Command, find_packages, setup

PACKAGE = "ur_energy_model"
ASSETS = f"{PACKAGE}.report.assets"
COMMAND_ON_PATH = ("bin", ["resource/bin/ur_energy"])
# colcon build --symlink-install runs a link to this file
ROOT = Path(__file__).resolve().parent


def version() -> str:
    """`__version__` of the package, without importing it."""
    text = Path(PACKAGE, "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, re.M)[0]


def scripts() -> dict[str, str]:
    """Entry points by name, from [project.scripts]."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return dict(re.findall(rf'^(\w+) = "({PACKAGE}\.scripts:\w+)"$', text, re.M))


def test_packages() -> list[str]:
    """What the tests need, from pyproject.toml; colcon runs pytest because it is among them."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (names,) = re.findall(r"^test = \[(.+)\]$", text, re.M)
    return re.findall(r'"(.+?)"', names)


def maintainer() -> dict[str, str]:
    """Name and e-mail of the maintainer, from package.xml."""
    text = (ROOT / "package.xml").read_text(encoding="utf-8")
    email, name = re.findall(r'<maintainer email="(.+)">(.+)</maintainer>', text)[0]
    return {"maintainer": name, "maintainer_email": email}


def shared_files() -> list[tuple[str, list[str]]]:
    """Files under share/, where ROS tools and the package look, and in bin/, where shells look."""
    entries = [
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml", "LICENSE"]),
        COMMAND_ON_PATH,
    ]
    for root in ("config", "launch"):
        folders = [
            Path(root),
            *sorted(path for path in Path(root).rglob("*") if path.is_dir()),
        ]
        for folder in folders:
            files = sorted(
                str(path)
                for path in folder.iterdir()
                if path.is_file() and path.suffix != ".pyc"
            )
            if files and folder.name != "__pycache__":
                entries.append((f"share/{PACKAGE}/{folder.as_posix()}", files))
    return entries


def with_node_executables(command: type[Command]) -> type[Command]:
    """A wheel command that also puts lib/<package>/<node> where `ros2 run` and launch_ros look.

    colcon does this through setup.cfg's install_scripts, which pip ignores; pip writes
    the scripts to bin/, so its wheels carry forwarders to them. The forwarder that colcon
    needs in the other direction stays out of wheels.
    """

    class WithNodeExecutables(command):
        def run(self) -> None:
            build = Path("build") / "node_executables"
            build.mkdir(parents=True, exist_ok=True)
            for name in scripts():
                forwarder = build / name
                forwarder.write_text(
                    f'#!/bin/sh\nexec "$(dirname "$0")/../../bin/{name}" "$@"\n'
                )
                forwarder.chmod(0o755)
            files = [str(build / name) for name in scripts()]
            self.distribution.data_files.append((f"lib/{PACKAGE}", files))
            self.distribution.data_files.remove(COMMAND_ON_PATH)  # pip writes it itself
            self.distribution.has_data = lambda: True  # editable_wheel asks for it
            super().run()

    return WithNodeExecutables


def with_python_of_shell(command: type[Command]) -> type[Command]:
    """A `develop` whose scripts run with the python3 of the shell, such as an active venv's.

    setup.cfg says so for `install`; `develop`, which colcon build --symlink-install runs,
    would write the interpreter of colcon.
    """

    class WithPythonOfShell(command):
        def write_script(self, name: str, text: str, *args: object) -> None:
            super().write_script(
                name, re.sub(r"\A#!.*", "#!/usr/bin/env python3", text), *args
            )

    return WithPythonOfShell


def commands() -> dict[str, type[Command]]:
    """What pip and colcon build with, where setuptools has it (bdist_wheel since 70.1)."""
    found = {}
    for name, extended in (
        ("bdist_wheel", with_node_executables),
        ("editable_wheel", with_node_executables),
        ("develop", with_python_of_shell),
    ):
        with suppress(ImportError):
            found[name] = extended(
                getattr(import_module(f"setuptools.command.{name}"), name)
            )
    return found


setup(
    name=PACKAGE,
    version=version(),
    python_requires=">=3.10",
    license="Apache-2.0",
    **maintainer(),
    packages=[*find_packages(include=[PACKAGE, f"{PACKAGE}.*"]), ASSETS],
    package_data={PACKAGE: ["py.typed"], ASSETS: ["*"]},
    data_files=shared_files(),
    entry_points={
        "console_scripts": [f"{name} = {target}" for name, target in scripts().items()]
    },
    extras_require={"test": test_packages()},
    cmdclass=commands(),
    zip_safe=False,
)
