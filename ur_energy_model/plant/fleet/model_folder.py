"""A folder with one model file per arm, named <arm>.yaml."""

from __future__ import annotations

from pathlib import Path

from ur_energy_model.errors import InputError
from ur_energy_model.many_bags import in_this_process
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.model_file import load_model, save_model
from ur_energy_model.plant.fleet.fleet import FleetArm
from ur_energy_model.plant.fleet.identify_arms import fleet_arm

_SUFFIX = ".yaml"


def read_fleet(folder: Path) -> tuple[list[FleetArm], list[str]]:
    """The arms of a folder in order of their names, and what cannot be read, a line each.

    Raises:
        InputError: there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(
            folder, "is not a folder with models", "make one with `ur_energy identify --per-arm`"
        )
    results = list(in_this_process(_read, sorted(folder.glob(f"*{_SUFFIX}"))))
    arms = [result.value for result in results if result.value is not None]
    return arms, [result.reason for result in results if result.reason is not None]


def _read(path: Path) -> FleetArm:
    return fleet_arm(path.stem, load_model(path))


def save_in(folder: Path, name: str, model: EnergyModel) -> Path:
    """Write the model of an arm; returns the path.

    Raises:
        InputError: it cannot be written.
    """
    path = folder / f"{name}{_SUFFIX}"
    save_model(model, path)
    return path


def make_folder(folder: Path) -> None:
    """Make the folder of the models, unless it is there.

    Raises:
        InputError: that is not possible.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            folder, f"cannot be made ({error.strerror})", "name a folder for the models"
        ) from error
