"""Rows of a table of the store within a period, as an Arrow dataset."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.period import Period
from ur_energy_model.plant.history.schema import TABLES, arrow_schema

if TYPE_CHECKING:
    import pyarrow.dataset

    from ur_energy_model.plant.history.store import HistoryStore


def rows_in_period(
    store: HistoryStore, table: str, period: Period, arms: tuple[str, ...] = ()
) -> pyarrow.dataset.Dataset:
    """Rows of a table, with the columns of today's schema, and arm and day as text.

    Only the files of the days and arms in question are opened. Columns that a file lacks are
    null; a table without files has no rows.

    Args:
        store: whose rows are read.
        table: its name.
        period: in which the rows begin.
        arms: names; () for all.

    Raises:
        StoreError: the store cannot be read.
        MissingPackageError: pyarrow is not installed.
    """
    with needed_here():
        import pyarrow as pa
        import pyarrow.dataset as ds
    keys = [pa.field("arm", pa.string()), pa.field("day", pa.string())]
    schema = pa.schema([*(f.with_nullable(True) for f in arrow_schema(table)), *keys])
    rows = store.dataset(table)
    if rows is None:
        return ds.dataset(schema.empty_table())
    rows = rows.replace_schema(schema)
    conditions = []
    first, last = period.days
    time = ds.field(TABLES[table][0].name)
    if period.start is not None:
        conditions.append((ds.field("day") >= first) & (time >= _scalar(period.start)))
    if period.end is not None:
        conditions.append((ds.field("day") <= last) & (time < _scalar(period.end)))
    if arms:
        conditions.append(ds.field("arm").isin(list(arms)))
    for condition in conditions:
        rows = rows.filter(condition)
    return rows


def _scalar(instant: datetime) -> pyarrow.Scalar:
    import pyarrow as pa

    return pa.scalar(instant, pa.timestamp("us", tz="UTC"))
