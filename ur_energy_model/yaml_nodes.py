# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plain data of YAML files: parsed in bounded memory and time, with the line of each value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ur_energy_model.errors import InputError
from ur_energy_model.files import open_regular

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser if PyYAML includes it: twenty times faster."""
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""libyaml's emitter if PyYAML includes it: four times faster."""
LONGEST_SHOWN = 60  # most characters of a text in a message


def excerpt(text: str) -> str:
    """Text for a message: short, and without control characters."""
    text = text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."
    return text if text.isprintable() else repr(text)[1:-1]


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
            line: line of the problem; None if it is the whole file.
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


def parse_yaml(raw: bytes, origin: Origin, limits: ReadingLimits) -> YamlNode:
    """Root node of a YAML text.

    Args:
        raw: the text.
        origin: the file, for errors.
        limits: limits of the text.

    Raises:
        InputError: (of the class of the origin) the text is not plain YAML, or beyond the
            limits.
    """
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
