"""YamlTree: a node of a YAML file, read as the type it must have; errors name line and key."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ur_energy_model.errors import InputError
from ur_energy_model.reading.yaml_nodes import (
    Entries,
    Items,
    Node,
    ReadingLimits,
    Scalar,
    UnreadableError,
    node_of,
    parse,
    read_bytes,
)

LIMITS = ReadingLimits()
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,29})")
_NOT_FINITE = {".nan", ".inf", "-.inf", "+.inf", "nan", "inf", "-inf", "+inf"}
_LOGICAL = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NULL = {"", "~", "null"}
_SHOWN = 60


@dataclass(frozen=True)
class Origin:
    """The file that is read, and the error for problems in it.

    Attributes:
        file: path.
        error: class of the error.
        remedy: what the user can do.
    """

    file: Path
    error: type[InputError]
    remedy: str

    def refusal(
        self, problem: str, line: int | None, key: str = "", remedy: str | None = None
    ) -> InputError:
        """Error for a place in the file."""
        place = "" if line is None else f"line {line}"
        if key:
            place = f"{place}: {excerpt(key)}" if place else excerpt(key)
        return self.error(self.file, problem, remedy or self.remedy, field=place or None)


@dataclass(frozen=True)
class YamlTree:
    """One node of a YAML file.

    Attributes:
        origin: the file.
        node: its content.
        key: dotted key of the node, "" for the root.
        key_line: line of its key.
    """

    origin: Origin
    node: Node
    key: str = ""
    key_line: int | None = None

    @classmethod
    def read(
        cls, path: str | Path, error: type[InputError], remedy: str, limits: ReadingLimits = LIMITS
    ) -> YamlTree:
        """Root of a YAML file, which must be a mapping.

        Raises:
            InputError: (of class `error`) the file is unreadable, not plain YAML or beyond the
                limits.
        """
        origin = Origin(Path(path), error, remedy)
        try:
            tree = cls(origin, parse(read_bytes(origin.file, limits), limits))
        except OSError as cause:
            raise error(path, f"cannot be read ({cause.strerror})", "check the path") from None
        except UnreadableError as cause:
            raise origin.refusal(cause.problem, cause.line) from None
        tree.mapping()
        return tree

    @classmethod
    def from_content(cls, content: dict[str, Any], origin: Origin) -> YamlTree:
        """Root of plain data from a file of another format."""
        return cls(origin, node_of(content))

    def refuse(self, problem: str, remedy: str | None = None) -> InputError:
        """Error that names this node's line and key."""
        return self.origin.refusal(problem, self.node.line, self.key, remedy)

    @property
    def is_null(self) -> bool:
        """Whether this is an explicit null."""
        node = self.node
        return isinstance(node, Scalar) and node.plain and node.text.lower() in _NULL

    @property
    def is_scalar(self) -> bool:
        """Whether this is a single value."""
        return isinstance(self.node, Scalar)

    def mapping(self) -> dict[str, YamlTree]:
        """Children by key, in order."""
        if not isinstance(self.node, Entries):
            raise self.refuse("must be a mapping of keys to values")
        out: dict[str, YamlTree] = {}
        for key, value in self.node.values:
            if not isinstance(key, Scalar):
                raise self.origin.refusal("a key must be plain text", key.line, self.key)
            if key.text in out:
                problem = f"key '{excerpt(key.text)}' occurs twice"
                raise self.origin.refusal(problem, key.line, self.key)
            dotted = f"{self.key}.{key.text}" if self.key else key.text
            out[key.text] = YamlTree(self.origin, value, dotted, key.line)
        return out

    def items(self, length: int | None = None) -> list[YamlTree]:
        """Elements of a list; of the given length, if any."""
        if not isinstance(self.node, Items):
            raise self.refuse("must be a list")
        if length is not None and len(self.node.values) != length:
            raise self.refuse(f"has {len(self.node.values)} values, {length} are needed")
        return [
            YamlTree(self.origin, child, f"{self.key}[{i}]", self.key_line)
            for i, child in enumerate(self.node.values)
        ]

    def written(self) -> str:
        """The characters of a single value, of any type."""
        return self._scalar().text

    def text(self) -> str:
        """Text; numbers, and words such as `no`, must be quoted."""
        node = self._scalar()
        if node.plain and not isinstance(_meaning(node.text), str):
            raise self.refuse(f"{excerpt(node.text) or 'nothing'} must be text, put it in quotes")
        return node.text

    def number(self) -> float:
        """Finite number, also `1e-5`, which is text in YAML 1.1."""
        value = self._plain_value()
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._wrong("is not a number")
        if not math.isfinite(value):
            self._wrong("is not a finite number")
        return float(value)

    def integer(self) -> int:
        """Whole number."""
        value = self._plain_value()
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong("must be a whole number")
        return value

    def plain(self) -> Any:
        """Whole subtree as dicts, lists and plain values."""
        if isinstance(self.node, Entries):
            return {name: child.plain() for name, child in self.mapping().items()}
        if isinstance(self.node, Items):
            return [child.plain() for child in self.items()]
        value = self._plain_value()
        if isinstance(value, float) and not math.isfinite(value):
            self._wrong("is not a finite number")
        return value

    def _scalar(self) -> Scalar:
        if not isinstance(self.node, Scalar):
            raise self.refuse("must be a single value")
        return self.node

    def _plain_value(self) -> Any:
        """Text, integer, float (possibly not finite), boolean or None."""
        node = self._scalar()
        return _meaning(node.text) if node.plain else node.text

    def _wrong(self, problem: str) -> NoReturn:
        node = self._scalar()
        value = excerpt(node.text) if node.plain else f"'{excerpt(node.text)}'"
        raise self.refuse(f"{value or 'nothing'} {problem}")


def excerpt(text: str) -> str:
    """Text for a message: short, and without control characters."""
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    return text if text.isprintable() else repr(text)[1:-1]


def _meaning(text: str) -> Any:
    """Value of a plain scalar."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if len(text) < _SHOWN and _NUMBER.fullmatch(text):
        return float(text)
    low = text.lower()
    if low in _NOT_FINITE:
        return math.nan if "nan" in low else math.inf
    if low in _NULL:
        return None
    return _LOGICAL.get(low, text)
