# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The report in a real browser: no errors, working controls, readable on a phone and in print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from test.report.browser import Browser
from test.report.conftest import explained_recording, write_bag
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.render import render
from ur_energy_model.report.report import make_report, report_page

PANELS = "document.querySelectorAll('figure:not([hidden]) .panel').length"
AXIS = (
    "[...document.querySelectorAll('#motion-0 .panel svg text[text-anchor=middle]')]"
    ".map(t => t.textContent).join(' ')"
)


@pytest.fixture(scope="module")
def report(model: EnergyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a short and a long recording."""
    folder = tmp_path_factory.mktemp("browser")
    bags = [
        write_bag(folder / name, explained_recording(model, seconds=seconds, rate=25.0))
        for name, seconds in (("short", 20.0), ("long", 100.0))
    ]
    file = folder / "report.html"
    file.write_text(render(report_page(make_report(model, bags))), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def _fresh(browser: Browser, report: Path) -> Iterator[None]:
    """Each test starts with the freshly opened page and must cause no errors in the browser."""
    browser.media()
    browser.resize(1280, 900)
    browser.open(report)
    yield
    assert browser.complaints == []
    assert {url.split(":")[0] for url in browser.requests} == {"file"}


def click(browser: Browser, selector: str) -> None:
    browser.evaluate(f"document.querySelector({selector!r}).click()")


def test_every_chart_is_drawn_of_the_selected_joints_and_recording(
    browser: Browser,
) -> None:
    empty = browser.evaluate(
        "[...document.querySelectorAll('figure.chart:not([hidden])')]"
        ".filter(f => !f.querySelector('.plot svg')).map(f => f.id)"
    )
    assert empty == []
    strange = browser.evaluate(
        "[...document.querySelectorAll('.plot svg *')].filter(e => [...e.attributes]"
        ".some(a => /NaN|Infinity|undefined/.test(a.value))).length"
    )
    assert strange == 0
    everything = browser.evaluate(PANELS)
    click(browser, 'button.joint[data-joint="2"]')
    assert 0 < browser.evaluate(PANELS) < everything
    click(browser, "#every-joint")
    assert browser.evaluate(PANELS) == everything
    for width in (360, 768):
        browser.resize(width, 800, phone=True)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    visible = "document.querySelectorAll('figure:not([hidden]) .recording')"
    shown = f"[...{visible}].map(r => r.innerText)"
    assert set(browser.evaluate(shown)) == {"short"}
    click(browser, 'button.pick-recording[data-recording="1"]')
    assert set(browser.evaluate(shown)) == {"long"}
    assert browser.evaluate("document.querySelector('#whole').hidden") is False, (
        "opens zoomed"
    )
    browser.media(kind="", scheme="dark")
    assert browser.print_pdf().startswith(b"%PDF")
    browser.media(kind="print", scheme="dark")
    assert (
        browser.evaluate("getComputedStyle(document.querySelector('nav')).display")
        == "none"
    )
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"


def test_drags_buttons_and_swipes_zoom_all_charts_of_the_recording_and_back(
    browser: Browser,
) -> None:
    before = browser.evaluate(AXIS)
    box = browser.evaluate(
        "(() => { const s = document.querySelector('#energy-0 .panel svg');"
        "s.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const b = s.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
    )
    left, top, width, height = box
    middle = top + height / 2
    browser.drag((left + 0.4 * width, middle), (left + 0.6 * width, middle))
    assert browser.evaluate(AXIS) != before
    assert browser.evaluate("document.querySelector('#whole').hidden") is False
    click(browser, "#whole")
    assert browser.evaluate(AXIS) == before
    click(browser, "#closer")  # without a mouse
    closer = browser.evaluate(AXIS)
    assert closer != before
    browser.evaluate(
        "(() => { const s = document.querySelector('#motion-0 .panel svg');"
        "s.setPointerCapture = () => {}; const b = s.getBoundingClientRect();"
        "const at = (kind, part) => s.dispatchEvent(new PointerEvent(kind, {pointerType: 'touch',"
        "button: 0, clientX: b.left + part * b.width, clientY: b.top + 20}));"
        "at('pointerdown', 0.8); at('pointerup', 0.4); })()"
    )
    assert browser.evaluate(AXIS) != closer
    click(browser, "#wider")
    assert browser.evaluate(AXIS) == before
    assert browser.evaluate("document.querySelector('#whole').hidden") is True
