"""Readers of values from nodes of a file: quantities in range, text, lists, arrays, mappings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

import numpy as np

from ur_energy_model.reading.record import Reader, Record
from ur_energy_model.reading.yaml_tree import YamlTree, excerpt
from ur_energy_model.typing import Array

T = TypeVar("T")
SMALLEST = 1e-9
"""Of a positive quantity, in its unit."""


@dataclass(frozen=True)
class Quantity:
    """Reader of a physical quantity, with the range of its possible values.

    Attributes:
        unit: SI, as written in messages and model files.
        low, high: the range.
        positive: whether zero is impossible, and what divides like it: less than SMALLEST.
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
        """Refuse a value out of range; `low` replaces the lower end."""
        low = self.low if low is None else low
        if self.positive and value <= 0:
            raise tree.refuse(f"{value:g} must be positive")
        if self.low == 0 and value < low:
            raise tree.refuse(f"{value:g} must not be negative")
        low = max(low, SMALLEST) if self.positive else low
        if not low <= value <= self.high:
            unit = "" if self.unit == "1" else f" {self.unit}"
            least = SMALLEST if self.positive and self.low == 0 else self.low
            raise tree.refuse(
                f"{value:g}{unit} is impossible, expected {least:g} to {self.high:g}{unit}"
            )


def text(tree: YamlTree) -> str:
    """Text that is not empty."""
    value = tree.text()
    if not value.strip():
        raise tree.refuse("must not be empty")
    return value


def choice(names: Iterable[str]) -> Reader[str]:
    """One of these words."""
    known = tuple(names)

    def read(tree: YamlTree) -> str:
        value = tree.text()
        if value in known:
            return value
        raise tree.refuse(f"'{excerpt(value)}' must be one of {with_suggestion(value, known)}")

    return read


def with_suggestion(name: str, known: Sequence[str]) -> str:
    """The known names, with the one most similar to a wrong name."""
    like = get_close_matches(name, known, n=1)
    return ", ".join(known) + (f" (did you mean '{like[0]}'?)" if like else "")


def integer(low: int, high: int) -> Reader[int]:
    """A whole number in this range."""

    def read(tree: YamlTree) -> int:
        value = tree.integer()
        if not low <= value <= high:
            raise tree.refuse(f"{value} must be {low} to {high}")
        return value

    return read


def list_of(reader: Reader[T], length: int | None = None) -> Reader[list[T]]:
    """A list that is not empty; of the given length, if any."""

    def read(tree: YamlTree) -> list[T]:
        items = tree.items(length)
        if not items:
            raise tree.refuse("must not be empty")
        return [reader(item) for item in items]

    return read


def array(quantity: Reader[float], *shape: int, unknown: bool = False) -> Reader[Array]:
    """Array of this shape; with `unknown`, null entries are NaN."""

    def nested(tree: YamlTree, left: Sequence[int]) -> Any:
        if unknown and tree.is_null:
            return np.full(left, np.nan)
        if not left:
            return quantity(tree)
        return [nested(item, left[1:]) for item in tree.items(left[0])]

    def read(tree: YamlTree) -> Array:
        return np.array(nested(tree, shape), dtype=float).reshape(shape)

    return read


def unique_names(tree: YamlTree) -> list[str]:
    """Different names."""
    names: dict[str, None] = {}
    for item in tree.items():
        name = text(item)
        if name in names:
            raise item.refuse(f"'{excerpt(name)}' occurs twice")
        names[name] = None
    if not names:
        raise tree.refuse("must be a list of names")
    return list(names)


def mapping_of(
    readers: Mapping[str, Reader[Any]], optional: Mapping[str, Reader[Any]] | None = None
) -> Reader[dict[str, Any]]:
    """A mapping with these keys, and possibly the optional ones, as a dict."""

    def read(tree: YamlTree) -> dict[str, Any]:
        with Record(tree) as keys:
            keys.expect(readers)
            out = {name: reader(keys[name]) for name, reader in readers.items()}
            for name, reader in (optional or {}).items():
                child = keys.get(name)
                if child is not None:
                    out[name] = reader(child)
        return out

    return read
