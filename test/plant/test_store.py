# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The store: killed and concurrent writers, S3, damage, foreign content, compaction."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable

from test.plant.made_up_bags import (
    HOUR,
    MODEL,
    NOON,
    Session,
    add,
    complete_sources,
    estimated,
    file_count,
    files_of,
    rows,
    sources_of,
    total,
)
from test.truth import first_fast
from ur_energy_model.cli.main import main
from ur_energy_model.errors import printable
from ur_energy_model.model.model_file import save_model
from ur_energy_model.plant import holdings as holdings_module
from ur_energy_model.plant import store as store_module
from ur_energy_model.plant.add import Added, BagWork, add_bags
from ur_energy_model.plant.schema import TABLES, model_key
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError

Capture = pytest.CaptureFixture[str]
BUCKET = "energy-of-arms"


def added(store: Path, bags: list[Path]) -> Added:
    """What `history add --model` does, in this process."""
    model = bags[0].parent / "model.yaml"
    return add_bags(BagWork(str(store), MODEL, model_key(model), path=model), bags)


def adder(store: Path, bags: list[Path]) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "ur_energy_model.cli.main",
        "history",
        "add",
        str(store),
    ]
    command += [
        *map(str, bags),
        "--model",
        str(bags[0].parent / "model.yaml"),
        "--workers",
        "1",
    ]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, "--json"], stdout=pipe, stderr=pipe, text=True)


def test_killed_at_any_moment_it_reads_and_two_at_once_complete_it_with_each_bag_once(
    tmp_path: Path,
) -> None:
    store = tmp_path / "store"
    whole = tmp_path / "whole"
    bags = []
    for k, begin in enumerate((HOUR, HOUR + 4 * 10**9, 12 * HOUR - 3 * 10**9, 0)):
        session = Session(at=NOON + begin, serial=f"arm-{k // 3}", shift=k, cycle=1.0)
        bags.append(session.bag(tmp_path / f"bag_{k}"))
    save_model(MODEL, tmp_path / "model.yaml")
    added(whole, bags)
    process = adder(store, bags)
    most_files = int(np.random.default_rng().integers(1, 60))
    while process.poll() is None and file_count(store) < most_files:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=240)
    before = complete_sources(store)
    names = {row["source"] for row in before}
    there = [row for row in rows(store) if row["source"] in names]
    assert there == [row for row in rows(whole) if row["source"] in names], most_files
    there_already = sources_of(store)
    assert names <= {*there_already}
    other = adder(store, bags)
    mine = added(store, bags)
    out, err = other.communicate(timeout=240)
    assert other.returncode == 0, err
    count = len(there_already)
    assert count + json.loads(out)["added"] + len(mine.records) == len(bags), most_files
    assert json.loads(out)["skipped"] + len(mine.skipped) == len(bags) + count
    assert HistoryStore(store).holdings().warnings == ()
    assert total(store, "accounted") == pytest.approx(total(whole, "accounted"), abs=0.01)
    overlap = sum(estimated(bag).duration for bag in bags) - total(store, "accounted")
    assert overlap == pytest.approx(3.0, abs=0.02)


# What is lost, changed, copied or foreign


def ask(arguments: list[str], capsys: Capture) -> tuple[int, str, list[str]]:
    """Exit code, what is printed on stdout, and lines on stderr."""
    capsys.readouterr()
    code = main(["history", *arguments])
    out, err = capsys.readouterr()
    return code, out, err.splitlines()


def energy(store: Path, capsys: Capture) -> tuple[float, list[str]]:
    code, out, lines = ask(["summary", str(store), "--json"], capsys)
    assert code == 0
    answer = json.loads(out)
    assert [f"warning: {line}" for line in answer["warnings"]] == lines
    return answer["total"]["energy"], answer["warnings"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    bags = [
        Session(at=NOON + number * 30 * HOUR, cycle=2.0).bag(folder / name)
        for number, name in enumerate(("monday", "tuesday"))
    ]
    add(folder / "store", *bags)
    return folder


@pytest.fixture
def cell(made: Path, tmp_path: Path) -> Path:
    """A copy of the store, with files outside of it that nothing may touch."""
    shutil.copytree(made / "store", tmp_path / "store")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "victim.json").write_text('["../outside/victim"]')
    return tmp_path


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[200] ^= 255
    file.write_bytes(content)


@pytest.mark.parametrize("compacted", first_fast([True, False]))
def test_what_is_lost_or_changed_is_reported_and_added_again(
    tmp_path: Path, made: Path, compacted: bool, capsys: Capture
) -> None:
    store = tmp_path / "store"
    bags = [made / "monday", made / "tuesday"]
    shutil.copytree(made / "store", store)
    if compacted:
        bags.append(Session(at=NOON + HOUR).bag(tmp_path / "later"))
        add(store, bags[2])
        HistoryStore(store).compact()
    before, nothing = energy(store, capsys)
    assert nothing == []
    first = files_of(store)[0]
    flip(first) if compacted else first.unlink()
    lacking, warnings = energy(store, capsys)
    assert lacking == pytest.approx(total(made / "store") / 2, rel=1e-6)
    (warning,) = warnings
    assert first.name in warning
    assert str(bags[0]) in warning
    if compacted:  # one bag alone does not mend the file of two
        assert len(add(store, bags[0]).records) == 1
        assert any(str(bags[2]) in line for line in energy(store, capsys)[1])
    again = add(store, *bags)
    assert (len(again.records), len(again.skipped)) == (1, len(bags) - 1)
    assert energy(store, capsys) == (pytest.approx(before), [])


def test_copies_do_not_count(cell: Path, capsys: Capture) -> None:
    store = cell / "store"
    before, _ = energy(store, capsys)
    original = files_of(store)[0]
    for place in (
        "seconds/day=2026-05-04/20235512345/copy.parquet",
        "seconds/day=2026-05-04/other/{name}.parquet",
        "seconds/day=2026-05-06/20235512345/{name}.parquet",
        "seconds/backup/day=2026-05-04/20235512345/{name}.parquet",
    ):
        copy = store / place.format(name=original.stem)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(original, copy)
    after, warnings = energy(store, capsys)
    assert after == pytest.approx(before)
    for name in ("copy.parquet", f"{original.name} and 2 more"):
        assert any(name in line for line in warnings)


FOREIGN: dict[str, bytes] = {
    "sources/huge.json": b'{"start": 1e999}',
    "sources/nested.json": b"[" * 100_000,
    os.fsdecode(b"sources/\xff.json"): b"{}",
    "sources/outside.json": b'{"files": {"../outside/victim.json": {}}}',
    "writers/live-12ac-0.2026-05-04.json": b'["../outside/victim.json"]',
    "seconds/day=2026-99-99/7/noday.parquet": b"x",
    "health/notes.txt": b"x",
}
LINKED = {
    "sources/link.json": "outside/victim.json",
    "seconds/day=2026-05-04/7/link.parquet": "outside/victim.json",
    "seconds/day=2026-05-04/linked": "outside",
}
PIPES = ("sources/pipe.json", "cycles/day=2026-05-04/7/pipe.parquet")
ALL = (*FOREIGN, *LINKED, *PIPES)


def test_foreign_content_is_named_and_left(
    cell: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings_module, "MOST_LINES", 1000)
    store = cell / "store"
    outside = cell / "outside"
    for name in ALL:
        (store / name).parent.mkdir(parents=True, exist_ok=True)
    for name, content in FOREIGN.items():
        (store / name).write_bytes(content)
    for name, target in LINKED.items():
        (store / name).symlink_to(cell / target)
    for name in PIPES:
        os.mkfifo(store / name)
    new = Session(at=NOON + 60 * HOUR).bag(cell / "new")
    for arguments in (
        ["add", str(store), str(new), "--robot", "ur5e"],
        ["compact", str(store)],
        ["summary", str(store), "--by", "day"],
        ["export", str(store), "-o", str(cell / "out.csv")],
        ["health", str(store)],
    ):
        code, _, lines = ask(arguments, capsys)
        assert code == 0, lines
        assert [path.name for path in outside.iterdir()] == ["victim.json"]
        assert all(os.path.lexists(store / name) for name in ALL)
        if arguments[0] in ("summary", "export", "health"):
            for name in ALL:
                if not name.startswith("writers"):  # the folder of no table
                    assert any(printable(name) in line for line in lines), name


@pytest.mark.parametrize("name", ["seconds/_delta_log", "sources"])
def test_a_folder_that_leads_out_of_the_store(
    cell: Path, name: str, capsys: Capture
) -> None:
    path = cell / "store" / name
    new = Session(at=NOON + 60 * HOUR).bag(cell / "new")
    shutil.rmtree(path)
    path.symlink_to(cell / "outside")
    for arguments in (
        ["add", f"{cell}/store", str(new), "--robot", "ur5e"],
        ["summary", f"{cell}/store"],
        ["compact", f"{cell}/store"],
    ):
        code, _, lines = ask(arguments, capsys)
        assert code == 0 or len(lines) == 1, lines
        assert [each.name for each in (cell / "outside").iterdir()] == ["victim.json"]


# Compaction


def test_compaction_changes_no_row(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command, or where a day has many files; a store that was removed is made again."""
    store = tmp_path / "store"
    sessions = [Session(at=NOON + k * HOUR, cycle=1.0) for k in range(2)]
    bags = [session.bag(tmp_path / f"bag_{k}") for k, session in enumerate(sessions)]
    add(store, *bags)
    before = {table: rows(store, table) for table in ("seconds", "cycles", "health")}
    code, out, _ = ask(["compact", str(store), "--json"], capsys)
    assert code == 0
    answer = json.loads(out)
    assert answer["files_before"] > answer["files_after"]
    assert len(files_of(store)) == 1
    assert HistoryStore(store).holdings().warnings == ()
    assert len(add(store, *bags).skipped) == 2
    over = Session(at=NOON + 10**9, moving=1.0, still=1.0).bag(tmp_path / "over")
    assert add(store, over).records[0].rows["seconds"] == 0
    DeltaTable(store / "seconds").vacuum(
        0, enforce_retention_duration=False, dry_run=False
    )
    assert {table: rows(store, table) for table in before} == before
    monkeypatch.setattr(store_module, "MOST_SMALL", 1)
    shutil.rmtree(store)
    assert len(add(store, *bags).records) == 2
    assert len(files_of(store)) == 1


def test_rows_without_logs_are_refused_and_left(tmp_path: Path) -> None:
    """A folder of rows that no present version writes; nothing is added beside them."""
    path = tmp_path / "store" / "seconds" / "day=2026-11-23" / "arm" / "source.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"rows")
    store = tmp_path / "store"
    reason = "before the first release; add its recordings to a new store"
    with pytest.raises(StoreError, match=reason):
        HistoryStore(store).holdings()
    bag = Session(at=NOON, moving=2.0, still=1.0).bag(tmp_path / "bag")
    with pytest.raises(StoreError, match=reason):
        add(store, bag)
    assert [each for each in store.rglob("*") if each.is_file()] == [path]


def test_a_column_that_a_version_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other programs see it once rows are added; older rows lack it."""
    store = tmp_path / "store"
    bags = [
        Session(at=NOON + k * HOUR, cycle=2.0).bag(tmp_path / f"bag_{k}")
        for k in range(2)
    ]
    *columns, last = TABLES["cycles"]
    with monkeypatch.context() as patched:
        patched.setitem(TABLES, "cycles", tuple(columns))
        add(store, bags[0])
        assert last.name not in rows(store, "cycles")[0]
    add(store, bags[1])
    first, *_, newest = rows(store, "cycles")
    assert first[last.name] is None
    assert newest[last.name] is not None
    HistoryStore(store).compact()
    assert rows(store, "cycles")[0][last.name] is None


# On an S3 server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    moto = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3", endpoint_url=environment["AWS_ENDPOINT_URL"]).create_bucket(
        Bucket=BUCKET
    )
    yield f"s3://{BUCKET}/plant"
    server.stop()


@pytest.mark.truth
def test_a_store_on_a_server(server: str, tmp_path: Path) -> None:
    """Also one that has lost data and commits."""
    boto3 = pytest.importorskip("boto3")
    bags = [Session(at=NOON + k * HOUR).bag(tmp_path / f"bag_{k}") for k in range(2)]
    truth = sum(estimated(bag).supply for bag in bags)
    assert add(server, *bags).sum("energy") == pytest.approx(truth)
    assert add(server, bags[0]).skipped == bags[:1]
    store = HistoryStore(server)
    store.compact()
    holdings = store.holdings()
    table = store.rows("seconds", holdings).to_table(columns=["total_energy"])
    assert holdings.warnings == ()
    assert sum(table.column("total_energy").to_pylist()) == pytest.approx(truth)
    client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    prefix = server.removeprefix(f"s3://{BUCKET}/")
    names = [each["Key"] for each in client.list_objects_v2(Bucket=BUCKET)["Contents"]]
    lost = [
        name for name in names if f"{prefix}/seconds/day" in name and "joined" in name
    ]
    lost += [
        name
        for name in names
        if name.endswith("cycles/_delta_log/00000000000000000001.json")
    ]
    lost += [
        name for name in names if name.endswith("health/_delta_log/_last_checkpoint")
    ]
    assert len(lost) == 3
    for name in lost:
        client.delete_object(Bucket=BUCKET, Key=name)
    assert store.holdings().lost
    added = add(server, *bags)
    assert (len(added.records), added.failed) == (2, [])
    holdings = HistoryStore(server).holdings()
    table = store.rows("seconds", holdings).to_table(columns=["total_energy"])
    assert holdings.warnings == ()
    assert sum(table.column("total_energy").to_pylist()) == pytest.approx(truth)
    with pytest.raises(StoreError, match="s3://no-such-bucket/plant"):
        add("s3://no-such-bucket/plant", bags[0])
