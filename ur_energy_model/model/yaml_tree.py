"""Strict reading of small YAML files: every refusal names the line and key to mend.

Only plain data is accepted: no tags, no anchors or aliases (so that a few lines cannot grow into
gigabytes), no duplicate keys, no NaN or infinity, bounded size and depth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from ur_energy_model.errors import InputError

MAX_BYTES = 4_000_000
MAX_DEPTH = 20
_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")}


class YamlTree:
    """One node of a YAML file, with the place it stands at.

    Args:
        file: path, for messages.
        node: the parsed node.
        key: dotted key of the node, "" for the root.
        error: kind of error to raise.
        remedy: what the user can do about a malformed file.
    """

    def __init__(
        self, file: Path, node: yaml.Node, key: str, error: type[InputError], remedy: str
    ) -> None:
        self.file, self.node, self.key = file, node, key
        self._error, self._remedy = error, remedy

    @classmethod
    def read(cls, path: str | Path, error: type[InputError], remedy: str) -> YamlTree:
        """Root of a YAML file, which must be a mapping.

        Raises:
            InputError: of the given kind, where the file is unreadable or no plain YAML.
        """
        path = Path(path)
        try:
            raw = path.read_bytes()
        except OSError as cause:
            raise error(path, f"cannot be read ({cause.strerror})", "check the path") from cause
        if len(raw) > MAX_BYTES:
            raise error(path, f"has {len(raw)} bytes, more than {MAX_BYTES}", remedy)
        try:
            _refuse_aliases(raw, path, error, remedy)
            node = yaml.compose(raw, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as cause:
            mark = getattr(cause, "problem_mark", None)
            place = None if mark is None else f"line {mark.line + 1}"
            problem = getattr(cause, "problem", None) or "cannot be parsed"
            raise error(path, f"is not YAML ({problem})", remedy, field=place) from cause
        if node is None:
            raise error(path, "is empty", remedy)
        tree = cls(path, node, "", error, remedy)
        tree.mapping()
        return tree

    def refuse(self, problem: str) -> InputError:
        """Error that names this node's line and key."""
        place = f"line {self.node.start_mark.line + 1}"
        if self.key:
            place = f"{place}: {self.key}"
        return self._error(self.file, problem, self._remedy, field=place)

    def mapping(self) -> dict[str, YamlTree]:
        """Children by key, in order."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.refuse("must be a mapping of keys to values")
        out: dict[str, YamlTree] = {}
        for key_node, value in self.node.value:
            key = YamlTree(self.file, key_node, self.key, self._error, self._remedy)
            name = key.text()
            if name in out:
                raise key.refuse(f"key '{name}' stands twice")
            dotted = f"{self.key}.{name}" if self.key else name
            out[name] = YamlTree(self.file, value, dotted, self._error, self._remedy)
        return out

    def keys(self, *required: str, optional: tuple[str, ...] = ()) -> dict[str, YamlTree]:
        """Children of a mapping that must have these keys and no others."""
        children = self.mapping()
        for name, child in children.items():
            if name not in required and name not in optional:
                known = ", ".join((*required, *optional))
                raise child.refuse(f"unknown key '{name}' (known here: {known})")
        for name in required:
            if name not in children:
                raise self.refuse(f"key '{name}' is missing")
        return children

    def items(self) -> list[YamlTree]:
        """Children of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.refuse("must be a list")
        return [
            YamlTree(self.file, child, f"{self.key}[{i}]", self._error, self._remedy)
            for i, child in enumerate(self.node.value)
        ]

    def scalar(self) -> Any:
        """Plain value: text, integer, float, boolean or None."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag not in _PLAIN_TAGS:
            raise self.refuse("must be a plain value")
        try:
            value = yaml.SafeLoader("").construct_object(self.node)
        except (ValueError, yaml.YAMLError) as cause:
            raise self.refuse("cannot be read as a value") from cause
        if isinstance(value, float) and not math.isfinite(value):
            raise self.refuse(f"{value} is not a finite number")
        return value

    @property
    def is_null(self) -> bool:
        """Whether this is an explicit null."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag.endswith(":null")

    def text(self) -> str:
        """Text."""
        value = self.scalar()
        if not isinstance(value, str):
            raise self.refuse(f"{value!r} must be text")
        return value

    def number(self) -> float:
        """Finite number. `1e-5`, which YAML 1.1 reads as text, is one too."""
        value = self.scalar()
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise self.refuse(f"'{value}' is not a number") from None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(f"{value!r} is not a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.refuse(f"{value} is not a finite number")
        return number

    def integer(self) -> int:
        """Whole number."""
        value = self.number()
        if value != int(value):
            raise self.refuse(f"{value} must be a whole number")
        return int(value)

    def numbers(self, length: int | None = None) -> list[float]:
        """List of finite numbers, of this length where one is given."""
        values = [child.number() for child in self.items()]
        if length is not None and len(values) != length:
            raise self.refuse(f"has {len(values)} values, {length} are needed")
        return values

    def covariance(self, size: int, *, optional: bool = False) -> NDArray[np.float64]:
        """Covariance matrix [size, size], or one without rows where it is optional."""
        rows = [row.numbers() for row in self.items()]
        square = len(rows) == size and all(len(row) == size for row in rows)
        if not (square or (optional and not rows)):
            end = ", or []" if optional else ""
            raise self.refuse(f"must be {size} rows of {size} numbers{end}")
        matrix = np.array(rows).reshape((len(rows),) * 2)
        if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=0.0) or (
            rows and np.linalg.eigvalsh(matrix)[0] < -1e-6 * np.abs(matrix).max()
        ):
            raise self.refuse("is not a covariance matrix")
        return matrix

    def plain(self, depth: int = 0) -> Any:
        """Whole subtree as dicts, lists and plain values."""
        if depth > MAX_DEPTH:
            raise self.refuse(f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(self.node, yaml.MappingNode):
            return {name: child.plain(depth + 1) for name, child in self.mapping().items()}
        if isinstance(self.node, yaml.SequenceNode):
            return [child.plain(depth + 1) for child in self.items()]
        return self.scalar()


def _refuse_aliases(raw: bytes, path: Path, error: type[InputError], remedy: str) -> None:
    """Refuse anchors, aliases and excessive depth before anything is built from them."""
    depth = 0
    for event in _events(raw):
        place = None if event.start_mark is None else f"line {event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise error(path, "anchors and aliases are not accepted", remedy, field=place)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise error(path, f"is nested deeper than {MAX_DEPTH}", remedy, field=place)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _events(raw: bytes) -> Iterator[yaml.Event]:
    yield from yaml.parse(raw, Loader=yaml.SafeLoader)
