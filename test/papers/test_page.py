# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The papers' contents, stages in processes of their own, and the page made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test.cli.conftest import Capture, answer
from test.papers.ready_stage import ReadyStage
from ur_energy_model.errors import InputError
from ur_energy_model.papers.page import (
    MARKDOWN,
    UNPLACED,
    markdown,
    run_papers,
    side_by_side,
)
from ur_energy_model.papers.published import Paper, PublishedItem, paper
from ur_energy_model.papers.stage_runs import (
    SETTINGS,
    StageResult,
    code_digest,
    run_stages,
)

PAPER = Paper(
    "s1",
    "A paper",
    "Somebody",
    (PublishedItem("Table I", "numbers"), PublishedItem("Fig. 1", "a curve"),
     PublishedItem("Fig. 2", "us", "a photograph"), PublishedItem("Fig. 3", "another curve")),
)  # fmt: skip


def stages(*names: str) -> tuple[ReadyStage, ...]:
    return tuple(ReadyStage(name, "s1", "ur5") for name in names)


@pytest.mark.truth
def test_stages_continue_and_find_their_place_on_the_page(tmp_path: Path) -> None:
    """One that fails does not stop the others; what an earlier run has ended is kept."""
    folder = tmp_path / "out"
    heard = list[float]()
    run_papers(folder, seed=3, quick=True, stages=stages("kept"))
    assert UNPLACED in (folder / MARKDOWN).read_text()
    made = folder / "kept" / "made"
    assert made.read_text() == "3 True"
    made.write_text("kept")
    (folder / "refused").mkdir()  # as an interrupted run leaves it
    (folder / "refused" / "verdict.json").write_bytes(b'{"figures": [\xff')
    results = run_stages(
        folder,
        seed=3,
        quick=True,
        stages=stages("refused", "kept", "killed"),
        workers=2,
        progress=lambda fraction, text: heard.append(fraction),
    )
    assert made.read_text() == "kept"
    assert heard[-1] == 1.0
    refused, kept, killed = results
    assert refused.error == "no way"
    assert killed.error != "was not run"
    assert (refused.verdict, killed.verdict) == (None, None)
    found = side_by_side(PAPER, [kept])
    by_place = {each.item.place: each for each in found.items}
    assert len(by_place["Table I"].rows) == 2
    files = [picture["file"] for picture in by_place["Fig. 1"].pictures]
    assert files == ["kept/pictures/a.png"]
    assert by_place[UNPLACED].rows[0]["figure"] == "elsewhere"
    assert found.missing == ["Fig. 3"]
    assert found.verdicts == {"agrees": 1, "differs": 1, "not published": 1}
    settings = folder / SETTINGS
    settings.write_text(settings.read_text().replace(code_digest(), "of other code"))
    with pytest.raises(InputError, match="other code"):
        run_stages(folder, seed=3, quick=True, stages=stages("kept"))
    page = markdown([found])
    for text in ("agrees; another method", "outside \\| of it", "![](kept/pictures/a.png)",
                 "Fig. 1: a curve; R² 0.5",
                 "Fig. 2 (a photograph)", "mind this"):  # fmt: skip
        assert text in page


@pytest.mark.truth
def test_a_protocol_on_a_simulated_arm_and_its_page(
    tmp_path: Path, capsys: Capture
) -> None:
    """Of the slides, with an error at rest only with friction."""
    folder = tmp_path / "s3"
    content = answer(capsys, "protocol", "s3", "--simulated", "--quick", "-o", folder)
    assert content == json.loads((folder / "verdict.json").read_text())
    assert (content["simulated"], content["robot"]) == (True, "ur5")
    bags = {path.parent.name for path in folder.glob("*/metadata.yaml")}
    assert bags == {"with_friction", "without_static_friction"}
    rows = {row["figure"]: row for row in content["figures"]}
    moving, left = (rows[f"error at rest by joint, with{name} [mrad]"]
                    for name in (" friction", "out static friction"))  # fmt: skip
    assert max(left["here"]) < 0.3 < 1.0 < max(moving["here"])
    assert (left["verdict"], moving["verdict"][:7]) == (
        "recovered: where it says so, the simulated joints have no dry friction",
        "differs",
    )
    slides = side_by_side(paper("s3"), [StageResult("s3", "s3", content, "")])
    assert not slides.missing
    assert UNPLACED not in {each.item.place for each in slides.items}
    page = markdown([slides])
    assert all(each.item.place in page for each in slides.items)
    pictures = [picture for each in slides.items for picture in each.pictures]
    assert all((tmp_path / picture["file"]).is_file() for picture in pictures)
