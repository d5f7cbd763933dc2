# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The sections of a report: those of the core, and what a room advises."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from test.report.conftest import explained_recording, write_bag
from ur_energy_model.energy import advice
from ur_energy_model.energy.advice import Advice, AdviceSection, AdviceTable, NoAdvice
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.page import PageSection, Table
from ur_energy_model.report.report import make_report, report_page

OF_THE_CORE = {
    "energy",
    "shift",
    "torque",
    "current",
    "parameters",
    "motion",
    "provenance",
}


class OneAdvice(NoAdvice):
    """Advice with one table."""

    def section(self, tariff: Tariff) -> Any:
        table = AdviceTable("What they save", ("", "saved"), [("slower", "12 J")])
        return AdviceSection("advice", "What can be done", "One thing.", [table])


class Advises:
    """A room's extension, and the adviser that it provides."""

    def load(self) -> Advises:
        return self

    def advise(self, *_: object, **how: object) -> Advice:
        return OneAdvice()

    def together(self, parts: Sequence[Advice]) -> Advice:
        assert [type(part) for part in parts] == [OneAdvice]
        return parts[0]


def sections(model: EnergyModel, bag: Path) -> dict[str, PageSection]:
    page = report_page(make_report(model, [bag]))
    return {section.key: section for section in page.sections}


def test_a_report_has_the_advice_that_a_room_gives(
    model: EnergyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = explained_recording(model, seconds=12.0, rate=25.0)
    bag = write_bag(tmp_path / "bag", recording)
    monkeypatch.setattr(advice, "extensions", lambda subject: ())
    assert set(sections(model, bag)) == OF_THE_CORE
    monkeypatch.setattr(advice, "extensions", lambda subject: (Advises(),))
    found = sections(model, bag)
    assert set(found) == OF_THE_CORE | {"advice"}
    (item,) = found["advice"].items
    assert isinstance(item.content, Table)
    assert item.content.rows == [("slower", "12 J")]
