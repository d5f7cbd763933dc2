"""Crashes and damage: every reader finds all but the last second."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import DAMAGED, recover_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Gap, concatenate

FIELDS = ("actual_q", "payload")


def samples_by_reader(bag):
    """Number of telemetry samples by ours, rosbags and mcap."""
    ours = len(read_bag(bag))
    with Reader(bag) as reader:
        theirs = sum(1 for each, _, _ in reader.messages() if "telemetry" in each.topic)
    by_mcap = 0
    for path in bag.glob("*.mcap"):
        with path.open("rb") as file:
            messages = make_reader(file, validate_crcs=True).iter_messages()
            by_mcap += sum(1 for _, channel, _ in messages if "telemetry" in channel.topic)
    return ours, theirs, by_mcap


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


def test_sigkill_costs_less_than_a_second(tmp_path):
    script = textwrap.dedent(
        """
        import sys, time
        from test.telemetry.conftest import make_telemetry
        from ur_energy_model.telemetry.bag.writer import BagWriter
        telemetry = make_telemetry(2000, fields=("actual_q", "payload"))
        writer = BagWriter(sys.argv[1], telemetry.info, ("actual_q", "payload"), durable=True)
        for start in range(0, 2000, 25):
            writer.write(telemetry.cut(slice(start, start + 25)))
        print("written", flush=True)
        time.sleep(60)
        """
    )
    bag = tmp_path / "bag"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(bag)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        os.kill(process.pid, signal.SIGKILL)
    ours, theirs, by_mcap = samples_by_reader(bag)
    assert ours == theirs == by_mcap
    assert ours > 1500
    recovery = recover_bag(bag)
    assert recovery.samples == ours
    assert samples_by_reader(bag) == (ours, ours, ours)
    whole = make_telemetry(2000, fields=FIELDS)
    assert_same_samples(read_bag(bag), whole.cut(slice(0, ours)))


@pytest.mark.parametrize("missing", ["metadata", "tail", "both"])
def test_what_is_missing_is_rebuilt(tmp_path, missing):
    first, second = (
        make_telemetry(600, fields=FIELDS),
        make_telemetry(600, fields=FIELDS, first=604),
    )
    gap = Gap(600, first.time[-1], second.time[0], 4, "connection lost: cable")
    telemetry = replace(concatenate([first, second]), gaps=(gap,))
    bag = write_bag(tmp_path / "bag", telemetry, split=FileSplit(seconds=1.0))
    whole = read_bag(bag)
    last = max(bag.glob("*.mcap"))
    if missing != "tail":
        (bag / "metadata.yaml").unlink()
    if missing != "metadata":
        data = last.read_bytes()
        last.write_bytes(data[: data.rindex(b"\x0f\x04\x00\x00\x00\x00\x00\x00\x00")])
    recovery = recover_bag(bag)
    assert recovery.samples == 1200
    assert recovery.problems
    assert_same_samples(read_bag(bag), whole)
    assert read_bag(bag).gaps == (gap,)
    assert read_bag(bag).info == whole.info
    assert samples_by_reader(bag) == (1200, 1200, 1200)


def test_a_damaged_chunk_becomes_a_gap(tmp_path):
    telemetry = make_telemetry(1500, fields=FIELDS)
    bag = tmp_path / "bag"
    lost = make_telemetry(1500, fields=FIELDS, first=1510)
    gap = Gap(1500, telemetry.time[-1], lost.time[0], 10, "skipped")
    both = replace(concatenate([telemetry, lost]), gaps=(gap,))
    write_bag(bag, both)
    file = bag / "bag_0.mcap"
    data = bytearray(file.read_bytes())
    with file.open("rb") as stream:
        summary = make_reader(stream).get_summary()
        assert summary is not None
        chunk = summary.chunk_indexes[2]
    data[chunk.chunk_start_offset + 100] ^= 0xFF
    file.write_bytes(data)
    recovery = recover_bag(bag)
    read = read_bag(bag)
    assert 2500 < recovery.samples == len(read) < 3000
    assert any("damaged" in problem for problem in recovery.problems)
    torn, old = read.gaps
    assert torn.cause == DAMAGED
    assert torn.missing == 3000 - len(read)
    assert read.time[torn.index] == torn.end
    assert old.cause == "skipped"
    assert read.time[old.index] == lost.time[0]
    assert np.isin(read.time, both.time).all()


def test_a_damaged_beginning_costs_only_itself(tmp_path):
    telemetry = make_telemetry(1500, fields=FIELDS)
    bag = write_bag(tmp_path / "bag", telemetry)
    file = bag / "bag_0.mcap"
    data = file.read_bytes()
    file.write_bytes(bytes(600) + data[600:])
    recovery = recover_bag(bag)
    assert recovery.samples >= 1200
    read = read_bag(bag)
    assert np.array_equal(read["actual_q"], telemetry["actual_q"][-len(read) :])


def test_nothing_to_recover_is_said(tmp_path):
    with pytest.raises(RecordingError, match="no such bag"):
        recover_bag(tmp_path / "none")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RecordingError, match="not a bag"):
        recover_bag(tmp_path / "folder")
    (tmp_path / "folder" / "x_0.mcap").write_bytes(b"rubbish" * 100)
    with pytest.raises(RecordingError, match="no sample that could be read"):
        recover_bag(tmp_path / "folder")
    assert (tmp_path / "folder" / "x_0.mcap").read_bytes() == b"rubbish" * 100
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["x_0.mcap"]
