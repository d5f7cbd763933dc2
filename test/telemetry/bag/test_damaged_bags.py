# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags that are damaged or malicious: refused in one line, or recovered; in bounded memory."""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import replace

import numpy as np
import pytest
from mcap.reader import make_reader

from test.telemetry.bag.bag_files import change_rows, in_sqlite, write_bag
from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import DAMAGED, recover_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.gaps import Gap
from ur_energy_model.telemetry.samples import concatenate

METADATA = "metadata.yaml"
FIELDS = ("actual_q", "payload")
TELEMETRY = make_telemetry(1000, fields=FIELDS)


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    return write_bag(tmp_path_factory.mktemp("intact") / "bag", TELEMETRY)


@pytest.fixture
def bag(intact, tmp_path):
    return shutil.copytree(intact, tmp_path / "bag")


def refusal(path):
    with pytest.raises(RecordingError) as caught:
        read_bag(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Refused: what is no bag, or leads elsewhere.


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("message_count: ", "message_count: -", "must be 0 to"),
        ("custom_data:", "custom_data: &x", "aliases"),
        ("compression_mode: ''", "compression_mode: PAGE", "'PAGE' is not supported"),
        ("  - bag_0.mcap", "  - ../secret.mcap", "leads out of the bag"),
        ("  - bag_0.mcap", "  - /etc/passwd", "leads out of the bag"),
        ("  - bag_0.mcap", "  - bag_0.mcap\n  - bag_0.mcap", "occurs twice"),
    ],
)
def test_malformed_metadata_is_refused_with_its_line(bag, old, new, problem):
    shutil.copy(bag / "bag_0.mcap", bag.parent / "secret.mcap")
    text = (bag / METADATA).read_text()
    assert old in text
    (bag / METADATA).write_text(text.replace(old, new))
    said = refusal(bag)
    assert "metadata.yaml: line " in said
    assert problem in said


def test_what_is_not_a_bag_is_refused(tmp_path, bag):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("hello")
    os.mkfifo(tmp_path / "fifo")
    for name in ("nothing", "folder", "file", "fifo"):
        assert str(tmp_path / name) in refusal(tmp_path / name)
    (bag / "bag_0.mcap").unlink()
    assert "bag_0.mcap is missing" in refusal(bag)
    BagWriter(tmp_path / "empty", TELEMETRY.info, FIELDS).close()
    assert "holds no samples" in refusal(tmp_path / "empty")
    (tmp_path / "folder" / "x_0.mcap").write_bytes(b"rubbish" * 100)
    for name, problem in (
        ("nothing", "no such bag"),
        ("folder", "no sample that could be read"),
    ):
        with pytest.raises(RecordingError, match=problem):
            recover_bag(tmp_path / name)
    assert (tmp_path / "folder" / "x_0.mcap").read_bytes() == b"rubbish" * 100


# Bags with sqlite3 storage.

ENDLESS = (
    "CREATE VIEW messages AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS id, 1 AS topic_id, i AS timestamp, zeroblob(1000) AS data FROM n"
)


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (
            ["UPDATE messages SET data = zeroblob(300000) WHERE id = 10"],
            "row 10 of its messages",
        ),
        (["DELETE FROM messages WHERE id > 500"], "truncated: 416 of 1000"),
        (["DROP TABLE messages", ENDLESS], "no table 'messages'"),
    ],
)
def test_what_is_no_recording_in_sqlite_is_refused(tmp_path, intact, statements, problem):
    sqlite_bag = in_sqlite(tmp_path / "bag", intact)
    assert_same_samples(read_bag(sqlite_bag), TELEMETRY)
    change_rows(sqlite_bag, *statements)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert problem in refusal(sqlite_bag)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # kB


# Recovered: what a crash or damage left.


@pytest.mark.parametrize("missing", ["tail", "both"])
def test_what_is_missing_is_rebuilt(tmp_path, missing):
    parts = [make_telemetry(600, fields=FIELDS, first=first) for first in (0, 604)]
    gap = Gap(600, parts[0].time[-1], parts[1].time[0], 4, "connection lost: cable")
    telemetry = replace(concatenate(parts), gaps=(gap,))
    bag = write_bag(tmp_path / "bag", telemetry, split=FileSplit(seconds=1.0))
    whole = read_bag(bag)
    last = max(bag.glob("*.mcap"))
    if missing == "both":
        (bag / METADATA).unlink()
    data = last.read_bytes()
    last.write_bytes(data[: data.rindex(b"\x0f\x04\x00\x00\x00\x00\x00\x00\x00")])
    recovery = recover_bag(bag)
    assert recovery.samples == 1200
    assert recovery.problems
    read = read_bag(bag)
    assert_same_samples(read, whole)
    assert (read.gaps, read.info) == ((gap,), whole.info)


def test_many_damaged_chunks_are_one_line(tmp_path):
    """However many there are, the first one and their number are stated."""
    chunks = 300
    each = 20
    damaged = 150
    telemetry = make_telemetry(chunks * each, fields=FIELDS)
    bag = tmp_path / "bag"
    with BagWriter(bag, telemetry.info, tuple(telemetry.columns)) as writer:
        for first in range(0, len(telemetry), each):
            writer.write(telemetry.cut(slice(first, first + each)))
            writer.flush()
    (file,) = bag.glob("*.mcap")
    with file.open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    places = [index.chunk_start_offset for index in summary.chunk_indexes]
    assert len(places) >= chunks
    data = bytearray(file.read_bytes())
    for place in places[1 : 2 * damaged : 2]:
        data[place + 100] ^= 0xFF
    file.write_bytes(data)
    recovery = recover_bag(bag)
    (line,) = [problem for problem in recovery.problems if "damaged" in problem]
    assert f"byte {places[1]} " in line
    assert f"{damaged - 1} more" in line
    assert recovery.samples == (chunks - damaged) * each


def test_a_damaged_chunk_becomes_a_gap(tmp_path):
    telemetry, later = (
        make_telemetry(1500, fields=FIELDS, first=first) for first in (0, 1510)
    )
    gap = Gap(1500, telemetry.time[-1], later.time[0], 10, "skipped")
    both = replace(concatenate([telemetry, later]), gaps=(gap,))
    bag = write_bag(tmp_path / "bag", both)
    file = bag / "bag_0.mcap"
    data = bytearray(file.read_bytes())
    with file.open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    data[summary.chunk_indexes[2].chunk_start_offset + 100] ^= 0xFF
    file.write_bytes(data)
    recovery = recover_bag(bag)
    read = read_bag(bag)
    assert 2500 < recovery.samples == len(read) < 3000
    assert any("damaged" in problem for problem in recovery.problems)
    torn, old = read.gaps
    assert (torn.cause, torn.missing) == (DAMAGED, 3000 - len(read))
    assert read.time[torn.index] == torn.end
    assert (old.cause, read.time[old.index]) == ("skipped", later.time[0])
    assert np.isin(read.time, both.time).all()
