# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pages: complete, small, safe against names with markup; their verdicts."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from ur_energy_model.identification.visited_path import Motion
from ur_energy_model.report.chart import Line, LineChart, Panel
from ur_energy_model.report.chart_encoder import BUDGET, ChartEncoder
from ur_energy_model.report.page import Item, Page, PageSection, Table, Tile
from ur_energy_model.report.render import render
from ur_energy_model.report.verdict import ModelVerdict, Statement, judge

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def chart(label: str = "model", *, samples: int = 100, lines: int = 1) -> LineChart:
    x = np.linspace(0, 10, samples)
    panel = Panel(label, tuple(Line(label, x, np.sin(x + k)) for k in range(lines)))
    return LineChart(
        key="key", title=label, caption=label, x_label="t", panels=(panel,), group="g"
    )


def page(text: str) -> str:
    table = Table(text, (text, "b"), ((text, 1.0), (text, None)), text)
    section = PageSection("s", text, text, (Item(chart(text), 0), Item(table)))
    verdict = ModelVerdict("good", text, (Statement("good", text),))
    return render(
        Page(
            text,
            text,
            verdict,
            (Tile(text, text),),
            (text, "b"),
            (text, text),
            (section,),
        )
    )


class Elements(HTMLParser):
    """Names of all elements, and of their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_hostile_text_makes_no_markup_and_the_page_loads_nothing() -> None:
    text = page("harmless")
    safe = Elements(text)
    hostile = Elements(page(HOSTILE))
    assert (hostile.names, hostile.attributes) == (safe.names, safe.attributes)
    assert not {name for name in hostile.attributes if name.startswith("on")}
    assert not re.findall(r"(?:src|href)=\"(?!#)", text)
    assert not re.findall(r"url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "default-src 'none'" in text


def test_curves_are_accurate_to_a_step_of_their_range() -> None:
    x = np.linspace(0, 600, 60_000)
    y = np.sin(x) * np.exp(-x / 100)
    y[[1000, 20_000]] = [7.0, np.nan]
    encoder = ChartEncoder([chart()])
    panels = (Panel("", (Line("a", x, y),)),)
    (panel,) = encoder.chart(LineChart(key="k", title="", x_label="", panels=panels))[
        "panels"
    ]
    low, high, index = panel["lines"][0]["y"]
    codes = np.frombuffer(base64.b64decode(encoder.pool[index]), "<u2")
    values = np.where(codes == 65535, np.nan, low + codes * (high - low) / 65534)
    assert np.nanmax(values) == pytest.approx(7.0, abs=1e-3)
    assert np.isnan(values).sum() == 1
    many = [chart(samples=30_000, lines=10) for _ in range(12)]
    encoder = ChartEncoder(many)
    assert (
        len(json.dumps([encoder.chart(one) for one in many] + encoder.pool))
        < 1.3 * BUDGET
    )


# The verdict on a model follows from its METRICS, and gives remedies.

JOINTS = ("base", "elbow")


def metrics(
    torque: float = 0.999,
    current: float = 0.98,
    rmse: float = 1.5,
    energy: float = 0.4,
    motion: float | None = 5.0,
) -> dict[str, Any]:
    return {
        "torque": [{"r2": 0.9999}, {"r2": torque}],
        "current": [{"r2": 0.995}, {"r2": current}],
        "power": {
            "rmse": rmse,
            "rmse_percent": 2.0 * rmse,
            "energy_error_percent": energy,
        },
        "motion_energy_error_percent": motion,
    }


@pytest.mark.parametrize(
    ("change", "motions", "grade", "words"),
    [
        ({}, {"held out"}, "good", "elbow is the weakest"),
        (
            {"current": -0.5},
            {"held out"},
            "poor",
            "for elbow the mean would be a better model",
        ),
        ({"torque": 0.5}, {"held out"}, "poor", "mounting and payload"),
        ({"motion": -14.0}, {"held out"}, "fair", "recordings of several days"),
        ({"motion": 30.0}, {"held out"}, "poor", "30.0 %"),
        # never rounded up
        ({"torque": 0.99899}, {"held out"}, "good", "at least 99.89 %"),
        ({}, {"fitted"}, "fair", "fitted to"),
    ],
)
def test_the_worst_finding_determines_the_grade(
    change: dict[str, float], motions: set[Motion], grade: str, words: str
) -> None:
    verdict = judge([metrics(), metrics(**change)], JOINTS, motions=motions)
    assert verdict.grade == grade
    assert any(words in statement.text for statement in verdict.statements)
    line = "the model is of arm 1, the recording of arm 2"
    other = judge(
        [metrics(**change)], JOINTS, motions=motions, another_arm=line, doubts=[line]
    )
    assert other.grade != "good"
    assert "another arm" in other.headline
    assert "trusted" not in other.headline
