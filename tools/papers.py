# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Makes docs/papers/papers.md and its pictures: every protocol on simulated arms.

python -m tools.papers [FOLDER] [--seeds N] [--stages NAME ...] [--docs DIR] [--page]

An interrupted run in the same FOLDER (default build/papers) continues. The numbers of the
page are kept in docs/papers/papers.json beside it, with the commit that they are of;
`--page` makes the page anew from them, for other texts without a run. Values of real
recordings are those of tools/papers_recorded.json; it is made anew where ../shared/data
has the recordings.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model import __version__
from ur_energy_model.cli.output import progress
from ur_energy_model.codec import plain
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.robots import load_robot
from ur_energy_model.papers import s1, s2
from ur_energy_model.papers.page import (
    BY_TOLERANCE,
    MARKDOWN,
    ItemResult,
    PaperResult,
    markdown,
    run_papers,
)
from ur_energy_model.papers.published import (
    PublishedItem,
    ResultRow,
    cell,
    paper,
    papers,
)
from ur_energy_model.papers.s0_inertia import inertia_rows
from ur_energy_model.papers.s0_tables import recorded_rows
from ur_energy_model.papers.s2_models import Ecbot
from ur_energy_model.papers.stages import STAGES
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.csv.reader import read_csv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "papers"
NUMBERS = "papers.json"
IMAGES = "images"
DATA = ROOT.parent / "shared" / "data"
RECORDED = ROOT / "tools" / "papers_recorded.json"
SEEDS = 20
MADE = (
    "Made by `make papers` of {code}: here is seed 0. Of many arms: {seeds} arms in short runs, "
    "the first of them that of here: its value, [5..95 %] of all, percentile p of the published "
    "value."
)
REAL = (
    "Recorded: real arms of [accuracy.md](../accuracy.md#sources); {names}. A is fitted, B another "
    "motion. Each with its own verdict."
)
TESTS = {
    "ur3e": {"A": "ur3e_moves_payload_1.07kg_25hz_36s"},
    "ur5e": {"A": "ur5e_pick_place_50hz_24s"},
    "ur10e": {"A": "ur10e_excitation_50s", "B": "ur10e_point_to_point_57s"},
}
"""Recordings of each arm by test of S0."""
_DIGITS = 10  # significant digits of kept numbers; the page shows four


def main() -> None:
    """Run the protocols, then write the numbers and the page, and copy its pictures.

    With --page only the page is written.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "papers")
    names = [stage.name for stage in STAGES]
    parser.add_argument("--stages", nargs="+", choices=names, default=names)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of many arms")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the page")
    parser.add_argument(
        "--page", action="store_true", help="the page alone, without runs"
    )
    given = parser.parse_args()
    if not given.page:
        run(given.folder, given.docs, given.stages, given.seeds)
    page = given.docs / MARKDOWN
    page.write_text(rendered(given.docs / NUMBERS), encoding="utf-8")
    print(page)


def run(folder: Path, docs: Path, names: Sequence[str], seeds: int) -> None:
    """Run the protocols, write their numbers, and copy the pictures.

    Args:
        folder: output folder of the runs.
        docs: folder of the page.
        names: names of the stages to run.
        seeds: number of arms for the spread of the values.
    """
    code = state_of_code()
    folder.parent.mkdir(parents=True, exist_ok=True)
    if DATA.is_dir():
        RECORDED.write_text(json.dumps(recorded(), indent=1) + "\n", encoding="utf-8")
    real = json.loads(RECORDED.read_text(encoding="utf-8"))
    stages = [stage for stage in STAGES if stage.name in names]
    with progress("papers") as bar:
        results = run_papers(
            folder, seeds=seeds, recorded=real, stages=stages, progress=bar
        )
    failed = [error for result in results for error in result.errors]
    if failed:
        raise SystemExit("\n".join(failed))
    docs.mkdir(parents=True, exist_ok=True)
    copy_pictures(results, folder, docs / IMAGES)
    (docs / NUMBERS).write_text(as_text(results, code, seeds), encoding="utf-8")


# The numbers of the page, in a file of their own.


def state_of_code() -> str:
    """Commit and date of the checkout, and whether it has changes that are not committed.

    Files that this tool writes do not count as changes.
    """
    made = (DOCS / MARKDOWN, DOCS / NUMBERS, DOCS / IMAGES, RECORDED)
    others = [f":!{path.relative_to(ROOT)}" for path in made]
    commit = _git("log", "-1", "--format=%h of %cs")
    if not commit:
        return f"version {__version__}"
    changed = _git("status", "--porcelain", "--", ".", *others)
    return f"commit {commit}" + (" and changes not committed" if changed else "")


def _git(*arguments: str) -> str:
    """Output of git in the checkout; "" where there is none."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def as_text(results: Sequence[PaperResult], code: str, seeds: int) -> str:
    """The results as JSON, with a line for each row and picture.

    Args:
        results: results for all papers.
        code: words about the code that has made them.
        seeds: number of arms for the spread of the values.
    """
    entries = []
    for result in results:
        for each in result.items:
            place = {"paper": result.paper.key, "place": each.item.place}
            entries += [{**place, "row": _rounded(row)} for row in each.rows]
            for picture in each.pictures:
                shown = {**picture, "file": f"{IMAGES}/{_name(picture['file'])}"}
                entries.append({**place, "picture": _rounded(shown)})
    warnings = {result.paper.key: list(result.warnings) for result in results}
    head = json.dumps({"code": code, "seeds": seeds, "warnings": warnings})
    lines = ",\n".join(json.dumps(plain(entry)) for entry in entries)
    return f'{head[:-1]}, "entries": [\n{lines}\n]}}\n'


def _rounded(value: Any) -> Any:
    """A value of JSON with rounded numbers."""
    match value:
        case float():
            return float(f"{value:.{_DIGITS}g}")
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
        case _:
            return value


def kept_results(content: dict[str, Any]) -> list[PaperResult]:
    """Results for all papers from the numbers of the page.

    Args:
        content: content of papers.json.
    """
    results = []
    for own in papers():
        entries = [each for each in content["entries"] if each["paper"] == own.key]
        known = {item.place: item for item in own.items}
        places = list(dict.fromkeys([*known, *(each["place"] for each in entries)]))
        items = []
        for place in places:
            here = [each for each in entries if each["place"] == place]
            item = known.get(place, PublishedItem(place, "not in the paper"))
            rows = [each["row"] for each in here if "row" in each]
            pictures = [each["picture"] for each in here if "picture" in each]
            items.append(ItemResult(item, rows, pictures))
        results.append(PaperResult(own, items, content["warnings"].get(own.key, ())))
    return results


def rendered(numbers: Path) -> str:
    """The page in Markdown.

    Args:
        numbers: the file papers.json.
    """
    content = json.loads(numbers.read_text(encoding="utf-8"))
    names = ", ".join(
        f"{_type(arm)} {' and '.join(of.values())}" for arm, of in TESTS.items()
    )
    made = MADE.format(code=content["code"], seeds=content["seeds"])
    return markdown(kept_results(content), (made, REAL.format(names=names)))


def copy_pictures(results: Sequence[PaperResult], folder: Path, images: Path) -> None:
    """Copy the pictures from the output folder to the folder of the page's pictures."""
    shutil.rmtree(images, ignore_errors=True)
    images.mkdir(parents=True)
    for result in results:
        for item in result.items:
            for picture in item.pictures:
                shutil.copyfile(folder / picture["file"], images / _name(picture["file"]))


def _name(file: str) -> str:
    """Name of a picture among those of all stages."""
    return f"{Path(file).parts[0]}_{Path(file).name}"


# Values of real recordings.


def recorded() -> dict[str, dict[str, str]]:
    """Values of real recordings by paper, and by key and figure of the row."""
    found: dict[str, dict[str, list[str]]] = {"s0": {}, "s1": {}, "s2": {}}
    with tempfile.TemporaryDirectory() as folder:
        for robot, tests in TESTS.items():
            bags = {test: _bag(Path(folder), robot, name) for test, name in tests.items()}
            for key, row in _rows(robot, bags):
                of_size = row.place in (
                    "Table IV",
                    "Table VI",
                    "Section 3.2",
                    "Section 5",
                )
                if row.here is None or row.input or not (row.published or row.shown):
                    continue
                # other arms have motors of other sizes
                if robot == "ur5e" or not of_size:
                    name = f"{robot} " * (key == "s2") + f"{row.key} {row.figure}"
                    values = found[key].setdefault(name, [])
                    text = f"{_type(robot)} {cell(row.here, '/')}"
                    if row.verdict.startswith(BY_TOLERANCE):
                        text += f" {row.verdict.split(';')[0].split(':')[0]}"
                    values.append(text)
    return {
        key: {row: "; ".join(each) for row, each in rows.items()}
        for key, rows in found.items()
    }


def _bag(folder: Path, robot: str, name: str) -> Path:
    """A CSV recording as a bag."""
    telemetry = read_csv([DATA / f"{name}.csv.gz"], robot)
    with BagWriter(folder / name, telemetry.info, tuple(telemetry.columns)) as writer:
        writer.write(telemetry)
    return folder / name


def _rows(name: str, bags: dict[str, Path]) -> Iterator[tuple[str, ResultRow]]:
    """Rows of the papers whose definitions the recordings of an arm serve."""
    robot = load_robot(name)
    first = bags["A"]
    others = [bag for test, bag in bags.items() if test != "A"]
    options = IdentificationOptions(friction="power_flow")
    model = identify([first], robot, validate=others, options=options).model
    own = paper("s0")
    rows, _ = recorded_rows(own, model, bags, simulated=False)
    for row in (*rows, *inertia_rows(own, model, robot, first, simulated=False)):
        yield "s0", row
    if others:
        yield "s1", s1.recorded_row(paper("s1"), robot, model, first, others[0])
    if name in paper("s2").inputs:
        try:
            ecbot = Ecbot(robot, [first])
        except IdentificationError:  # no bus power
            return
        for row in s2.error_rows(paper("s2"), name, "train", ecbot.test([first]), ecbot):
            yield "s2", row


def _type(robot: str) -> str:
    """Type of an arm as its maker writes it."""
    return robot.upper().replace("E", "e")


if __name__ == "__main__":
    main()
