"""The figures that a protocol found, beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One line of a verdict.

    Attributes:
        figure: what it is, with its unit.
        published: what the paper reports, None where it reports nothing.
        here: what was found on this arm.
    """

    figure: str
    published: Any
    here: Any


@dataclass(frozen=True)
class Outcome:
    """What a protocol came to.

    Attributes:
        protocol: "s0", "s1", "s2" or "s4".
        source: the paper.
        robot: arm it was run on.
        simulated: whether that was a simulated one.
        rows: figures beside the published ones.
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
        """The table as a Markdown page."""
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
    """A figure as text, to four significant digits."""
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
