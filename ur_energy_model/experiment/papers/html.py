"""papers.html: published beside obtained as one file that needs no network."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from ur_energy_model import __version__
from ur_energy_model.experiment.papers.markdown import (
    COLUMNS,
    INTRODUCTION,
    TITLE,
    VERDICTS,
    cells,
)
from ur_energy_model.experiment.papers.side_by_side import ItemResult, PaperResult
from ur_energy_model.report.palette import stylesheet

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
        + "\n".join(_paper(result, folder) for result in results)
        + f'\n<p class="muted">Made by ur_energy_model {escape(__version__)}.</p>\n'
        "</body>\n</html>\n"
    )


def _paper(result: PaperResult, folder: Path) -> str:
    notes = [f"failed: {error}" for error in result.errors] + list(result.warnings)
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f'<section id="{escape(result.paper.key)}"><h2>{escape(result.paper.key)}: '
        f'{escape(result.paper.title)}</h2><p class="muted">{escape(result.paper.source)}</p>'
        f"<ul>{listed}</ul>{''.join(_item(item, folder) for item in result.items)}</section>"
    )


def _item(result: ItemResult, folder: Path) -> str:
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
