# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Formats of YAML files, declared once: a table of keys reads, writes, checks and explains a file.

A `Section` is a mapping with a table of `Key`s. A key has a form, which says what its
value is: a number with a unit and a range, an array of a shape, text, or a section of its
own. Reading and writing follow from the table, and so does the page docs/formats.md,
which `rows` has the lines of.

    WHEEL = Section(Wheel, (
        Key("radius", Measured(Quantity("m", 0, 10)), "from the axis to the ground"),
        Key("note", TEXT, "for people", default=""),
    ))
    wheel = WHEEL.read(YamlTree.read("wheel.yaml", InputError, "correct the line"), Scope())
    content = WHEEL.write(wheel, Scope())

Reading is strict: an unknown key, a key that is missing, a number that is not finite,
another unit and an impossible value are refused with the line to correct. Keys are
written in the order of the table, and read in it, too. A key such as "<joint>" stands for
as many keys as the arm has joints: a `Scope` has their names, and the sizes that shapes
such as [k, 3n+2] refer to.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from ur_energy_model.typing import Array
from ur_energy_model.yaml_reader import (
    Quantity,
    Reader,
    Record,
    YamlTree,
    check_schema,
    choice,
    excerpt,
    integer,
    text,
    unique_names,
    with_suggestion,
)

T = TypeVar("T")

ANY = 1e12
"""More than a fit returns for a parameter that is not identifiable, in the parameter's
unit."""
CHANCE = 5.0
"""Standard deviations by which a fitted value may have the wrong sign."""


@dataclass
class Scope:
    """What the shapes and the keys of a file depend on.

    A section reads and writes with a copy of the scope it is given, so that what its keys
    bind holds in it and in the sections below it.

    Attributes:
        names: the keys that a placeholder such as "<joint>" stands for.
        sizes: numbers by the letter that stands for them in shapes, such as n for joints.
        words: further values that forms depend on, by name.
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
            None where it is a letter that nothing has bound yet.
        """
        if isinstance(dimension, int):
            return dimension
        factor, letter, constant = _parts_of(dimension)
        known = self.sizes.get(letter)
        return None if known is None else factor * known + constant


def _parts_of(dimension: str) -> tuple[int, str, int]:
    """Factor, letter and constant of "3n+2"."""
    match = re.fullmatch(r"([0-9]*)([a-z]+)(?:\+([0-9]+))?", dimension)
    if match is None:
        raise ValueError(f"{dimension} is not a dimension such as 3, n or 3n+2")
    factor, letter, constant = match.groups()
    return int(factor or 1), letter, int(constant or 0)


# Forms: what a value is.


class Form(ABC, Generic[T]):
    """What the value of a key is, and how it stands in the file.

    Forms of numbers have an attribute `quantity`, with their unit and range.
    """

    def read(self, tree: YamlTree, scope: Scope) -> T:
        """The value at a node of a file.

        Args:
            tree: the node.
            scope: what it depends on.

        Raises:
            InputError: it is not what it has to be; names line and key.
        """
        return self._read(tree, scope)

    def write(self, value: T, scope: Scope) -> Any:
        """What the file has for a value: numbers, text, mappings, lists and arrays."""
        return self._write(value, scope)

    def words(self) -> str:
        """What it is, for the reference page: "[n] numbers, rad"."""
        return self._words()

    def limits(self) -> str:
        """Range of its numbers, for the reference page: "0 to 100"; empty without one."""
        quantity: Quantity | None = getattr(self, "quantity", None)
        if quantity is None or quantity.high >= ANY:
            return ""
        return _range_of(quantity)

    @abstractmethod
    def _read(self, tree: YamlTree, scope: Scope) -> T: ...

    def _write(self, value: T, scope: Scope) -> Any:
        return value

    @abstractmethod
    def _words(self) -> str: ...


def _range_of(quantity: Quantity) -> str:
    """The range of a quantity in words: "0 to 100"."""
    low = "above 0" if quantity.positive and quantity.low <= 0 else f"{quantity.low:g}"
    return f"{low} to {quantity.high:g}"


def _unit_of(quantity: Quantity) -> str:
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
    return {name: child.plain() for name, child in tree.mapping().items()}


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
    """The number of the format, which says whether this version can read a file."""

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
        quantity: unit and range.
        checked: whether the range is checked here, and not by the section above, which
            knows more.
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

    A letter in the shape that nothing has bound yet is bound to the number of items that
    the list has.

    Attributes:
        quantity: of every number.
        shape: dimensions such as 3, "n" and "3n+2".
        unknown: value of entries that are null in the file, and of all of them where the
            key is `UNKNOWN`; None where numbers must not be null.
    """

    quantity: Quantity
    shape: tuple[int | str, ...]
    unknown: float | None = None

    def _read(self, tree: YamlTree, scope: Scope) -> Array:
        values = self._nested(tree, scope, self.shape)
        sizes = tuple(scope.size(dimension) or 0 for dimension in self.shape)
        return np.array(values, dtype=float).reshape(sizes)

    def _nested(
        self, tree: YamlTree, scope: Scope, left: Sequence[int | str]
    ) -> list[Any] | float:
        if self.unknown is not None and tree.is_null:
            if not left:
                return self.unknown
            raise tree.refuse("must be a list")
        if not left:
            return self.quantity(tree)
        items = tree.items(scope.size(left[0]))
        if isinstance(left[0], str) and scope.size(left[0]) is None:
            _, letter, _ = _parts_of(left[0])
            scope.sizes[letter] = len(items)
        return [self._nested(item, scope, left[1:]) for item in items]

    def missing(self, scope: Scope) -> Array:
        """The array of which nothing is known."""
        sizes = [scope.size(dimension) or 0 for dimension in self.shape]
        return np.full(sizes, np.nan if self.unknown is None else self.unknown)

    def _words(self) -> str:
        return f"{shape_words(self.shape)} numbers{_unit_of(self.quantity)}"


def shape_words(shape: Sequence[int | str]) -> str:
    """A shape as docstrings write it: "[k, 3n+2]"."""
    return f"[{', '.join(map(str, shape))}]"


@dataclass(frozen=True)
class Covariance(Form[Array]):
    """A covariance matrix: symmetric, without negative eigenvalues.

    Attributes:
        quantity: of its entries.
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


@dataclass(frozen=True)
class Measured(Form[float]):
    """A number with its unit: `{value: 0.5, unit: A}`.

    Attributes:
        quantity: unit and range.
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
    """A fitted value."""

    value: float
    std: float  # standard deviation, in the unit of the value
    source: str = ""  # the stage of the identification that found it


@dataclass(frozen=True)
class Estimate(Form[Estimated]):
    """A fitted number: `{value: 0.1, unit: N m/A, std: 0.001, source: current}`.

    Attributes:
        quantity: unit and range.
        sourced: whether the file has its source.
        chance: standard deviations by which a value whose range begins at zero may be
            negative, because noise may have it so.
        chance_of: the source whose values may be; empty for any.
        unbounded_if: (name, value) of a word of the scope with which a fit without
            constraints returns any number; None without one.
    """

    quantity: Quantity
    sourced: bool = True
    chance: float = CHANCE
    chance_of: str = ""
    unbounded_if: tuple[str, str] | None = None

    def _read(self, tree: YamlTree, scope: Scope) -> Estimated:
        known = ("value", "unit", "std", "source")[: 4 if self.sourced else 3]
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
        if self.unbounded_if is None:
            return self.quantity
        name, value = self.unbounded_if
        return (
            unbounded(self.quantity) if scope.words.get(name) == value else self.quantity
        )

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
        item: form of each.
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


# Sections: mappings with a table of keys.


class Missing(Enum):
    """What a key that the file does not have means."""

    REQUIRED = "required"  # the file is refused
    UNKNOWN = "unknown"  # an array (`Numbers`) of which nothing is known
    EMPTY = "empty"  # a section without keys


REQUIRED = Missing.REQUIRED
UNKNOWN = Missing.UNKNOWN
EMPTY = Missing.EMPTY


@dataclass(frozen=True)
class Key:
    """A key of a section.

    Attributes:
        name: in the file; one such as "<joint>" stands for the keys that the scope names.
        form: of the value; by name, if the keys of a placeholder have different ones.
        meaning: what it is, one line for the reference page.
        default: value where the file has no such key, or null. It is not written either,
            unless `always` is set.
        always: whether the default is written, too: only files of others, and of earlier
            versions, do not have the key.
        attribute: of the object, if its name is another one.
        binds: puts what further keys depend on into the scope.
        others: pattern of further keys that a placeholder stands for.
    """

    name: str
    form: Form[Any] | Mapping[str, Form[Any]]
    meaning: str
    default: Any = REQUIRED
    always: bool = False
    attribute: str = ""
    binds: Callable[[Any, Scope], None] | None = None
    others: str = ""

    @property
    def is_placeholder(self) -> bool:
        """Whether it stands for several keys."""
        return self.name.startswith("<")

    @property
    def place(self) -> str:
        """Name of the attribute that has the value."""
        return self.attribute or self.name

    def form_of(self, name: str) -> Form[Any]:
        """The form of one of the keys that it stands for."""
        return self.form if isinstance(self.form, Form) else self.form[name]

    def is_left_out(self, value: Any) -> bool:
        """Whether a value is not written."""
        if value is None:
            return True
        if self.always or isinstance(self.default, Missing):
            return False
        if isinstance(self.default, np.ndarray):
            return np.array_equal(value, self.default)
        return bool(value == self.default)


class Found(dict[str, Any]):
    """Values that were read from a section by the name of their attribute, with their nodes.

    The values of a placeholder are a dictionary by name.

    Args:
        tree: the section's node.
        scope: with what the section has bound.
    """

    def __init__(self, tree: YamlTree, scope: Scope) -> None:
        super().__init__()
        self.tree = tree
        self.scope = scope
        self.nodes: dict[str, YamlTree] = {}

    def refuse(self, name: str, problem: str) -> Exception:
        """An error at the key of this name."""
        return self.nodes.get(name, self.tree).refuse(problem)


def attributes(value: Any) -> Mapping[str, Any]:
    """The attributes of a dataclass by name."""
    return dict(vars(value))


@dataclass(frozen=True)
class Section(Form[T]):
    """A mapping with a table of keys, which stands for an object.

    Attributes:
        build: makes the object of what was read: a dataclass whose fields the keys name,
            or a function of what was `Found`, which also checks what several keys must
            fulfil together.
        keys: the table.
        parts: values by the name of their attribute; by default the object's attributes.
            The values of a placeholder are a mapping by name, or a sequence in the order
            of the names in the scope.
    """

    build: Callable[[Found], T] | type[T]
    keys: tuple[Key, ...]
    parts: Callable[[T], Mapping[str, Any]] = attributes

    def _read(self, tree: YamlTree, scope: Scope) -> T:
        scope = scope.inner()
        found = Found(tree, scope)
        names = [key.name for key in self.keys if not key.is_placeholder]
        for key in self.keys:
            if key.is_placeholder:
                names += scope.names.get(key.name, ())
        with Record(tree, names) as keys:
            for key in self.keys:
                if key.is_placeholder:
                    found[key.place] = self._read_several(key, keys, scope)
                    continue
                node = self._node(key, keys)
                if node is not None:
                    found.nodes[key.name] = node
                value = self._value(key, node, tree, scope)
                if key.binds is not None:
                    key.binds(value, scope)
                if not isinstance(key.form, Constant | Schema):
                    found[key.place] = value
        if isinstance(self.build, type):
            return cast(T, self.build(**found))
        return self.build(found)

    @staticmethod
    def _node(key: Key, keys: Record) -> YamlTree | None:
        return keys[key.name] if key.default is REQUIRED else keys.get(key.name)

    @staticmethod
    def _value(key: Key, node: YamlTree | None, tree: YamlTree, scope: Scope) -> Any:
        form = key.form_of(key.name)
        if node is not None:
            return form.read(node, scope)
        if key.default is UNKNOWN:
            assert isinstance(form, Numbers)
            return form.missing(scope)
        if key.default is EMPTY:
            return form.read(YamlTree.from_content({}, tree.origin), scope)
        return key.default

    @staticmethod
    def _read_several(key: Key, keys: Record, scope: Scope) -> dict[str, Any]:
        """Values of the keys that a placeholder stands for, by name."""
        known = scope.names[key.name]
        if key.default is REQUIRED:
            return {name: key.form_of(name).read(keys[name], scope) for name in known}
        values: dict[str, Any] = {}
        for name, child in keys.all().items():
            if name in known or (key.others and re.fullmatch(key.others, name)):
                keys.get(name)
                values[name] = key.form_of(name).read(child, scope)
        for name, child in keys.remaining().items():
            kind = key.name.strip("<>")
            words = with_suggestion(name, known)
            raise child.refuse(f"no {kind} '{excerpt(name)}', known: {words}")
        return values

    def _write(self, value: T, scope: Scope) -> dict[str, Any]:
        scope = scope.inner()
        parts = self.parts(value)
        out: dict[str, Any] = {}
        for key in self.keys:
            if isinstance(key.form, Constant | Schema):
                out[key.name] = key.form.write(None, scope)
                continue
            part: Any = parts.get(key.place)
            if key.binds is not None:
                key.binds(part, scope)
            if key.is_left_out(part):
                continue
            if not key.is_placeholder:
                out[key.name] = key.form_of(key.name).write(part, scope)
                continue
            if not isinstance(part, Mapping):
                part = dict(zip(scope.names[key.name], part, strict=True))
            for name, each in part.items():
                if each is not None:
                    out[name] = key.form_of(name).write(each, scope)
        return out

    def _words(self) -> str:
        return "mapping"


def unit(name: str) -> Key:
    """The key `unit` of a section whose numbers have one."""
    return Key("unit", Constant(name), "unit of the numbers")


def table_of(
    quantity: Quantity,
    placeholder: str,
    meaning: str,
    *,
    with_unit: bool = True,
    checked: bool = True,
) -> Section[Array]:
    """Numbers by name, such as one a joint: an array in the order of the names.

    Args:
        quantity: of each number.
        placeholder: what stands for the names.
        meaning: of a number.
        with_unit: whether the mapping has a key `unit`, too.
        checked: see `Number`.
    """
    numbers = Key(placeholder, Number(quantity, checked), meaning)
    keys = (unit(quantity.unit), numbers) if with_unit else (numbers,)

    def built(found: Found) -> Array:
        return np.array(list(found[placeholder].values()))

    return Section(built, keys, lambda values: {placeholder: values})


@dataclass(frozen=True)
class Variants(Form[T]):
    """A section that has other keys for other values of one of them.

    Attributes:
        key: that tells which; each section has it, too.
        sections: by its value.
    """

    key: str
    sections: Mapping[str, Section[T]]

    def _read(self, tree: YamlTree, scope: Scope) -> T:
        # its other keys are not known yet, so that none can be a slip
        node = tree.mapping().get(self.key)
        if node is None:
            raise tree.refuse(f"key '{self.key}' is missing")
        return self.sections[choice(self.sections)(node)].read(tree, scope)

    def _words(self) -> str:
        return "mapping"


# The reference page.


class Row(NamedTuple):
    """A line of the reference page."""

    key: str  # dotted, such as "bus.standby"
    content: str  # what the value is, with its unit
    limits: str  # range of numbers; empty without one
    needed: str  # "yes", or what stands for a missing key
    meaning: str


def rows(form: Form[Any], prefix: str = "") -> Iterator[Row]:
    """The keys of a format, those of its sections included, in the order of the file."""
    if isinstance(form, ListOf):
        yield from rows(form.item, f"{prefix[:-1]}[]." if prefix else "")
        return
    if isinstance(form, Variants):
        seen = set[Row]()
        for section in form.sections.values():
            for row in rows(section, prefix):
                if row not in seen:
                    seen.add(row)
                    yield row
        return
    if not isinstance(form, Section):
        return
    for key in form.keys:
        forms = {key.name: key.form} if isinstance(key.form, Form) else key.form
        for name, each in forms.items():
            place = f"{prefix}{name}"
            needed = _needed(key)
            yield Row(place, each.words(), each.limits(), needed, key.meaning)
            yield from rows(each, f"{place}.")


def _needed(key: Key) -> str:
    default = key.default
    if default is REQUIRED:
        return "yes"
    if isinstance(default, float) and np.isfinite(default):
        return f"else {default:g}"
    if isinstance(default, str) and default:
        return f"else {default}"
    return "no"
