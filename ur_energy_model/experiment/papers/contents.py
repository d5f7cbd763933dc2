"""Tables and figures of the papers: config/papers.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.errors import InputError
from ur_energy_model.reading.readers import text
from ur_energy_model.reading.record import Record
from ur_energy_model.reading.yaml_tree import YamlTree
from ur_energy_model.resources import config_file

SCHEMA = 1


@dataclass(frozen=True)
class Item:
    """A table, figure or section of a paper.

    Attributes:
        place: as the paper calls it, such as "Table V".
        shows: what it shows.
        reason: why nothing can be obtained for it; "" if something can.
    """

    place: str
    shows: str
    reason: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper and everything it shows.

    Attributes:
        key: protocol, "s0" to "s4".
        title: of the paper.
        source: authors, journal, DOI.
        items: in the order of the paper.
    """

    key: str
    title: str
    source: str
    items: tuple[Item, ...]


def papers(path: Path | None = None) -> tuple[Paper, ...]:
    """The papers in order.

    Args:
        path: of the file; None for the one in the package.

    Raises:
        InputError: the file is damaged; names its line.
    """
    path = config_file("papers.yaml") if path is None else path
    root = YamlTree.read(path, InputError, "correct the line or restore the file")
    with Record(root) as keys:
        keys.schema(SCHEMA)
        return tuple(_paper(tree) for tree in keys["papers"].items())


def _paper(tree: YamlTree) -> Paper:
    with Record(tree) as keys:
        items = tuple(_item(each) for each in keys["items"].items())
        return Paper(text(keys["key"]), text(keys["title"]), text(keys["source"]), items)


def _item(tree: YamlTree) -> Item:
    with Record(tree) as keys:
        return Item(text(keys["place"]), text(keys["shows"]), keys.read("reason", text, ""))
