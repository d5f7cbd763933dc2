"""The page: complete, small, and safe against names and notes with markup."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from ur_energy_model.report.chart import Line, LineChart, Panel
from ur_energy_model.report.page import (
    BUDGET,
    ChartEncoder,
    Item,
    Page,
    Section,
    Table,
    Tile,
    cell_text,
    column_digits,
    render,
)
from ur_energy_model.report.verdict import ModelVerdict, Statement

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def chart(label: str = "model", *, samples: int = 100, lines: int = 1) -> LineChart:
    x = np.linspace(0, 10, samples)
    curves = tuple(Line(label, x, np.sin(x + k)) for k in range(lines))
    return LineChart(
        key="key",
        title=label,
        caption=label,
        x_label="time [s]",
        y_label=label,
        panels=(Panel(label, curves),),
        group="g",
    )


def page(text: str) -> str:
    table = Table("t", text, (text, "b"), ((text, 1.0), (text, None)), text)
    section = Section("s", text, text, (Item(chart(text), 0), Item(table)))
    verdict = ModelVerdict("good", text, (Statement("good", text),))
    return render(
        Page(text, text, verdict, (Tile(text, text),), (text, "b"), (text, text), (section,))
    )


class Elements(HTMLParser):
    """Names of all elements, their attributes and the text outside scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_hostile_text_makes_no_markup() -> None:
    safe, hostile = Elements(), Elements()
    safe.feed(page("harmless"))
    hostile.feed(page(HOSTILE))
    assert hostile.names == safe.names
    assert hostile.attributes == safe.attributes
    assert not {name for name in hostile.attributes if name.startswith("on")}


def test_the_page_loads_nothing() -> None:
    text = page("harmless")
    assert not re.findall(r"(?:src|href)=\"(?!#)", text)
    assert not re.findall(r"url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "default-src 'none'" in text


def test_curves_are_accurate_to_a_step_of_their_range() -> None:
    x = np.linspace(0, 600, 300_000)
    y = np.sin(x) * np.exp(-x / 100)
    y[[1000, 200_000]] = [7.0, np.nan]
    encoder = ChartEncoder([chart()])
    panels = (Panel("", (Line("a", x, y),)),)
    curve = LineChart(key="k", title="", caption="", x_label="", y_label="", panels=panels)
    (panel,) = encoder.chart(curve)["panels"]
    low, high, index = panel["lines"][0]["y"]
    codes = np.frombuffer(base64.b64decode(encoder.pool[index]), "<u2")
    values = np.where(codes == 65535, np.nan, low + codes * (high - low) / 65534)
    assert np.nanmax(values) == pytest.approx(7.0, abs=1e-3)
    assert np.isnan(values).sum() == 1
    assert len(values) < 8000


def test_size_does_not_grow_with_the_recording() -> None:
    many = [chart(samples=300_000, lines=10) for _ in range(12)]
    encoder = ChartEncoder(many)
    text = json.dumps([encoder.chart(one) for one in many] + encoder.pool)
    assert len(text) < 1.3 * BUDGET


def test_equal_time_bases_are_sent_once() -> None:
    encoder = ChartEncoder([chart(lines=6)])
    encoder.chart(chart(lines=6))
    assert len(encoder.pool) == 1 + 6


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ([1234.5, 1.0, None], ["1234", "1", "–"]),
        ([0.01234, -0.5], ["0.0123", "−0.5000"]),
        (["text", 2.0], ["text", "2.000"]),
        ([1.2e-8, float("nan")], ["1.20e−08", "–"]),
    ],
)
def test_columns_share_their_decimals(column: list[str | float | None], texts: list[str]) -> None:
    digits = column_digits(column)
    assert [cell_text(cell, digits) for cell in column] == texts
