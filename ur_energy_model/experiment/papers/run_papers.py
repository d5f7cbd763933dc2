"""`ur_energy protocol all`: all stages, then papers.md and papers.html."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ur_energy_model.experiment.papers.contents import papers
from ur_energy_model.experiment.papers.html import html
from ur_energy_model.experiment.papers.markdown import markdown
from ur_energy_model.experiment.papers.run_all import run_stages
from ur_energy_model.experiment.papers.side_by_side import PaperResult, side_by_side
from ur_energy_model.experiment.papers.stages import STAGES, Stage
from ur_energy_model.files import write_text
from ur_energy_model.typing import Progress

MARKDOWN, HTML = "papers.md", "papers.html"
QUICK = "Made with --quick: shorter motions, smaller searches, a shorter warm-up."


def run_papers(
    folder: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    stages: Sequence[Stage] = STAGES,
    progress: Progress | None = None,
) -> list[PaperResult]:
    """Run every protocol on simulated arms and write both pages into the folder.

    Args:
        folder: new, empty, or of an earlier run with the same settings, which is continued.
        seed: of the arms and searches.
        quick: shorter motions and searches.
        stages: to run.
        progress: called with a fraction and a text.

    Raises:
        InputError: the folder contains something else.
    """
    done = run_stages(folder, seed=seed, quick=quick, stages=stages, progress=progress)
    results = [side_by_side(paper, done) for paper in papers()]
    remarks = (QUICK,) if quick else ()
    write_text(folder / MARKDOWN, markdown(results, remarks))
    write_text(folder / HTML, html(results, folder, remarks))
    return results
