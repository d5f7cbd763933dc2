# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The content of a page: tiles, sections, charts and tables, and texts of figures for people.

A page is described with `Page`, `PageSection`, `Table` and the charts of `report.chart`;
`report.render` makes the HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.tariff import JOULES_PER_KWH
from ur_energy_model.report.chart import Chart
from ur_energy_model.report.verdict import ModelVerdict


@dataclass(frozen=True)
class Lock:
    """A cell with a box to tick: whether a step of a cycle stays as it is.

    Attributes:
        step: number of the step, from 1.
        kept: whether the box is ticked at first.
    """

    step: int
    kept: bool


Cell = str | float | Lock | None


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is its name.

    Numbers of a column are shown with the same decimals, so that the largest number has four
    digits.

    Attributes:
        title: heading.
        columns: headings of the columns; no head if all are empty.
        rows: cells of each row, as many as there are columns.
        note: how to read the table, in sentences; no note if empty.
        command: command that computes the table anew, shown in the note; the options of
            ticked locks are appended.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    command: str = ""


@dataclass(frozen=True)
class Markup:
    """HTML that a chapter has made itself, such as a flame graph.

    Attributes:
        title: heading, as text.
        html: HTML with escaped texts, without script and style.
    """

    title: str
    html: str


@dataclass(frozen=True)
class Item:
    """A part of a section.

    Attributes:
        content: chart, table or HTML.
        recording: index of the recording that it shows; None for all of them.
    """

    content: Chart | Table | Markup
    recording: int | None = None


def items(*content: Chart | Table | Markup | None) -> tuple[Item, ...]:
    """Parts of a section that show all recordings.

    Args:
        content: charts, tables and HTML in their order; None is left out.
    """
    return tuple(Item(each) for each in content if each is not None)


@dataclass(frozen=True)
class PageSection:
    """A chapter of the page.

    Attributes:
        key: anchor, and first part of the anchors of its charts.
        title: heading.
        text: introduction; none if empty.
        items: charts and tables in their order.
    """

    key: str
    title: str
    text: str = ""
    items: Sequence[Item] = ()


@dataclass(frozen=True)
class Tile:
    """A key figure at the head of a page.

    Attributes:
        value: the figure, with its unit.
        text: meaning of the figure, a clause.
    """

    value: str
    text: str


@dataclass(frozen=True)
class Page:
    """The content of a page; sections without items are left out.

    Attributes:
        title: heading.
        subtitle: origin of the data, in sentences.
        verdict: verdict on the model or the result; None for no verdict.
        tiles: key figures.
        joint_names: joints that the reader can choose; empty for no choice.
        recordings: labels of the recordings, which `Item.recording` is an index of.
        sections: sections in their order.
    """

    title: str
    subtitle: str
    verdict: ModelVerdict | None
    tiles: Sequence[Tile]
    joint_names: Sequence[str]
    recordings: Sequence[str]
    sections: Sequence[PageSection]


# Cells of tables.


def with_interval(value: float, std: float | None) -> Cell:
    """A value with its 95 % interval, with two digits of the half width.

    Args:
        value: value in the unit of the column.
        std: standard deviation of the value; None, 0 or not finite if it is unknown.

    Returns:
        A text such as "12.3 ± 1.1"; the value alone if its standard deviation is unknown.
    """
    if std is None or not np.isfinite(std) or std == 0:
        return float(value)
    half = CONFIDENCE * float(std)
    digits = max(0, 1 - int(np.floor(np.log10(half))))
    text = f"{value:.{digits}f} ± {half:.{digits}f}"
    if digits > 6:
        text = f"{value:.2e} ± {half:.0e}"
    return text.replace("-", "−")


def cell_text(cell: str | float | None, digits: int | None) -> str:
    """Text of a cell that is no lock.

    Args:
        cell: text, number, or None.
        digits: decimals of a number; None for a power of ten.

    Returns:
        The text; a dash if the cell is empty or not finite.
    """
    if cell is None or (isinstance(cell, float) and not isfinite(cell)):
        return "–"
    if isinstance(cell, str):
        return cell
    text = f"{cell:.2e}" if digits is None else f"{cell:.{digits}f}"
    return text.replace("-", "−")


def arm_name(robot: str) -> str:
    """A robot's name for headings: "ur5e" becomes "UR5e"."""
    return "UR" + robot[2:] if robot.startswith("ur") else robot.capitalize()


def energy_text(joules: float) -> str:
    """An energy in J, Wh, kWh or MWh, depending on its size."""
    kilowatt_hours = joules / JOULES_PER_KWH
    if kilowatt_hours >= 10_000:
        return f"{kilowatt_hours / 1000:.2f} MWh"
    if kilowatt_hours >= 10:
        return f"{kilowatt_hours:.1f} kWh"
    if kilowatt_hours >= 0.1:
        return f"{kilowatt_hours:.3f} kWh"
    if kilowatt_hours >= 0.01:
        return f"{1000 * kilowatt_hours:.2f} Wh"
    return f"{joules:.0f} J"


def duration_text(seconds: float) -> str:
    """A duration in s, min or h, depending on its length."""
    hours = seconds / 3600
    if hours >= 1000:
        return f"{hours:,.0f} h"
    if hours >= 1:
        return f"{hours:,.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.0f} s"
