"""Learned models on disk: written whole or not at all, the previous ones kept beside them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from ur_energy_model.errors import ModelFileError
from ur_energy_model.files import open_regular
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.model_file import load_model, model_text, save_model

ORIGIN = "learned"
"""`origin` in the provenance of a learned model."""
HEADER = """\
# Electro-mechanical model of a robot arm, learned while it worked (docs/learning.md).
# Inertia is joint side; torque constant, friction and motor constants are motor side.
"""
KEPT = 5
"""Previous learned models that are kept: model.1.yaml is the latest of them."""
FIRST = "original"
"""A model that was not learned is kept as model.original.yaml, however often it is replaced."""


def save_learned(model: EnergyModel, path: str | Path) -> None:
    """Write a model whole or not at all; the model of the file so far is kept beside it.

    At any time `path` is either the old or the new model.

    Args:
        model: to write.
        path: of the model file; its folder is created if necessary.

    Raises:
        ModelFileError: the path cannot be written, or the model has impossible values.
    """
    path = Path(path)
    try:
        if path.is_file():
            _keep(path)
    except OSError as error:
        raise ModelFileError(
            path, f"its copy cannot be written ({error.strerror})", "choose another place"
        ) from error
    save_model(model, path, header=HEADER)


def learned_digest(model: EnergyModel) -> str:
    """SHA-256 of the file of a learned model."""
    return hashlib.sha256(model_text(model, header=HEADER).encode()).hexdigest()


def kept_path(path: str | Path, which: int | str) -> Path:
    """Where an earlier model of a file is kept: `which` is 1 for the latest, or FIRST."""
    path = Path(path)
    return path.with_name(f"{path.stem}.{which}{path.suffix}")


def is_learned(model: EnergyModel) -> bool:
    """Whether a model was learned."""
    return model.provenance.get("origin") == ORIGIN


def file_digest(path: str | Path) -> str | None:
    """SHA-256 of a model file; None if there is none."""
    try:
        with open_regular(path) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def _keep(path: Path) -> None:
    """Copy the present file to its place among the kept ones."""
    first = kept_path(path, FIRST)
    if not first.exists() and not _was_learned(path):
        _copy(path, first)
        return
    if file_digest(path) in {file_digest(first), file_digest(kept_path(path, 1))}:
        return
    for number in range(KEPT - 1, 0, -1):
        older = kept_path(path, number)
        if older.exists():
            older.replace(kept_path(path, number + 1))
    _copy(path, kept_path(path, 1))


def _copy(path: Path, to: Path) -> None:
    """A copy that is complete as soon as it has its name."""
    unfinished = to.with_name(f".{to.name}.new")
    shutil.copyfile(path, unfinished)
    unfinished.replace(to)


def _was_learned(path: Path) -> bool:
    try:
        return is_learned(load_model(path))
    except ModelFileError:
        return False
