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
from ur_energy_model.telemetry.bag.cdr import encode_numbers
from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.message_encoder import FLOAT64, BagTopic
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
            messages = make_reader(file, validate_crcs=True).iter_messages(log_time_order=False)
            others += [message.log_time for _, _, message in messages]
    assert sorted(others) == times
    return times


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Bags of recorders that were killed after some seconds."""
    folder, dice = tmp_path_factory.mktemp("killed"), random.Random(29)
    processes = []
    for number in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", RECORDER, folder / f"bag_{number}"],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
        )
        processes.append((process, dice.uniform(0.7, 4.0)))
    for process, _ in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
    began = time.monotonic()
    for process, delay in sorted(processes, key=lambda each: each[1]):
        time.sleep(max(0.0, began + delay - time.monotonic()))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    return folder


def test_other_readers_read_what_is_left_and_the_logger_recovers_it(killed):
    for bag in sorted(killed.iterdir()):
        times = log_times(bag)
        assert times == sorted(times)
        counted = sum(entry.messages for entry in read_metadata(bag).files)
        assert counted <= len(times)
    said = []
    recover_killed(killed, lambda *line: said.append(line), lambda: False)
    assert len(said) == len(list(killed.iterdir()))
    assert not any(attention for _, attention in said)
    for bag in sorted(killed.iterdir()):
        times = log_times(bag)
        assert times == sorted(times)
        assert sum(entry.messages for entry in read_metadata(bag).files) == len(times)
        samples = read_bag(bag)
        assert samples.time.tolist() == make_telemetry(len(samples)).time.tolist()
        assert any(f" {len(samples)} samples" in line for line, _ in said)
    recover_killed(killed, lambda *line: said.append(line), lambda: False)
    assert len(said) == len(list(killed.iterdir()))  # they are complete now


def unfinished(path: Path, host: str | None) -> Path:
    bag = BagWriter(path, make_telemetry(10).info, ("actual_q",))
    bag.write(make_telemetry(1000, fields=("actual_q",)))
    bag.flush()
    bag.write_metadata()
    bag.abandon()
    for file in path.iterdir():  # as on another computer, or by an earlier version
        mine, its = socket.gethostname().encode(), (host or "").encode()
        key = b"host" if host is not None else b"h0st"
        content = file.read_bytes()
        if len(mine) == len(its) or host is None or file.suffix == ".yaml":
            content = content.replace(b"host: " + mine, key + b": " + (its or mine))
        file.write_bytes(content)
    return path


@pytest.mark.parametrize("host", ["elsewhere", None])
def test_bags_that_another_computer_may_write_are_left(tmp_path, host):
    bag = unfinished(tmp_path / "bag", host)
    before = {file.name: file.read_bytes() for file in bag.iterdir()}
    said = []
    recover_killed(tmp_path, lambda *line: said.append(line), lambda: False)
    ((line, attention),) = said
    assert attention
    assert "ur_energy recover" in line
    assert (host or "another computer") in line
    assert {file.name: file.read_bytes() for file in bag.iterdir()} == before
    assert recover_bag(bag).samples == 1000  # a user may insist


def test_a_bag_that_is_being_written_is_left_by_everyone(tmp_path):
    telemetry = make_telemetry(1000, fields=("actual_q",))
    with BagWriter(tmp_path / "bag", telemetry.info, ("actual_q",)) as bag:
        bag.write(telemetry)
        said = []
        recover_killed(tmp_path, lambda *line: said.append(line), lambda: False)
        assert said == []
        with pytest.raises(RecordingError, match="still being recorded"):
            recover_bag(tmp_path / "bag")
    assert len(read_bag(tmp_path / "bag")) == 1000
