# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Damage to a store: everything that can be lost, changed or linked elsewhere, file by file."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ur_energy_model.plant.database import HistoryDatabase
from ur_energy_model.plant.schema import TABLES, UNDIVIDED
from ur_energy_model.plant.store import HistoryStore

LOGS = ("_store", *TABLES)
HUGE = 2**63 - 1


@dataclass(frozen=True)
class Damage:
    """One kind of damage, and what it is done to."""

    name: str
    strike: Callable[[], object]

    def __repr__(self) -> str:
        return self.name


def counting_files(store: Path) -> dict[str, list[Path]]:
    """Files that count by table, in order of their names."""
    files = HistoryStore(store).holdings().files
    return {
        table: sorted(store / file.path for file in own) for table, own in files.items()
    }


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 255
    file.write_bytes(content)


def _linked(file: Path, target: Path) -> None:
    """A link in place of a file or folder, to a copy of it outside."""
    if target.is_dir():
        shutil.rmtree(target)
    if file.is_dir():
        shutil.copytree(file, target)
        shutil.rmtree(file)
    else:
        shutil.copy(file, target)
        file.unlink()
    file.symlink_to(target)


def _piped(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def data_damages(file: Path, outside: Path) -> Iterator[Damage]:
    """Of a data file; `outside` is a folder out of the store."""
    yield Damage("lost", file.unlink)
    yield Damage("changed", lambda: _flip(file))
    yield Damage("cut off", lambda: os.truncate(file, file.stat().st_size // 2))
    yield Damage("empty", lambda: os.truncate(file, 0))
    yield Damage("a link", lambda: _linked(file, outside / file.name))
    yield Damage("a pipe", lambda: _piped(file))


def _commits(log: Path) -> list[Path]:
    return sorted(log.glob("[0-9]*.json"))


def _edited(commit: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A commit with all its actions changed."""
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        change(action)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))


def _wrong_sizes(action: dict[str, Any]) -> None:
    if "add" in action:
        action["add"]["size"] += 17


def _wrong_rows(action: dict[str, Any]) -> None:
    if "add" in action:
        stats = json.loads(action["add"]["stats"])
        action["add"]["stats"] = json.dumps(stats | {"numRecords": 10**12})


def _outside_paths(action: dict[str, Any]) -> None:
    if "add" in action:
        action["add"]["path"] = "../../outside/victim.parquet"


def _huge_numbers(action: dict[str, Any]) -> None:
    if "txn" in action:
        action["txn"]["version"] = HUGE


def log_damages(log: Path, outside: Path) -> Iterator[Damage]:
    """Of a log."""
    commits = _commits(log)
    for name, file in (
        ("first commit", commits[0]),
        ("middle commit", commits[len(commits) // 2]),
        ("last commit", commits[-1]),
        *((f"{name} checkpoint", file) for name, file in _checkpoints(log)),
    ):
        yield Damage(f"{name} lost", file.unlink)
        yield Damage(f"{name} is a link", partial(_linked, file, outside / file.name))
        yield Damage(f"{name} garbage", partial(file.write_bytes, b'{"add": {"pa'))
        yield Damage(f"{name} empty", partial(file.write_bytes, b""))
    last = commits[-1]
    yield Damage("all commits lost", lambda: list(map(Path.unlink, commits)))
    yield Damage("log lost", lambda: shutil.rmtree(log))
    yield Damage("log is a link", lambda: _linked(log, outside / "log"))
    yield Damage("wrong sizes", lambda: _edited(last, _wrong_sizes))
    yield Damage("wrong numbers of rows", lambda: _edited(last, _wrong_rows))
    yield Damage("paths lead outside", lambda: _edited(last, _outside_paths))
    yield Damage("huge numbers", lambda: _edited(last, _huge_numbers))
    yield Damage("a huge commit", lambda: (log / f"{HUGE:020}.json").write_text("{}\n"))


def _checkpoints(log: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(log.glob("*.checkpoint.parquet"))[-1:]:
        yield "last", file
    if (log / "_last_checkpoint").exists():
        yield "name of the last", log / "_last_checkpoint"


def folder_damages(folder: Path, outside: Path) -> Iterator[Damage]:
    """Of a folder with files."""
    yield Damage("folder lost", lambda: shutil.rmtree(folder))
    yield Damage("folder is a link", lambda: _linked(folder, outside / folder.name))


def all_damages(store: Path, outside: Path) -> Iterator[Damage]:
    """Everything, named by what it is done to."""
    for table, files in counting_files(store).items():
        for file in files[:1]:
            for damage in data_damages(file, outside):
                yield Damage(f"{table}: file {damage.name}", damage.strike)
            if table not in UNDIVIDED:
                for damage in folder_damages(file.parent, outside):
                    yield Damage(f"{table}: arm's {damage.name}", damage.strike)
        for damage in folder_damages(store / table, outside):
            yield Damage(f"{table}: table's {damage.name}", damage.strike)
    for name in LOGS:
        log = store / name / "_delta_log"
        for damage in log_damages(log, outside) if log.is_dir() else ():
            yield Damage(f"{name}: {damage.name}", damage.strike)


# What a store contains, as it states itself and as other programs read it.


def content(store: Path) -> dict[str, list[str]]:
    """All rows of each table as text, sorted."""
    found = {}
    with HistoryDatabase(HistoryStore(store)) as database:
        for table in TABLES:
            name = "joint_seconds" if table == "joint_seconds" else f"{table}_files"
            rows = database.rows(f"SELECT * FROM {name}")
            found[table] = sorted(_text(row) for row in rows)
    return found


def _text(row: dict[str, Any]) -> str:
    return json.dumps({key: str(row[key]) for key in sorted(row)})


def content_elsewhere(store: Path) -> dict[str, list[str]]:
    """The same as Delta Lake reads it."""
    from deltalake import DeltaTable

    found = {}
    for table in TABLES:
        rows = DeltaTable(store / table).to_pyarrow_dataset().to_table().to_pylist()
        found[table] = sorted(_text(row) for row in rows)
    return found


MOST_TURNS = 4


def follow_advice(store: Path, run: Callable[[list[str]], tuple[int, str]]) -> list[str]:
    """Do what the store advises until it has no warnings; returns what did not help, a line each.

    Args:
        store: the store.
        run: runs `ur_energy` with arguments; returns the exit code, and what it prints on
            stderr.
    """
    problems: list[str] = []
    for _ in range(MOST_TURNS):
        holdings = HistoryStore(store).holdings()
        if not holdings.warnings:
            return problems
        for line in holdings.repairs:
            code, err = run(shlex.split(line)[1:])
            # A slow machine shows progress there, too.
            errors = [each for each in err.splitlines() if each.startswith("ur_energy ")]
            if code and len(errors) == 1 and "remove the link" in errors[0]:
                _remove_links(store)
            elif code:
                problems.append(f"{line}: exit code {code}: {err}")
        if not holdings.repairs and any(
            "remove the link" in each for each in holdings.warnings
        ):
            _remove_links(store)
    return [*problems, f"warnings stay: {holdings.warnings}"]


def _remove_links(store: Path) -> None:
    for path in list(store.rglob("*")):
        if path.is_symlink():
            path.unlink()


def listing(folder: Path) -> dict[str, str]:
    """What is in a folder, to see whether it was touched."""
    return {
        str(path.relative_to(folder)): path.read_bytes().hex()
        if path.is_file()
        else "folder"
        for path in sorted(folder.rglob("*"))
    }
