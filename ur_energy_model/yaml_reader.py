# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""YAML files that people edit: each value read as the type it must have, or refused.

An error names the line and the key to correct. `yaml_nodes` parses the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ur_energy_model.errors import InputError, closest
from ur_energy_model.typing import Array, Self
from ur_energy_model.yaml_nodes import (
    LIMITS,
    LONGEST_SHOWN,
    Origin,
    ReadingLimits,
    YamlNode,
    excerpt,
    parse_yaml,
)

_NUMBER = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
)
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,29})")
_NOT_FINITE = {".nan", ".inf", "-.inf", "+.inf", "nan", "inf", "-inf", "+inf"}
_LOGICAL = {
    "true": True,
    "yes": True,
    "on": True,
    "false": False,
    "no": False,
    "off": False,
}
_NULL = {"", "~", "null"}


@dataclass(frozen=True)
class YamlTree:
    """One node of a YAML file.

    Attributes:
        origin: the file.
        node: content of the node.
        key: dotted key of the node, "" for the root.
        key_line: line of its key.
    """

    origin: Origin
    node: YamlNode
    key: str = ""
    key_line: int | None = None

    @classmethod
    def read(
        cls,
        path: str | Path,
        error: type[InputError],
        remedy: str,
        limits: ReadingLimits = LIMITS,
    ) -> YamlTree:
        """Root of a YAML file, which must be a mapping.

        Args:
            path: path of the file.
            error: class of errors for problems in the file.
            remedy: what the user can do about them.
            limits: limits of the file.

        Raises:
            InputError: (of class `error`) the file is unreadable, not plain YAML or
                beyond the limits.
        """
        origin = Origin(Path(path), error, remedy)
        tree = cls(origin, parse_yaml(origin.content(limits), origin, limits))
        tree.mapping()
        return tree

    @classmethod
    def from_content(cls, content: dict[str, Any], origin: Origin) -> YamlTree:
        """Root of plain data from a file of another format."""
        return cls(origin, YamlNode.of(content))

    def refuse(self, problem: str, remedy: str | None = None) -> InputError:
        """Error that names this node's line and key."""
        return self.origin.refusal(problem, self.node.line, self.key, remedy)

    @property
    def is_null(self) -> bool:
        """Whether this is an explicit null."""
        return self.is_scalar and self._meaning() is None

    @property
    def is_scalar(self) -> bool:
        """Whether this is a single value."""
        return isinstance(self.node.value, str)

    def mapping(self) -> dict[str, YamlTree]:
        """Children by key, in order."""
        if not isinstance(self.node.value, tuple):
            raise self.refuse("must be a mapping of keys to values")
        out: dict[str, YamlTree] = {}
        for key, value in self.node.value:
            if not isinstance(key.value, str):
                raise self.origin.refusal("a key must be plain text", key.line, self.key)
            if key.value in out:
                problem = f"key '{excerpt(key.value)}' occurs twice"
                raise self.origin.refusal(problem, key.line, self.key)
            dotted = f"{self.key}.{key.value}" if self.key else key.value
            out[key.value] = YamlTree(self.origin, value, dotted, key.line)
        return out

    def items(self, length: int | None = None) -> list[YamlTree]:
        """Elements of a list.

        Args:
            length: number that there must be; None for any.
        """
        children = self.node.value
        if not isinstance(children, list):
            raise self.refuse("must be a list")
        if length is not None and len(children) != length:
            raise self.refuse(f"has {len(children)} values, {length} are needed")
        return [
            YamlTree(self.origin, child, f"{self.key}[{i}]", self.key_line)
            for i, child in enumerate(children)
        ]

    def written(self) -> str:
        """The characters of a single value, of any type."""
        if not isinstance(self.node.value, str):
            raise self.refuse("must be a single value")
        return self.node.value

    def text(self) -> str:
        """Text; numbers, and words such as `no`, must be quoted."""
        if not isinstance(self._meaning(), str):
            raise self.refuse(
                f"{excerpt(self.written()) or 'nothing'} must be text, put it in quotes"
            )
        return self.written()

    def number(self) -> float:
        """Finite number, also `1e-5`, which is text in YAML 1.1."""
        value = self._meaning()
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong("is not a number")
        if not math.isfinite(value):
            raise self._wrong("is not a finite number")
        return float(value)

    def integer(self) -> int:
        """Whole number."""
        value = self._meaning()
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong("must be a whole number")
        return value

    def plain(self, *, finite: bool = True) -> Any:
        """Whole subtree as dicts, lists and plain values.

        Args:
            finite: whether a number that is not finite is refused; else it is None.
        """
        if isinstance(self.node.value, tuple):
            children = self.mapping().items()
            return {name: child.plain(finite=finite) for name, child in children}
        if isinstance(self.node.value, list):
            return [child.plain(finite=finite) for child in self.items()]
        value = self._meaning()
        if isinstance(value, float) and not math.isfinite(value):
            if not finite:
                return None
            raise self._wrong("is not a finite number")
        return value

    def _meaning(self) -> Any:
        """Text, integer, float (possibly not finite), boolean or None of a single value."""
        text = self.written()
        if not self.node.plain:
            return text
        if _WHOLE.fullmatch(text):
            return int(text)
        if len(text) < LONGEST_SHOWN and _NUMBER.fullmatch(text):
            return float(text)
        word = text.lower()
        if word in _NOT_FINITE:
            return math.nan if "nan" in word else math.inf
        if word in _NULL:
            return None
        return _LOGICAL.get(word, text)

    def _wrong(self, problem: str) -> InputError:
        """The error about a value, which the message quotes."""
        value = excerpt(self.written())
        shown = value if self.node.plain else repr(value)
        return self.refuse(f"{shown or 'nothing'} {problem}")


T = TypeVar("T")
D = TypeVar("D")
Reader = Callable[[YamlTree], T]
"""Reads a value from a node of a file; raises InputError for a value that it does not
accept."""

_MOST_NAMED = 30  # most keys that a message lists


class Record:
    """A mapping that is being read key by key, as `with Record(tree) as keys`.

    A key is known once the block has asked for it. At the end of the block, an unknown
    key is refused with a suggestion of the most similar known key, so a misspelt key is
    never ignored.

    Args:
        tree: node of the mapping.
        names: keys that will be read, so that none of them is taken for a misspelt key.
    """

    def __init__(self, tree: YamlTree, names: Iterable[str] = ()) -> None:
        self._tree = tree
        self._children = tree.mapping()
        self._known: dict[str, None] = dict.fromkeys(names)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            for name in self._unread():
                raise self._unknown(name)

    def get(self, name: str) -> YamlTree | None:
        """Node of an optional key; None if it is missing or null."""
        self._known[name] = None
        child = self._children.get(name)
        return None if child is None or child.is_null else child

    def __getitem__(self, name: str) -> YamlTree:
        """Node of a required key."""
        self._known[name] = None
        child = self._children.get(name)
        if child is not None:
            return child
        # A misspelt key is the likely cause. The cutoff is high, so that keys that are
        # read later are not taken for it.
        slip = closest(name, self._unread(), cutoff=0.75)
        if slip is not None:
            raise self._unknown(slip)
        raise self._tree.refuse(f"key '{excerpt(name)}' is missing")

    def read(self, name: str, reader: Reader[T], default: D) -> T | D:
        """Value of an optional key; the default if it is missing or null."""
        child = self.get(name)
        return default if child is None else reader(child)

    def all(self) -> dict[str, YamlTree]:
        """Nodes of all keys of the mapping, in the order of the file."""
        return dict(self._children)

    def remaining(self) -> dict[str, YamlTree]:
        """Nodes of all keys not read yet, for mappings whose keys are names."""
        out = {name: self._children[name] for name in self._unread()}
        self._known.update(dict.fromkeys(out))
        return out

    def schema(self, newest: int) -> None:
        """Refuse files whose key `schema` is missing or not `newest`."""
        check_schema(self["schema"], newest)

    def _unread(self) -> list[str]:
        """Keys of the mapping that nothing has read so far."""
        return [name for name in self._children if name not in self._known]

    def _unknown(self, name: str) -> InputError:
        """The error about an unknown key, with the known key that is most similar."""
        child = self._children[name]
        absent = [each for each in self._known if each not in self._children]
        like = closest(name, absent or self._known)
        if like is None:
            shown = [excerpt(each) for each in list(self._known)[:_MOST_NAMED]]
            hint = f"known here: {', '.join(shown)}"
        else:
            hint = f"did you mean '{excerpt(like)}'?"
        problem = f"unknown key '{excerpt(name)}' ({hint})"
        return self._tree.origin.refusal(problem, child.key_line, child.key)


def check_schema(node: YamlTree, newest: int) -> None:
    """Refuse files of another version of a format.

    Args:
        node: node of the key `schema`.
        newest: the version that is read.
    """
    number = node.integer()
    if number == newest:
        return
    problem = (
        f"schema {number} cannot be read by this version, which reads schema {newest}"
    )
    raise node.refuse(problem, "update ur_energy_model" if number > newest else None)


SMALLEST = 1e-9  # smallest positive quantity, in its unit


@dataclass(frozen=True)
class Quantity:
    """Reader of a physical quantity, with the range of its possible values.

    Attributes:
        unit: SI, as written in messages and model files.
        low: smallest possible value.
        high: largest possible value.
        positive: whether values below SMALLEST are impossible, by which nothing can be
            divided.
    """

    unit: str
    low: float
    high: float
    positive: bool = False

    def __call__(self, tree: YamlTree) -> float:
        """Read a number in this range."""
        value = tree.number()
        self.check(tree, value)
        return value

    def check(self, tree: YamlTree, value: float, low: float | None = None) -> None:
        """Refuse a value out of range.

        Args:
            tree: node of the value, for the error.
            value: the number.
            low: lower end, in place of the lower end of the range; None for the range.
        """
        if low is None:
            low = self.low
        if self.positive and value <= 0:
            raise tree.refuse(f"{value:g} must be positive")
        if self.low == 0 and value < low:
            raise tree.refuse(f"{value:g} must not be negative")
        if self.positive:
            low = max(low, SMALLEST)
        if not low <= value <= self.high:
            unit = "" if self.unit == "1" else f" {self.unit}"
            least = SMALLEST if self.positive and self.low == 0 else self.low
            expected = f"{least:g} to {self.high:g}{unit}"
            raise tree.refuse(f"{value:g}{unit} is impossible, expected {expected}")


def text(tree: YamlTree) -> str:
    """Text that is not empty."""
    value = tree.text()
    if not value.strip():
        raise tree.refuse("must not be empty")
    return value


def choice(names: Iterable[str]) -> Reader[str]:
    """A reader of one of these words."""
    known = tuple(names)

    def read(tree: YamlTree) -> str:
        """The word at a node."""
        value = tree.text()
        if value in known:
            return value
        words = with_suggestion(value, known)
        raise tree.refuse(f"'{excerpt(value)}' must be one of {words}")

    return read


def with_suggestion(name: str, known: Sequence[str]) -> str:
    """The known names, with the one most similar to a wrong name."""
    like = closest(name, known)
    hint = "" if like is None else f" (did you mean '{like}'?)"
    return ", ".join(known) + hint


def integer(low: int, high: int) -> Reader[int]:
    """A reader of whole numbers in this range."""

    def read(tree: YamlTree) -> int:
        """The number at a node."""
        value = tree.integer()
        if not low <= value <= high:
            raise tree.refuse(f"{value} must be {low} to {high}")
        return value

    return read


def array(quantity: Reader[float], *shape: int, unknown: bool = False) -> Reader[Array]:
    """A reader of arrays.

    Args:
        quantity: reader of each number.
        shape: shape of the arrays.
        unknown: whether null stands for NaN, for entries or whole rows.
    """

    def nested(tree: YamlTree, shape: Sequence[int]) -> Any:
        """Values of a node by nested lists of this shape; a number for no shape."""
        if unknown and tree.is_null:
            return np.full(shape, np.nan)
        if not shape:
            return quantity(tree)
        return [nested(item, shape[1:]) for item in tree.items(shape[0])]

    def read(tree: YamlTree) -> Array:
        """The array at a node."""
        return np.array(nested(tree, shape), dtype=float).reshape(shape)

    return read


def unique_names(tree: YamlTree) -> list[str]:
    """A list of different names, at least one."""
    names: dict[str, None] = {}
    for item in tree.items():
        name = text(item)
        if name in names:
            raise item.refuse(f"'{excerpt(name)}' occurs twice")
        names[name] = None
    if not names:
        raise tree.refuse("must be a list of names")
    return list(names)
