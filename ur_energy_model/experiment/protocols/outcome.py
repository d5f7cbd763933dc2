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
    """

    figure: str
    published: Any
    here: Any


@dataclass(frozen=True)
class Outcome:
    """Result of a protocol.

    Attributes:
        protocol: "s0", "s1", "s2" or "s4".
        source: the paper.
        robot: name of the arm.
        simulated: whether the arm is simulated.
        rows: figures found and published.
        warnings: for the user, one line each.
    """

    protocol: str
    source: str
    robot: str
    simulated: bool
    rows: Sequence[Row]
    warnings: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "protocol": self.protocol,
            "source": self.source,
            "robot": self.robot,
            "simulated": self.simulated,
            "figures": [
                {"figure": row.figure, "published": row.published, "here": row.here}
                for row in self.rows
            ],
            "warnings": list(self.warnings),
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
