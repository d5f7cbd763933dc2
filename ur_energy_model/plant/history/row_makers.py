"""Further tables of the history, besides seconds and cycles: who makes their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.plant.health.health_rows import HealthRows
from ur_energy_model.plant.history.source_keys import SourceKeys

if TYPE_CHECKING:
    import pyarrow


class RowMaker(Protocol):
    """Makes the rows of one further table from the powers of a bag or a working arm."""

    table: str
    """Its name in TABLES."""

    def update(self, powers: PowerTable) -> None:
        """Take powers that follow those of the last call."""
        ...

    def complete(self, keys: SourceKeys) -> pyarrow.Table:
        """Rows that do not change any more; each is returned once."""
        ...

    def rows(self, keys: SourceKeys) -> pyarrow.Table:
        """Rows that were not returned yet, after the last powers."""
        ...


MAKERS: tuple[Callable[[EnergyCalculator], RowMaker], ...] = (HealthRows,)
"""Make what makes the rows of the further tables, for a calculator."""
