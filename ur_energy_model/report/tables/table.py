"""A table as a plain description, and how its cells are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE


@dataclass(frozen=True)
class Lock:
    """A cell with a box to tick: whether a step stays as it is.

    Attributes:
        step: its number.
        kept: whether the box is ticked at first.
    """

    step: int
    kept: bool


Cell = str | float | Lock | None


@dataclass(frozen=True)
class Table:
    """A table of the report.

    Attributes:
        key: its anchor.
        title: its heading.
        columns: column headings with units.
        rows: the first cell names the row.
        note: how to read it.
        command: that computes it anew; options of the ticked locks follow.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    command: str = ""


def with_interval(value: float, std: float | None) -> Cell:
    """A value with its 95 % interval; the value alone if its standard deviation is unknown."""
    if std is None or not np.isfinite(std) or std == 0:
        return float(value)
    half = CONFIDENCE * float(std)
    digits = 1 - int(np.floor(np.log10(half)))
    if digits > 6:
        text = f"{value:.2e} ± {half:.0e}"
    else:
        text = f"{value:.{max(0, digits)}f} ± {half:.{max(0, digits)}f}"
    return text.replace("-", "−")


def source_text(sources: Mapping[str, str], name: str) -> str:
    """The identification stage that a quantity comes from."""
    return sources.get(name, "given").replace("_", " ")
