"""Which rows of a table of the history are in a period, for Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ur_energy_model.plant.history.period import Period
from ur_energy_model.plant.history.schema import TABLES

if TYPE_CHECKING:
    import pyarrow.compute


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
