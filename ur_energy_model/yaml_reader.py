# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""YAML files that people edit: parsed in bounded memory, refused with the line to fix."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import yaml

from ur_energy_model.errors import InputError, closest
from ur_energy_model.files import open_regular
from ur_energy_model.typing import Array, Self

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser if PyYAML includes it: twenty times faster."""


@dataclass(frozen=True)
class ReadingLimits:
    """Limits of a file: the bound against files that take memory or time.

    Attributes:
        size: bytes of the file.
        values: values, keys included.
        depth: levels of nesting.
    """

    size: int = 4_000_000
    values: int = 100_000
    depth: int = 20


LIMITS = ReadingLimits()


@dataclass(frozen=True)
class Origin:
    """The file that is read, and how problems in it are reported.

    Attributes:
        file: path of the file.
        error: class of errors for problems in it.
        remedy: what the user can do.
    """

    file: Path
    error: type[InputError]
    remedy: str

    def refusal(
        self,
        problem: str,
        line: int | None = None,
        key: str = "",
        remedy: str | None = None,
    ) -> InputError:
        """Error for a place in the file.

        Args:
            problem: what is wrong.
            line: of the problem, None if it is the whole file.
            key: dotted key of the value, "" if there is none.
            remedy: what the user can do, None for the usual one.
        """
        places: list[str] = []
        if line is not None:
            places.append(f"line {line}")
        if key:
            places.append(excerpt(key))
        place = ": ".join(places) or None
        return self.error(self.file, problem, remedy or self.remedy, field=place)

    def content(self, limits: ReadingLimits = LIMITS) -> bytes:
        """Content of the file; refuses a large one, devices, pipes and folders."""
        try:
            with open_regular(self.file) as file:
                raw = file.read(limits.size + 1)
        except OSError as error:
            problem = f"cannot be read ({error.strerror})"
            raise self.error(self.file, problem, "check the path") from None
        if len(raw) > limits.size:
            raise self.refusal(f"is larger than {limits.size} bytes")
        return raw


# Nodes of a YAML text with their lines, parsed in bounded time and memory. Only plain
# data is accepted: mappings, lists and scalars. Tags, anchors and aliases (which can
# expand a few lines to gigabytes), a second document and duplicate keys are refused.


class YamlNode(NamedTuple):
    """A value of a YAML text.

    Attributes:
        line: line of the value in the file; None without a file.
        value: text, items of a list, or keys and values of a mapping in the order of the
            file.
        plain: whether a text is not quoted, so that it may be a number.
    """

    line: int | None
    value: str | list[YamlNode] | tuple[tuple[YamlNode, YamlNode], ...]
    plain: bool = False

    @classmethod
    def of(cls, value: Any) -> YamlNode:
        """Value of plain data."""
        if isinstance(value, dict):
            items = tuple((cls.of(key), cls.of(each)) for key, each in value.items())
            return cls(None, items)
        if isinstance(value, list):
            return cls(None, [cls.of(each) for each in value])
        if isinstance(value, str):
            return cls(None, value)
        return cls(None, "null" if value is None else repr(value), plain=True)


def _parse(raw: bytes, origin: Origin, limits: ReadingLimits) -> YamlNode:
    """Root node of a YAML text; refuses what is not plain YAML, or beyond the limits."""
    if b"\0" in raw:
        raise origin.refusal("is not UTF-8 text")
    if b"%TAG" in raw:  # libyaml compares each of these lines with all before it
        where = raw[: raw.index(b"%TAG")].count(b"\n") + 1
        raise origin.refusal("tag directives are not accepted", where)
    try:
        return _build(yaml.parse(raw, Loader=_LOADER), origin, limits)
    except yaml.reader.ReaderError as error:
        where = raw[: error.position].count(b"\n") + 1
        raise origin.refusal(f"is not YAML ({error.reason})", where) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        last = raw.rstrip().count(b"\n")
        # at the end: the cause is an unclosed structure
        if mark is not None and mark.line > last:
            mark = getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        line = None if mark is None else mark.line + 1
        raise origin.refusal(f"is not YAML ({problem})", line) from None


def _build(events: Iterator[Any], origin: Origin, limits: ReadingLimits) -> YamlNode:
    """Tree of an event stream, built with stacks instead of recursion.

    Raises:
        InputError: the text is no plain data, or beyond the limits.
    """
    # Of each mapping and list that has begun: its children so far, keys and values in
    # turn; its line, and whether it is a list. The first children are the root.
    open_lists: list[list[YamlNode]] = [[]]
    starts: list[tuple[int, bool]] = []
    values = 0
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            children = open_lists.pop()
            line, is_list = starts.pop()
            pairs = tuple(zip(children[::2], children[1::2], strict=False))
            open_lists[-1].append(YamlNode(line, children if is_list else pairs))
            continue
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent) and open_lists[0]:
            raise origin.refusal("contains a second document", line)
        if not isinstance(event, yaml.NodeEvent):
            continue
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            problem = "anchors and aliases are not accepted, write the values out"
            raise origin.refusal(problem, line)
        # "!" marks as text; some writers add it to quoted text
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            raise origin.refusal("tags are not accepted", line)
        values += 1
        if values > limits.values:
            raise origin.refusal(f"contains more than {limits.values} values", line)
        if isinstance(event, yaml.ScalarEvent):
            plain = not event.style and tag is None
            open_lists[-1].append(YamlNode(line, event.value, plain))
            continue
        if len(starts) == limits.depth:
            raise origin.refusal(f"is nested deeper than {limits.depth} levels", line)
        starts.append((line, isinstance(event, yaml.SequenceStartEvent)))
        open_lists.append([])
    if not open_lists[0]:
        raise origin.refusal("is empty")
    return open_lists[0][0]


# YamlTree: a node of a YAML file, read as the type it must have; errors name line and
# key.

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
_SHOWN = 60  # most characters of a text in a message


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
            path: of the file.
            error: class of errors for problems in the file.
            remedy: what the user can do about them.
            limits: of the file.

        Raises:
            InputError: (of class `error`) the file is unreadable, not plain YAML or
                beyond the limits.
        """
        origin = Origin(Path(path), error, remedy)
        tree = cls(origin, _parse(origin.content(limits), origin, limits))
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

    def plain(self) -> Any:
        """Whole subtree as dicts, lists and plain values."""
        if isinstance(self.node.value, tuple):
            return {name: child.plain() for name, child in self.mapping().items()}
        if isinstance(self.node.value, list):
            return [child.plain() for child in self.items()]
        value = self._meaning()
        if isinstance(value, float) and not math.isfinite(value):
            raise self._wrong("is not a finite number")
        return value

    def _meaning(self) -> Any:
        """Text, integer, float (possibly not finite), boolean or None of a single value."""
        text = self.written()
        if not self.node.plain:
            return text
        if _WHOLE.fullmatch(text):
            return int(text)
        if len(text) < _SHOWN and _NUMBER.fullmatch(text):
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


def excerpt(text: str) -> str:
    """Text for a message: short, and without control characters."""
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    return text if text.isprintable() else repr(text)[1:-1]


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
        node: of the key `schema`.
        newest: the version that is read.
    """
    number = node.integer()
    if number == newest:
        return
    problem = (
        f"schema {number} cannot be read by this version, which reads schema {newest}"
    )
    raise node.refuse(problem, "update ur_energy_model" if number > newest else None)


SMALLEST = 1e-9  # of a positive quantity, in its unit


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
        shape: of the arrays.
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
