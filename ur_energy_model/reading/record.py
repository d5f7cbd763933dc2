"""Record: a mapping of known keys, and readers of what stands under them.

    with Record(tree) as keys: ...

Asking for a key is what makes it known. On leaving the block, a key that nobody asked for is
refused with the known key most like it, so that no slip of the pen goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.reading.tree import YamlTree, shown
from ur_energy_model.typing import Array

T = TypeVar("T")
D = TypeVar("D")
Reader = Callable[[YamlTree], T]

_MOST_NAMED = 30
"""Keys that a message lists at most."""


class Record:
    """A mapping under reading.

    Args:
        tree: where it stands.

    Raises:
        InputError: no mapping; on leaving the block, a key that nobody asked for.
    """

    def __init__(self, tree: YamlTree) -> None:
        self._tree = tree
        self._children = tree.mapping()
        self._known: dict[str, None] = {}

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            for name in self._unread():
                raise self._unknown(name)

    def get(self, name: str) -> YamlTree | None:
        """What stands under an optional key; None where it is missing or null."""
        self._known[name] = None
        child = self._children.get(name)
        return None if child is None or child.is_null else child

    def __getitem__(self, name: str) -> YamlTree:
        """What stands under a key that must be there."""
        self._known[name] = None
        child = self._children.get(name)
        if child is not None:
            return child
        # A near miss is the line to mend; keys yet to be asked for are less alike than that.
        for slip in get_close_matches(name, self._unread(), n=1, cutoff=0.75):
            raise self._unknown(slip)
        raise self._tree.refuse(f"key '{shown(name)}' is missing")

    def read(self, name: str, reader: Reader[T], default: D) -> T | D:
        """Value of an optional key; the default where it is missing or null."""
        child = self.get(name)
        return default if child is None else reader(child)

    def expect(self, names: Iterable[str]) -> None:
        """Say which keys will be asked for: names that are much alike, such as those of joints."""
        self._known.update(dict.fromkeys(names))

    def rest(self) -> dict[str, YamlTree]:
        """All that was not asked for so far, for mappings whose keys are names."""
        out = {name: self._children[name] for name in self._unread()}
        self._known.update(dict.fromkeys(out))
        return out

    def schema(self, newest: int, default: int | None = None) -> None:
        """Check the key `schema`: a file of a later version is not read by guesswork.

        Args:
            newest: schema that this version reads.
            default: where the key is missing; it must be there where this is None.
        """
        node = self["schema"] if default is None else self.get("schema")
        number = default if node is None else node.integer()
        if number == newest or node is None:
            return
        problem = f"schema {number} cannot be read by this version, which knows schema {newest}"
        newer = number is not None and number > newest
        raise node.refuse(problem, "update ur_energy_model" if newer else None)

    def _unread(self) -> list[str]:
        return [name for name in self._children if name not in self._known]

    def _unknown(self, name: str) -> InputError:
        child = self._children[name]
        absent = [each for each in self._known if each not in self._children]
        like = get_close_matches(name, absent or list(self._known), n=1, cutoff=0.6)
        known = ", ".join(shown(name) for name in list(self._known)[:_MOST_NAMED])
        hint = f"did you mean '{shown(like[0])}'?" if like else f"known here: {known}"
        return self._tree.origin.refusal(
            f"unknown key '{shown(name)}' ({hint})", child.key_line, child.key
        )


@dataclass(frozen=True)
class Quantity:
    """Values that a physical quantity can have.

    Attributes:
        unit: SI, as messages and model files spell it.
        low, high: of what is possible at all.
        positive: whether zero is impossible.
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
        """Refuse a value out of range; `low` stands in for the lower end."""
        low = self.low if low is None else low
        if self.positive and value <= 0:
            raise tree.refuse(f"{value:g} must be positive")
        if self.low == 0 and value < low:
            raise tree.refuse(f"{value:g} must not be negative")
        if not low <= value <= self.high:
            unit = "" if self.unit == "1" else f" {self.unit}"
            raise tree.refuse(
                f"{value:g}{unit} cannot be, expected {self.low:g} to {self.high:g}{unit}"
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
        raise tree.refuse(f"'{shown(value)}' must be one of {listed(value, known)}")

    return read


def listed(name: str, known: Sequence[str]) -> str:
    """Known words, and the one most like a wrong one."""
    like = get_close_matches(name, known, n=1)
    return ", ".join(known) + (f" (did you mean '{like[0]}'?)" if like else "")


def whole(low: int, high: int) -> Reader[int]:
    """A whole number in this range."""

    def read(tree: YamlTree) -> int:
        value = tree.integer()
        if not low <= value <= high:
            raise tree.refuse(f"{value} must be {low} to {high}")
        return value

    return read


def list_of(reader: Reader[T], length: int | None = None) -> Reader[list[T]]:
    """A list that is not empty, of this length where one is given."""

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


def unique(tree: YamlTree) -> list[str]:
    """Names, each of them once."""
    names: list[str] = []
    for item in tree.items():
        name = text(item)
        if name in names:
            raise item.refuse(f"'{shown(name)}' stands twice")
        names.append(name)
    if not names:
        raise tree.refuse("must be a list of names")
    return names


def table(
    readers: Mapping[str, Reader[Any]], optional: Mapping[str, Reader[Any]] | None = None
) -> Reader[dict[str, Any]]:
    """A mapping with these keys, and perhaps the optional ones, as a dict."""

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
