"""Rows of a table of the history as CSV, in order of arm and time, one column per joint value."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.files import cell_text, new_file
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.period import Period
from ur_energy_model.plant.history.rows_in_period import in_period
from ur_energy_model.plant.history.schema import TABLES
from ur_energy_model.typing import Progress

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

    from ur_energy_model.plant.history.store import HistoryStore


def export_csv(
    store: HistoryStore,
    table: str,
    path: Path,
    *,
    period: Period | None = None,
    arms: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> tuple[int, tuple[str, ...]]:
    """Write rows of a table to a CSV file, one arm and day in memory at a time.

    A list of the joints becomes one column per joint that any arm has, `<joint>_energy` for
    `joint_energy`; times are UTC, ISO 8601.

    Returns:
        number of rows, and what is wrong with the store, see `HistoryStore.holdings`.

    Raises:
        StoreError: the store cannot be read.
        OSError: the file cannot be written.
        MissingPackageError: pyarrow is not installed.
    """
    with needed_here():
        import pyarrow as pa
        import pyarrow.csv
    period = period or Period()
    holdings = store.holdings(*period.days, arms)
    rows, condition = store.rows(table, holdings), in_period(table, period, arms)
    files = list(rows.get_fragments(filter=condition))
    joints = _joints(files, rows.schema)
    count = 0
    with new_file(path, "wb") as out:
        empty = _flat(rows.schema.empty_table(), joints)
        with pyarrow.csv.CSVWriter(out, empty.schema) as writer:
            for done, group in _by_arm_and_day(files):
                parts = [file.to_table(schema=rows.schema, filter=condition) for file in group]
                part = pa.concat_tables(parts).sort_by(TABLES[table][0].name)
                writer.write_table(_flat(part, joints))
                count += len(part)
                if progress is not None:
                    progress(done, f"{count} rows")
    return count, holdings.warnings


def _by_arm_and_day(
    files: list[pyarrow.dataset.Fragment],
) -> Iterator[tuple[float, list[pyarrow.dataset.Fragment]]]:
    """Files of the same arm and day, in this order, and the share that is done by then."""
    from pyarrow.dataset import get_partition_keys

    def key(file: pyarrow.dataset.Fragment) -> tuple[str, str]:
        keys = get_partition_keys(file.partition_expression)
        return str(keys.get("arm", "")), str(keys.get("day", ""))

    done = 0
    for _, group in groupby(sorted(files, key=key), key):
        found = list(group)
        done += len(found)
        yield done / len(files), found


def _joints(files: list[pyarrow.dataset.Fragment], schema: pyarrow.Schema) -> tuple[str, ...]:
    """Names of the joints of all arms, in the order of the arms' lists."""
    names: dict[str, None] = {}
    for file in files:
        first = file.scanner(schema=schema, columns=["joints"]).head(1)
        names.update(dict.fromkeys(name for row in first["joints"].to_pylist() for name in row))
    return tuple(names)


def _flat(rows: pyarrow.Table, joints: tuple[str, ...]) -> pyarrow.Table:
    """Lists as one column per joint, arm and day first, times as ISO 8601 text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = rows.combine_chunks()
    places = _places(rows["joints"], joints)
    columns: dict[str, pyarrow.ChunkedArray] = {}
    for name in ("arm", "day", *(n for n in rows.schema.names if n not in ("arm", "day"))):
        values, kind = rows[name], rows.schema.field(name).type
        if name == "joints":
            continue
        if pa.types.is_list(kind):
            flat = pc.list_flatten(values)
            complete = len(flat) == pc.sum(pc.list_value_length(rows["joints"])).as_py()
            for joint in joints:
                of_joint = flat.take(places[joint]) if complete else pa.nulls(len(rows), flat.type)
                columns[f"{joint}_{name.removeprefix('joint_')}"] = of_joint
        elif pa.types.is_timestamp(kind):
            columns[name] = pc.strftime(values, format="%Y-%m-%dT%H:%M:%SZ")
        else:
            columns[name] = values
    for name, column in columns.items():
        if pa.types.is_string(column.type):
            columns[name] = pc.if_else(
                pc.match_substring_regex(column, r"^[=+\-@\t\r\n]"),
                pc.binary_join_element_wise("'", column, ""),
                column,
            )
    return pa.table({cell_text(name): column for name, column in columns.items()})


def _places(lists: pyarrow.ChunkedArray, joints: tuple[str, ...]) -> dict[str, pyarrow.Array]:
    """Where the value of each joint is in the flat values, per row; null where there is none.

    Args:
        lists: names of the joints per row.
        joints: those of all arms.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    names, parents = pc.list_flatten(lists), pc.list_parent_indices(lists)
    rows, flat = pa.array(np.arange(len(lists))), pa.array(np.arange(len(names)))
    found = {}
    for joint in joints:
        here = pc.equal(names, joint)
        found[joint] = flat.filter(here).take(pc.index_in(rows, parents.filter(here)))
    return found
