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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from ur_energy_model.forms import Constant, Form, ListOf, Number, Numbers, Schema, Scope
from ur_energy_model.typing import Array
from ur_energy_model.yaml_nodes import excerpt
from ur_energy_model.yaml_reader import (
    Quantity,
    Record,
    YamlTree,
    choice,
    with_suggestion,
)

T = TypeVar("T")


class Missing(Enum):
    """What it means that a file does not have a key."""

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
        name: name in the file; a name such as "<joint>" stands for the keys that the
            scope names.
        form: form of the value; by name, if the keys of a placeholder have different
            forms.
        meaning: what it is, one line for the reference page.
        default: value where the file has no such key, or null. It is not written either,
            unless `always` is set.
        always: whether the default is written, too: only files of other programs and of
            earlier versions lack the key.
        attribute: name of the attribute of the object, "" if the key has the same name.
        binds: adds what further keys depend on to the scope, given the value.
        others: pattern of further keys that a placeholder stands for, "" if there are
            none.
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
        """Whether the name, such as "<joint>", stands for several keys."""
        return self.name.startswith("<")

    @property
    def place(self) -> str:
        """Name of the attribute that has the value."""
        return self.attribute or self.name

    def form_of(self, name: str) -> Form[Any]:
        """The form of the value, given the name of the key in the file."""
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
        scope: scope with the values that the section has bound.
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
        names: list[str] = []
        for key in self.keys:
            names += scope.names.get(key.name, ()) if key.is_placeholder else [key.name]
        with Record(tree, names) as keys:
            for key in self.keys:
                if key.is_placeholder:
                    found[key.place] = self._read_several(key, keys, scope)
                else:
                    self._read_single(key, keys, found)
        if isinstance(self.build, type):
            return cast(T, self.build(**found))
        return self.build(found)

    def _read_single(self, key: Key, keys: Record, found: Found) -> None:
        """Read one key: its value, its node and what it adds to the scope."""
        if key.default is REQUIRED:
            node: YamlTree | None = keys[key.name]
        else:
            node = keys.get(key.name)
        if node is not None:
            found.nodes[key.name] = node
        value = self._value(key, node, found.tree, found.scope)
        if key.binds is not None:
            key.binds(value, found.scope)
        if not isinstance(key.form, Constant | Schema):
            found[key.place] = value

    @staticmethod
    def _value(key: Key, node: YamlTree | None, tree: YamlTree, scope: Scope) -> Any:
        """Value of a key at its node, or what stands for the key where the file lacks it."""
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
            part = parts.get(key.place)
            if key.binds is not None:
                key.binds(part, scope)
            if key.is_left_out(part):
                continue
            if key.is_placeholder:
                out |= self._written_several(key, part, scope)
            else:
                out[key.name] = key.form_of(key.name).write(part, scope)
        return out

    @staticmethod
    def _written_several(key: Key, values: Any, scope: Scope) -> dict[str, Any]:
        """Contents of the keys that a placeholder stands for, by name.

        Args:
            key: the placeholder.
            values: values by name, or in the order of the names in the scope; None is
                left out.
            scope: scope that has these names.
        """
        named = values
        if not isinstance(values, Mapping):
            named = dict(zip(scope.names[key.name], values, strict=True))
        contents: dict[str, Any] = {}
        for name, value in named.items():
            if value is not None:
                contents[name] = key.form_of(name).write(value, scope)
        return contents

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
    """The form of numbers by name, such as one a joint: an array in the order of the names.

    Args:
        quantity: quantity of each number.
        placeholder: what stands for the names.
        meaning: meaning of a number.
        with_unit: whether the mapping has a key `unit`, too.
        checked: see `Number`.
    """
    numbers = Key(placeholder, Number(quantity, checked), meaning)
    keys = (unit(quantity.unit), numbers) if with_unit else (numbers,)

    def built(found: Found) -> Array:
        """The array [names] of the numbers that were read."""
        return np.array(list(found[placeholder].values()))

    def parts(values: Array) -> Mapping[str, Any]:
        """The numbers [names] for writing."""
        return {placeholder: values}

    return Section(built, keys, parts)


@dataclass(frozen=True)
class Variants(Form[T]):
    """A section whose keys depend on the value of one of them, such as the kind of a law.

    Attributes:
        key: name of the key that decides; each of the sections has it, too.
        sections: sections by the value of the key.
    """

    key: str
    sections: Mapping[str, Section[T]]

    def _read(self, tree: YamlTree, scope: Scope) -> T:
        # A Record would take the other keys of the section for misspelt ones.
        node = tree.mapping().get(self.key)
        if node is None:
            raise tree.refuse(f"key '{self.key}' is missing")
        variant = choice(self.sections)(node)
        return self.sections[variant].read(tree, scope)

    def _words(self) -> str:
        return "mapping"


# The reference page.


class Row(NamedTuple):
    """A line of the reference page.

    Attributes:
        key: dotted, such as "bus.standby".
        content: what the value is, with its unit.
        limits: range of numbers; "" without one.
        needed: "yes", or what stands for a missing key.
        meaning: meaning of the key.
    """

    key: str
    content: str
    limits: str
    needed: str
    meaning: str


def rows(form: Form[Any], prefix: str = "") -> Iterator[Row]:
    """The keys of a format, the keys of its sections included, in the order of the file.

    Args:
        form: form of the file, or of one of its keys.
        prefix: dotted key of the form with a dot at the end; "" for a file.
    """
    if isinstance(form, ListOf):
        of_item = f"{prefix.removesuffix('.')}[]." if prefix else ""
        yield from rows(form.item, of_item)
    elif isinstance(form, Variants):
        seen = set[Row]()
        for section in form.sections.values():
            for row in rows(section, prefix):
                if row not in seen:
                    seen.add(row)
                    yield row
    elif isinstance(form, Section):
        for key in form.keys:
            forms = {key.name: key.form} if isinstance(key.form, Form) else key.form
            for name, inner in forms.items():
                place = f"{prefix}{name}"
                needed = _needed(key)
                yield Row(place, inner.words(), inner.limits(), needed, key.meaning)
                yield from rows(inner, f"{place}.")


def _needed(key: Key) -> str:
    """Whether a file must have a key: "yes", what stands for it otherwise, or "no"."""
    default = key.default
    if default is REQUIRED:
        return "yes"
    if isinstance(default, float) and np.isfinite(default):
        return f"else {default:g}"
    if isinstance(default, str) and default:
        return f"else {default}"
    return "no"
