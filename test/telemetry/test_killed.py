# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recorders killed at any moment, beside an estimator: what they leave, and its recovery."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader

from test.telemetry.conftest import make_telemetry
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.metadata import read_metadata
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag, recover_killed
from ur_energy_model.telemetry.bag.writer import BagWriter

RECORDER = """
import sys, time
from pathlib import Path
import numpy as np
from test.telemetry.conftest import make_telemetry
from test.telemetry.scripted_source import ScriptedSource
from ur_energy_model.telemetry.bag.messages import encode_numbers
from ur_energy_model.telemetry.bag.messages import Messages
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.messages import FLOAT64, BagTopic
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.writing_thread import RecorderOptions

topic, late = BagTopic("/cell1/energy/total/power", FLOAT64), []
def messages():
    taken = [Messages(topic, stamp, encode_numbers(np.ones(len(stamp)))) for stamp in late[:-3]]
    del late[:-3]
    return taken
whole = make_telemetry(30000, fields=("actual_q",))
source = ScriptedSource(whole.info)
options = RecorderOptions(("actual_q",), split=FileSplit(seconds=1.5), messages=messages)
with Recorder(source, options=options, record=Path(sys.argv[1])):
    for first in range(0, 30000, 25):
        batch = whole.cut(slice(first, first + 25))
        late.append(batch.stamp[::10])
        source.give(batch)
        if first == 0:
            print("begun", flush=True)
        time.sleep(0.05)
"""


def log_times(bag: Path) -> list[int]:
    """Of a whole bag, by two other readers; one of them reads only topics that metadata names."""
    with AnyReader([bag]) as reader:
        times = [stamp for _, stamp, _ in reader.messages()]
    others = []
    for entry in read_metadata(bag).files:
        with (bag / entry.name).open("rb") as file:
            messages = make_reader(file, validate_crcs=True).iter_messages(
                log_time_order=False
            )
            others += [message.log_time for _, _, message in messages]
    assert sorted(others) == times
    return times


def recovered(folder: Path) -> list[tuple[str, bool]]:
    """Lines of the recovery, and whether each needs attention."""
    lines: list[tuple[str, bool]] = []
    recover_killed(folder, lambda *line: lines.append(line), lambda: False)
    return lines


def test_other_readers_read_what_is_left_and_the_logger_recovers_it(tmp_path):
    """Killed at a random moment: all but the last second is readable."""
    bag = tmp_path / "bag"
    command = [sys.executable, "-c", RECORDER, bag]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        time.sleep(random.uniform(0.7, 2.5))
        process.send_signal(signal.SIGKILL)
    times = log_times(bag)
    assert times == sorted(times)
    assert sum(entry.messages for entry in read_metadata(bag).files) <= len(times)
    ((line, attention),) = recovered(tmp_path)
    assert not attention
    times = log_times(bag)
    assert times == sorted(times)
    assert sum(entry.messages for entry in read_metadata(bag).files) == len(times)
    samples = read_bag(bag)
    assert samples.time.tolist() == make_telemetry(len(samples)).time.tolist()
    assert f" {len(samples)} samples" in line
    assert recovered(tmp_path) == []  # it is complete now


def test_bags_that_another_computer_may_write_are_left(tmp_path):
    path = tmp_path / "bag"
    bag = BagWriter(path, make_telemetry(10).info, ("actual_q",))
    bag.write(make_telemetry(1000, fields=("actual_q",)))
    bag.flush()
    bag.write_metadata()
    bag.abandon()
    metadata = path / "metadata.yaml"
    mine = f"host: {socket.gethostname()}"
    metadata.write_text(metadata.read_text().replace(mine, "host: elsewhere"))
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    ((line, attention),) = recovered(tmp_path)
    assert attention
    assert "ur_energy recover" in line
    assert "elsewhere" in line
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    assert recover_bag(path).samples == 1000  # a user may insist


def test_a_bag_that_is_being_written_is_left_by_everyone(tmp_path):
    telemetry = make_telemetry(1000, fields=("actual_q",))
    with BagWriter(tmp_path / "bag", telemetry.info, ("actual_q",)) as bag:
        bag.write(telemetry)
        assert recovered(tmp_path) == []
        with pytest.raises(RecordingError, match="still being recorded"):
            recover_bag(tmp_path / "bag")
    assert len(read_bag(tmp_path / "bag")) == 1000
