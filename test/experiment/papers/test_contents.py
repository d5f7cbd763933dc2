"""The list of the papers' tables and figures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.papers.page import papers
from ur_energy_model.papers.stages import PROTOCOLS, STAGES

NUMBERED = {"s0": ("Table", 8, "Fig.", 15), "s1": ("Table", 0, "Fig.", 4),
            "s2": ("Table", 2, "Fig.", 5), "s4": ("Table", 9, "Fig.", 18)}  # fmt: skip
"""Numbered tables and figures of the sources; the slides of s3 have no numbers."""


def test_every_protocol_has_a_paper_and_a_stage() -> None:
    assert [paper.key for paper in papers()] == sorted(PROTOCOLS)
    assert {stage.protocol for stage in STAGES} == set(PROTOCOLS)
    assert len({stage.name for stage in STAGES}) == len(STAGES)


@pytest.mark.parametrize("key", NUMBERED)
def test_every_numbered_table_and_figure_is_listed_once(key: str) -> None:
    (paper,) = (paper for paper in papers() if paper.key == key)
    places = Counter(item.place for item in paper.items)
    assert max(places.values()) == 1
    table, tables, figure, figures = NUMBERED[key]
    assert sum(place.startswith(table) for place in places) == tables
    assert sum(place.startswith(figure) for place in places) == figures


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "papers.yaml"
    file.write_text("schema: 1\npapers:\n  - {key: s0, title: T, source: S, itms: []}\n")
    with pytest.raises(InputError, match="items"):
        papers(file)
