# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Makes docs/papers/papers.md and its pictures: every protocol on simulated arms.

python -m tools.papers [FOLDER]

An interrupted run in the same FOLDER (default build/papers) continues. Values of real
recordings are those of tools/papers_recorded.json; it is made anew where ../shared/data
has the recordings.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli.output import progress
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.robots import load_robot
from ur_energy_model.papers import s1, s2
from ur_energy_model.papers.page import (
    BY_TOLERANCE,
    PaperResult,
    markdown,
    run_papers,
)
from ur_energy_model.papers.published import ResultRow, cell, paper
from ur_energy_model.papers.s0_inertia import inertia_rows
from ur_energy_model.papers.s0_tables import recorded_rows
from ur_energy_model.papers.s2_models import Ecbot
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.csv.reader import read_csv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "papers" / "papers.md"
IMAGES = PAGE.parent / "images"
DATA = ROOT.parent / "shared" / "data"
RECORDED = ROOT / "tools" / "papers_recorded.json"
SEEDS = 20
REMARK = (
    "Made by `make papers`: here is seed 0. Of many arms: {seeds} arms in short runs, the first of "
    "them that of here: its value, [5..95 %] of all, percentile p of the published value."
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


def main() -> None:
    """Run the protocols, then write the page and copy its pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "papers"
    folder.parent.mkdir(parents=True, exist_ok=True)
    if DATA.is_dir():
        RECORDED.write_text(json.dumps(recorded(), indent=1) + "\n", encoding="utf-8")
    real = json.loads(RECORDED.read_text(encoding="utf-8"))
    with progress("papers") as bar:
        results = run_papers(folder, seeds=SEEDS, recorded=real, progress=bar)
    failed = [error for result in results for error in result.errors]
    if failed:
        raise SystemExit("\n".join(failed))
    publish(folder, results)


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


def publish(folder: Path, results: Sequence[PaperResult]) -> None:
    """Write the page, and copy its pictures from the output folder."""
    shutil.rmtree(IMAGES, ignore_errors=True)
    IMAGES.mkdir(parents=True)
    for result in results:
        for item in result.items:
            for picture in item.pictures:
                shutil.copyfile(folder / picture["file"], IMAGES / _name(picture["file"]))
    names = ", ".join(
        f"{_type(arm)} {' and '.join(of.values())}" for arm, of in TESTS.items()
    )
    remarks = REMARK.format(seeds=SEEDS), REAL.format(names=names)
    page = markdown(results, remarks, lambda file: f"images/{_name(file)}")
    PAGE.write_text(page, encoding="utf-8")
    print(PAGE)


def _type(robot: str) -> str:
    """Type of an arm as its maker writes it."""
    return robot.upper().replace("E", "e")


def _name(file: str) -> str:
    """Name of a picture among those of all stages."""
    return f"{Path(file).parts[0]}_{Path(file).name}"


if __name__ == "__main__":
    main()
