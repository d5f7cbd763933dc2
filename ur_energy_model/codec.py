# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""THE codec between objects of the package and what JSON and YAML hold.

`plain` turns values into what a file or an answer of a command holds, `built` makes a
dataclass from this again. Both follow the types of the dataclass, so no class needs
methods to be written and read. Files that people write by hand are read with
`yaml_reader`, which names the line to correct.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

T = TypeVar("T")


def plain(value: Any, *, digits: int | None = None, arrays: bool = False) -> Any:
    """Convert values to values that JSON has.

    Dataclasses become mappings of their fields, arrays lists, numbers of numpy numbers of
    Python, NaN and infinity None, dates and times ISO 8601 text, durations seconds, paths
    and members of enumerations what they stand for, and bytes hexadecimal text.

    Args:
        value: mappings, sequences and dataclasses of any depth.
        digits: significant digits of numbers to keep; None for all.
        arrays: keep arrays as they are, for a container that stores them itself.
    """
    if type(value) in (str, int, bool) or (arrays and isinstance(value, np.ndarray)):
        return value  # most values; the tests below take longer
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        value = {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        entries: dict[str, Any] = {}
        for key, item in value.items():
            entries[str(key)] = plain(item, digits=digits, arrays=arrays)
        return entries
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, digits=digits, arrays=arrays) for item in value]
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), digits=digits)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return value if digits is None else float(f"{value:.{digits}g}")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return plain(float(value), digits=digits)
    if isinstance(value, Path):
        return str(value)
    return value.hex() if isinstance(value, bytes) else value


def built(kind: type[T], content: Any) -> T:
    """An object of a dataclass (or of a container of them) from what `plain` made of one.

    Fields that are missing have their defaults and unknown ones are ignored, so that
    files of older and newer versions are read. None in place of a number of an array is
    NaN. The types of the fields have to be imported where the dataclass is defined, not
    for the type checker alone.

    Args:
        kind: dataclass, or for example `list[Gap]`, `dict[str, Gap]`.
        content: content of JSON or YAML, or content with arrays as they are.

    Raises:
        ValueError: an entry is missing or of another type; the text names the entry.
    """
    return cast(T, _built(kind, content, ""))


def _built(kind: Any, content: Any, at: str) -> Any:
    """The value of a type from its plain content.

    Args:
        kind: type of a field, or a dataclass.
        content: content of JSON or YAML, or content with arrays as they are.
        at: place of the content, such as ".gaps[3].start"; "" for the whole.

    Raises:
        ValueError: the content is not of the type; the text names the place.
    """
    origin = get_origin(kind)
    arguments = get_args(kind)
    if kind is Any:
        return content
    if origin in {Union, UnionType}:
        if content is None and NoneType in arguments:
            return None
        first = next(each for each in arguments if each is not NoneType)
        return _built(first, content, at)
    if origin is np.ndarray:
        return _array(arguments[1], content, at)
    if dataclasses.is_dataclass(kind):
        return _object(kind, _checked(content, dict, at), at)
    if origin is Literal:
        return _known(content, arguments, at)
    if origin in {dict, Mapping}:
        entries = _checked(content, dict, at).items()
        return {key: _built(arguments[1], entry, f"{at}.{key}") for key, entry in entries}
    if origin in {list, tuple, Sequence}:
        items = _items(kind, _checked(content, list | tuple, at), at)
        return items if origin is list else tuple(items)
    return _single(kind, content, at)


def _items(kind: Any, content: Sequence[Any], at: str) -> list[Any]:
    """Items of a list or a tuple; a tuple such as tuple[int, str] has a type for each.

    Arguments of this and the following functions, and their errors, are as for `_built`.
    """
    arguments = get_args(kind)
    has_type_for_each = get_origin(kind) is tuple and arguments[-1] is not Ellipsis
    kinds = arguments if has_type_for_each else [arguments[0]] * len(content)
    if len(kinds) != len(content):
        raise ValueError(f"{at[1:]}: {len(kinds)} items expected, not {len(content)}")
    items = []
    for number, item in enumerate(content):
        items.append(_built(kinds[number], item, f"{at}[{number}]"))
    return items


def _single(kind: Any, content: Any, at: str) -> Any:
    """A value that is no container: a number, text, a path or a member of an enumeration."""
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(_known(content, [member.value for member in kind], at))
    if kind is Path:
        return Path(_checked(content, str, at))
    if kind is float and not isinstance(content, bool):
        return float(_checked(content, int | float, at))
    if kind is int and isinstance(content, bool):
        raise ValueError(f"{at[1:]}: an integer expected, not {content}")
    return _checked(content, kind, at)


def _object(kind: Any, content: dict[str, Any], at: str) -> Any:
    """An object of a dataclass from its fields; missing ones have their defaults."""
    hints = _hints(kind)
    values = {}
    for field in dataclasses.fields(kind):
        name = field.name
        if name in content:
            values[name] = _built(hints[name], content[name], f"{at}.{name}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{at[1:] or kind.__name__}: {name} is missing")
    return kind(**values)


def _array(kind: Any, content: Any, at: str) -> Any:
    """An array of a type such as np.dtype[np.float64] from nested lists, or an array."""
    if not isinstance(content, list | tuple | np.ndarray):
        raise ValueError(f"{at[1:]}: an array expected, not {type(content).__name__}")
    try:
        return np.array(content, dtype=get_args(kind)[0])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{at[1:]}: not an array of numbers ({error})") from error


def _checked(content: Any, kind: Any, at: str) -> Any:
    """The content, if it is of this type."""
    if not isinstance(content, kind):
        name = getattr(kind, "__name__", str(kind))
        raise ValueError(f"{at[1:]}: {name} expected, not {type(content).__name__}")
    return content


def _known(content: Any, choices: Sequence[Any], at: str) -> Any:
    """The content, if it is one of these values."""
    if content not in choices:
        raise ValueError(f"{at[1:]}: one of {', '.join(map(str, choices))} expected")
    return content


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    """Types of the fields of a dataclass by name; they take long to find out."""
    return get_type_hints(kind)
