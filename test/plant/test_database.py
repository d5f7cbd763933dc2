"""SQL on a store: it reads the tables and nothing else, and says in one line what is wrong."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from ur_energy_model.plant.database import HistoryDatabase, SqlError, unique
from ur_energy_model.plant.store import HistoryStore


def ask(store: Path, sql: str) -> list[dict[str, object]]:
    with HistoryDatabase(HistoryStore(store), memory_gb=0.2) as database:
        return database.rows(sql)


def test_tables_are_there(plant: Path) -> None:
    for table in ("seconds", "cycles", "joint_seconds"):
        assert ask(plant, f"SELECT count(*) > 0 AS some FROM {table}") == [{"some": True}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('{store}/../secret.csv')",
        "SELECT * FROM read_parquet('{store}/seconds/*/*/*.parquet')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM sqlite_scan('/tmp/x', 'y')",
        "SELECT * FROM 'https://example.org/x.csv'",
        "SELECT getenv('HOME')",
        "SELECT * FROM query('COPY (SELECT 1) TO ''{store}/x.csv''')",
        "COPY seconds TO '{store}/x.csv'",
        "COPY (SELECT 1) TO '/dev/stdout'",
        "ATTACH '{store}/x.db'",
        "INSTALL httpfs",
        "LOAD '/tmp/x.so'",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "CREATE TABLE x AS SELECT 1",
        "DROP VIEW seconds",
        "EXPORT DATABASE '{store}/x'",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY (SELECT 1) TO '{store}/x.csv'",
        "",
        "SELEC 1",
        "SELECT nonsense FROM seconds",
        "SELECT * FROM secret_table",
    ],
)
def test_everything_else_is_refused_in_one_line(plant: Path, tmp_path: Path, sql: str) -> None:
    secret_table = pa.table({"x": [1]})  # variables of Python are no tables
    (plant.parent / "secret.csv").write_text("x\n1\n")
    before = sorted(plant.rglob("*"))
    with pytest.raises(SqlError) as refusal:
        ask(plant, sql.format(store=plant))
    assert "\n" not in str(refusal.value)
    assert sorted(plant.rglob("*")) == before
    assert len(secret_table) == 1


def test_too_large_a_result_is_refused(plant: Path) -> None:
    with pytest.raises(SqlError, match="memory"):
        ask(plant, "SELECT * FROM range(30000000) a ORDER BY hash(a.range)")


def test_result_is_read_in_batches(plant: Path) -> None:
    with (
        HistoryDatabase(HistoryStore(plant), memory_gb=0.2) as database,
        database.stream("SELECT range AS x, 'x' || range AS t FROM range(3000000)") as result,
    ):
        assert sum(len(batch) for batch in result.batches) == 3_000_000


def test_names_of_columns_are_unique(plant: Path) -> None:
    assert ask(plant, "SELECT 1 AS a, 2 AS a, 3 AS a_1") == [{"a": 1, "a_1": 2, "a_1_1": 3}]
    assert unique(["a", "b", "a"]) == ["a", "b", "a_1"]


def test_files_that_are_being_written_are_not_read(plant: Path) -> None:
    folder = next((plant / "seconds").rglob("*.parquet")).parent
    begun = folder / ".x.parquet.ur_energy-1-new-abc"
    begun.write_bytes(b"half a file")
    try:
        assert ask(plant, "SELECT count(*) > 0 AS some FROM seconds") == [{"some": True}]
    finally:
        begun.unlink()
