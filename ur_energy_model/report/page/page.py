"""What the page of a report holds: tiles, and sections of charts and tables."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.report.charts.chart import Chart
from ur_energy_model.report.tables.table import Table
from ur_energy_model.report.verdict import ModelVerdict


@dataclass(frozen=True)
class Item:
    """A chart or table of a section.

    Attributes:
        content: the chart or table.
        recording: index of the recording it shows; None if it shows all of them.
    """

    content: Chart | Table
    recording: int | None = None


@dataclass(frozen=True)
class Section:
    """A chapter of the report.

    Attributes:
        key: its anchor.
        title: its heading.
        text: an introduction; "" for none.
        items: charts and tables in reading order.
    """

    key: str
    title: str
    text: str = ""
    items: tuple[Item, ...] = ()


@dataclass(frozen=True)
class Tile:
    """A key figure and what it means."""

    value: str
    text: str


@dataclass(frozen=True)
class Page:
    """The content of a report.

    Attributes:
        title: heading and window title.
        subtitle: the line below it.
        verdict: stands on top; None leaves it out.
        tiles: key figures.
        joint_names: of the arm.
        recordings: labels, which `Item.recording` is an index of.
        sections: chapters.
    """

    title: str
    subtitle: str
    verdict: ModelVerdict | None
    tiles: tuple[Tile, ...]
    joint_names: tuple[str, ...]
    recordings: tuple[str, ...]
    sections: tuple[Section, ...]
