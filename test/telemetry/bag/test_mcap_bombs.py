"""MCAP files made to exhaust time or memory, and limits that honest bags do not reach."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import zstandard

from test.telemetry.bag.bag_files import record, write_bag
from test.telemetry.bag.test_hostile_bags import chunk_record, write_file
from test.telemetry.conftest import make_telemetry
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag import mcap_reader
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.mcap_format import Channel, Op, Schema, pack
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.metadata import GAP_RECORD_NAME, RECORD_NAME
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag
from ur_energy_model.telemetry.samples import Gap

METADATA = "metadata.yaml"


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """A bag of two seconds."""
    telemetry = make_telemetry(1000, fields=("actual_q", "payload"))
    return write_bag(tmp_path_factory.mktemp("intact") / "bag", telemetry)


GAP = {"index": "3", "start": "1.5", "end": "2.5", "missing": "4", "cause": "x"}
SMALL = record(Op.MESSAGE, bytes(22))


def packed(body, times=1):
    return chunk_record(len(body), zstandard.ZstdCompressor().compress(body)) * times


MCAP_BOMBS = {
    "gaps": lambda: pack(Op.METADATA, GAP_RECORD_NAME, GAP) * 100_000,
    "provenance": lambda: pack(Op.METADATA, RECORD_NAME, {"rate": "500"}) * 200_000,
    "schemas": lambda: b"".join(
        pack(Op.SCHEMA, *Schema(i, "a", "b", b"c" * 1000)) for i in range(65535)
    ),
    "channels": lambda: b"".join(
        pack(Op.CHANNEL, *Channel(i, 1, "a" * 900, "b", {"k": "v" * 100})) for i in range(65535)
    ),
    "a large attachment": lambda: record(Op.ATTACHMENT, bytes(150 << 20)),
    "a large message": lambda: record(Op.MESSAGE, bytes(150 << 20)),
    "a large chunk": lambda: packed(SMALL * 3_000_000),
    "chunks that unpack to gigabytes": lambda: packed(bytes(60 << 20), 100),
    "empty chunks": lambda: chunk_record(0, b"", "") * 20_000,
    "small messages": lambda: SMALL * 50_000,
    "marks of chunks": lambda: (
        b"\xff" + (struct.pack("<BQ", Op.CHUNK, 60 << 20) + bytes(28) + b"\x04\0\0\0zstd") * 200_000
    ),
    "wrong checksums": lambda: b"\xff" + chunk_record(1 << 20, packed(bytes(1 << 20))) * 500,
}


_SCRIPT = """\
import sys
from ur_energy_model.cli.main import main
code = main(sys.argv[1:])
status = open("/proc/self/status").read()
print(code, int(status.partition("VmHWM:")[2].split()[0]) >> 10)
"""


def in_own_process(arguments, limit):
    """Exit code, messages and largest memory [MB] of a command that ends within a limit [s]."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=limit,
        check=True,
    )
    code, memory = map(int, done.stdout.split())
    return code, done.stderr, memory


MANY = {
    "metadata": pack(Op.METADATA, "n", {}) * 2000,
    "metadata in a chunk": packed(pack(Op.METADATA, "n", {}) * 2000),
    "attachments": record(Op.ATTACHMENT, b"") * 2000,
}


@pytest.mark.parametrize("name", MANY)
def test_too_many_records_that_are_no_messages_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(mcap_reader, "_ITEMS", 1000)
    with pytest.raises(RecordingError, match="more than any honest file"):
        read_bag(write_file(tmp_path / "x.mcap", MANY[name]))


@pytest.mark.parametrize("name", MCAP_BOMBS)
@pytest.mark.parametrize("command", ["inspect", "recover"])
def test_bombs_in_mcap_files_are_bounded(tmp_path, name, command):
    path = write_file(tmp_path / "bomb.mcap", MCAP_BOMBS[name]())
    code, said, memory = in_own_process([command, path], 100.0)
    assert (code, said.count("\n")) == (1, 1), said
    assert said.startswith(f"ur_energy {command}: ")
    assert memory < 500


def telemetry_messages(intact):
    reader = McapReader(intact / "bag_0.mcap")
    block = next(reader.blocks(TELEMETRY_TOPIC))
    head = b"".join(pack(Op.SCHEMA, *each) for each in reader.schemas.values())
    head += b"".join(pack(Op.CHANNEL, *each) for each in reader.channels.values())
    return head, block.channel, block.payload[0].tobytes()


def test_messages_of_many_layouts_are_refused_at_once(intact, tmp_path):
    head, channel, message = telemetry_messages(intact)
    stamp = struct.pack("<HIQQ", channel, 0, 0, 0)
    body = b"".join(
        record(Op.MESSAGE, stamp + message.replace(b"wrist_3_joint", b"w%012d" % i))
        for i in range(2000)
    )
    with pytest.raises(RecordingError, match="more than any honest file"):
        read_bag(write_file(tmp_path / "x.mcap", head, packed(body)))


def test_messages_outside_chunks_are_read(intact, tmp_path):
    head, channel, message = telemetry_messages(intact)
    one = record(Op.MESSAGE, struct.pack("<HIQQ", channel, 0, 0, 0) + message)
    read = read_bag(write_file(tmp_path / "x.mcap", head, one * 3000))
    assert (len(read), read.repeated) == (1, 2999)


def test_more_gaps_than_metadata_holds_are_read_back(tmp_path):
    """Each second sample is lost: 3000 gaps, of which metadata.yaml names the first thousand."""
    whole = make_telemetry(6001, fields=("actual_q",))
    telemetry = whole.select(np.arange(6001) % 2 == 0)
    gaps = tuple(
        Gap(i, float(telemetry.time[i - 1]), float(telemetry.time[i]), 1, "skipped")
        for i in range(1, 3001)
    )
    path = write_bag(tmp_path / "bag", replace(telemetry, gaps=gaps))
    assert (path / METADATA).stat().st_size < 1_000_000
    assert read_bag(path).gaps == gaps
    joined = [gap.start for part in iterate_bag(path, samples=100) for gap in part.gaps]
    assert joined == [gap.start for gap in gaps]


def test_a_file_named_twice_is_refused(intact, tmp_path):
    bag = shutil.copytree(intact, tmp_path / "bag")
    metadata = (bag / METADATA).read_text()
    twice = metadata.replace("  - bag_0.mcap", "  - bag_0.mcap\n  - bag_0.mcap")
    (bag / METADATA).write_text(twice)
    with pytest.raises(RecordingError, match=r"'bag_0\.mcap' occurs twice"):
        read_bag(bag)
