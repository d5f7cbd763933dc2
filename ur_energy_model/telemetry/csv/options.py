"""CsvOptions: how to read CSV recordings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.layouts import LAYOUTS
from ur_energy_model.telemetry.plausibility import ANY_ARM, PlausibleRanges


@dataclass(frozen=True)
class CsvOptions:
    """How to read CSV recordings.

    Attributes:
        joints: number of joints of the arm.
        columns: names of the columns in order, instead of a header line; None for the file's own.
        layout: name of a known layout, instead of columns.
        limits: lowest and highest possible values by field.
    """

    joints: int = 6
    columns: str | None = None
    layout: str | None = None
    limits: PlausibleRanges = field(default_factory=lambda: ANY_ARM)

    def names(self, source: Path) -> str | None:
        """Names of the columns, None for those of the file.

        Raises:
            RecordingError: no such layout, or both columns and layout.
        """
        if self.layout is None:
            return self.columns
        if self.columns is not None:
            raise RecordingError(source, "--columns and --layout exclude each other", "give one")
        if self.layout not in LAYOUTS:
            raise RecordingError(
                source, f"there is no layout {self.layout}", f"use one of {', '.join(LAYOUTS)}"
            )
        return LAYOUTS[self.layout].columns
