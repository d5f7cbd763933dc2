"""Paths of the package's own files (config/, launch/), in a checkout or an installation."""

from __future__ import annotations

from pathlib import Path

PACKAGE = "ur_energy_model"


def share_directory() -> Path:
    """Folder that contains package.xml, config/ and launch/.

    In a checkout this is the root of the repository. After an installation with colcon or pip it
    is `<prefix>/share/ur_energy_model`, found relative to this file, without environment variables.

    Raises:
        FileNotFoundError: the installation lacks the package's share folder.
    """
    here = Path(__file__).resolve()
    if (here.parents[1] / "package.xml").is_file():
        return here.parents[1]
    for prefix in here.parents:
        share = prefix / "share" / PACKAGE
        if (share / "package.xml").is_file():
            return share
    raise FileNotFoundError(
        f"no share/{PACKAGE} beside {here}; reinstall the package with 'make setup' or colcon"
    )


def config_file(*parts: str) -> Path:
    """Path of a file below config/."""
    return share_directory().joinpath("config", *parts)
