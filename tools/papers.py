"""Makes docs/papers.md and its pictures: every protocol on simulated arms.

python -m tools.papers [FOLDER]

An interrupted run in the same FOLDER (default build/papers) continues.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli.output import progress
from ur_energy_model.papers.page import PaperResult, markdown, run_papers

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "papers.md"
IMAGES = ROOT / "docs" / "images" / "papers"
SEEDS = 20
REMARK = (
    "This page was made by `make papers`: `ur_energy protocol all --simulated` (seed 0) and, for "
    "the columns of many arms, {seeds} quick runs with seeds of their own: median (5 to 95 %); "
    "percentile of the published value."
)


def main() -> None:
    """Run the protocols, then write the page and copy its pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "papers"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with progress("papers") as bar:
        results = run_papers(folder, seeds=SEEDS, progress=bar)
    failed = [error for result in results for error in result.errors]
    if failed:
        raise SystemExit("\n".join(failed))
    publish(folder, results)


def publish(folder: Path, results: Sequence[PaperResult]) -> None:
    """Write the page, and copy its pictures from the output folder."""
    shutil.rmtree(IMAGES, ignore_errors=True)
    IMAGES.mkdir(parents=True)
    for result in results:
        for item in result.items:
            for picture in item.pictures:
                shutil.copyfile(folder / picture["file"], IMAGES / _name(picture["file"]))
    page = markdown(
        results, (REMARK.format(seeds=SEEDS),), lambda file: f"images/papers/{_name(file)}"
    )
    PAGE.write_text(page, encoding="utf-8")
    print(PAGE)


def _name(file: str) -> str:
    """Name of a picture among those of all stages."""
    return f"{Path(file).parts[0]}_{Path(file).name}"


if __name__ == "__main__":
    main()
