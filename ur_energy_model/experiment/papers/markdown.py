"""papers.md: published beside obtained as a Markdown page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ur_energy_model.experiment.papers.side_by_side import ItemResult, PaperResult
from ur_energy_model.experiment.protocols.outcome import cell

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


def markdown(
    results: Sequence[PaperResult],
    remarks: Sequence[str] = (),
    place: Callable[[PurePosixPath], PurePosixPath] = lambda file: file,
) -> str:
    """The page.

    Args:
        results: the papers in order.
        remarks: about the run, one line each.
        place: where a picture is, relative to the page.
    """
    lines = [f"# {TITLE}", "", INTRODUCTION, "", VERDICTS, ""]
    lines += [*(f"- {remark}" for remark in remarks), ""] if remarks else []
    lines += ["| paper | rows | verdicts | nothing obtained |", "|---|---|---|---|"]
    lines += [summary(result) for result in results]
    for result in results:
        paper = result.paper
        lines += ["", f"## {paper.key}: {paper.title}", "", f"{paper.source}.", ""]
        lines += [f"- failed: {error.splitlines()[-1]}" for error in result.errors]
        lines += [f"- {warning}" for warning in result.warnings]
        for item in result.items:
            lines += ["", *_item(item, place)]
    return "\n".join(lines).rstrip() + "\n"


def summary(result: PaperResult) -> str:
    """A paper's row in the table at the top."""
    paper, total = result.paper, sum(result.verdicts.values())
    return f"| {paper.key} {paper.source} | {total} | {result.counts} | {result.missing_places} |"


def _item(result: ItemResult, place: Callable[[PurePosixPath], PurePosixPath]) -> list[str]:
    item = result.item
    lines = [f"### {item.place}: {item.shows}", ""]
    if result.rows:
        lines += [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
        lines += [f"| {' | '.join(map(_escaped, cells(row)))} |" for row in result.rows]
        lines.append("")
    for picture in result.pictures:
        lines += [f"![{picture.caption}]({place(picture.file)})", ""]
        lines += [f"{picture.robot}: {picture.caption}", ""]
    if not result.rows and not result.pictures:
        lines += [
            f"{item.reason[:1].upper()}{item.reason[1:]}." if item.reason else "Not obtained."
        ]
    return lines


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells of a row in the order of `COLUMNS`."""
    values = (row["figure"], row["robot"], row["published"], row["here"])
    return (*map(cell, values), str(row["definition"]) or "-", str(row["verdict"]))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
