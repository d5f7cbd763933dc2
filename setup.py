"""ament_python package: `colcon build` in a ROS 2 workspace, `pip install .` anywhere else."""

from contextlib import suppress
from importlib import import_module
from pathlib import Path

from setuptools import Command, find_packages, setup

PACKAGE = "ur_energy_model"
SCRIPTS = {
    name: f"ur_energy_model.scripts:{name}"
    for name in (
        "ur_energy",
        "logger_node",
        "cell_node",
        "identification_node",
        "estimator_node",
        "simulated_robot_node",
    )
}


def shared_files() -> list[tuple[str, list[str]]]:
    """Files under share/, where ROS tools and the package itself look for them."""
    entries = [
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
    ]
    for root in ("config", "launch"):
        folders = [Path(root), *sorted(path for path in Path(root).rglob("*") if path.is_dir())]
        for folder in folders:
            files = sorted(
                str(path) for path in folder.iterdir() if path.is_file() and path.suffix != ".pyc"
            )
            if files and folder.name != "__pycache__":
                entries.append((f"share/{PACKAGE}/{folder.as_posix()}", files))
    return entries


def with_node_executables(command: type[Command]) -> type[Command]:
    """A wheel command that also puts lib/<package>/<node> where `ros2 run` and launch_ros look.

    colcon does this through setup.cfg's install_scripts, which pip ignores; pip writes the
    scripts to bin/, so its wheels carry forwarders to them.
    """

    class WithNodeExecutables(command):
        def run(self) -> None:
            build = Path("build") / "node_executables"
            build.mkdir(parents=True, exist_ok=True)
            for name in SCRIPTS:
                forwarder = build / name
                forwarder.write_text(f'#!/bin/sh\nexec "$(dirname "$0")/../../bin/{name}" "$@"\n')
                forwarder.chmod(0o755)
            files = [str(build / name) for name in SCRIPTS]
            self.distribution.data_files.append((f"lib/{PACKAGE}", files))
            self.distribution.has_data = lambda: True  # asked by editable_wheel, never set
            super().run()

    return WithNodeExecutables


def wheel_commands() -> dict[str, type[Command]]:
    """The commands by which pip installs; the setuptools of older ROS systems lack them, but
    there colcon installs."""
    commands = {}
    for name in ("bdist_wheel", "editable_wheel"):
        with suppress(ImportError):
            module = import_module(f"setuptools.command.{name}")
            commands[name] = with_node_executables(getattr(module, name))
    return commands


setup(
    name=PACKAGE,
    version="0.1.0",
    description="Electro-mechanical identification and live energy of Universal Robots arms",
    license="Apache-2.0",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={PACKAGE: ["py.typed"], f"{PACKAGE}.report": ["assets/*"]},
    data_files=shared_files(),
    python_requires=">=3.10",
    install_requires=["setuptools"],
    extras_require={
        "all": [
            "matplotlib",
            "numba",
            "numpy",
            "pin",
            "pyyaml",
            "rich",
            "rosbags",
            "scipy",
            "shtab",
            "ur-rtde",
            "zstandard",
        ],
    },
    entry_points={"console_scripts": [f"{name} = {target}" for name, target in SCRIPTS.items()]},
    cmdclass=wheel_commands(),
    zip_safe=False,
)
