"""Writes a learned model in place of another one, which is kept beside it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ur_energy_model.errors import ModelFileError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.model_file import load_model, save_model

MOST_KEPT = 50
"""Largest number of earlier models; of more, the first one and the newest ones are kept."""


def replace_model(model: EnergyModel, path: Path) -> EnergyModel:
    """Write a model file, whole or not at all; the one before is kept in `earlier_models`.

    Returns:
        The model as the file contains it, with rounded numbers.

    Raises:
        ModelFileError: the path cannot be written, the file is of another arm (by serial number),
            or the model has impossible values.
    """
    if path.exists():
        _check_arm(model, path)
        _keep(path)
    save_model(model, path)
    return load_model(path)


def earlier_models(path: Path) -> list[Path]:
    """The models that a file had before, oldest first."""
    return sorted(_folder(path).glob(f"*{path.suffix}"))


def _folder(path: Path) -> Path:
    return path.with_name(f"{path.name}.earlier")


def _check_arm(model: EnergyModel, path: Path) -> None:
    before, now = (each.provenance.get("serial") for each in (load_model(path), model))
    if before is not None and now is not None and str(before) != str(now):
        raise ModelFileError(
            path,
            f"is the model of arm {before}; that of arm {now} is not written over it",
            "give each arm a model file of its own",
        )


def _keep(path: Path) -> None:
    """Copy the present file into the folder of the earlier ones, and remove those too many."""
    folder, earlier = _folder(path), earlier_models(path)
    number = 1 + max((int(each.stem) for each in earlier if each.stem.isdecimal()), default=0)
    try:
        folder.mkdir(exist_ok=True)
        target = folder / f"{number:06d}{path.suffix}"
        try:
            os.link(path, target)  # at once; the file at `path` is replaced, not changed
        except OSError:
            shutil.copy2(path, target)
        for each in earlier[1 : len(earlier) + 2 - MOST_KEPT]:
            each.unlink(missing_ok=True)
    except OSError as error:
        raise ModelFileError(
            path,
            f"the model before cannot be kept in {folder} ({error.strerror})",
            "make the folder writable",
        ) from error
