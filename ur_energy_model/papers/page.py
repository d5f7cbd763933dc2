"""All stages run, and published beside obtained: every table and figure as Markdown and HTML."""

from __future__ import annotations

import base64
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
from html import escape
from multiprocessing.process import BaseProcess
from pathlib import Path, PurePosixPath
from typing import Any

from ur_energy_model import __version__
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.files import config_file, write_text
from ur_energy_model.interrupts import single_threaded_children, start_ignoring_interrupts
from ur_energy_model.papers.protocol import VERDICT, cell
from ur_energy_model.papers.stages import STAGES, Stage
from ur_energy_model.report.palette import stylesheet
from ur_energy_model.typing import Progress
from ur_energy_model.yaml_reader import Record, YamlTree, text

# Tables and figures of the papers: config/papers.yaml.

SCHEMA = 1


@dataclass(frozen=True)
class Item:
    """A table, figure or section of a paper.

    Attributes:
        place: as the paper calls it, such as "Table V".
        shows: what it shows.
        reason: why nothing can be obtained for it; "" if something can.
    """

    place: str
    shows: str
    reason: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper and everything it shows.

    Attributes:
        key: protocol, "s0" to "s4".
        title: of the paper.
        source: authors, journal, DOI.
        items: in the order of the paper.
    """

    key: str
    title: str
    source: str
    items: tuple[Item, ...]


def papers(path: Path | None = None) -> tuple[Paper, ...]:
    """The papers in order.

    Args:
        path: of the file; None for the one in the package.

    Raises:
        InputError: the file is damaged; names its line.
    """
    path = config_file("papers.yaml") if path is None else path
    root = YamlTree.read(path, InputError, "correct the line or restore the file")
    with Record(root) as keys:
        keys.schema(SCHEMA)
        return tuple(_paper(tree) for tree in keys["papers"].items())


def _paper(tree: YamlTree) -> Paper:
    with Record(tree) as keys:
        items = tuple(_item(each) for each in keys["items"].items())
        return Paper(text(keys["key"]), text(keys["title"]), text(keys["source"]), items)


def _item(tree: YamlTree) -> Item:
    with Record(tree) as keys:
        return Item(text(keys["place"]), text(keys["shows"]), keys.read("reason", text, ""))


# Runs all stages, several at once in processes of their own, and continues a stopped run.

SETTINGS, ERROR = "settings.json", "error.txt"
_POLL = 0.2
"""Time between polls of the processes [s]."""


@dataclass(frozen=True)
class StageResult:
    """What a stage left in its folder.

    Attributes:
        name: of the stage and its folder.
        protocol: "s0" to "s4".
        verdict: content of verdict.json, None if the stage failed.
        error: why it failed, "" if it did not.
    """

    name: str
    protocol: str
    verdict: dict[str, Any] | None
    error: str


def run_stages(
    folder: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    stages: Sequence[Stage] = STAGES,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[StageResult]:
    """Run all stages; those finished by an earlier, interrupted run in this folder are kept.

    Args:
        folder: new, empty, or of an earlier run with the same settings.
        seed: of the arms and searches.
        quick: shorter motions and searches.
        stages: to run, the longest first.
        workers: processes at once, None for one per core.
        progress: called with the share of stages done and a text.

    Returns:
        In the order of `stages`. A stage that fails does not stop the others.

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
                _record_sudden_end(folder / stage.name, running.pop(stage).exitcode)
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
        stage.run(folder, seed=seed, quick=quick, progress=_unheard)
    except UrEnergyError as error:
        write_text(folder / ERROR, f"{error}\n")
    except Exception:
        write_text(folder / ERROR, traceback.format_exc())


def _record_sudden_end(folder: Path, exit_code: int | None) -> None:
    """Note the end of a process that left neither verdict nor error, such as for want of memory."""
    if not (folder / VERDICT).is_file() and not (folder / ERROR).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / ERROR, f"its process ended with exit code {exit_code}\n")


def _unheard(fraction: float, text: str | None = None) -> None:
    """Progress of a stage; that of all stages is reported by their parent."""


UNPLACED = "Further figures"


@dataclass(frozen=True)
class Picture:
    """A picture for a figure of a paper.

    Attributes:
        file: relative to the output folder.
        caption: how to read it.
        robot: the arm.
    """

    file: PurePosixPath
    caption: str
    robot: str


@dataclass(frozen=True)
class ItemResult:
    """What was obtained for one table or figure.

    Attributes:
        item: the table or figure.
        rows: entries of "figures" in verdict.json, with the arm as "robot".
        pictures: drawn for it.
    """

    item: Item
    rows: tuple[Mapping[str, Any], ...]
    pictures: tuple[Picture, ...]

    @property
    def obtained(self) -> bool:
        """Whether a value or a picture was obtained."""
        return bool(self.pictures) or any(row["here"] is not None for row in self.rows)


@dataclass(frozen=True)
class PaperResult:
    """What was obtained for one paper.

    Attributes:
        paper: the paper.
        items: every table and figure in order, then what belongs to none of them.
        warnings: of its stages.
        errors: of the stages that failed.
    """

    paper: Paper
    items: tuple[ItemResult, ...]
    warnings: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def verdicts(self) -> Counter[str]:
        """Number of rows by verdict, without what differs."""
        return Counter(
            row["verdict"].split(";")[0].split(":")[0] for item in self.items for row in item.rows
        )

    @property
    def counts(self) -> str:
        """`verdicts` as text, such as "3 agrees, 1 differs"."""
        return ", ".join(f"{number} {word}" for word, number in sorted(self.verdicts.items()))

    @property
    def missing_places(self) -> str:
        """Places of `missing` as text; "-" without any."""
        return ", ".join(item.place for item in self.missing) or "-"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "source": self.paper.source,
            "items": [
                {
                    "place": each.item.place,
                    "shows": each.item.shows,
                    "reason": each.item.reason,
                    "rows": [dict(row) for row in each.rows],
                    "pictures": [str(picture.file) for picture in each.pictures],
                }
                for each in self.items
            ],
            "verdicts": dict(self.verdicts),
            "missing": [item.place for item in self.missing],
            "warnings": list(self.warnings),
            "errors": list(self.errors),
        }

    @property
    def missing(self) -> tuple[Item, ...]:
        """Tables and figures for which nothing was obtained although something could be."""
        return tuple(each.item for each in self.items if not each.obtained and not each.item.reason)


def side_by_side(paper: Paper, results: Sequence[StageResult]) -> PaperResult:
    """Sort the rows and pictures of a paper's stages into its tables and figures."""
    own = [result for result in results if result.protocol == paper.key]
    rows: dict[str, list[Mapping[str, Any]]] = {}
    pictures: dict[str, list[Picture]] = {}
    for result in own:
        verdict = result.verdict or {"figures": [], "pictures": [], "robot": ""}
        robot = verdict["robot"]
        for row in verdict["figures"]:
            rows.setdefault(row["place"], []).append({**row, "robot": robot})
        for picture in verdict["pictures"]:
            place, _, caption = picture["caption"].partition(": ")
            file = PurePosixPath(result.name, picture["file"])
            pictures.setdefault(place, []).append(Picture(file, caption, robot))
    items = [
        ItemResult(item, tuple(rows.pop(item.place, ())), tuple(pictures.pop(item.place, ())))
        for item in paper.items
    ]
    rest = tuple(row for each in rows.values() for row in each)
    drawn = tuple(picture for each in pictures.values() for picture in each)
    if rest or drawn:
        items.append(ItemResult(Item(UNPLACED, "not in the paper"), rest, drawn))
    return PaperResult(
        paper,
        tuple(items),
        tuple(dict.fromkeys(w for each in own for w in (each.verdict or {}).get("warnings", ()))),
        tuple(f"{each.name}: {each.error}" for each in own if each.error),
    )


# papers.md: published beside obtained as a Markdown page.

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
            lines += ["", *_markdown_item(item, place)]
    return "\n".join(lines).rstrip() + "\n"


def summary(result: PaperResult) -> str:
    """A paper's row in the table at the top."""
    paper, total = result.paper, sum(result.verdicts.values())
    return f"| {paper.key} {paper.source} | {total} | {result.counts} | {result.missing_places} |"


def _markdown_item(
    result: ItemResult, place: Callable[[PurePosixPath], PurePosixPath]
) -> list[str]:
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


# papers.html: published beside obtained as one file that needs no network.

_STYLE = """\
body{max-width:76rem;margin:0 auto;padding:1rem 1.25rem 4rem;background:var(--ground);
color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h2{margin:3rem 0 .3rem}h3{margin:2rem 0 .3rem;font-size:1.05rem}
.muted{color:var(--muted)}.scroll{overflow-x:auto}img{max-width:100%}
table{border-collapse:collapse;font-size:.85rem;width:100%}
th,td{text-align:left;vertical-align:top;padding:.25rem .6rem;border-bottom:1px solid var(--grid)}
td:last-child{font-weight:600}
"""


def html(results: Sequence[PaperResult], folder: Path, remarks: Sequence[str] = ()) -> str:
    """The page with its pictures inside.

    Args:
        results: the papers in order.
        folder: output folder, with the pictures.
        remarks: about the run, one line each.
    """
    contents = "".join(
        f'<li><a href="#{escape(r.paper.key)}">{escape(r.paper.key)}: {escape(r.paper.title)}</a>: '
        f"{escape(r.counts)}</li>"
        for r in results
    )
    notes = "".join(f"<li>{escape(remark)}</li>" for remark in remarks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(TITLE)}</title>\n<style>{stylesheet()}{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(TITLE)}</h1><p>{escape(INTRODUCTION)}</p><p>{escape(VERDICTS)}</p>"
        f"<ul>{notes}</ul><ul>{contents}</ul>\n"
        + "\n".join(_html_paper(result, folder) for result in results)
        + f'\n<p class="muted">Made by ur_energy_model {escape(__version__)}.</p>\n'
        "</body>\n</html>\n"
    )


def _html_paper(result: PaperResult, folder: Path) -> str:
    notes = [f"failed: {error}" for error in result.errors] + list(result.warnings)
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f'<section id="{escape(result.paper.key)}"><h2>{escape(result.paper.key)}: '
        f'{escape(result.paper.title)}</h2><p class="muted">{escape(result.paper.source)}</p>'
        f"<ul>{listed}</ul>{''.join(_html_item(item, folder) for item in result.items)}</section>"
    )


def _html_item(result: ItemResult, folder: Path) -> str:
    item = result.item
    parts = [f"<h3>{escape(item.place)}: {escape(item.shows)}</h3>"]
    if result.rows:
        head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in cells(row))}</tr>"
            for row in result.rows
        )
        parts.append(f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>')
    for picture in result.pictures:
        data = base64.b64encode((folder / picture.file).read_bytes()).decode()
        caption = escape(f"{picture.robot}: {picture.caption}")
        parts.append(
            f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">'
            f'<figcaption class="muted">{caption}</figcaption></figure>'
        )
    if not result.rows and not result.pictures:
        parts.append(f'<p class="muted">{escape(item.reason or "not obtained")}</p>')
    return "".join(parts)


# `ur_energy protocol all`: all stages, then papers.md and papers.html.

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
