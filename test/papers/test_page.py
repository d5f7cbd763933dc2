"""The papers' contents, stages in processes of their own, and the page made of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from test.papers.ready_stage import ReadyStage
from ur_energy_model.errors import InputError
from ur_energy_model.papers.page import (
    MARKDOWN,
    UNPLACED,
    markdown,
    prepare,
    run_papers,
    run_stages,
    side_by_side,
)
from ur_energy_model.papers.protocol import Paper, PublishedItem, papers
from ur_energy_model.papers.stages import PROTOCOLS, STAGES

NUMBERED = {"s0": ("Table", 8, "Fig.", 15), "s1": ("Table", 0, "Fig.", 4),
            "s2": ("Table", 2, "Fig.", 5), "s4": ("Table", 9, "Fig.", 18)}  # fmt: skip
"""Numbered tables and figures of the sources; the slides of s3 have no numbers."""
PAPER = Paper(
    "s1",
    "A paper",
    "Somebody",
    (PublishedItem("Table I", "numbers"), PublishedItem("Fig. 1", "a curve"),
     PublishedItem("Fig. 2", "us", "a photograph"), PublishedItem("Fig. 3", "another curve")),
)  # fmt: skip


def stages(*names: str) -> tuple[ReadyStage, ...]:
    return tuple(ReadyStage(name, "s1", "ur5") for name in names)


def test_every_numbered_table_and_figure_is_listed_once() -> None:
    assert [paper.key for paper in papers()] == sorted(PROTOCOLS)
    assert {stage.protocol for stage in STAGES} == set(PROTOCOLS)
    for paper in papers():
        places = Counter(item.place for item in paper.items)
        assert max(places.values()) == 1
        table, tables, figure, figures = NUMBERED.get(paper.key, ("Table", 0, "Fig.", 0))
        assert sum(place.startswith(table) for place in places) == tables
        assert sum(place.startswith(figure) for place in places) == figures


def test_stages_continue_and_find_their_place_on_the_page(tmp_path: Path) -> None:
    """One that fails does not stop the others; what an earlier run has ended is kept."""
    folder, heard = tmp_path / "out", list[float]()
    (kept,) = run_stages(folder, seed=3, quick=True, stages=stages("kept"), workers=1)
    assert kept.verdict is not None
    made = folder / "kept" / "made"
    assert made.read_text() == "3 True"
    made.write_text("kept")
    (folder / "b").mkdir()  # as an interrupted run leaves it
    (folder / "b" / "verdict.json").write_bytes(b'{"figures": [\xff')
    results = run_stages(
        folder,
        seed=3,
        quick=True,
        stages=stages("refused", "kept", "killed", "b"),
        workers=2,
        progress=lambda fraction, text: heard.append(fraction),
    )
    assert made.read_text() == "kept"
    assert heard[-1] == 1.0
    refused, kept, killed, repeated = results
    assert refused.error == "no way"
    assert "7" in killed.error
    assert repeated.verdict == kept.verdict
    found = side_by_side(PAPER, [kept])
    by_place = {each.item.place: each for each in found.items}
    assert len(by_place["Table I"].rows) == 2
    files = [picture["file"] for picture in by_place["Fig. 1"].pictures]
    assert files == ["kept/pictures/a.png"]
    assert by_place[UNPLACED].rows[0]["figure"] == "elsewhere"
    assert found.missing == ["Fig. 3"]
    assert found.verdicts == {"agrees": 1, "differs": 1, "not published": 1}
    page = markdown([found])
    for text in ("agrees; another arm", "outside \\| of it", "![a curve](kept/pictures/a.png)",
                 "A photograph.", "mind this"):  # fmt: skip
        assert text in page


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    settings = {"seed": 3, "quick": False}
    for _ in range(2):
        prepare(tmp_path / "out", settings)
    for other in ({"seed": 4, "quick": False}, {"seed": 3, "quick": True}):
        with pytest.raises(InputError, match="other settings"):
            prepare(tmp_path / "out", other)
    (tmp_path / "mine").write_text("x")
    with pytest.raises(InputError, match="was not begun"):
        prepare(tmp_path, settings)


def test_the_page_of_a_quick_run(tmp_path: Path) -> None:
    chosen = [stage for stage in STAGES if stage.name == "s3"]
    results = run_papers(tmp_path / "papers", quick=True, stages=chosen)
    (slides,) = (result for result in results if result.paper.key == "s3")
    assert not slides.errors
    assert not slides.missing
    assert UNPLACED not in {each.item.place for each in slides.items}
    page = (tmp_path / "papers" / MARKDOWN).read_text()
    assert all(f"### {each.item.place}" in page for each in slides.items)
    pictures = [picture for each in slides.items for picture in each.pictures]
    assert all((tmp_path / "papers" / picture["file"]).is_file() for picture in pictures)
