"""All stages run, and published beside obtained: every table and figure as one Markdown page."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from ur_energy_model import __version__
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.files import write_text
from ur_energy_model.interrupts import single_threaded_children, start_ignoring_interrupts
from ur_energy_model.papers.protocol import VERDICT, Paper, PublishedItem, cell, papers
from ur_energy_model.papers.stages import STAGES, Stage
from ur_energy_model.typing import Progress

UNPLACED = "Further figures"
SETTINGS, ERROR = "settings.json", "error.txt"
_POLL = 0.2
"""Time between polls of the processes [s]."""


class StageResult(NamedTuple):
    """What a stage left in its folder: the content of verdict.json, or why it failed."""

    name: str
    protocol: str
    verdict: dict[str, Any] | None
    error: str


@dataclass(frozen=True)
class ItemResult:
    """What was obtained for a table, figure or section of a paper.

    Attributes:
        item: of the paper.
        rows: entries of "figures" in verdict.json, with the arm as "robot".
        pictures: of "pictures" there, with file (in the output folder), caption and robot.
    """

    item: PublishedItem
    rows: Sequence[Mapping[str, Any]] = ()
    pictures: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class PaperResult:
    """What was obtained for a paper: its items in order, then what belongs to none of them.

    Warnings and errors are those of its stages.
    """

    paper: Paper
    items: Sequence[ItemResult]
    warnings: Sequence[str] = ()
    errors: Sequence[str] = ()

    @property
    def verdicts(self) -> Counter[str]:
        """Number of rows by verdict, without what differs."""
        return Counter(
            row["verdict"].split(";")[0].split(":")[0] for each in self.items for row in each.rows
        )

    @property
    def missing(self) -> list[str]:
        """Places of the items for which nothing was obtained although something could be."""
        return [
            each.item.place
            for each in self.items
            if not (each.item.reason or each.pictures)
            and all(row["here"] is None for row in each.rows)
        ]

    def summary(self) -> tuple[str, int, str, str]:
        """Source, number of rows, verdicts and missing places, as a row of a table."""
        counts = ", ".join(f"{number} {word}" for word, number in sorted(self.verdicts.items()))
        where = f"{self.paper.key} {self.paper.source}"
        return where, self.verdicts.total(), counts, ", ".join(self.missing) or "-"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        items = [
            {
                **{name: getattr(each.item, name) for name in ("place", "shows", "reason")},
                "rows": each.rows,
                "pictures": [picture["file"] for picture in each.pictures],
            }
            for each in self.items
        ]
        return {
            "source": self.paper.source,
            "items": items,
            "verdicts": dict(self.verdicts),
            "missing": self.missing,
            "warnings": list(self.warnings),
            "errors": list(self.errors),
        }


# All stages, several at once in processes of their own; a stopped run is continued.


def run_stages(
    folder: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    stages: Sequence[Stage] = STAGES,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[StageResult]:
    """Run all stages, the longest first; those that an earlier run in this folder ended are kept.

    Args:
        folder: new, empty, or of an earlier run with the same settings.
        seed: see `Stage.run`.
        quick: see there.
        stages: to run; results have their order.
        workers: processes at once, None for one per core.
        progress: called with the share of stages done and a text.

    Raises:
        InputError: the folder contains something else.
    """
    prepare(folder, {"version": __version__, "seed": seed, "quick": quick})
    waiting = [stage for stage in stages if stage_result(folder, stage).verdict is None]
    running: dict[Stage, BaseProcess] = {}
    context = multiprocessing.get_context("spawn")
    count = workers or os.cpu_count() or 1
    try:
        while waiting or running:
            while waiting and len(running) < count:
                stage = waiting.pop(0)
                shutil.rmtree(folder / stage.name, ignore_errors=True)
                process: BaseProcess = context.Process(
                    target=_run, args=(stage, folder / stage.name, seed, quick)
                )
                with single_threaded_children():
                    start_ignoring_interrupts(process)
                running[stage] = process
            time.sleep(_POLL)
            for stage in [stage for stage, process in running.items() if not process.is_alive()]:
                code, own = running.pop(stage).exitcode, folder / stage.name
                if not (own / VERDICT).is_file() and not (own / ERROR).is_file():
                    write_text(own / ERROR, f"its process ended with exit code {code}\n")
            if progress is not None:
                done = len(stages) - len(waiting) - len(running)
                names = ", ".join(stage.name for stage in running)
                progress(done / len(stages), f"{done} of {len(stages)} done; running {names}")
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.join()
    return [stage_result(folder, stage) for stage in stages]


def stage_result(folder: Path, stage: Stage) -> StageResult:
    """What a stage left in its folder below `folder`."""
    verdict, error = folder / stage.name / VERDICT, folder / stage.name / ERROR
    if verdict.is_file():
        with suppress(ValueError):  # one that is damaged is repeated
            content = json.loads(verdict.read_text(encoding="utf-8"))
            return StageResult(stage.name, stage.protocol, content, "")
    reason = error.read_text(encoding="utf-8").strip() if error.is_file() else "was not run"
    return StageResult(stage.name, stage.protocol, None, reason)


def prepare(folder: Path, settings: dict[str, Any]) -> None:
    """Make the output folder, or accept one that was begun with the same settings.

    Raises:
        InputError: it contains something else, or other settings.
    """
    file = folder / SETTINGS
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(settings) + "\n")
        return
    remedy = "choose another folder, or delete this one"
    if not file.is_file():
        raise InputError(folder, "exists and was not begun by 'ur_energy protocol all'", remedy)
    try:
        earlier = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        earlier = None
    if earlier != settings:
        raise InputError(folder, f"was begun with other settings ({earlier})", remedy)


def _run(stage: Stage, folder: Path, seed: int, quick: bool) -> None:
    """One stage, in its process; what goes wrong is left in the folder."""
    try:
        stage.run(folder, seed=seed, quick=quick, progress=lambda fraction, text: None)
    except UrEnergyError as error:
        write_text(folder / ERROR, f"{error}\n")
    except Exception:
        write_text(folder / ERROR, traceback.format_exc())


# papers.md: published beside obtained.

TITLE = "The papers, side by side"
INTRODUCTION = (
    "Every table and figure of the papers that this package builds on, the published value beside "
    "the one obtained here by the same definition. Here every arm is simulated: the individual "
    "arm, and so its data, differ from those of the papers, and a row that agrees states that the "
    "method gives a value of that size, not that their experiment was repeated."
)
VERDICTS = (
    "Verdicts: 'agrees' and 'differs' are by the tolerance of the row, and name what differs "
    "besides (arm, data or method); 'not published': the paper has no number; 'not obtained': "
    "nothing was measured here; 'see text': the paper gives words, or values to compare by eye."
)
COLUMNS = ("figure", "arm", "published", "here", "definition", "verdict")
SUMMARY = ("paper", "rows", "verdicts", "nothing obtained")


def side_by_side(paper: Paper, results: Sequence[StageResult]) -> PaperResult:
    """The paper with the rows and pictures of its stages at its tables and figures."""
    own = [result for result in results if result.protocol == paper.key]
    rows: dict[str, list[Mapping[str, Any]]] = {}
    pictures: dict[str, list[Mapping[str, Any]]] = {}
    for result in own:
        verdict = result.verdict or {"figures": [], "pictures": [], "robot": ""}
        robot = {"robot": verdict["robot"]}
        for row in verdict["figures"]:
            rows.setdefault(row["place"], []).append(row | robot)
        for picture in verdict["pictures"]:
            place, _, caption = picture["caption"].partition(": ")
            file = f"{result.name}/{picture['file']}"
            pictures.setdefault(place, []).append({"file": file, "caption": caption, **robot})
    items = [
        ItemResult(item, rows.pop(item.place, ()), pictures.pop(item.place, ()))
        for item in paper.items
    ]
    if rows or pictures:
        left = (list(chain(*each.values())) for each in (rows, pictures))
        items.append(ItemResult(PublishedItem(UNPLACED, "not in the paper"), *left))
    warnings = [text for each in own for text in (each.verdict or {}).get("warnings", ())]
    errors = [f"{each.name}: {each.error}" for each in own if each.error]
    return PaperResult(paper, items, list(dict.fromkeys(warnings)), errors)


def markdown(
    results: Sequence[PaperResult],
    remarks: Sequence[str] = (),
    place: Callable[[str], str] = lambda file: file,
) -> str:
    """The page, with remarks about the run; `place` gives where a picture is, seen from it."""
    lines = [f"# {TITLE}", "", INTRODUCTION, "", VERDICTS, ""]
    lines += [*(f"- {remark}" for remark in remarks), ""] if remarks else []
    lines += _table(SUMMARY, [result.summary() for result in results])
    for result in results:
        paper = result.paper
        lines += ["", f"## {paper.key}: {paper.title}", "", f"{paper.source}.", ""]
        lines += [f"- failed: {error.splitlines()[-1]}" for error in result.errors]
        lines += [f"- {warning}" for warning in result.warnings]
        for each in result.items:
            item = each.item
            lines += ["", f"### {item.place}: {item.shows}", ""]
            if each.rows:
                lines += [*_table(COLUMNS, [_cells(row) for row in each.rows]), ""]
            for picture in each.pictures:
                caption = picture["caption"]
                lines += [f"![{caption}]({place(picture['file'])})", ""]
                lines += [f"{picture['robot']}: {caption}", ""]
            if not each.rows and not each.pictures:
                lines += [f"{item.reason[:1].upper()}{item.reason[1:] or 'Not obtained'}."]
    return "\n".join(lines).rstrip() + "\n"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells of a row in the order of `COLUMNS`."""
    values = (row["figure"], row["robot"], row["published"], row["here"])
    return (*map(cell, values), str(row["definition"]) or "-", str(row["verdict"]))


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [head, ["---"] * len(head)]
    lines += [[str(text).replace("|", "\\|").replace("\n", " ") for text in row] for row in rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


# `ur_energy protocol all`: all stages, then papers.md.

MARKDOWN = "papers.md"
QUICK = "Made with --quick: shorter motions, smaller searches, a shorter warm-up."


def run_papers(
    folder: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    stages: Sequence[Stage] = STAGES,
    progress: Progress | None = None,
) -> list[PaperResult]:
    """Run every protocol on simulated arms and write the page; see `run_stages`."""
    done = run_stages(folder, seed=seed, quick=quick, stages=stages, progress=progress)
    results = [side_by_side(paper, done) for paper in papers()]
    write_text(folder / MARKDOWN, markdown(results, (QUICK,) if quick else ()))
    return results
