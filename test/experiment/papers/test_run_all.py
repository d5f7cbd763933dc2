"""Stages in processes of their own: failures, continuation, and the pages made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from test.experiment.papers.ready_stage import ReadyStage
from ur_energy_model.errors import InputError
from ur_energy_model.papers.page import (
    UNPLACED,
    Item,
    Paper,
    html,
    markdown,
    prepare,
    run_stages,
    side_by_side,
)
from ur_energy_model.papers.stages import Stage

PAPER = Paper(
    "s1",
    "A <paper>",
    "Somebody",
    (Item("Table I", "numbers"), Item("Fig. 1", "a curve"), Item("Fig. 2", "us", "a photograph"),
     Item("Fig. 3", "another curve")),
)  # fmt: skip


def stages(*names: str) -> tuple[Stage, ...]:
    return tuple(ReadyStage(name, "s1", "ur5") for name in names)


def test_a_stage_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    heard: list[float] = []

    def hear(fraction: float, text: str | None = None) -> None:
        heard.append(fraction)

    found = run_stages(
        tmp_path / "out",
        stages=stages("refused", "good", "killed"),
        workers=2,
        progress=hear,
    )
    refused, good, killed = found
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


def test_rows_and_pictures_find_their_place_on_both_pages(tmp_path: Path) -> None:
    results = run_stages(tmp_path / "out", stages=stages("a"), workers=1)
    found = side_by_side(PAPER, results)
    by_place = {each.item.place: each for each in found.items}
    assert len(by_place["Table I"].rows) == 2
    assert [str(picture.file) for picture in by_place["Fig. 1"].pictures] == ["a/pictures/a.png"]
    assert by_place[UNPLACED].rows[0]["figure"] == "elsewhere"
    assert [item.place for item in found.missing] == ["Fig. 3"]
    assert found.verdicts == {"agrees": 1, "differs": 1, "not published": 1}
    page = markdown([found])
    assert "agrees; another arm" in page
    assert "outside \\| of it" in page
    assert "![a curve](a/pictures/a.png)" in page
    assert "A photograph." in page
    assert "mind this" in page
    document = html([found], tmp_path / "out")
    assert "A &lt;paper&gt;" in document
    assert "data:image/png;base64," in document
