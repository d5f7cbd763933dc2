"""Health of all arms of a history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.health.statements import ArmHealth, arm_health
from ur_energy_model.plant.health.stored_minutes import COLUMNS, arm_minutes
from ur_energy_model.plant.history.places import StoreError
from ur_energy_model.plant.history.source_record import FileName
from ur_energy_model.plant.history.store import HistoryStore
from ur_energy_model.typing import Progress

if TYPE_CHECKING:
    import pyarrow.dataset

TABLE = "health"


def plant_health(
    address: str, *, progress: Progress | None = None
) -> tuple[tuple[ArmHealth, ...], tuple[str, ...]]:
    """Health of all arms, in order of their names; one arm is in memory at a time.

    With it, what is wrong with the store, see `HistoryStore.holdings`.

    Args:
        address: of the store.
        progress: called with the finished fraction and text.

    Raises:
        StoreError: the store cannot be read, or has no health of any arm.
        MissingPackageError: pyarrow is not installed.
    """
    store = HistoryStore(address)
    holdings = store.holdings()
    rows = store.rows(TABLE, holdings)
    arms = _arms(holdings.files)
    if not arms:
        raise StoreError(
            address,
            "holds no minutes of motion or standstill",
            "add recordings with `ur_energy history add`",
        )
    out = []
    for number, arm in enumerate(arms):
        if progress is not None:
            progress(number / len(arms), f"{arm}: {number + 1} of {len(arms)} arms")
        minutes = arm_minutes(_rows_of(rows, arm))
        if minutes is not None:
            out.append(arm_health(arm, minutes))
    return tuple(out), holdings.warnings


def _arms(files: Iterable[str]) -> list[str]:
    """Names of the arms that have rows of health."""
    found = filter(None, map(FileName.of, files))
    return sorted({file.arm for file in found if file.table == TABLE})


def _rows_of(rows: pyarrow.dataset.Dataset, arm: str) -> pyarrow.Table:
    with needed_here():
        import pyarrow.dataset as ds
    return rows.to_table(columns=list(COLUMNS), filter=ds.field("arm") == arm)
