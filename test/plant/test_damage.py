# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stores that have lost or changed anything: what they say, and that following it mends them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from test.plant.damage import (
    LOGS,
    all_damages,
    content,
    content_elsewhere,
    counting_files,
    follow_advice,
    listing,
)
from test.plant.made_up_bags import HOUR, MODEL, NOON, Session, rows
from test.plant.test_live_history import lived
from test.truth import first_fast
from ur_energy_model.cli.main import main
from ur_energy_model.model.model_file import save_model
from ur_energy_model.plant.schema import TABLES
from ur_energy_model.plant.store import HistoryStore

Capture = pytest.CaptureFixture[str]
SECOND = 10**9


def run(arguments: list[str], capsys: Capture | None = None) -> tuple[int, str]:
    """Exit code of `ur_energy`, and what it prints on stderr."""
    code = main([*arguments, *(["--workers", "1"] if arguments[1] == "add" else [])])
    return code, "" if capsys is None else capsys.readouterr().err


@pytest.fixture(scope="session")
def made(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A folder with bags, two of which overlap, and stores of them: as added, and compacted."""
    return made_once("plant_stores", make_stores)


def make_stores(folder: Path) -> None:
    save_model(MODEL, folder / "model.yaml")
    starts = ((0, "arm-0"), (4 * SECOND, "arm-0"), (HOUR, "arm-0"), (0, "arm-1"))
    bags = [
        Session(at=NOON + at, serial=serial, cycle=1.0, lines=True).bag(
            folder / f"bag_{k}"
        )
        for k, (at, serial) in enumerate(starts)
    ]
    options = ["--model", str(folder / "model.yaml"), "--cycle-trigger", "program"]
    run(["history", "add", str(folder / "added"), *map(str, bags[:3]), *options])
    shutil.copytree(folder / "added", folder / "compacted")
    generic = ["--robot", "ur5e", "--cycle-trigger", "program"]
    for store in ("added", "compacted"):
        run(["history", "add", str(folder / store), str(bags[3]), *generic])
    run(["history", "compact", str(folder / "compacted")])
    new = Session(at=NOON + 3 * HOUR, serial="arm-0", cycle=1.0, lines=True).bag(
        folder / "bag_4"
    )
    for store in ("added", "compacted"):
        run(["history", "add", str(folder / store), str(new), *options])
    assert content(folder / "added") == content(folder / "compacted")
    assert all(content(folder / "added").values())


NAMES = [
    *(f"{table}: file lost" for table in TABLES),
    *(f"{table}: file a link" for table in TABLES),
    "health: file changed",
    "cycles: file a pipe",
    "seconds: arm's folder is a link",
    "health: table's folder lost",
    "sources: table's folder is a link",
    *(f"{log}: middle commit lost" for log in LOGS),
    *(f"{log}: last commit lost" for log in LOGS),
    "_store: first commit lost",
    "_store: log lost",
    "seconds: log lost",
    "seconds: log is a link",
    "cycles: last commit garbage",
    "_store: last commit empty",
    "_store: huge numbers",
    "health: huge numbers",
    "_store: a huge commit",
    "seconds: wrong sizes",
    "_store: wrong sizes",
    "_store: wrong numbers of rows",
    "_store: paths lead outside",
    "cycles: paths lead outside",
]


@pytest.mark.parametrize(
    ("kind", "name"),
    first_fast(
        [
            ("added", "seconds: file lost"),
            ("compacted", "_store: last commit lost"),
            ("compacted", "cycles: paths lead outside"),
            *(("added", name) for name in NAMES[1:] if ": file" in name),
            *(("compacted", name) for name in NAMES[:-1]),
        ],
    ),
)
def test_what_is_lost_is_made_again_by_following_the_advice(
    made: Path, tmp_path: Path, kind: str, name: str, capsys: Capture
) -> None:
    """All rows of all tables are as before, for other programs too; nothing outside is touched."""
    store = tmp_path / "store"
    outside = tmp_path / "outside"
    shutil.copytree(made / kind, store)
    outside.mkdir()
    (outside / "victim.parquet").write_text("victim")
    (damage,) = (each for each in all_damages(store, outside) if each.name == name)
    damage.strike()
    before = listing(outside)
    assert follow_advice(store, lambda arguments: run(arguments, capsys)) == []
    assert content(store) == content(made / kind)
    # a log that is behind follows with the next writing
    run(["history", "compact", str(store)])
    there = content_elsewhere(store)
    whole = content_elsewhere(made / kind)
    assert {table: len(found) for table, found in there.items()} == {
        table: len(found) for table, found in whole.items()
    }
    assert listing(outside) == before


def test_a_loss_is_data(made: Path, tmp_path: Path, capsys: Capture) -> None:
    """Of a bag that is gone, too; and in the report."""
    store = tmp_path / "store"
    page = tmp_path / "page.html"
    shutil.copytree(made / "compacted", store)
    bag = tmp_path / "bag_5"
    Session(at=NOON + 2 * HOUR, serial="arm-0").bag(bag)
    run(["history", "add", str(store), str(bag), "--model", str(made / "model.yaml")])
    (source,) = (
        each.source for each in HistoryStore(store).records() if each.bag == str(bag)
    )
    name = next(path for path in counting_files(store)["seconds"] if source in path.name)
    lost = [row for row in rows(store) if row["source"] == source]
    name.unlink()
    shutil.rmtree(bag)
    for arguments in (["summary"], ["report", "-o", str(page)]):
        capsys.readouterr()
        assert main(["history", arguments[0], str(store), *arguments[1:], "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        (entry,) = (each for each in answer["lost"] if each["table"] == "seconds")
        assert (entry["bag"], entry["rows"], entry["arm"]) == (
            str(bag),
            len(lost),
            "arm-0",
        )
        assert answer["repairs"] == [f"ur_energy history add {store} {bag}"]
    assert "lost" in page.read_text()
    capsys.readouterr()
    assert main(["history", "sql", str(store), "SELECT 1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["lost"]) >= 1


def test_rows_of_an_estimator_that_are_lost_are_said_until_a_recording_replaces_them(
    tmp_path: Path, capsys: Capture
) -> None:
    """Others are still there, and other programs can read them."""
    store = tmp_path / "store"
    session = Session(moving=6.0, still=4.0, cycle=2.0)
    lived(store, session.telemetry())
    writer = rows(store)[0]["source"]
    lived(store, Session(at=NOON + HOUR).telemetry())
    before = content(store)
    first = [
        f for files in counting_files(store).values() for f in files if writer in f.name
    ]
    assert {path.parts[-4] for path in first} >= {"seconds", "cycles", "joint_seconds"}
    for file in first:
        file.unlink()
    run(["history", "compact", str(store)])
    holdings = HistoryStore(store).holdings()
    assert {loss.table for loss in holdings.lost} >= {"seconds", "cycles"}
    assert {(loss.bag, loss.command) for loss in holdings.lost} == {(None, None)}
    assert holdings.repairs == ()
    left = content(store)
    assert 0 < len(left["seconds"]) < len(before["seconds"])
    assert set(left["seconds"]) < set(before["seconds"])
    assert len(content_elsewhere(store)["seconds"]) == len(left["seconds"])
    bag = session.bag(tmp_path / "bag")
    assert run(["history", "add", str(store), str(bag), "--robot", "ur5e"])[0] == 0
    assert HistoryStore(store).holdings().warnings == ()
    run(["history", "compact", str(store)])
    assert len(content(store)["seconds"]) == len(before["seconds"])
    assert HistoryStore(store).holdings().lost == ()
