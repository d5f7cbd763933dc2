# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""All stages run, and published beside obtained: every table and figure as one Markdown page.

`run_stages` runs the protocols in processes of their own, `side_by_side` puts what they
found beside a paper's tables and figures, `markdown` writes the page, and `run_papers` does
all of it.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model import __version__
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.files import write_text
from ur_energy_model.interrupts import postponed
from ur_energy_model.papers.protocol import VERDICT, Paper, PublishedItem, cell, papers
from ur_energy_model.papers.stages import STAGES, Stage
from ur_energy_model.processes import ChildProcess, single_threaded_children
from ur_energy_model.typing import Progress

UNPLACED = "Further figures"
SETTINGS = "settings.json"
ERROR = "error.txt"


class StageResult(NamedTuple):
    """What a stage left in its folder.

    Attributes:
        name: of the stage.
        protocol: "s0" to "s4".
        verdict: content of verdict.json; None if the stage failed or was not run.
        error: why it failed; empty if it did not.
    """

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
        pictures: of "pictures" there, with file (in the output folder), caption and
            robot.
    """

    item: PublishedItem
    rows: Sequence[Mapping[str, Any]] = ()
    pictures: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class PaperResult:
    """What was obtained for a paper.

    Attributes:
        paper: with what it shows.
        items: its tables, figures and sections in order, then what belongs to none of them.
        warnings: of its stages.
        errors: of its stages, with their names.
    """

    paper: Paper
    items: Sequence[ItemResult]
    warnings: Sequence[str] = ()
    errors: Sequence[str] = ()

    @property
    def verdicts(self) -> Counter[str]:
        """Number of rows by verdict, without what differs."""
        return Counter(
            row["verdict"].split(";")[0].split(":")[0]
            for each in self.items
            for row in each.rows
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
        """Key, number of rows, verdicts and missing places, as a row of a table."""
        counts = ", ".join(
            f"{number} {word}" for word, number in sorted(self.verdicts.items())
        )
        return (
            self.paper.key,
            self.verdicts.total(),
            counts,
            ", ".join(self.missing) or "-",
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        items = [
            {
                **{
                    name: getattr(each.item, name)
                    for name in ("place", "shows", "reason")
                },
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
    draw: bool = True,
    stages: Sequence[Stage] = STAGES,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[StageResult]:
    """Run all stages, the longest first; those that an earlier run in this folder ended are kept.

    Args:
        folder: new, empty, or of an earlier run with the same settings.
        seed: see `Stage.run`.
        quick: see there.
        draw: see there.
        stages: to run; results have their order.
        workers: processes at once, None for one per core.
        progress: called with the share of stages done and a text.

    Raises:
        InputError: the folder contains something else.
    """
    prepare(folder, {"version": __version__, "seed": seed, "quick": quick})
    waiting = [stage for stage in stages if stage_result(folder, stage).verdict is None]
    running: dict[Stage, ChildProcess] = {}
    count = workers or os.cpu_count() or 1
    try:
        while waiting or running:
            while waiting and len(running) < count:
                stage = waiting.pop(0)
                shutil.rmtree(folder / stage.name, ignore_errors=True)
                process = ChildProcess(
                    target=_run, args=(stage, folder / stage.name, seed, quick, draw)
                )
                with postponed(), single_threaded_children():
                    process.start()
                    running[stage] = process
            time.sleep(0.2)
            for stage in [
                stage for stage, process in running.items() if not process.is_alive()
            ]:
                code = running.pop(stage).exitcode
                own = folder / stage.name
                if not (own / VERDICT).is_file() and not (own / ERROR).is_file():
                    write_text(own / ERROR, f"its process ended with exit code {code}\n")
            if progress is not None:
                done = len(stages) - len(waiting) - len(running)
                names = ", ".join(stage.name for stage in running)
                progress(
                    done / len(stages), f"{done} of {len(stages)} done; running {names}"
                )
    finally:
        for process in running.values():
            process.kill()
        for process in running.values():
            process.join()
    return [stage_result(folder, stage) for stage in stages]


def stage_result(folder: Path, stage: Stage) -> StageResult:
    """What a stage left in its folder; a damaged verdict counts as none.

    Args:
        folder: with the folders of all stages.
        stage: one of them.
    """
    verdict = folder / stage.name / VERDICT
    error = folder / stage.name / ERROR
    if verdict.is_file():
        with suppress(ValueError):  # one that is damaged is repeated
            content = json.loads(verdict.read_text(encoding="utf-8"))
            return StageResult(stage.name, stage.protocol, content, "")
    reason = (
        error.read_text(encoding="utf-8").strip() if error.is_file() else "was not run"
    )
    return StageResult(stage.name, stage.protocol, None, reason)


def prepare(folder: Path, settings: dict[str, Any]) -> None:
    """Make the output folder, or accept one that was begun with the same settings.

    Args:
        folder: of the output.
        settings: that results depend on.

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
        raise InputError(
            folder, "exists and was not begun by 'ur_energy protocol all'", remedy
        )
    try:
        earlier = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        earlier = None
    if earlier != settings:
        raise InputError(folder, f"was begun with other settings ({earlier})", remedy)


def _run(stage: Stage, folder: Path, seed: int, quick: bool, draw: bool) -> None:
    """One stage, in its process; what goes wrong is left in the folder."""
    try:
        stage.run(folder, seed=seed, quick=quick, progress=lambda *_: None, draw=draw)
    except UrEnergyError as error:
        write_text(folder / ERROR, f"{error}\n")
    except Exception:
        write_text(folder / ERROR, traceback.format_exc())


# papers.md: published beside obtained.

TITLE = "The papers, side by side"
INTRODUCTION = (
    "Every table and figure of the papers that this package builds on: published beside obtained "
    "by the same definition, '-' where the copy at hand has no value. Arms of the columns here and "
    "of many arms are simulated; arms and data are never those of the paper."
)
VERDICTS = (
    "Verdicts: 'agrees' and 'differs' are by the tolerance of the row, with its reason; 'input': "
    "a constant of the run; 'not evidence': simulator and model share the constant; 'see text': "
    "words, or values to compare by eye. Strokes separate joints; letters in parentheses are "
    "definitions."
)
ERRATA = "What does not hold as printed in the copies at hand; the paper alone shows why."
FEWEST = 5
_ALIKE = 1e-3
"""Values from which on a spread is shown or inputs are only counted; deviation of like values."""
SUMMARY = ("paper", "rows", "verdicts", "nothing obtained")
_AS_ALWAYS = ("; another arm and data", "; another data", "; another arm")
"""Differences that the introduction states for all rows."""


def side_by_side(
    paper: Paper,
    results: Sequence[StageResult],
    seeds: Sequence[Sequence[StageResult]] = (),
    recorded: Mapping[str, str] | None = None,
) -> PaperResult:
    """The paper with the rows and pictures of its stages at its tables and figures.

    Args:
        paper: with what it shows.
        results: of all stages; those of other papers are passed over.
        seeds: the same stages with other arms and seeds, for the spread of values.
        recorded: values of real recordings as text, by the key of a row and its figure, or
            by the arm and these, joined by spaces.
    """
    known = recorded or {}
    own = [result for result in results if result.protocol == paper.key]
    others: dict[tuple[str, str, str], list[Any]] = {}
    for result in chain.from_iterable(seeds):
        for row in (result.verdict or {"figures": ()})["figures"]:
            others.setdefault((result.name, row["key"], row["figure"]), []).append(
                row["here"]
            )
    rows: dict[str, list[Mapping[str, Any]]] = {}
    pictures: dict[str, list[Mapping[str, Any]]] = {}
    for result in own:
        verdict = result.verdict or {"figures": [], "pictures": [], "robot": ""}
        robot = {"robot": verdict["robot"]}
        for row in verdict["figures"]:
            found = others.get((result.name, row["key"], row["figure"]), ())
            name = f"{row['key']} {row['figure']}"
            own_arm = known.get(name, known.get(f"{verdict['robot']} {name}", ""))
            more = {"many": spread(found, row["published"]), "recorded": own_arm}
            rows.setdefault(row["place"], []).append(row | robot | more)
        for picture in verdict["pictures"]:
            place, _, caption = picture["caption"].partition(": ")
            file = f"{result.name}/{picture['file']}"
            pictures.setdefault(place, []).append(
                {"file": file, "caption": caption, **robot}
            )
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


def spread(values: Sequence[Any], published: Any) -> str:
    """How the values of many arms lie about the published one.

    Args:
        values: of the arms, the first one that of the page.
        published: value of the paper.

    Returns:
        The first value, the 5 to 95 % range and the percentile of the published value; of
        several numbers the percentiles alone. Empty for words, for values that are not
        published, for too few of them, or for ones that hardly differ.
    """
    if published is None:
        return ""
    try:
        found = np.array([each for each in values if each is not None], dtype=float)
        theirs = np.array(published, dtype=float)
    except (TypeError, ValueError):  # words, or values of several kinds
        return ""
    if (
        len(found) < FEWEST
        or theirs.shape != found.shape[1:]
        or not np.isfinite(found).all()
    ):
        return ""
    if np.all(found.std(axis=0) <= _ALIKE * np.abs(found.mean(axis=0))):
        return ""
    below = 100 * ((found < theirs).mean(axis=0) + (found <= theirs).mean(axis=0)) / 2
    if found.ndim > 1:
        return f"p{cell(np.round(below), '/')}"
    low, high = np.percentile(found, (5, 95)).tolist()
    return f"{found[0]:.3g} [{low:.3g}..{high:.3g}] p{below:.0f}"


def markdown(
    results: Sequence[PaperResult],
    remarks: Sequence[str] = (),
    place: Callable[[str], str] = lambda file: file,
) -> str:
    """The page.

    Args:
        results: of the papers, in order.
        remarks: about the run.
        place: returns where a picture of the output folder is, seen from the page.
    """
    lines = [f"# {TITLE}", "", INTRODUCTION, "", VERDICTS, ""]
    lines += [*(f"- {remark}" for remark in remarks), ""] if remarks else []
    lines += [
        f"- **{each.paper.key}**: {' '.join(each.paper.summary)}" for each in results
    ]
    lines += ["", *_table(SUMMARY, [result.summary() for result in results])]
    for result in results:
        paper = result.paper
        arms = dict.fromkeys(row["robot"] for each in result.items for row in each.rows)
        about = f"{paper.source}. Simulated here: {', '.join(arms) or 'nothing'}."
        lines += ["", f"## {paper.key}: {paper.title}", "", about, ""]
        lines += [f"- failed: {error.splitlines()[-1]}" for error in result.errors]
        lines += [f"- {warning}" for warning in result.warnings]
        empty = [
            each.item for each in result.items if not each.rows and not each.pictures
        ]
        for each in result.items:
            item = each.item
            if each.rows:
                lines += ["", f"### {item.place}: {item.shows}", "", *_of_rows(each.rows)]
            for picture in each.pictures:
                arm = f", {picture['robot']}" if len(arms) > 1 else ""
                lines += [f"![]({place(picture['file'])})", ""]
                lines += [f"{item.place}{arm}: {picture['caption']}", ""]
        if empty:
            reasons = (
                f"{item.place} ({item.reason or 'not obtained'})" for item in empty
            )
            lines += ["", f"Without a value here: {'; '.join(reasons)}."]
    errata = [
        f"- {result.paper.key}, {each.place}: {each.text}"
        for result in results
        for each in result.paper.errata
    ]
    lines += ["", "## Errata", "", ERRATA, "", *errata] if errata else []
    return "\n".join(lines).rstrip() + "\n"


_MORE = {"of many arms": "many", "recorded": "recorded"}
"""Columns that a table has where any row fills them, and the keys of their cells."""


def _of_rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is published or shown as a table with its definitions; of the rest the number.

    Several arms have a column each, and a figure one row.
    """
    inputs = [row for row in rows if row["verdict"] == "input"]
    shown = [row for row in rows if row not in inputs and _is_shown(row)]
    definitions = dict.fromkeys(row["definition"] for row in shown if row["definition"])
    letters = {text: chr(ord("a") + number) for number, text in enumerate(definitions)}
    names = []
    for row in shown:
        letter = letters.get(row["definition"])
        names.append(row["figure"] if letter is None else f"{row['figure']} ({letter})")
    arms = list(dict.fromkeys(row["robot"] for row in shown))
    lines: list[str] = []
    if len(arms) == 1:
        lines += [*_table_of_one_arm(names, shown), ""]
    elif arms:
        lines += [*_table_of_arms(names, shown, arms), ""]
    if letters:
        notes = [f"({letter}) {text}" for text, letter in letters.items()]
        lines += [f"{'. '.join(notes)}.", ""]
    if inputs:
        taken = list(dict.fromkeys(row["figure"] for row in inputs))
        text = ", ".join(taken) if len(taken) < FEWEST else f"{len(taken)} figures"
        lines += [f"Input: {text}.", ""]
    unpublished = len(rows) - len(shown) - len(inputs)
    if unpublished:
        lines += [f"Not published: {unpublished}.", ""]
    return lines


def _is_shown(row: Mapping[str, Any]) -> bool:
    """Whether the page has a row that is no input."""
    return bool(row["verdict"] != "not published" or row["shown"])


def _table_of_one_arm(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    """A line for each row, with what other arms show, where any row has that."""
    more = {head: key for head, key in _MORE.items() if any(row.get(key) for row in rows)}
    heads = ["figure", "published", "here", *more, "", "tolerance"]
    lines = []
    for name, row in zip(names, rows, strict=True):
        others = [row.get(key, "") for key in more.values()]
        values = [cell(row["published"], "/"), cell(row["here"], "/")]
        lines.append([name, *values, *others, _short_verdict(row), _tolerance(row)])
    return _table(heads, lines)


def _table_of_arms(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], arms: Sequence[str]
) -> list[str]:
    """A line for each figure, with all that is known of an arm in its column."""
    figures: dict[str, dict[str, str]] = {}
    tolerances: dict[str, str] = {}
    for name, row in zip(names, rows, strict=True):
        here = [cell(row["published"], "/"), cell(row["here"], "/"), _short_verdict(row)]
        parts = [", ".join(filter(None, here))]
        parts += [row.get(key, "") for key in _MORE.values()]
        tolerances.setdefault(name, _tolerance(row))
        figures.setdefault(name, {})[row["robot"]] = "; ".join(filter(None, parts))
    heads = ["figure", *(f"{arm}: published, here" for arm in arms), "tolerance"]
    lines = []
    for name, by_arm in figures.items():
        lines.append([name, *(by_arm.get(arm, "") for arm in arms), tolerances[name]])
    return _table(heads, lines)


def _short_verdict(row: Mapping[str, Any]) -> str:
    """The verdict of a row without what the introduction states for all rows."""
    verdict = str(row["verdict"]).replace("not published", "")
    for always in _AS_ALWAYS:
        if verdict.endswith(always):
            return verdict.removesuffix(always)
    return verdict


def _tolerance(row: Mapping[str, Any]) -> str:
    """Tolerance and its reason, or that of a range; empty where it decides nothing."""
    if not row["because"] or not row["verdict"].startswith(("agrees", "differs")):
        return ""
    relative = "" if row["tolerance"] is None else f"{100 * row['tolerance']:g}%: "
    return f"{relative}{row['because']}"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [
        [str(text).replace("|", "\\|").replace("\n", " ") for text in row] for row in rows
    ]
    first, *others = ["|" + "|".join(line) + "|" for line in (head, *lines)]
    return [first, "|" + "---|" * len(head), *others]


# `ur_energy protocol all`: all stages, then papers.md.

MARKDOWN = "papers.md"
SPREAD = {"s0", "s1", "s2", "s4"}  # protocols with figures that differ from arm to arm
QUICK = "Made with --quick: shorter motions, smaller searches, a shorter warm-up."


def run_papers(
    folder: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    seeds: int = 0,
    recorded: Mapping[str, Mapping[str, str]] | None = None,
    stages: Sequence[Stage] = STAGES,
    progress: Progress | None = None,
) -> list[PaperResult]:
    """Run every protocol on simulated arms and write the page.

    Args:
        folder: of the output, see `run_stages`.
        seed: see `Stage.run`.
        quick: see there.
        seeds: number of further quick runs, for the spread of the figures: the same arms
            first, then others; of the protocols in `SPREAD`.
        recorded: see `side_by_side`, by the key of a paper.
        stages: to run.
        progress: called with the share of stages done and a text.

    Raises:
        InputError: the folder contains something else.
    """
    done = run_stages(folder, seed=seed, quick=quick, stages=stages, progress=progress)
    others = []
    spread_of = [stage for stage in stages if stage.protocol in SPREAD]
    for k in range(seeds):
        own = folder / f"seed_{seed + k}"
        settings = {"quick": True, "draw": False}
        found = run_stages(
            own, seed=seed + k, stages=spread_of, progress=progress, **settings
        )
        others.append(found)
        for file in own.glob("*/*"):  # bags of many runs are large
            if file.name not in (VERDICT, ERROR):
                shutil.rmtree(file) if file.is_dir() else file.unlink()
    known = recorded or {}
    results = [side_by_side(each, done, others, known.get(each.key)) for each in papers()]
    write_text(folder / MARKDOWN, markdown(results, (QUICK,) if quick else ()))
    return results
