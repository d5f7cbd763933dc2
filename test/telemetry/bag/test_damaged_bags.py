"""Bags that are damaged or malicious: refused in one line, or recovered; in bounded memory."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import struct
import zlib
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import zstandard
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader

from test.telemetry.bag.bag_files import chunk_record, in_sqlite, write_bag, write_file
from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.mcap_format import Op
from ur_energy_model.telemetry.bag.metadata import (
    GAP_RECORD_NAME,
    info_of_custom,
    placed_record,
    read_metadata,
)
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag
from ur_energy_model.telemetry.bag.recovery import DAMAGED, recover_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Gap, concatenate

METADATA, FIELDS = "metadata.yaml", ("actual_q", "payload")
TELEMETRY = make_telemetry(1000, fields=FIELDS)


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """Two seconds with MCAP and with sqlite3 storage."""
    folder = tmp_path_factory.mktemp("intact")
    write_bag(folder / "bag", TELEMETRY)
    in_sqlite(folder / "sqlite", TELEMETRY)
    return folder


@pytest.fixture
def bag(intact, tmp_path):
    return shutil.copytree(intact / "bag", tmp_path / "bag")


@pytest.fixture
def sqlite_bag(intact, tmp_path):
    return shutil.copytree(intact / "sqlite", tmp_path / "bag")


def refusal(path):
    with pytest.raises(RecordingError) as caught:
        read_bag(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def edit_metadata(bag, old, new):
    text = (bag / METADATA).read_text()
    assert old in text
    (bag / METADATA).write_text(text.replace(old, new))


def samples_by_reader(bag):
    """Number of telemetry samples by this package, rosbags and mcap."""
    with Reader(bag) as reader:
        theirs = sum("telemetry" in each.topic for each, _, _ in reader.messages())
    by_mcap = 0
    for path in bag.glob("*.mcap"):
        with path.open("rb") as file:
            messages = make_reader(file, validate_crcs=True).iter_messages()
            by_mcap += sum("telemetry" in channel.topic for _, channel, _ in messages)
    return len(read_bag(bag)), theirs, by_mcap


# Refused: what is no bag, or leads elsewhere.


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("message_count: ", "message_count: -", "must be 0 to"),
        ("relative_file_paths:", "relative_fiel_paths:", "did you mean 'relative_file_paths'"),
        ("custom_data:", "custom_data: &x", "aliases"),
        ("storage_identifier: mcap", "storage_identifier: [mcap]", "single value"),
        ("compression_mode: ''", "compression_mode: FILE", "'FILE' is not supported"),
        ("  - bag_0.mcap", "  - ../secret.mcap", "leads out of the bag"),
        ("  - bag_0.mcap", "  - /etc/passwd", "leads out of the bag"),
        ("  - bag_0.mcap", "  - ''", "leads out of the bag"),
        ("  - bag_0.mcap", "  - bag_0.mcap\n  - bag_0.mcap", "occurs twice"),
        ("  - bag_0.mcap", f"  - {'x' * 256}", "longer than"),
    ],
)
def test_malformed_metadata_is_refused_with_its_line(bag, old, new, problem):
    shutil.copy(bag / "bag_0.mcap", bag.parent / "secret.mcap")
    edit_metadata(bag, old, new)
    said = refusal(bag)
    assert "metadata.yaml: line " in said
    assert problem in said


def test_what_other_writers_add_to_metadata_does_no_harm(bag):
    """Keys of later rosbag2 versions, and text that they do not put in quotes."""
    root = "rosbag2_bagfile_information:"
    edit_metadata(bag, root, f"{root}\n  a_later_key: {{with: [1, 2.5, null, 2026-01-01]}}")
    more = "custom_data:\n    site: 12\n    day: 2026-01-01\n    more: [1]\n    note: !<!> 'x'"
    edit_metadata(bag, "custom_data:", more)
    edit_metadata(bag, "simulated: 'false'", "simulated: true")
    custom = read_metadata(bag).custom
    assert (custom["site"], custom["day"], custom["note"]) == ("12", "2026-01-01", "x")
    assert "more" not in custom
    assert info_of_custom(custom, "bag").simulated
    assert len(read_bag(bag)) == 1000


REFUSED = {"rate": ["NaN", "-500", "1e999", "[5]"], "gravity": ["[0, 0]"], "extra": ["[" * 9999]}
UNKNOWN = {
    "payload_mass": ["-3", "1e6", "NaN"],
    "gravity": ["[0, 0, 0]", "[0, 0, -98]"],
}


def test_provenance_that_cannot_be_is_refused_or_unknown():
    for key, value in ((key, value) for key, values in REFUSED.items() for value in values):
        with pytest.raises(RecordingError, match="recording information is malformed") as caught:
            info_of_custom({key: value}, "a bag")
        assert len(str(caught.value)) < 200
    for key, value in ((key, value) for key, values in UNKNOWN.items() for value in values):
        assert getattr(info_of_custom({key: value}, "a bag"), key) is None
    gap = {"index": "3", "start": "1.5", "end": "2.5", "missing": "4", "cause": "skipped"}
    assert placed_record(GAP_RECORD_NAME, gap) == [(3, Gap(3, 1.5, 2.5, 4, "skipped"))]
    for value in ("1e999", "NaN", "[1]", ""):
        assert not placed_record(GAP_RECORD_NAME, {**gap, "missing": value})


@pytest.mark.parametrize("name", [b"\xff", b"\x1b[2J"])
def test_bags_whose_files_have_names_that_are_no_text_are_refused(bag, name):
    (bag / METADATA).unlink()
    (bag / "bag_0.mcap").rename(bag / os.fsdecode(name + b".mcap"))
    assert len(read_bag(bag)) == 1000
    for refused in (
        lambda: recover_bag(bag),
        lambda: BagWriter(bag.parent / os.fsdecode(name), TELEMETRY.info, FIELDS),
    ):
        with pytest.raises(RecordingError, match="rename") as caught:
            refused()
        assert str(caught.value).isprintable()
    assert [path.name for path in bag.parent.iterdir()] == ["bag"]


def test_what_is_not_a_bag_is_refused(tmp_path, bag):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("hello")
    os.mkfifo(tmp_path / "fifo")
    for name in ("nothing", "folder", "file", "fifo"):
        assert str(tmp_path / name) in refusal(tmp_path / name)
    (bag / "bag_0.mcap").unlink()
    assert "bag_0.mcap: is missing" in refusal(bag)
    os.mkfifo(bag / "bag_0.mcap")
    assert "bag_0.mcap: is missing" in refusal(bag)
    BagWriter(tmp_path / "empty", TELEMETRY.info, FIELDS).close()
    assert "holds no samples" in refusal(tmp_path / "empty")
    with pytest.raises(RecordingError, match="holds no samples"):
        list(iterate_bag(tmp_path / "empty"))


def test_lying_lengths_are_refused(tmp_path):
    body = struct.pack("<BQ", Op.MESSAGE, 1 << 62) + bytes(50)
    packed = zstandard.ZstdCompressor().compress(body)
    short = struct.pack("<BQ", Op.MESSAGE, 5) + bytes(5)
    for problem, chunk in {
        "do not fit": chunk_record(len(body), packed, checksum=zlib.crc32(body)),
        "without header": chunk_record(14, short, ""),
        "compressed by 'rot13'": chunk_record(14, short, "rot13"),
        "checksum": chunk_record(14, short, "", checksum=1),
    }.items():
        assert problem in refusal(write_file(tmp_path / "x.mcap", chunk))


# Bags with sqlite3 storage.

ENDLESS = (
    "CREATE VIEW messages AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS id, 1 AS topic_id, i AS timestamp, zeroblob(1000) AS data FROM n"
)
COMPUTED = (
    "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INT, timestamp INT, "
    "data BLOB AS (zeroblob(100000000)))"
)


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        *(
            ([f"UPDATE messages SET data = {data} WHERE id = 10"], "row 10 of its messages")
            for data in ("'text'", "NULL", "zeroblob(300000)")
        ),
        (["UPDATE topics SET name = CAST(x'ff2f' AS TEXT)"], "holds no samples"),
        (["DELETE FROM messages WHERE id > 500"], "truncated: 500 of 1000"),
        (["DROP TABLE topics"], "no table 'topics'"),
        (["DROP TABLE messages", ENDLESS], "no table 'messages'"),
        (["DROP TABLE messages", COMPUTED], "no table 'messages'"),
    ],
)
def test_what_is_no_recording_in_sqlite_is_refused(sqlite_bag, statements, problem):
    assert_same_samples(read_bag(sqlite_bag), TELEMETRY)
    with closing(sqlite3.connect(sqlite_bag / "bag_0.db3")) as file, file:
        for statement in statements:
            file.execute(statement)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert problem in refusal(sqlite_bag)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # kB


# Recovered: what a crash or damage left.


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_refused_and_recovered(bag, fraction):
    file = bag / "bag_0.mcap"
    data = file.read_bytes()
    file.write_bytes(data[: int(fraction * len(data))])
    said = refusal(bag)
    if fraction > 0.1:
        assert "ur_energy recover" in said
        recovered = recover_bag(bag)
        assert 0 < recovered.samples < 1000
        assert len(read_bag(bag)) == recovered.samples


def test_a_growing_bag_is_readable_by_every_reader(tmp_path):
    telemetry = make_telemetry(1500, fields=FIELDS)
    writer = BagWriter(tmp_path / "bag", telemetry.info, FIELDS, split=FileSplit(seconds=1.0))
    for start in range(0, 1500, 25):
        writer.write(telemetry.cut(slice(start, start + 25)))
        if start in (500, 1200):
            ours, theirs, by_mcap = samples_by_reader(tmp_path / "bag")
            assert ours == theirs == by_mcap
            assert start - 300 < ours <= start + 25
    writer.abandon()


@pytest.mark.parametrize("missing", ["metadata", "tail", "both"])
def test_what_is_missing_is_rebuilt(tmp_path, missing):
    parts = [make_telemetry(600, fields=FIELDS, first=first) for first in (0, 604)]
    gap = Gap(600, parts[0].time[-1], parts[1].time[0], 4, "connection lost: cable")
    telemetry = replace(concatenate(parts), gaps=(gap,))
    bag = write_bag(tmp_path / "bag", telemetry, split=FileSplit(seconds=1.0))
    whole, last = read_bag(bag), max(bag.glob("*.mcap"))
    if missing != "tail":
        (bag / METADATA).unlink()
    if missing != "metadata":
        data = last.read_bytes()
        last.write_bytes(data[: data.rindex(b"\x0f\x04\x00\x00\x00\x00\x00\x00\x00")])
    recovery = recover_bag(bag)
    assert recovery.samples == 1200
    assert recovery.problems
    read = read_bag(bag)
    assert_same_samples(read, whole)
    assert (read.gaps, read.info) == ((gap,), whole.info)
    assert samples_by_reader(bag) == (1200, 1200, 1200)


def test_a_damaged_chunk_becomes_a_gap(tmp_path):
    telemetry, later = (make_telemetry(1500, fields=FIELDS, first=first) for first in (0, 1510))
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
    recovery, read = recover_bag(bag), read_bag(bag)
    assert 2500 < recovery.samples == len(read) < 3000
    assert any("damaged" in problem for problem in recovery.problems)
    torn, old = read.gaps
    assert (torn.cause, torn.missing) == (DAMAGED, 3000 - len(read))
    assert read.time[torn.index] == torn.end
    assert (old.cause, read.time[old.index]) == ("skipped", later.time[0])
    assert np.isin(read.time, both.time).all()


def test_nothing_to_recover_is_reported(tmp_path):
    folder = tmp_path / "folder"
    for problem in ("no such bag", "not a bag", "no sample that could be read"):
        with pytest.raises(RecordingError, match=problem):
            recover_bag(folder)
        if folder.exists():
            (folder / "x_0.mcap").write_bytes(b"rubbish" * 100)
        folder.mkdir(exist_ok=True)
    assert [path.read_bytes() for path in folder.iterdir()] == [b"rubbish" * 100]
