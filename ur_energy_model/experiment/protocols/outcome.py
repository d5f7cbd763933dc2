"""Result of a protocol: the figures found beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One row of a verdict.

    Attributes:
        figure: name with unit.
        published: value in the paper, None without one.
        here: value found on this arm.
        place: table, figure, equation or section of the paper, such as "Table V".
        definition: how the paper computes the number, one clause; here follows it exactly.
        differs: what is not as in the paper, such as "arm", "data", "method".
        tolerance: relative difference up to which the two agree; None if it is not for a
            tolerance to decide (`verdict` is "see text" then, unless `judged` has more).
        judged: verdict in words where numbers alone do not decide.
    """

    figure: str
    published: Any
    here: Any
    place: str = ""
    definition: str = ""
    differs: tuple[str, ...] = ()
    tolerance: float | None = None
    judged: str = ""

    @property
    def verdict(self) -> str:
        """One of agrees, differs, not published, not obtained, see text, or the words of `judged`.

        Of two numbers that agree although arm, data or method differ, the verdict names these.
        """
        if self.judged:
            return self.judged
        if self.here is None:
            return "not obtained"
        if self.published is None:
            return "not published"
        if self.tolerance is None or isinstance(self.published, str):
            return "see text"
        published, here = np.asarray(self.published, float), np.asarray(self.here, float)
        if published.shape != here.shape:
            return "see text"
        close = bool(np.all(np.abs(here - published) <= self.tolerance * np.abs(published)))
        word = "agrees" if close else "differs"
        return f"{word}; another {' and '.join(self.differs)}" if self.differs else word


@dataclass(frozen=True)
class Outcome:
    """Result of a protocol.

    Attributes:
        protocol: "s0" to "s4".
        source: the paper.
        robot: name of the arm.
        simulated: whether the arm is simulated.
        rows: figures found and published.
        warnings: for the user, one line each.
        pictures: files in the output folder with their captions.
    """

    protocol: str
    source: str
    robot: str
    simulated: bool
    rows: Sequence[Row]
    warnings: Sequence[str] = ()
    pictures: Sequence[tuple[str, str]] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "protocol": self.protocol,
            "source": self.source,
            "robot": self.robot,
            "simulated": self.simulated,
            "figures": [
                {
                    "figure": row.figure,
                    "published": row.published,
                    "here": row.here,
                    "place": row.place,
                    "definition": row.definition,
                    "differs": list(row.differs),
                    "verdict": row.verdict,
                }
                for row in self.rows
            ],
            "warnings": list(self.warnings),
            "pictures": [{"file": file, "caption": caption} for file, caption in self.pictures],
        }

    def markdown(self) -> str:
        """The result as a Markdown page."""
        lines = [
            f"# Protocol {self.protocol} on {self.robot}{' (simulated)' * self.simulated}",
            "",
            f"Published figures: {self.source}",
            "",
            "| figure | published | here |",
            "|---|---|---|",
            *(f"| {r.figure} | {cell(r.published)} | {cell(r.here)} |" for r in self.rows),
            "",
            *(f"- {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines).rstrip() + "\n"


def cell(value: Any) -> str:
    """A value as text with four significant digits."""
    match value:
        case None:
            return "-"
        case str():
            return value
        case list() | tuple() | np.ndarray():
            return " ".join(cell(each) for each in value)
        case float() | np.floating():
            return f"{value:.4g}" if np.isfinite(value) else "-"
        case _:
            return str(value)
