# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Forms: types of the values of keys in YAML files, which read, check and write them.

A form is a number with a unit and a range, an array of a shape, a fitted value with its
standard deviation, text, or a list of values of another form. `formats` has mappings,
whose keys have forms.

Reading is strict: a number that is not finite, another unit and an impossible value are
refused with the line to correct. A `Scope` has what a value depends on: the names that a
key such as "<joint>" stands for, and the sizes that shapes such as [k, 3n+2] refer to.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ur_energy_model.typing import Array
from ur_energy_model.yaml_nodes import excerpt
from ur_energy_model.yaml_reader import (
    Quantity,
    Reader,
    Record,
    YamlTree,
    check_schema,
    choice,
    integer,
    text,
    unique_names,
)

T = TypeVar("T")

ANY = 1e12
"""Largest number, in any unit: more than fits return for parameters that are not
identifiable."""
CHANCE = 5.0
"""Standard deviations by which a fitted value may have the wrong sign."""


@dataclass
class Scope:
    """Names and sizes on which the shapes and the keys of a file depend.

    A section reads and writes with a copy of the scope that it is given. Names and sizes
    that keys of the section add therefore hold in this section and in the sections below
    it.

    Attributes:
        names: the keys that a placeholder such as "<joint>" stands for.
        sizes: numbers by the letter that stands for them in shapes, such as n for joints.
        words: further values on which forms depend, by name.
    """

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)

    def inner(self) -> Scope:
        """A copy for a section."""
        return Scope(dict(self.names), dict(self.sizes), dict(self.words))

    def size(self, dimension: int | str) -> int | None:
        """The number that a dimension such as 3, "n" or "3n+2" stands for.

        Returns:
            The number; None for a letter that has none yet.
        """
        if isinstance(dimension, int):
            return dimension
        factor, letter, constant = _parts_of(dimension)
        known = self.sizes.get(letter)
        return None if known is None else factor * known + constant


def _parts_of(dimension: str) -> tuple[int, str, int]:
    """Factor, letter and constant of a dimension: (3, "n", 2) for "3n+2"."""
    match = re.fullmatch(r"([0-9]*)([a-z]+)(?:\+([0-9]+))?", dimension)
    if match is None:
        raise ValueError(f"{dimension} is not a dimension such as 3, n or 3n+2")
    factor, letter, constant = match.groups()
    return int(factor or 1), letter, int(constant or 0)


# Forms: types of values.


class Form(ABC, Generic[T]):
    """The type of a value, and its representation in the file.

    A subclass defines `_read` and `_words`, and `_write` where a value in the file
    differs from the value in the program. Forms of numbers have an attribute `quantity`,
    with their unit and range.
    """

    def read(self, tree: YamlTree, scope: Scope) -> T:
        """The value at a node of a file.

        Args:
            tree: the node.
            scope: names and sizes on which the value depends.

        Raises:
            InputError: (of the class that the file was opened with) the node is not of
                this form; the message has its line and key.
        """
        return self._read(tree, scope)

    def write(self, value: T, scope: Scope) -> Any:
        """A value as the file has it: number, text, mapping, list or array.

        Args:
            value: value of the form, as `read` returns it.
            scope: names and sizes on which the value depends.
        """
        return self._write(value, scope)

    def words(self) -> str:
        """The type of the value, for the reference page, such as "[n] numbers, rad"."""
        return self._words()

    def limits(self) -> str:
        """Range of the numbers, for the reference page, such as "0 to 100"; "" without one."""
        quantity: Quantity | None = getattr(self, "quantity", None)
        if quantity is None or quantity.high >= ANY:
            return ""
        return _range_of(quantity)

    @abstractmethod
    def _read(self, tree: YamlTree, scope: Scope) -> T:
        """See `read`."""

    def _write(self, value: T, scope: Scope) -> Any:
        """See `write`; by default the file has the value itself."""
        return value

    @abstractmethod
    def _words(self) -> str:
        """See `words`."""


def _range_of(quantity: Quantity) -> str:
    """The range of a quantity in words, such as "0 to 100" or "above 0 to 100"."""
    low = "above 0" if quantity.positive and quantity.low <= 0 else f"{quantity.low:g}"
    return f"{low} to {quantity.high:g}"


def _unit_of(quantity: Quantity) -> str:
    """The unit behind the words of a form, such as ", rad"; "" for a number without unit."""
    return "" if quantity.unit == "1" else f", {quantity.unit}"


@dataclass(frozen=True)
class Plain(Form[T]):
    """A value that a reader takes from a node and that is written as it is.

    Attributes:
        reader: such as `text`, or a `choice` of words.
        about: what it is, for the reference page.
    """

    reader: Reader[T]
    about: str

    def _read(self, tree: YamlTree, scope: Scope) -> T:
        return self.reader(tree)

    def _words(self) -> str:
        return self.about


TEXT = Plain(text, "text")
"""Text that is not empty."""
ANY_TEXT = Plain(YamlTree.text, "text")
"""Text that may be empty."""
UNIQUE_NAMES = Plain(unique_names, "list of different names")


def one_of(names: Sequence[str]) -> Plain[str]:
    """One of these words."""
    return Plain(choice(names), "one of " + ", ".join(names))


def whole_number(low: int, high: int) -> Plain[int]:
    """A whole number in this range."""
    return Plain(integer(low, high), f"whole number, {low} to {high}")


def _any_keys(tree: YamlTree) -> dict[str, object]:
    """A mapping with plain values, whatever its keys are."""
    return {name: child.plain() for name, child in tree.mapping().items()}


def _notes(tree: YamlTree) -> dict[str, object]:
    """A mapping with plain values; None for a number that is not finite."""
    return {name: child.plain(finite=False) for name, child in tree.mapping().items()}


NOTES = Plain(_notes, "mapping with any keys")
"""Figures that are shown and not computed with; no number, such as no limit, is null.

Files of earlier versions may have infinity in its place.
"""

ANY_KEYS = Plain(_any_keys, "mapping with any keys")
"""A mapping that this package writes for people and other programs."""


@dataclass(frozen=True)
class Constant(Form[None]):
    """A key that always has one value: the kind of the file, or the unit of a section."""

    value: str

    def _read(self, tree: YamlTree, scope: Scope) -> None:
        given = tree.written() if tree.is_scalar else ""
        if given == self.value:
            return
        what = tree.key.rpartition(".")[2]
        if given:
            raise tree.refuse(f"{what} '{excerpt(given)}' must be '{self.value}'")
        raise tree.refuse(f"needs {what} '{self.value}'")

    def _write(self, value: None, scope: Scope) -> str:
        return self.value

    def _words(self) -> str:
        return f"`{self.value}`"


@dataclass(frozen=True)
class Schema(Form[None]):
    """The number of the format: a file with another one cannot be read by this version."""

    number: int

    def _read(self, tree: YamlTree, scope: Scope) -> None:
        check_schema(tree, self.number)

    def _write(self, value: None, scope: Scope) -> int:
        return self.number

    def _words(self) -> str:
        return f"`{self.number}`"


@dataclass(frozen=True)
class Number(Form[float]):
    """A number in the range of a quantity, without its unit.

    Attributes:
        quantity: unit and range of the numbers.
        checked: whether the range is checked here. Else the section above checks it,
            because the range depends on other keys.
    """

    quantity: Quantity
    checked: bool = True

    def _read(self, tree: YamlTree, scope: Scope) -> float:
        return self.quantity(tree) if self.checked else tree.number()

    def _write(self, value: float, scope: Scope) -> float:
        return float(value)

    def _words(self) -> str:
        return f"number{_unit_of(self.quantity)}"


@dataclass(frozen=True)
class Numbers(Form[Array]):
    """Nested lists of numbers: an array.

    A letter in the shape that has no number in the scope yet gets the number of items of
    the list.

    Attributes:
        quantity: unit and range of every number.
        shape: dimensions such as 3, "n" and "3n+2".
        unknown: value of entries that are null in the file, and of all entries where the
            file has no such key; None where numbers must not be null.
    """

    quantity: Quantity
    shape: tuple[int | str, ...]
    unknown: float | None = None

    def _read(self, tree: YamlTree, scope: Scope) -> Array:
        values = self._nested(tree, scope, self.shape)
        return np.array(values, dtype=float).reshape(self._sizes(scope))

    def _nested(
        self, tree: YamlTree, scope: Scope, shape: Sequence[int | str]
    ) -> list[Any] | float:
        """Values of a node by nested lists of this shape; a single number for no shape."""
        if not shape:
            if self.unknown is not None and tree.is_null:
                return self.unknown
            return self.quantity(tree)
        if self.unknown is not None and tree.is_null:
            raise tree.refuse("must be a list")
        dimension, *inner = shape
        size = scope.size(dimension)
        items = tree.items(size)
        if size is None and isinstance(dimension, str):
            _, letter, _ = _parts_of(dimension)
            scope.sizes[letter] = len(items)
        return [self._nested(item, scope, inner) for item in items]

    def _sizes(self, scope: Scope) -> tuple[int, ...]:
        """The shape in numbers; 0 for a letter without a number, as for an empty list."""
        return tuple(scope.size(dimension) or 0 for dimension in self.shape)

    def missing(self, scope: Scope) -> Array:
        """The array in place of a key that the file does not have: all entries unknown."""
        fill = np.nan if self.unknown is None else self.unknown
        return np.full(self._sizes(scope), fill)

    def _words(self) -> str:
        return f"{shape_words(self.shape)} numbers{_unit_of(self.quantity)}"


def shape_words(shape: Sequence[int | str]) -> str:
    """A shape as docstrings write it: "[k, 3n+2]"."""
    return f"[{', '.join(map(str, shape))}]"


@dataclass(frozen=True)
class Covariance(Form[Array]):
    """A covariance matrix: symmetric, without negative eigenvalues.

    Attributes:
        quantity: quantity of the entries.
        size: rows and columns, such as "p+1".
        empty: whether an empty list stands for an unknown matrix, [0, 0].
    """

    quantity: Quantity
    size: str
    empty: bool = False

    def _read(self, tree: YamlTree, scope: Scope) -> Array:
        rows = tree.items()
        if self.empty and not rows:
            return np.zeros((0, 0))
        size = scope.size(self.size)
        if len(rows) != size:
            raise tree.refuse(f"must be {size} rows of {size} numbers")
        covariance = Numbers(self.quantity, (size, size)).read(tree, scope)
        tolerance = 1e-6 * np.abs(covariance).max()
        symmetric = np.allclose(covariance, covariance.T, rtol=1e-6, atol=0.0)
        if not symmetric or np.linalg.eigvalsh(covariance)[0] < -tolerance:
            raise tree.refuse("is not a covariance matrix")
        return covariance

    def _words(self) -> str:
        return f"{shape_words((self.size, self.size))} covariance matrix"


_STD = Quantity("1", 0, ANY)
"""Range of standard deviations, which have the unit of their value."""


@dataclass(frozen=True)
class Measured(Form[float]):
    """A number with its unit: `{value: 0.5, unit: A}`.

    Attributes:
        quantity: unit and range of the numbers.
        unknown: value where the file has null; None where it must not be null.
    """

    quantity: Quantity
    unknown: float | None = None

    def _read(self, tree: YamlTree, scope: Scope) -> float:
        with Record(tree, ("value", "unit")) as keys:
            Constant(self.quantity.unit).read(keys["unit"], scope)
            if self.unknown is not None:
                return keys.read("value", self.quantity, self.unknown)
            return self.quantity(keys["value"])

    def _write(self, value: float, scope: Scope) -> dict[str, Any]:
        return {"value": float(value), "unit": self.quantity.unit}

    def _words(self) -> str:
        return f"value{_unit_of(self.quantity)}"


class Estimated(NamedTuple):
    """A fitted value.

    Attributes:
        value: fitted value, in the unit of its quantity.
        std: standard deviation, in the same unit.
        source: stage of the identification that found the value; "" if there is none.
    """

    value: float
    std: float
    source: str = ""


@dataclass(frozen=True)
class Estimate(Form[Estimated]):
    """A fitted number: `{value: 0.1, unit: N m/A, std: 0.001, source: current}`.

    Attributes:
        quantity: unit and range of the numbers.
        sourced: whether the file has the stage that found the value.
        chance: standard deviations by which a value whose range begins at zero may be
            negative by noise.
        chance_of: the stage whose values may be negative by noise; "" for all stages.
        unbounded_if: (name, value) of an entry of `Scope.words` for files whose values
            were fitted without constraints, and may be any number; None if there is none.
    """

    quantity: Quantity
    sourced: bool = True
    chance: float = CHANCE
    chance_of: str = ""
    unbounded_if: tuple[str, str] | None = None

    def _read(self, tree: YamlTree, scope: Scope) -> Estimated:
        known = ["value", "unit", "std"]
        if self.sourced:
            known.append("source")
        with Record(tree, known) as keys:
            Constant(self.quantity.unit).read(keys["unit"], scope)
            std = _STD(keys["std"])
            source = keys["source"].text() if self.sourced else ""
            value = keys["value"].number()
            quantity = self._quantity(scope)
            lowest = quantity.low
            if lowest == 0 and self.chance_of in ("", source):
                lowest = -self.chance * std
            quantity.check(keys["value"], value, lowest)
        return Estimated(value, std, source)

    def _quantity(self, scope: Scope) -> Quantity:
        """Unit and range of the value in this file, see `unbounded_if`."""
        if self.unbounded_if is not None:
            name, value = self.unbounded_if
            if scope.words.get(name) == value:
                return unbounded(self.quantity)
        return self.quantity

    def _write(self, value: Estimated, scope: Scope) -> dict[str, Any]:
        out = {
            "value": float(value.value),
            "unit": self.quantity.unit,
            "std": float(value.std),
        }
        if self.sourced:
            out["source"] = value.source
        return out

    def _words(self) -> str:
        return f"estimate{_unit_of(self.quantity)}"


def unbounded(quantity: Quantity) -> Quantity:
    """The quantity with the range of a fit without constraints."""
    return replace(quantity, low=-ANY, high=ANY, positive=False)


@dataclass(frozen=True)
class ListOf(Form[list[Any]]):
    """A list of values of one form.

    Attributes:
        item: form of each item.
        empty: whether the list may be empty.
    """

    item: Form[Any]
    empty: bool = False

    def _read(self, tree: YamlTree, scope: Scope) -> list[Any]:
        items = tree.items()
        if not items and not self.empty:
            raise tree.refuse("must not be empty")
        return [self.item.read(item, scope) for item in items]

    def _write(self, value: Sequence[Any], scope: Scope) -> list[Any]:
        return [self.item.write(item, scope) for item in value]

    def _words(self) -> str:
        return f"list of: {self.item.words()}"
