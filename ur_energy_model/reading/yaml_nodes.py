"""Nodes of a YAML text with their lines, parsed in bounded time and memory.

Only plain data is accepted: mappings, lists and scalars. Tags, anchors and aliases (which can
expand a few lines to gigabytes), a second document and duplicate keys are refused. The limits:

| | files of this package | metadata.yaml of a bag |
|---|---|---|
| size | 4 MB | 16 MB |
| values, keys included | 100 000 | 200 000 |
| levels | 20 | 20 |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ur_energy_model.files import open_regular

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser if PyYAML includes it: twenty times faster."""


@dataclass(frozen=True)
class ReadingLimits:
    """Largest size of a file in bytes, values (keys included) and levels."""

    size: int = 4_000_000
    values: int = 100_000
    depth: int = 20


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text of a scalar and its line (None without a file); a plain scalar may be a number."""

    line: int | None
    text: str
    plain: bool


@dataclass(frozen=True, slots=True)
class Items:
    """A list and its line."""

    line: int | None
    values: list[Node]


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping and its line; keys are in the order of the file."""

    line: int | None
    values: list[tuple[Node, Node]]


Node = Scalar | Items | Entries


class UnreadableError(Exception):
    """A text that cannot be read.

    Attributes:
        problem: what is wrong.
        line: of the problem; None if it has none.
    """

    def __init__(self, problem: str, line: int | None = None) -> None:
        self.problem, self.line = problem, line
        super().__init__(problem)


def read_bytes(path: Path, limits: ReadingLimits) -> bytes:
    """Content of a regular file of bounded size.

    Raises:
        OSError: the file cannot be read, or is a device, a pipe or a folder.
        UnreadableError: too large.
    """
    with open_regular(path) as file:
        raw = file.read(limits.size + 1)
    if len(raw) > limits.size:
        raise UnreadableError(f"is larger than {limits.size} bytes")
    return raw


def parse(raw: bytes, limits: ReadingLimits) -> Node:
    """Root node of a YAML text.

    Raises:
        UnreadableError: not plain YAML, or beyond the limits.
    """
    if b"\0" in raw:
        raise UnreadableError("is not UTF-8 text")
    if b"%TAG" in raw:  # libyaml compares each of these lines with all before it
        where = raw[: raw.index(b"%TAG")].count(b"\n") + 1
        raise UnreadableError("tag directives are not accepted", where)
    try:
        return _build(_events(raw), limits)
    except yaml.reader.ReaderError as error:
        where = raw[: error.position].count(b"\n") + 1
        raise UnreadableError(f"is not YAML ({error.reason})", where) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        last = raw.rstrip().count(b"\n")
        if mark is not None and mark.line > last:  # at the end: the cause is an unclosed structure
            mark = getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        line = None if mark is None else mark.line + 1
        raise UnreadableError(f"is not YAML ({problem})", line) from None


def node_of(value: Any) -> Node:
    """Node of plain data."""
    if isinstance(value, dict):
        return Entries(None, [(node_of(key), node_of(each)) for key, each in value.items()])
    if isinstance(value, list):
        return Items(None, [node_of(each) for each in value])
    if isinstance(value, str):
        return Scalar(None, value, plain=False)
    return Scalar(None, "null" if value is None else repr(value), plain=True)


def _events(raw: bytes) -> Iterator[Any]:
    yield from yaml.parse(raw, Loader=_LOADER)


def _build(events: Iterator[Any], limits: ReadingLimits) -> Node:
    """Tree of an event stream, built with a stack instead of recursion."""
    root: list[Node] = []
    open_lists: list[list[Node]] = [root]
    starts: list[tuple[int | None, bool]] = []
    values = 0
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            children = open_lists.pop()
            line, is_list = starts.pop()
            pairs = zip(children[::2], children[1::2], strict=True) if not is_list else ()
            open_lists[-1].append(Items(line, children) if is_list else Entries(line, list(pairs)))
            continue
        if isinstance(event, yaml.DocumentStartEvent) and root:
            raise UnreadableError("contains a second document", _line(event))
        if not isinstance(event, yaml.NodeEvent):
            continue
        line_number = _line(event)
        _check_plain(event, line_number)
        values += 1
        if values > limits.values:
            raise UnreadableError(f"contains more than {limits.values} values", line_number)
        if isinstance(event, yaml.ScalarEvent):
            plain = not event.style and event.tag is None
            open_lists[-1].append(Scalar(line_number, event.value, plain))
            continue
        if len(starts) == limits.depth:
            raise UnreadableError(f"is nested deeper than {limits.depth} levels", line_number)
        starts.append((line_number, isinstance(event, yaml.SequenceStartEvent)))
        open_lists.append([])
    if not root:
        raise UnreadableError("is empty")
    return root[0]


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _check_plain(event: Any, line: int) -> None:
    """Refuse anchors, aliases and tags."""
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise UnreadableError("anchors and aliases are not accepted, write the values out", line)
    # "!" marks a scalar as text; some writers add it to quoted text
    if event.tag is not None and not (isinstance(event, yaml.ScalarEvent) and event.tag == "!"):
        raise UnreadableError("tags are not accepted", line)
