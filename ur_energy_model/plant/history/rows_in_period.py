"""Rows of a table of the store, and which of them are in a period, for Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.period import Period
from ur_energy_model.plant.history.schema import TABLES, arrow_schema

if TYPE_CHECKING:
    import pyarrow.compute
    import pyarrow.dataset

    from ur_energy_model.plant.history.store import HistoryStore


def stored_rows(store: HistoryStore, table: str) -> pyarrow.dataset.Dataset:
    """Rows of a table, with the columns of today's schema, and arm and day as text.

    Columns that a file lacks are null; a table without files has no rows.

    Raises:
        StoreError: the store cannot be read.
        MissingPackageError: pyarrow is not installed.
    """
    with needed_here():
        import pyarrow as pa
        import pyarrow.dataset as ds
    keys = [pa.field("arm", pa.string()), pa.field("day", pa.string())]
    schema = pa.schema([*(field.with_nullable(True) for field in arrow_schema(table)), *keys])
    rows = store.dataset(table)
    return ds.dataset(schema.empty_table()) if rows is None else rows.replace_schema(schema)


def in_period(table: str, period: Period, arms: tuple[str, ...]) -> pyarrow.compute.Expression:
    """Which rows of a table begin in a period, of some arms (() for all).

    The condition also selects files, so that those of other days and arms are not opened.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    first, last = period.days
    time, day = ds.field(TABLES[table][0].name), ds.field("day")
    found = ds.scalar(True)
    if period.start is not None:
        start = pa.scalar(period.start, pa.timestamp("us", tz="UTC"))
        found = found & (day >= first) & (time >= start)
    if period.end is not None:
        end = pa.scalar(period.end, pa.timestamp("us", tz="UTC"))
        found = found & (day <= last) & (time < end)
    return found & ds.field("arm").isin(list(arms)) if arms else found
