"""The papers' contents, stages in processes of their own, and the page made of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

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


def test_a_stage_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    heard: list[float] = []

    def hear(fraction: float, text: str | None = None) -> None:
        heard.append(fraction)

    refused, good, killed = run_stages(
        tmp_path / "out",
        stages=stages("refused", "good", "killed"),
        workers=2,
        progress=hear,
    )
    assert good.verdict is not None
    assert not good.error
    assert refused.error == "no way"
    assert "7" in killed.error
    assert heard[-1] == 1.0


def test_finished_stages_are_kept_and_the_others_repeated(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run_stages(folder, seed=3, quick=True, stages=stages("a"), workers=1)
    made = folder / "a" / "made"
    assert made.read_text() == "3 True"
    made.write_text("kept")
    (folder / "b").mkdir()  # as an interrupted run leaves it
    (folder / "c").mkdir()
    (folder / "c" / "verdict.json").write_bytes(b'{"figures": [\xff')
    found = run_stages(folder, seed=3, quick=True, stages=stages("a", "b", "c"), workers=1)
    assert made.read_text() == "kept"
    assert all(result.verdict is not None for result in found)


@pytest.mark.parametrize("other", [{"seed": 4, "quick": False}, {"seed": 3, "quick": True}])
def test_a_folder_of_another_run_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    settings = {"seed": 3, "quick": False}
    prepare(tmp_path / "out", settings)
    prepare(tmp_path / "out", settings)
    with pytest.raises(InputError, match="other settings"):
        prepare(tmp_path / "out", other)
    (tmp_path / "mine").write_text("x")
    with pytest.raises(InputError, match="was not begun"):
        prepare(tmp_path, settings)


def test_rows_and_pictures_find_their_place_on_the_page(tmp_path: Path) -> None:
    results = run_stages(tmp_path / "out", stages=stages("a"), workers=1)
    found = side_by_side(PAPER, results)
    by_place = {each.item.place: each for each in found.items}
    assert len(by_place["Table I"].rows) == 2
    assert [str(picture.file) for picture in by_place["Fig. 1"].pictures] == ["a/pictures/a.png"]
    assert by_place[UNPLACED].rows[0]["figure"] == "elsewhere"
    assert found.missing == ["Fig. 3"]
    assert found.verdicts == {"agrees": 1, "differs": 1, "not published": 1}
    page = markdown([found])
    for text in ("agrees; another arm", "outside \\| of it", "![a curve](a/pictures/a.png)",
                 "A photograph.", "mind this"):  # fmt: skip
        assert text in page


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
    assert all((tmp_path / "papers" / picture.file).is_file() for picture in pictures)
