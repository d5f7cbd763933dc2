"""Published beside obtained: what every table and figure of the papers got from the stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ur_energy_model.experiment.papers.contents import Item, Paper
from ur_energy_model.experiment.papers.run_all import StageResult

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
