"""Arrow columns of the history from arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.schema import arrow_schema
from ur_energy_model.plant.history.time_ranges import Times
from ur_energy_model.typing import Array, Mask

if TYPE_CHECKING:
    import pyarrow


def arrow_table(table: str, columns: Mapping[str, Any]) -> pyarrow.Table:
    """Rows of a table of the history.

    Args:
        table: its name in TABLES.
        columns: every column of it: an Arrow array, an array [rows], or one text for all rows;
            NaN in a column that may have missing values is a missing one. The first column decides
            the number of rows.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    with needed_here():
        import pyarrow as pa
    schema = arrow_schema(table)
    rows = len(columns[schema.names[0]])
    arrays = []
    for field in schema:
        value = columns[field.name]
        if value is None or isinstance(value, str):
            arrays.append(pa.repeat(pa.scalar(value, field.type), rows))
        elif isinstance(value, np.ndarray):
            missing = np.isnan(value) if field.nullable and value.dtype.kind == "f" else None
            arrays.append(pa.array(value, mask=missing).cast(field.type))
        else:
            arrays.append(value)
    return pa.Table.from_arrays(arrays, schema=schema)


def times(values: Times) -> pyarrow.Array:
    """Host times [rows], ns since 1970 UTC, with a resolution of 1 us."""
    with needed_here():
        import pyarrow as pa
    return pa.array(values // 1000).cast(pa.timestamp("us", tz="UTC"))


def lists(values: Array, known: Mask | None = None) -> pyarrow.Array:
    """One list per row of values [rows, n]; a row that is not known [rows] is missing."""
    with needed_here():
        import pyarrow as pa
    rows, n = values.shape
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * n)
    mask = None if known is None else pa.array(~known)
    return pa.ListArray.from_arrays(offsets, pa.array(values.ravel()), mask=mask)


def same_texts(texts: Sequence[str], rows: int) -> pyarrow.Array:
    """The same list of texts in every row."""
    with needed_here():
        import pyarrow as pa
    n = len(texts)
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * n)
    return pa.ListArray.from_arrays(offsets, pa.array(list(texts) * rows, pa.string()))
