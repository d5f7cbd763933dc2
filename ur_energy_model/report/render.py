# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A page as one HTML file that needs no network.

All text is escaped, or is JSON that the script puts into text nodes. A content security
policy allows only the page's own script and style (by their hashes).
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from math import floor, isfinite, log10

from ur_energy_model import __version__
from ur_energy_model.errors import unsigned_zeros
from ur_energy_model.report.chart import Chart
from ur_energy_model.report.chart_encoder import ChartEncoder
from ur_energy_model.report.page import (
    Cell,
    Lock,
    Markup,
    Page,
    PageSection,
    Table,
    cell_text,
)
from ur_energy_model.report.palette import stylesheet

SCRIPTS = ("scales.js", "charts.js", "page.js")  # scripts of the page, in order


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
        table: content of the table.
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
