# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A page: tiles, sections, charts and tables, as one HTML file that needs no network.

Whoever builds a page describes it with `Page`, `PageSection`, `Table` and the charts of
`report.chart`; `render` makes the HTML. All text is escaped, or is JSON that the script
puts into text nodes. A content security policy allows only the page's own script and style
(by their hashes).
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from math import floor, isfinite, log10
from typing import Any

import numpy as np

from ur_energy_model import __version__
from ur_energy_model.codec import plain
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import unsigned_zeros
from ur_energy_model.report.chart import (
    BarChart,
    BoxChart,
    Chart,
    HeatMap,
    IntervalChart,
    Line,
    LineChart,
    Panel,
    decimate,
)
from ur_energy_model.report.palette import stylesheet
from ur_energy_model.report.verdict import ModelVerdict
from ur_energy_model.typing import Array


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
    if joules >= 3.6e10:
        return f"{joules / 3.6e9:.2f} MWh"
    if joules >= 3.6e7:
        return f"{joules / 3.6e6:.1f} kWh"
    if joules >= 3.6e5:
        return f"{joules / 3.6e6:.3f} kWh"
    if joules >= 3.6e4:
        return f"{joules / 3600:.2f} Wh"
    return f"{joules:.0f} J"


def duration_text(seconds: float) -> str:
    """A duration in s, min or h, depending on its length."""
    if seconds >= 3.6e6:
        return f"{seconds / 3600:,.0f} h"
    if seconds >= 3600:
        return f"{seconds / 3600:,.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.0f} s"


# Charts as compact JSON. A curve is decimated to the extremes of its buckets and sent as
# 16-bit steps of its range in base64: 65535 steps are finer than any screen. Equal arrays
# (such as the times of several curves) are sent once.

BUDGET = 3_000_000  # largest number of characters for all curves of a page
MOST_BUCKETS = 2500  # buckets of a curve of a page with few curves
FEWEST_BUCKETS = 150  # buckets of a curve of a page with many curves
STEPS = 65534  # largest code of a finite value; the next code is a hole
# fields that are part of the page's HTML
_TEXTS = {field.name for field in fields(Chart)}
_KINDS: dict[type[Chart], str] = {
    LineChart: "lines",
    BoxChart: "boxes",
    BarChart: "bars",
    IntervalChart: "intervals",
    HeatMap: "heat",
}
_CHARACTERS_PER_BUCKET = 2 * 2 * 2 * 4 / 3
"""A bucket has two samples with x and y of two bytes each, and base64 makes four characters of
three bytes."""


def _curves(panel: Panel) -> float:
    """Number of curves of a panel; a band or the base of an area counts as half a curve."""
    edges = [line.half_width is not None for line in panel.lines]
    edges += [line.base is not None for line in panel.lines]
    return len(panel.lines) + 0.5 * sum(edges)


class ChartEncoder:
    """Converts all charts of a page to JSON values with a common pool of arrays.

    Args:
        charts: charts of the page; their number of curves determines the resolution, so
            that the page has a bounded size.

    Attributes:
        buckets: number of buckets to which each curve is decimated.
        pool: arrays as base64 of little-endian 16-bit codes.
    """

    def __init__(self, charts: Iterable[Chart]) -> None:
        curves = 0.0
        for chart in charts:
            if isinstance(chart, LineChart):
                curves += sum(map(_curves, chart.panels))
        fair = BUDGET / _CHARACTERS_PER_BUCKET / max(curves, 1.0)
        self.buckets = int(np.clip(fair, FEWEST_BUCKETS, MOST_BUCKETS))
        self.pool: list[str] = []  # arrays as base64 of little-endian 16-bit codes
        self._index: dict[bytes, int] = {}

    def chart(self, chart: Chart) -> dict[str, Any]:
        """One chart as JSON values, without its texts, which are part of the page's HTML.

        Args:
            chart: chart of any kind.
        """
        out = {name: value for name, value in vars(chart).items() if name not in _TEXTS}
        if isinstance(chart, LineChart):
            out["panels"] = [self._panel(panel, chart) for panel in chart.panels]
        if isinstance(chart, HeatMap):
            out["largest"] = chart.largest
        return {"kind": _KINDS[type(chart)], **plain(out)}

    def _panel(self, panel: Panel, chart: LineChart) -> dict[str, Any]:
        """A panel of a chart as JSON values."""
        lines = [self._line(line, chart) for line in panel.lines]
        return {**vars(panel), "lines": lines}

    def _line(self, line: Line, chart: LineChart) -> dict[str, Any]:
        """A line of a chart as JSON values; curves over time are decimated."""
        is_exact = line.points or chart.equal
        x = line.x
        y = line.y
        if not is_exact:
            x, y = decimate(line.x, line.y, self.buckets, chart.focus)

        def edge(values: Array | None) -> list[float] | None:
            """An edge of a band or an area, at the samples that are kept of the curve."""
            if values is None:
                return None
            if not is_exact:
                values = np.interp(x, line.x, np.nan_to_num(values))
            return self._array(values)

        return {
            "label": line.label,
            "role": line.role,
            "joint": line.joint,
            "points": line.points,
            "x": self._array(x),
            "y": self._array(y),
            "band": edge(line.half_width),
            "base": edge(line.base),
        }

    def _array(self, values: Array) -> list[float]:
        """Lowest and highest value, and the index of the codes in the pool."""
        known = np.isfinite(values)
        low = 0.0
        high = 0.0
        if known.any():
            low = float(values[known].min())
            high = float(values[known].max())
        span = high - low
        codes = np.full(len(values), STEPS + 1, dtype="<u2")
        codes[known] = 0
        if span > 0:
            codes[known] = np.round((values[known] - low) / span * STEPS)
        raw = codes.tobytes()
        if raw not in self._index:
            self._index[raw] = len(self.pool)
            self.pool.append(base64.b64encode(raw).decode("ascii"))
        return [low, high, self._index[raw]]


# The HTML.

SCRIPTS = ("scales.js", "charts.js", "page.js")  # of the page, in order


def escape(text: str) -> str:
    """Text for people as HTML."""
    return html.escape(unsigned_zeros(text))


def render(page: Page) -> str:
    """The page as HTML, complete in one file.

    Args:
        page: the content; sections without items are left out.
    """
    sections = [each for each in page.sections if each.items]
    payload = _data(sections, page.recordings)
    style = stylesheet() + _asset("report.css")
    script = '"use strict";{' + "".join(_asset(name) for name in SCRIPTS) + "}"
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}' 'unsafe-hashes'; "
        f"script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
    )
    contents = "".join(
        f'<li><a href="#{escape(each.key)}">{escape(each.title)}</a></li>'
        for each in sections
    )
    parts = {
        "policy": policy,
        "version": escape(__version__),
        "title": escape(page.title),
        "subtitle": escape(page.subtitle),
        "style": style,
        "summary": _summary(page),
        "contents": contents,
        "tools": _tools(page),
        "sections": "\n".join(_section(section, page) for section in sections),
        "data": payload,
        "script": script,
    }

    def part(found: re.Match[str]) -> str:
        """The part whose name stands in the template between double braces."""
        return parts[found[1]]

    return re.sub(r"\{\{(\w+)\}\}", part, _asset("report.html"))


def _data(sections: Sequence[PageSection], recordings: Sequence[str]) -> str:
    """The charts of all sections, as JSON for the page's script."""
    places: list[tuple[str, int | None]] = []  # anchor and recording of each chart
    charts: list[Chart] = []
    for section in sections:
        for number, item in enumerate(section.items):
            if isinstance(item.content, Chart):
                places.append((f"{section.key}-{number}", item.recording))
                charts.append(item.content)
    encoder = ChartEncoder(charts)
    encoded = []
    for (place, recording), chart in zip(places, charts, strict=True):
        values = encoder.chart(chart)
        encoded.append({"id": place, "recording": recording, **values})
    data = {"recordings": recordings, "charts": encoded, "pool": encoder.pool}
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # which could close the script element


def _asset(name: str) -> str:
    """Text of a file in assets/."""
    path = files("ur_energy_model.report") / "assets" / name
    return path.read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The hash of an inline script or style for the content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _summary(page: Page) -> str:
    """Verdict and tiles as HTML."""
    text = ""
    verdict = page.verdict
    if verdict is not None:
        findings = "".join(f"<li>{escape(each.text)}</li>" for each in verdict.statements)
        text = (
            f'<section class="verdict {verdict.grade}"><strong class="headline">'
            f"{escape(verdict.headline)}</strong><ul>{findings}</ul></section>\n"
        )
    boxes = [
        f'<div class="tile"><b>{escape(tile.value)}</b><span>{escape(tile.text)}</span></div>'
        for tile in page.tiles
    ]
    if boxes:
        text += f'<div class="tiles">{"".join(boxes)}</div>\n'
    return text


def _tools(page: Page) -> str:
    """The toolbar, always in view: selection of joints and recording, and zoom."""
    rows = ""
    if page.joint_names:
        every = '<button type="button" id="every-joint" aria-pressed="true">all</button>'
        joints = _buttons("joint", "joint", page.joint_names, pressed=None)
        rows += _tool_row("Joints", every + joints)
    if len(page.recordings) > 1:
        recordings = _buttons("pick-recording", "recording", page.recordings, pressed=0)
        rows += _tool_row("Recording", recordings)
    rows += _tool_row(
        "Time",
        '<button type="button" id="closer" aria-label="Zoom in">+</button>'
        '<button type="button" id="wider" aria-label="Zoom out">−</button>'
        '<button type="button" id="whole" hidden>Show all of the time</button>',
    )
    return f'<nav class="tools" aria-label="What the charts show"><div>{rows}</div></nav>'


def _tool_row(name: str, buttons: str) -> str:
    """A row of the toolbar as HTML."""
    return f'<div class="row"><span>{name}</span>{buttons}</div>'


def _buttons(kind: str, data: str, names: Sequence[str], pressed: int | None) -> str:
    """A button for each name as HTML.

    Args:
        kind: class of the buttons.
        data: name of the attribute with the button's index, without "data-".
        names: texts of the buttons.
        pressed: index of the button that is pressed at first; None for none.
    """
    buttons = []
    for index, name in enumerate(names):
        state = "true" if index == pressed else "false"
        buttons.append(
            f'<button type="button" class="{kind}" data-{data}="{index}" '
            f'aria-pressed="{state}">{escape(name)}</button>'
        )
    return "".join(buttons)


def _section(section: PageSection, page: Page) -> str:
    """A section of a page as HTML; the script draws the charts into their places."""
    parts = [f'<section id="{escape(section.key)}"><h2>{escape(section.title)}</h2>']
    if section.text:
        parts.append(f"<p>{escape(section.text)}</p>")
    for number, item in enumerate(section.items):
        content = item.content
        if isinstance(content, Table):
            parts.append(_table(content, item.recording))
        elif isinstance(content, Markup):
            parts.append(f"<h3>{escape(content.title)}</h3>{content.html}")
        else:
            recording = ""
            if item.recording is not None and len(page.recordings) > 1:
                recording = page.recordings[item.recording]
            parts.append(_figure(content, f"{section.key}-{number}", recording))
    parts.append("</section>")
    return "".join(parts)


def _figure(chart: Chart, place: str, recording: str) -> str:
    """The place of a chart as HTML.

    Args:
        chart: chart whose texts are shown.
        place: anchor in the page.
        recording: label of the recording that it shows; empty for none.
    """
    of = f' <span class="recording">{escape(recording)}</span>' if recording else ""
    return (
        f'<figure class="chart" id="{escape(place)}"><header>'
        f'<h3>{escape(chart.title)}{of}</h3><div class="legend"></div></header>'
        f'<figcaption class="caption">{escape(chart.caption)}</figcaption>'
        '<div class="plot"></div></figure>'
    )


def _decimals(column: Sequence[Cell]) -> int | None:
    """Decimals that show a column's largest number with four digits; None for tiny numbers."""
    largest = 0.0
    for each in column:
        if isinstance(each, float) and isfinite(each):
            largest = max(largest, abs(each))
    if largest == 0.0:
        return 0
    places = 3 - floor(log10(largest))
    return None if places > 6 else max(0, places)


def _table(table: Table, recording: int | None) -> str:
    """A table as HTML.

    Args:
        table: the content.
        recording: index of the recording that it shows; None for all of them.
    """
    kind = ' class="text"' if all(len(row) == 2 for row in table.rows) else ""
    head = ""
    if any(table.columns):
        cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
        head = f"<thead><tr>{cells}</tr></thead>"
    digits = [_decimals(column) for column in zip(*table.rows, strict=True)]
    body = "".join(_row(row, digits) for row in table.rows)
    command = ""
    if table.command:
        command = f' <code id="command">{escape(table.command)}</code>'
    note = ""
    if table.note:
        note = f'<p class="caption">{escape(table.note)}{command}</p>'
    of = "" if recording is None else f' data-recording="{recording}"'
    return (
        f'<section class="table"{of}><h3>{escape(table.title)}</h3><div class="scroll">'
        f"<table{kind}>{head}<tbody>{body}</tbody></table></div>{note}</section>"
    )


def _row(row: Sequence[Cell], digits: Sequence[int | None]) -> str:
    """A row of a table as HTML.

    Args:
        row: cells of the row.
        digits: decimals of the numbers in each column; None for a power of ten.
    """
    cells = []
    for column, cell in enumerate(row):
        if isinstance(cell, Lock):
            ticked = " checked" if cell.kept else ""
            box = f'<input type="checkbox" class="lock" value="{cell.step}"{ticked}>'
            text = f"<label>{box} keep</label>"
        else:
            text = escape(cell_text(cell, digits[column]))
        if column == 0 and not isinstance(cell, Lock):
            # On a narrow screen names of joints may be broken, but only between their
            # words.
            text = text.replace("_", "_<wbr>")
        cells.append(f"<td>{text}</td>")
    return f"<tr>{''.join(cells)}</tr>"
