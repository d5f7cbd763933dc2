# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Published beside obtained: every table and figure of the papers as one Markdown page.

`side_by_side` puts results of stages beside the tables and figures of a paper, `markdown`
makes the page, and `run_papers` runs all stages and writes the page.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.files import write_text
from ur_energy_model.papers.pictures import r2_text
from ur_energy_model.papers.protocol import VERDICT
from ur_energy_model.papers.published import (
    VERDICTS,
    Paper,
    PublishedItem,
    cell,
    papers,
)
from ur_energy_model.papers.stage_runs import ERROR, StageResult, run_stages
from ur_energy_model.papers.stages import STAGES, Stage
from ur_energy_model.typing import Progress

UNPLACED = "Further figures"  # heading of rows and pictures that belong to no item


@dataclass(frozen=True)
class ItemResult:
    """Results for a table, figure or section of a paper.

    Attributes:
        item: table, figure or section of the paper.
        rows: entries of "figures" in verdict.json, each with the arm as "robot", and with
            "many" and "recorded" for the columns of the page.
        pictures: entries with "file" in the output folder, "caption", "robot" and "r2" by
            curve and panel.
    """

    item: PublishedItem
    rows: Sequence[Mapping[str, Any]] = ()
    pictures: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class PaperResult:
    """Results for a paper.

    Attributes:
        paper: contents of the paper.
        items: results for tables, figures and sections in the order of the paper, then
            results that belong to no item.
        warnings: warnings of the stages.
        errors: errors of the stages, each after the name of the stage.
    """

    paper: Paper
    items: Sequence[ItemResult]
    warnings: Sequence[str] = ()
    errors: Sequence[str] = ()

    @property
    def verdicts(self) -> Counter[str]:
        """Number of rows by verdict, without the notes and conditions that follow it."""
        counts: Counter[str] = Counter()
        for item in self.items:
            counts.update(_first_words(row["verdict"]) for row in item.rows)
        return counts

    @property
    def missing(self) -> list[str]:
        """Places of the items for which nothing was obtained although something could be."""
        places = []
        for result in self.items:
            cannot = bool(result.item.reason)
            has_value = any(row["here"] is not None for row in result.rows)
            if not (cannot or result.pictures or has_value):
                places.append(result.item.place)
        return places

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
        """The results as plain values for JSON."""
        items = [
            {
                "place": each.item.place,
                "shows": each.item.shows,
                "reason": each.item.reason,
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


def _first_words(verdict: str) -> str:
    """A verdict without its note (after a colon) and its conditions (after a semicolon)."""
    return verdict.split(";")[0].split(":")[0]


# papers.md: published beside obtained.

TITLE = "The papers, side by side"
INTRODUCTION = (
    "Every table and figure of the papers that this package builds on: published beside obtained "
    "by the same definition, '-' where the copy at hand has no value. Arms of the columns here and "
    "of many arms are simulated; arms and data are never those of the paper. What the simulator is "
    "given, a run can only recover: such rows have a verdict of their own."
)
NOTATION = "Strokes separate joints; letters in parentheses are definitions."
ERRATA = "What does not hold as printed in the copies at hand; the paper alone shows why."
FEWEST_ARMS = 5  # least number of arms for a spread
_FEWEST_COUNTED = 5  # least number of inputs that are counted instead of named
_ALIKE = 1e-3  # largest relative standard deviation of values that count as one value
SUMMARY = ("paper", "rows", "verdicts", "nothing obtained")  # heads of the first table
BY_TOLERANCE = ("agrees", "recovered", "differs")
"""Beginnings of the verdicts that the tolerance of the row decides."""
_AS_ALWAYS = ("; another arm and data", "; another data", "; another arm")
"""Differences that the introduction states for all rows."""


def side_by_side(
    paper: Paper,
    results: Sequence[StageResult],
    seeds: Sequence[Sequence[StageResult]] = (),
    recorded: Mapping[str, str] | None = None,
) -> PaperResult:
    """Results of the stages of a paper, sorted by its tables, figures and sections.

    Args:
        paper: contents of the paper.
        results: results of all stages; stages of other papers are passed over.
        seeds: results of the same stages with other arms and seeds, for the spread of
            values.
        recorded: values of real recordings as text, by the key of a row and its figure
            joined by a space, or by the arm, the key and the figure joined by spaces.
    """
    known = recorded or {}
    of_many_arms = _values_by_row(seeds)
    rows: dict[str, list[Mapping[str, Any]]] = {}
    pictures: dict[str, list[Mapping[str, Any]]] = {}
    warnings: list[str] = []
    errors = []
    for result in results:
        if result.protocol != paper.key:
            continue
        if result.error:
            errors.append(f"{result.name}: {result.error}")
        verdict = result.verdict
        if verdict is None:
            continue
        warnings += verdict["warnings"]
        robot = verdict["robot"]
        for row in verdict["figures"]:
            found = of_many_arms.get((result.name, row["key"], row["figure"]), ())
            name = f"{row['key']} {row['figure']}"
            more = {
                "robot": robot,
                "many": spread(found, row["published"]),
                "recorded": known.get(name, known.get(f"{robot} {name}", "")),
            }
            rows.setdefault(row["place"], []).append(row | more)
        for picture in verdict["pictures"]:
            place, _, caption = picture["caption"].partition(": ")
            file = f"{result.name}/{picture['file']}"
            entry = {
                "file": file,
                "caption": caption,
                "robot": robot,
                "r2": picture.get("r2", {}),
            }
            pictures.setdefault(place, []).append(entry)
    items = [
        ItemResult(item, rows.pop(item.place, ()), pictures.pop(item.place, ()))
        for item in paper.items
    ]
    if rows or pictures:
        unplaced = ItemResult(
            PublishedItem(UNPLACED, "not in the paper"),
            list(chain.from_iterable(rows.values())),
            list(chain.from_iterable(pictures.values())),
        )
        items.append(unplaced)
    return PaperResult(paper, items, list(dict.fromkeys(warnings)), errors)


def _values_by_row(
    seeds: Sequence[Sequence[StageResult]],
) -> dict[tuple[str, str, str], list[Any]]:
    """Values of many arms, by the name of the stage, the key and the figure of the row.

    Args:
        seeds: results of the same stages with other arms and seeds.
    """
    values: dict[tuple[str, str, str], list[Any]] = {}
    for result in chain.from_iterable(seeds):
        if result.verdict is None:
            continue
        for row in result.verdict["figures"]:
            name = (result.name, row["key"], row["figure"])
            values.setdefault(name, []).append(row["here"])
    return values


def spread(values: Sequence[Any], published: Any) -> str:
    """How the values of many arms lie about the published value, as text.

    Args:
        values: value of each arm; the first arm is the arm of the page.
        published: value of the paper.

    Returns:
        The first value, the 5 to 95 % range and the percentile of the published value;
        for rows with several numbers the percentiles alone. Empty for words, for values
        that the paper does not publish, for fewer than five arms, and for values that
        hardly differ.
    """
    if published is None:
        return ""
    try:
        found = np.array([each for each in values if each is not None], dtype=float)
        theirs = np.array(published, dtype=float)
    except (TypeError, ValueError):  # words, or values of several kinds
        return ""
    if len(found) < FEWEST_ARMS or theirs.shape != found.shape[1:]:
        return ""
    if not np.isfinite(found).all():
        return ""
    if np.all(found.std(axis=0) <= _ALIKE * np.abs(found.mean(axis=0))):
        return ""
    # Percentile: the mean of the shares below, and below or equal.
    less = (found < theirs).mean(axis=0)
    less_or_equal = (found <= theirs).mean(axis=0)
    below = 100 * (less + less_or_equal) / 2
    if found.ndim > 1:
        return f"p{cell(np.round(below), '/')}"
    low, high = np.percentile(found, (5, 95)).tolist()
    return f"{found[0]:.3g} [{low:.3g}..{high:.3g}] p{below:.0f}"


def markdown(results: Sequence[PaperResult], remarks: Sequence[str] = ()) -> str:
    """The page in Markdown.

    Args:
        results: results for the papers, in order; files of pictures are seen from the page.
        remarks: sentences about the run.
    """
    lines = [f"# {TITLE}", "", INTRODUCTION, "", "Verdicts:", ""]
    lines += [f"- '{word}': {meaning}" for word, meaning in VERDICTS.items()]
    lines += ["", NOTATION, ""]
    if remarks:
        lines += [f"- {remark}" for remark in remarks]
        lines.append("")
    for result in results:
        lines.append(f"- **{result.paper.key}**: {' '.join(result.paper.summary)}")
    lines += ["", *_table(SUMMARY, [result.summary() for result in results])]
    errata: list[str] = []
    for result in results:
        lines += _chapter(result)
        errata += [
            f"- {result.paper.key}, {erratum.place}: {erratum.text}"
            for erratum in result.paper.errata
        ]
    if errata:
        lines += ["", "## Errata", "", ERRATA, "", *errata]
    return "\n".join(lines).rstrip() + "\n"


def _chapter(result: PaperResult) -> list[str]:
    """Lines of the chapter of a paper: source, errors, warnings, then its items in order."""
    paper = result.paper
    arms = list(dict.fromkeys(row["robot"] for each in result.items for row in each.rows))
    about = f"{paper.source}. Simulated here: {', '.join(arms) or 'nothing'}."
    lines = ["", f"## {paper.key}: {paper.title}", "", about, ""]
    lines += [f"- failed: {error.splitlines()[-1]}" for error in result.errors]
    lines += [f"- {warning}" for warning in result.warnings]
    without_value = []
    for each in result.items:
        item = each.item
        if each.rows:
            lines += ["", f"### {item.place}: {item.shows}", "", *_of_rows(each.rows)]
        for picture in each.pictures:
            arm = f", {picture['robot']}" if len(arms) > 1 else ""
            lines += [f"![]({picture['file']})", ""]
            texts = filter(None, [picture["caption"], r2_text(picture["r2"])])
            lines += [f"{item.place}{arm}: {'; '.join(texts)}", ""]
        if not each.rows and not each.pictures:
            without_value.append(f"{item.place} ({item.reason or 'not obtained'})")
    if without_value:
        lines += ["", f"Without a value here: {'; '.join(without_value)}."]
    return lines


_MORE = {"of many arms": "many", "recorded": "recorded"}
"""Heads of columns that a table has where any row fills them, and the keys of their cells."""


def _of_rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of an item: a table of its rows, their definitions, inputs, and a count.

    Rows that the paper does not publish are only counted. Where several arms were run,
    each arm has a column, and a figure has one line.

    Args:
        rows: rows of the item.
    """
    inputs = [row for row in rows if row["verdict"] == "input"]
    shown = [row for row in rows if row not in inputs and _is_shown(row)]
    definitions = dict.fromkeys(filter(None, map(_definition, shown)))
    letters = {text: chr(ord("a") + number) for number, text in enumerate(definitions)}
    names = []
    for row in shown:
        letter = letters.get(_definition(row))
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
        text = f"{len(taken)} figures"
        if len(taken) < _FEWEST_COUNTED:
            text = ", ".join(taken)
        lines += [f"Input: {text}.", ""]
    unpublished = len(rows) - len(shown) - len(inputs)
    if unpublished:
        lines += [f"Not published: {unpublished}.", ""]
    return lines


def _is_shown(row: Mapping[str, Any]) -> bool:
    """Whether the page has a row: published, or shown although the paper has no value."""
    return bool(row["verdict"] != "not published" or row["shown"])


def _definition(row: Mapping[str, Any]) -> str:
    """Definition of a row, and what the simulated arm is given of the number."""
    given = row.get("given", "")
    texts = [row["definition"], f"given: {given}" if given else ""]
    return "; ".join(filter(None, texts))


def _table_of_one_arm(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    """A table of one arm with a line for each row.

    Args:
        names: first cell of each line.
        rows: rows of the item.
    """
    more = {head: key for head, key in _MORE.items() if any(row.get(key) for row in rows)}
    heads = ["figure", "published", "here", *more, "verdict", "tolerance"]
    lines = []
    for name, row in zip(names, rows, strict=True):
        others = [row.get(key, "") for key in more.values()]
        values = [cell(row["published"], "/"), cell(row["here"], "/")]
        lines.append([name, *values, *others, _short_verdict(row), _tolerance(row)])
    return _table(heads, lines)


def _table_of_arms(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], arms: Sequence[str]
) -> list[str]:
    """A table of several arms with a line for each figure and a column for each arm.

    A cell has published value, value here, verdict, spread and recorded value of the arm.

    Args:
        names: figure of each row.
        rows: rows of the item.
        arms: names of the arms.
    """
    figures: dict[str, dict[str, str]] = {}
    tolerances: dict[str, str] = {}
    for name, row in zip(names, rows, strict=True):
        here = [cell(row["published"], "/"), cell(row["here"], "/"), _short_verdict(row)]
        parts = [", ".join(filter(None, here))]
        parts += [row.get(key, "") for key in _MORE.values()]
        tolerances.setdefault(name, _tolerance(row))
        figures.setdefault(name, {})[row["robot"]] = "; ".join(filter(None, parts))
    heads = ["figure", *(f"{arm}: published, here, verdict" for arm in arms), "tolerance"]
    lines = []
    for name, by_arm in figures.items():
        lines.append([name, *(by_arm.get(arm, "") for arm in arms), tolerances[name]])
    return _table(heads, lines)


def _short_verdict(row: Mapping[str, Any]) -> str:
    """The verdict of a row without what the definition or the introduction states."""
    verdict = str(row["verdict"]).replace("not published", "")
    if verdict.startswith("recovered"):
        return _first_words(verdict)
    for always in _AS_ALWAYS:
        if verdict.endswith(always):
            return verdict.removesuffix(always)
    return verdict


def _tolerance(row: Mapping[str, Any]) -> str:
    """Tolerance of a row and its reason, or the reason of its range.

    Empty where neither decides the verdict.
    """
    if not row["because"] or not row["verdict"].startswith(BY_TOLERANCE):
        return ""
    relative = "" if row["tolerance"] is None else f"{100 * row['tolerance']:g}%: "
    return f"{relative}{row['because']}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of a table in Markdown.

    Args:
        heads: heads of the columns.
        rows: cells of each line.
    """
    lines = [_table_line(heads), "|" + "---|" * len(heads)]
    for row in rows:
        cells = [str(text).replace("|", "\\|").replace("\n", " ") for text in row]
        lines.append(_table_line(cells))
    return lines


def _table_line(cells: Sequence[str]) -> str:
    """A line of a table in Markdown."""
    return "|" + "|".join(cells) + "|"


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
        folder: output folder, see `run_stages`.
        seed: seed of all arms and searches, see `Stage.run`.
        quick: whether motions and searches are short, see `Stage.run`.
        seeds: number of further quick runs of the protocols in `SPREAD`, for the spread of
            the figures: with the same arms first, then with other arms.
        recorded: values of real recordings, by the key of a paper, see `side_by_side`.
        stages: stages to run.
        progress: called with the share of stages done and a text.

    Returns:
        Results for all papers, in order.

    Raises:
        InputError: the folder contains something else.
    """
    done = run_stages(folder, seed=seed, quick=quick, stages=stages, progress=progress)
    others = []
    varying = [stage for stage in stages if stage.protocol in SPREAD]
    for own_seed in range(seed, seed + seeds):
        own = folder / f"seed_{own_seed}"
        found = run_stages(
            own,
            seed=own_seed,
            quick=True,
            draw=False,
            stages=varying,
            progress=progress,
        )
        others.append(found)
        for file in own.glob("*/*"):  # bags of many runs are large
            if file.name in (VERDICT, ERROR):
                continue
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink()
    known = recorded or {}
    results = [side_by_side(each, done, others, known.get(each.key)) for each in papers()]
    write_text(folder / MARKDOWN, markdown(results, (QUICK,) if quick else ()))
    return results
