"""Record: a mapping in a file, read key by key, that refuses unknown keys.

    with Record(tree) as keys: ...

A key is known once the block has asked for it. At the end of the block, an unknown key is refused
with a suggestion of the most similar known key, so a misspelt key is never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from types import TracebackType
from typing import TypeVar

from ur_energy_model.errors import InputError
from ur_energy_model.reading.yaml_tree import YamlTree, excerpt

T = TypeVar("T")
D = TypeVar("D")
Reader = Callable[[YamlTree], T]
"""Reads a value from a node of a file; raises InputError for one that it does not accept."""

_MOST_NAMED = 30
"""Most keys that a message lists."""


class Record:
    """A mapping that is being read.

    Args:
        tree: its node.

    Raises:
        InputError: not a mapping; at the end of the block, an unknown key.
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
        # A misspelt key is the likely cause; keys that are read later are less similar than that.
        for slip in get_close_matches(name, self._unread(), n=1, cutoff=0.75):
            raise self._unknown(slip)
        raise self._tree.refuse(f"key '{excerpt(name)}' is missing")

    def read(self, name: str, reader: Reader[T], default: D) -> T | D:
        """Value of an optional key; the default if it is missing or null."""
        child = self.get(name)
        return default if child is None else reader(child)

    def expect(self, names: Iterable[str]) -> None:
        """Declare similar keys, such as joint names, so that none is taken for a misspelt one."""
        self._known.update(dict.fromkeys(names))

    def remaining(self) -> dict[str, YamlTree]:
        """Nodes of all keys not read yet, for mappings whose keys are names."""
        out = {name: self._children[name] for name in self._unread()}
        self._known.update(dict.fromkeys(out))
        return out

    def schema(self, newest: int, default: int | None = None) -> None:
        """Check the key `schema`; files of a later version are refused.

        Args:
            newest: schema that this version reads.
            default: schema of files without the key; None makes the key required.
        """
        node = self["schema"] if default is None else self.get("schema")
        number = default if node is None else node.integer()
        if number == newest or node is None:
            return
        problem = f"schema {number} cannot be read by this version, which reads schema {newest}"
        newer = number is not None and number > newest
        raise node.refuse(problem, "update ur_energy_model" if newer else None)

    def _unread(self) -> list[str]:
        return [name for name in self._children if name not in self._known]

    def _unknown(self, name: str) -> InputError:
        child = self._children[name]
        absent = [each for each in self._known if each not in self._children]
        like = get_close_matches(name, absent or list(self._known), n=1, cutoff=0.6)
        known = ", ".join(excerpt(name) for name in list(self._known)[:_MOST_NAMED])
        hint = f"did you mean '{excerpt(like[0])}'?" if like else f"known here: {known}"
        return self._tree.origin.refusal(
            f"unknown key '{excerpt(name)}' ({hint})", child.key_line, child.key
        )
