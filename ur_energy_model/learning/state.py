# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What learning keeps on the disk: a state of each arm, and models with their predecessors.

States are values in the state file of the estimator, beside its energy counters.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.codec import built
from ur_energy_model.errors import ModelFileError
from ur_energy_model.files import file_digest, new_file
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import GENERIC, is_generic
from ur_energy_model.model.model_file import document, load_model, model_text, save_model
from ur_energy_model.state_file import StateFile
from ur_energy_model.typing import Array

LARGEST = 64 << 20
"""Largest content of a state, unpacked [bytes]."""


@dataclass
class SavedLearning:
    """State of the learner of one arm, as the state file keeps it.

    Attributes:
        robot: name of the arm's description.
        serial: number of the arm; None where unknown.
        models: fingerprints of the models that learning may continue with: the one it
            began with, and the learned one that was written in its place.
        content: state of a learner, see `encoded`; None before the first one.
    """

    robot: str
    serial: str | None
    models: tuple[str, ...]
    content: bytes | None = None

    def save(self, file: StateFile) -> None:
        """Write the state to the state file, if it has any content.

        If the disk cannot be written, the file has a `problem`, and its next saving tries
        again.
        """
        if self.content is None:
            return
        head = {"robot": self.robot, "serial": self.serial, "models": self.models}
        value = json.dumps(head).encode() + b"\n" + self.content
        file.put(_key(self.serial), value, bulk=True)
        file.save()


def saved_learning(file: StateFile, serial: str | None) -> SavedLearning | None:
    """What a state file has about an arm, by its serial number; None if it has nothing.

    Raises:
        ValueError: the state of the arm is damaged.
    """
    value = file.get(_key(serial))
    if value is None:
        return None
    head, _, content = value.partition(b"\n")
    try:
        return built(SavedLearning, {**json.loads(head), "content": content})
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file.path}: what was learned is damaged") from error


def forget_learning(file: StateFile, serial: str | None) -> None:
    """Remove what a state file has about an arm."""
    file.put(_key(serial), b"")
    file.save()


def _key(serial: str | None) -> str:
    """Key in the state file of what was learned about an arm."""
    return f"learned of {serial}"


def fingerprint(model: EnergyModel) -> str:
    """Identifies a model; all generic models of the package are one."""
    if is_generic(model):
        return GENERIC
    text = json.dumps(document(model), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


_ARRAY = "$array"
_STRUCTURE = "structure"


def _mark(content: bytes) -> bytes:
    """Header of a state: its format, and the SHA-256 of the content."""
    return b"ur_energy_model learning 1\n" + hashlib.sha256(content).digest()


def encoded(values: Any) -> bytes:
    """Values as bytes: a header with a checksum, then a compressed archive.

    Args:
        values: nested dicts, lists and dataclasses of numbers, text, None and arrays.
    """
    arrays: dict[str, Array] = {}

    def plain(value: Any) -> Any:
        """The value for JSON, with a reference in place of each array, which is collected."""
        if isinstance(value, np.ndarray):
            name = f"a{len(arrays)}"
            arrays[name] = value
            return {_ARRAY: name}
        if is_dataclass(value):
            value = vars(value)
        if isinstance(value, dict):
            return {str(key): plain(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple | deque):
            return [plain(entry) for entry in value]
        if isinstance(value, np.generic):
            return value.item()
        return value

    structure = np.frombuffer(json.dumps(plain(values)).encode(), dtype=np.uint8)
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **{_STRUCTURE: structure}, **arrays)
    content = packed.getvalue()
    return _mark(content) + content


def decoded(data: bytes) -> Any:
    """The values that `encoded` packed; dataclasses as dicts.

    Raises:
        ValueError: the bytes are damaged, too large, or of another version.
    """
    size = len(_mark(b""))
    content = data[size:]
    if data[:size] != _mark(content):
        raise ValueError("is damaged, or not a state of learning of this version")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
            raise ValueError("is too large")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:

        def with_arrays(value: Any) -> Any:
            """The value with arrays in place of the references to them."""
            if isinstance(value, list):
                return [with_arrays(entry) for entry in value]
            if not isinstance(value, dict):
                return value
            if _ARRAY in value:
                return arrays[value[_ARRAY]]
            return {key: with_arrays(entry) for key, entry in value.items()}

        return with_arrays(json.loads(arrays[_STRUCTURE].tobytes()))


ORIGIN = "learned"  # `origin` in the provenance of a learned model
HEADER = """\
# Electro-mechanical model of a robot arm, learned while it worked (docs/learning/learning.md).
# Inertia is joint side; torque constant, friction and motor constants are motor side.
"""
KEPT = 5  # previous learned models that are kept: model.1.yaml is the latest of them
FIRST = "original"
"""A model that was not learned is kept as model.original.yaml, however often it is replaced."""


def save_learned(model: EnergyModel, path: str | Path) -> None:
    """Write a learned model whole or not at all, and keep the model that it replaces.

    Args:
        model: the learned model.
        path: path of the model file; the model in it so far is copied to `kept_path`.

    Raises:
        ModelFileError: the path cannot be written, or the model has impossible values.
    """
    path = Path(path)
    try:
        if path.is_file():
            _keep(path)
    except OSError as error:
        problem = f"its copy cannot be written ({error.strerror})"
        raise ModelFileError(path, problem, "choose another place") from error
    save_model(model, path, header=HEADER)


def learned_digest(model: EnergyModel) -> str:
    """SHA-256 of the file of a learned model."""
    return hashlib.sha256(model_text(model, header=HEADER).encode()).hexdigest()


def kept_path(path: Path, which: int | str) -> Path:
    """Where an earlier model of a file is kept: `which` is 1 for the latest, or FIRST."""
    return path.with_name(f"{path.stem}.{which}{path.suffix}")


def _keep(path: Path) -> None:
    """Copy the present file to its place among the kept ones, unless it is there already."""
    first = kept_path(path, FIRST)
    place = kept_path(path, 1)
    origin: object = None
    with suppress(ModelFileError):
        origin = load_model(path).provenance.get("origin")
    if not first.exists() and origin != ORIGIN:
        place = first
    elif file_digest(path) in {file_digest(first), file_digest(place)}:
        return
    else:
        for number in range(KEPT - 1, 0, -1):
            older = kept_path(path, number)
            if older.exists():
                older.replace(kept_path(path, number + 1))
    with new_file(place, "wb") as file:
        file.write(path.read_bytes())
