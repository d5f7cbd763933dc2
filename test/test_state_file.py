# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The file of a program's state: what it refuses, and what a full disk still keeps."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from test.small_disk import small_disk
from ur_energy_model import state_file
from ur_energy_model.state_file import StateFile


def opened(path: Path) -> StateFile:
    file = StateFile(path)
    file.open()
    return file


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE bookmarks (url TEXT)",
        "CREATE TABLE state (a INTEGER)",
        "CREATE TABLE state (key TEXT PRIMARY KEY, value); INSERT INTO state VALUES ('a', 'text')",
        "CREATE TABLE state (key TEXT PRIMARY KEY, value); "
        "INSERT INTO state VALUES ('a', zeroblob(70000000))",
    ],
    ids=["another program", "columns", "text", "huge"],
)
def test_databases_of_others_are_refused_and_left_alone(sql: str, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)
        before = list(connection.iterdump())
    with pytest.raises(ValueError):  # noqa: PT011 - of SQLite, or with the reason
        opened(path)
    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before


def test_small_values_do_not_wait_for_room_for_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_file, "CHECK_PERIOD", 0.0)
    with small_disk(tmp_path / "disk", 4000) as disk:
        path = disk.path / "x.db"
        file = opened(path)
        for number in range(60):  # the log takes room, and keeps it
            file.put("counters", bytes([number]) * 40_000)
            file.save()
        disk.fill()
        file.put("learned", bytes(3_000_000), bulk=True)
        file.put("counters", b"newest")
        file.save()
        assert "No space left" in str(file.problem)
        file.close()
        disk.empty()
        again = opened(path)
        assert again.get("counters") == b"newest"
        assert again.get("learned") is None
        again.put("learned", b"less", bulk=True)
        again.save()
        assert again.problem is None
        again.close()
