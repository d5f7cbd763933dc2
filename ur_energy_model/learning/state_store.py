"""StateStore: the states of learning on disk, one file per arm, beside the energy counters."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from ur_energy_model.files import new_file, open_regular, user_path
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.document import document
from ur_energy_model.model.generic import GENERIC, is_generic

SCHEMA = 1
LARGEST_FILE = 64 << 20
"""Largest file that is read [bytes]."""
LONGEST_LABEL = 64
"""Longest part of a serial number in the name of a file."""


@dataclass(frozen=True)
class KeptState:
    """The state of learning about one arm.

    Attributes:
        robot: description name of the arm.
        serial: of the arm, None where unknown.
        models: fingerprints of the models that the state may continue with: the one that learning
            began with, and the learned one that was written in its place.
        content: of the learner.
    """

    robot: str
    serial: str | None
    models: tuple[str, ...]
    content: bytes

    def suits(self, robot: str, serial: str | None, model: str) -> bool:
        """Whether the state is of this arm and continues from a model with this fingerprint."""
        return (self.robot, self.serial) == (robot, serial) and model in self.models


class StateStore:
    """Reads and writes states; none of its problems ends the program.

    Args:
        base: path of the state file of the counters.

    Attributes:
        problem: why the last state is not on the disk, None if it is.
    """

    def __init__(self, base: Path) -> None:
        self._base = user_path(base)
        self.problem: str | None = None

    def path(self, serial: str | None) -> Path:
        """The file of the arm with this serial number."""
        label = "" if serial is None else "-" + re.sub(r"[^A-Za-z0-9-]", "_", serial)
        return self._base.with_name(f"{self._base.name}.learning{label[: LONGEST_LABEL + 1]}")

    def save(self, state: KeptState) -> None:
        """Write a state, whole or not at all; a disk that cannot be written is a `problem`."""
        path = self.path(state.serial)
        head = asdict(state) | {"schema": SCHEMA, "sha256": _digest(state.content)}
        del head["content"]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with new_file(path, "wb") as file:
                file.write(json.dumps(head).encode() + b"\n" + state.content)
        except OSError as error:
            self.problem = f"{path}: cannot be written ({error.strerror or error})"
        else:
            self.problem = None

    def load(self, serial: str | None) -> KeptState | None:
        """The state of an arm; None if there is none.

        Raises:
            ValueError: the file is damaged; it was renamed and is not overwritten.
        """
        path = self.path(serial)
        try:
            with open_regular(path) as file:
                data = file.read(LARGEST_FILE + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ValueError(f"{path}: cannot be read ({error.strerror})") from error
        try:
            return _parsed(data)
        except (ValueError, KeyError, TypeError) as error:
            aside = self.set_aside(serial)
            raise ValueError(f"{path}: is damaged, kept as {aside}") from error

    def set_aside(self, serial: str | None) -> Path:
        """Rename the file of an arm that cannot be used; returns where it is kept."""
        path = self.path(serial)
        aside = path.with_name(f"{path.name}.unreadable")
        try:
            path.replace(aside)
        except OSError:
            return path
        return aside


def fingerprint(model: EnergyModel) -> str:
    """Tells models apart; all generic models of the package are one."""
    if is_generic(model):
        return GENERIC
    return _digest(json.dumps(document(model), sort_keys=True, default=str).encode())


def _parsed(data: bytes) -> KeptState:
    if len(data) > LARGEST_FILE:
        raise ValueError("too large")
    line, _, content = data.partition(b"\n")
    head = json.loads(line)
    if head["schema"] != SCHEMA or head["sha256"] != _digest(content):
        raise ValueError("wrong content")
    serial = head["serial"]
    return KeptState(
        robot=str(head["robot"]),
        serial=None if serial is None else str(serial),
        models=tuple(map(str, head["models"])),
        content=content,
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
