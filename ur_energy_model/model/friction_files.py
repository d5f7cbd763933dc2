# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction laws of users: Python files that define them, and their place among the other laws.

A file of friction laws is a Python file with one or more `FrictionLaw`s. It is run once, where
a user names it (`--friction-laws`, parameter `friction_laws`), checked (`friction_checks`), and
its laws are in LAWS from then on, in this process and in those that it gives work to. A model
file names the file and has a signature of each law, but the file is never run because of it.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.files import open_regular
from ur_energy_model.model.friction import (
    LAWS,
    FrictionLaw,
    constant_units,
    parameter_units,
)
from ur_energy_model.model.friction_checks import problem_of, same_signature, signature

FRICTION_LAWS = "--friction-laws"
"""Option of the files of friction laws, which errors name."""
_LARGEST_FILE = 1_000_000  # bytes of a file of friction laws
_REMEDY = "correct the file"
_PACKAGE_LAWS = tuple(LAWS)


def is_own(law: FrictionLaw) -> bool:
    """Whether a law is one of a user, which the package does not have."""
    return law.name not in _PACKAGE_LAWS


@dataclass(frozen=True)
class LawFile:
    """A file of friction laws.

    Attributes:
        path: path of the file.
        text: its content, which was run.
    """

    path: str
    text: str

    @property
    def name(self) -> str:
        """Name of the file without its folder."""
        return Path(self.path).name


@dataclass(frozen=True)
class UserLaw(FrictionLaw):
    """A friction law from a file of a user.

    Attributes:
        file: the file.
    """

    file: LawFile = LawFile("", "")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with the text of its file, which another process may not find."""
        return _law_of_file, (self.file, self.name)


def load_friction_laws(path: str | Path) -> tuple[FrictionLaw, ...]:
    """Run a file of friction laws, and add its laws to LAWS; a second time, nothing happens.

    The file is Python code, which may do anything: name files that you trust.

    Args:
        path: path of the file.

    Returns:
        The laws in the order of the file.

    Raises:
        InputError: the file cannot be read or run, or a law in it cannot be used, or has
            the name of another law.
    """
    return _laws_of_file(LawFile(str(path), _content(path)))


def add_friction_law(law: FrictionLaw) -> None:
    """Add a law that a program makes to LAWS, after checking it.

    Other processes do not have such a law; use a file where they need it.

    Args:
        law: the law.

    Raises:
        InputError: the law cannot be used, or has the name of another law.
    """
    _add([law], "friction law")


def _content(path: str | Path) -> str:
    """Text of a file of friction laws."""
    try:
        with open_regular(path) as file:
            raw = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise InputError(path, problem, "name a Python file of friction laws") from None
    except ValueError:  # a null byte in the path
        raise InputError(path, "is no path", "name a Python file") from None
    if len(raw) > _LARGEST_FILE:
        raise InputError(
            path, "has more than 1 MB", "name a Python file of friction laws"
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        problem = "is not text in UTF-8"
        raise InputError(path, problem, "name a Python file of friction laws") from None


def _laws_of_file(file: LawFile) -> tuple[FrictionLaw, ...]:
    """The laws of a file, which are in LAWS afterwards."""
    known = [
        law for law in LAWS.values() if isinstance(law, UserLaw) and law.file == file
    ]
    if known:
        return tuple(known)
    variables = _run(file)
    imported = {id(law) for law in LAWS.values()}
    defined = {
        id(value): value
        for value in variables.values()
        if isinstance(value, FrictionLaw) and id(value) not in imported
    }
    if not defined:
        problem = "defines no friction law"
        raise InputError(file.path, problem, "assign a FrictionLaw to a name in the file")
    laws = [
        UserLaw(law.name, law.description, law.terms, law.constants, file)
        for law in defined.values()
    ]
    return _add(laws, file.path)


def _law_of_file(file: LawFile, name: str) -> FrictionLaw:
    """The law of a file that was pickled."""
    for law in _laws_of_file(file):
        if law.name == name:
            return law
    raise InputError(file.path, f"has no friction law '{name}'", _REMEDY)


def _run(file: LawFile) -> Mapping[str, Any]:
    """Run a file; what it prints goes to stderr, because stdout may be JSON.

    Returns:
        Values that the file assigns to names.

    Raises:
        InputError: the file is not Python, or running it raises an exception.
    """
    module = ModuleType(f"ur_energy_model_friction_laws_{len(LAWS)}")
    module.__file__ = file.path
    # Some modules, such as dataclasses, look for the module of a class there.
    sys.modules[module.__name__] = module
    try:
        with contextlib.redirect_stdout(sys.stderr):
            exec(compile(file.text, file.path, "exec"), module.__dict__)
    except SyntaxError as error:
        place = "" if error.lineno is None else f" in line {error.lineno}"
        raise InputError(
            file.path, f"is not Python{place}: {error.msg}", _REMEDY
        ) from None
    except (Exception, SystemExit) as error:
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == file.path
        ]
        place = f"line {lines[-1]}: " if lines else ""
        problem = f"{place}{type(error).__name__}: {error}"
        raise InputError(file.path, problem, _REMEDY) from None
    return dict(vars(module))


def _add(laws: Sequence[FrictionLaw], source: str) -> tuple[FrictionLaw, ...]:
    """Add laws to LAWS if all of them can be used.

    Args:
        laws: laws of one source.
        source: file of the laws, for errors.

    Returns:
        The laws that have these names from now on: a law that is there already and has
        the same definition stays.

    Raises:
        InputError: a law cannot be used, or has the name of another law.
    """
    added: dict[str, FrictionLaw] = {}
    for law in laws:
        units = {**parameter_units(), **constant_units()}
        for other in added.values():
            units |= other.units | {name: c.unit for name, c in other.constants.items()}
        problem = problem_of(law, units)
        if problem is not None:
            raise InputError(source, problem, _REMEDY)
        if law.name in added:
            problem = f"defines the law '{law.name}' twice"
            raise InputError(source, problem, "give one of them another name")
        added[law.name] = law
        before = LAWS.get(law.name)
        if before is None:
            continue
        if not is_own(before):
            problem = f"'{law.name}' is the name of a law of the package"
            raise InputError(source, problem, "give it another name")
        if not _is_same(before, law):
            where = before.file.path if isinstance(before, UserLaw) else "this program"
            problem = f"another law '{law.name}' is there already, from {where}"
            remedy = "give it another name, or start again with this file alone"
            raise InputError(source, problem, remedy)
        added[law.name] = before
    LAWS.update(added)
    return tuple(added.values())


def _is_same(first: FrictionLaw, second: FrictionLaw) -> bool:
    """Whether two laws have the same parameters, constants and values."""
    records = first.shape == second.shape and first.units == second.units
    if not records or first.parameters != second.parameters:
        return False
    shape = first.default_shape
    return same_signature(signature(first, shape), signature(second, shape))


# Laws in a model file.


@dataclass(frozen=True)
class LawRecord:
    """What a model file has of a law of a user, so that another law is not taken for it.

    Attributes:
        file: name of the file of the law; "" for a law that a program has made.
        shape: shape constants by name, at which the signature was computed.
        signature: see `friction_checks.signature` [p].
    """

    file: str
    shape: Mapping[str, float]
    signature: tuple[float, ...]

    @classmethod
    def of(cls, law: FrictionLaw) -> LawRecord:
        """The record of a law."""
        shape = law.default_shape
        values = signature(law, shape)
        file = law.file.name if isinstance(law, UserLaw) else ""
        return cls(file, shape, tuple(values.tolist()))

    def problem(self, name: str) -> str | None:
        """Why this record is not of the known law of this name; None if it is."""
        law = LAWS.get(name)
        if law is None:
            return f"no friction law '{name}' is known here"
        stored = np.array(self.signature)
        is_same = set(self.shape) == set(law.shape)
        if is_same and same_signature(signature(law, self.shape), stored):
            return None
        return f"the friction law '{name}' was another one when this model was made"

    def remedy(self, name: str) -> str:
        """What to do about it."""
        if name not in LAWS:
            return f"give its file with {FRICTION_LAWS} {self.file or 'FILE.py'}"
        return f"give {self.file or 'the law'} as it was, or identify again"


def law_records(laws: Sequence[FrictionLaw]) -> dict[str, LawRecord]:
    """Records of the laws that the package does not have, by name."""
    return {law.name: LawRecord.of(law) for law in laws if is_own(law)}
