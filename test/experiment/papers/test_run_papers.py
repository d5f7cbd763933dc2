"""The quick form of all protocols: one stage of it, from the simulated arm to the page."""

from __future__ import annotations

from pathlib import Path

from ur_energy_model.papers.page import HTML, MARKDOWN, UNPLACED, run_papers
from ur_energy_model.papers.stages import STAGES


def test_the_pages_of_a_quick_run(tmp_path: Path) -> None:
    chosen = [stage for stage in STAGES if stage.name == "s3"]
    results = run_papers(tmp_path / "papers", quick=True, stages=chosen)
    (slides,) = (result for result in results if result.paper.key == "s3")
    assert slides.errors == ()
    assert slides.missing == ()
    assert UNPLACED not in {each.item.place for each in slides.items}
    page = (tmp_path / "papers" / MARKDOWN).read_text()
    assert all(f"### {each.item.place}" in page for each in slides.items)
    pictures = [picture for each in slides.items for picture in each.pictures]
    assert all((tmp_path / "papers" / picture.file).is_file() for picture in pictures)
    assert "base64" in (tmp_path / "papers" / HTML).read_text()
