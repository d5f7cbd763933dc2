"""The HTML of a page: one file that needs no network and never interprets data as markup.

All text is escaped, or is JSON that the script puts into text nodes. A content security policy
allows only the page's own script and style (by their hashes).
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from math import floor, isfinite, log10

from ur_energy_model import __version__
from ur_energy_model.report.charts.chart import Chart
from ur_energy_model.report.page.chart_encoder import ChartEncoder
from ur_energy_model.report.page.page import Page, Section, Tile
from ur_energy_model.report.palette import stylesheet
from ur_energy_model.report.tables.table import Cell, Lock, Table
from ur_energy_model.report.verdict import ModelVerdict
from ur_energy_model.terminal_text import unsigned_zeros

SCRIPTS = ("scales.js", "charts.js", "page.js")


def escape(text: str) -> str:
    """Text for people as HTML."""
    return html.escape(unsigned_zeros(text))


def render(page: Page) -> str:
    """The page as HTML."""
    charts = [
        (f"{section.key}-{number}", item.content, item.recording)
        for section in page.sections
        for number, item in enumerate(section.items)
        if isinstance(item.content, Chart)
    ]
    encoder = ChartEncoder(chart for _, chart, _ in charts)
    data = {
        "recordings": page.recordings,
        "charts": [
            {"id": key, "recording": recording, **encoder.chart(chart)}
            for key, chart, recording in charts
        ],
        "pool": encoder.pool,
    }
    # Data with "<" could close the script element.
    payload = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    style = stylesheet() + _asset("report.css")
    script = '"use strict";{' + "".join(_asset(name) for name in SCRIPTS) + "}"
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}' 'unsafe-hashes'; "
        f"script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
    )
    contents = "".join(
        f'<li><a href="#{escape(section.key)}">{escape(section.title)}</a></li>'
        for section in page.sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="ur_energy_model {escape(__version__)}">\n'
        f"<title>{escape(page.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<header class="top"><div><h1>{escape(page.title)}</h1>'
        f'<p class="muted">{escape(page.subtitle)}</p></div>'
        '<button id="theme" type="button" aria-label="Switch between light and dark">Dark</button>'
        "</header>\n<main>\n"
        f"{_verdict(page.verdict)}{_tiles(page.tiles)}"
        f'<ul class="contents">{contents}</ul>\n</main>\n{_tools(page)}\n<main id="sections">\n'
        + "\n".join(_section(section, page) for section in page.sections)
        + f"\n</main>\n<footer>Made by ur_energy_model {escape(__version__)}. "
        "Curves keep the extremes of all samples. Drag across a chart to zoom in, "
        "double-click (or press Escape) to see everything; arrow keys, + and −, and swiping on a "
        "phone work too.</footer>\n"
        '<noscript><p class="muted">Charts need JavaScript; tables do not.</p></noscript>\n'
        f'<script type="application/json" id="report-data">{payload}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return (files("ur_energy_model.report") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The hash of an inline script or style for the content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _verdict(verdict: ModelVerdict | None) -> str:
    if verdict is None:
        return ""
    items = "".join(f"<li>{escape(item.text)}</li>" for item in verdict.statements)
    return (
        f'<section class="verdict {verdict.grade}"><strong class="headline">'
        f"{escape(verdict.headline)}</strong><ul>{items}</ul></section>\n"
    )


def _tiles(tiles: Sequence[Tile]) -> str:
    boxes = "".join(
        f'<div class="tile"><b>{escape(tile.value)}</b><span>{escape(tile.text)}</span></div>'
        for tile in tiles
    )
    return f'<div class="tiles">{boxes}</div>\n' if tiles else ""


def _tools(page: Page) -> str:
    """The toolbar, always in view: selection of joints and recording, and zoom."""
    joints = "".join(
        f'<button type="button" class="joint" data-joint="{index}" aria-pressed="false">'
        f"{escape(name)}</button>"
        for index, name in enumerate(page.joint_names)
    )
    rows = ""
    if page.joint_names:
        rows = (
            '<div class="row"><span>Joints</span>'
            '<button type="button" id="every-joint" aria-pressed="true">all</button>'
            f"{joints}</div>"
        )
    if len(page.recordings) > 1:
        buttons = "".join(
            f'<button type="button" class="pick-recording" data-recording="{index}" '
            f'aria-pressed="{"true" if index == 0 else "false"}">{escape(label)}</button>'
            for index, label in enumerate(page.recordings)
        )
        rows += f'<div class="row"><span>Recording</span>{buttons}</div>'
    zoom = (
        '<div class="row"><span>Time</span>'
        '<button type="button" id="closer" aria-label="Zoom in">+</button>'
        '<button type="button" id="wider" aria-label="Zoom out">−</button>'
        '<button type="button" id="whole" hidden>Show all of the time</button></div>'
    )
    return f'<nav class="tools" aria-label="What the charts show"><div>{rows}{zoom}</div></nav>'


def _section(section: Section, page: Page) -> str:
    text = f"<p>{escape(section.text)}</p>" if section.text else ""
    parts = [
        _table(item.content, item.recording)
        if isinstance(item.content, Table)
        else _figure(f"{section.key}-{number}", item.content, item.recording, page.recordings)
        for number, item in enumerate(section.items)
    ]
    return (
        f'<section id="{escape(section.key)}"><h2>{escape(section.title)}</h2>{text}'
        + "".join(parts)
        + "</section>"
    )


def _figure(key: str, chart: Chart, recording: int | None, recordings: Sequence[str]) -> str:
    of = ""
    if recording is not None and len(recordings) > 1:
        of = f' <span class="recording">{escape(recordings[recording])}</span>'
    return (
        f'<figure class="chart" id="{escape(key)}"><header><h3>{escape(chart.title)}{of}</h3>'
        f'<div class="legend"></div></header><figcaption class="caption">'
        f'{escape(chart.caption)}</figcaption><div class="plot"></div></figure>'
    )


def _table(table: Table, recording: int | None) -> str:
    kind = ' class="text"' if all(len(row) == 2 for row in table.rows) else ""
    head = ""
    if any(table.columns):
        cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
        head = f"<thead><tr>{cells}</tr></thead>"
    digits = [column_digits([row[i] for row in table.rows]) for i in range(len(table.columns))]
    body = "".join(
        "<tr>"
        + "".join(f"<td>{_cell(c, d)}</td>" for c, d in zip(row, digits, strict=True))
        + "</tr>"
        for row in table.rows
    )
    command = escape(table.command) and f' <code id="command">{escape(table.command)}</code>'
    note = f'<p class="caption">{escape(table.note)}{command}</p>' if table.note else ""
    of = "" if recording is None else f' data-recording="{recording}"'
    return (
        f'<section class="table"{of}><h3>{escape(table.title)}</h3><div class="scroll">'
        f"<table{kind}>{head}<tbody>{body}</tbody></table></div>{note}</section>"
    )


def _cell(cell: Cell, digits: int | None) -> str:
    if isinstance(cell, Lock):
        ticked = " checked" if cell.kept else ""
        return (
            f'<label><input type="checkbox" class="lock" value="{cell.step}"{ticked}> keep</label>'
        )
    return escape(cell_text(cell, digits))


def column_digits(cells: Sequence[Cell]) -> int | None:
    """Decimals that show a column's largest number with four digits; None for tiny numbers."""
    sizes = [abs(cell) for cell in cells if isinstance(cell, float) and isfinite(cell)]
    largest = max(sizes, default=0.0)
    if largest == 0:
        return 0
    digits = 3 - floor(log10(largest))
    return None if digits > 6 else max(0, digits)


def cell_text(cell: str | float | None, digits: int | None) -> str:
    """Text of a cell: a number with this many decimals, or a dash if it is empty."""
    if cell is None or (isinstance(cell, float) and not isfinite(cell)):
        return "–"
    if isinstance(cell, str):
        return cell
    text = f"{cell:.2e}" if digits is None else f"{cell:.{digits}f}"
    return text.replace("-", "−")
