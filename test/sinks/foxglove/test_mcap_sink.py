"""The MCAP file: the messages of the server, in a file that is always complete."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

pytest.importorskip("foxglove")


from pathlib import Path

from mcap.reader import make_reader
from mcap.records import Schema

from test.sinks.live_readings import live_readings
from test.sinks.waiting import until
from ur_energy_model.errors import InputError
from ur_energy_model.sinks import foxglove_messages as module
from ur_energy_model.sinks import sink as sinks
from ur_energy_model.sinks.foxglove_messages import McapDelivery, ReadingMessages, mcap_sink
from ur_energy_model.sinks.options import SinkOptions
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter

WRITER = """
import sys, time
from pathlib import Path
from test.sinks.live_readings import live_readings
from ur_energy_model.sinks.foxglove_messages import mcap_sink
from ur_energy_model.sinks.options import SinkOptions
sink = mcap_sink(sys.argv[1], SinkOptions())
for reading in live_readings(6.0):
    while sink.status.waiting:
        time.sleep(0.001)
    sink.offer(reading)
while sink.status.waiting:
    time.sleep(0.001)
print("written", flush=True)
time.sleep(60)
"""
"""Writes 6 s of readings, and never closes the file."""


@pytest.fixture(scope="module")
def readings() -> list[ArmReading]:
    return list(live_readings(3.0))


def expected_messages(readings: list[ArmReading]) -> Counter[tuple[str, int, bytes]]:
    encoder = ReadingMessages()
    return Counter(
        (messages.topic.name, int(stamp), payload.tobytes())
        for reading in readings
        for messages in encoder.of_reading(reading)
        for stamp, payload in zip(messages.stamp, messages.payload, strict=True)
    )


def messages_in(path: Path) -> Counter[tuple[str, int, bytes]]:
    """All messages, by the mcap package."""
    with path.open("rb") as file:
        return Counter(
            (channel.topic, message.log_time, message.data)
            for _, channel, message in make_reader(file).iter_messages()
        )


def written(path: Path, readings: list[ArmReading]) -> McapDelivery:
    """A delivery that has opened its file and got readings."""
    delivery = McapDelivery(path)
    delivery.open()
    for reading in readings:
        delivery.deliver(reading)
    return delivery


def test_the_file_has_what_the_server_sends(tmp_path: Path, readings: list[ArmReading]) -> None:
    sink = mcap_sink(str(tmp_path / "live.mcap"), SinkOptions())
    for reading in readings:
        sink.offer(reading)
    sink.close()
    assert sink.status.delivered == len(readings)
    assert messages_in(tmp_path / "live.mcap") == expected_messages(readings)


def test_channels_have_the_types_of_the_server(tmp_path: Path, readings: list[ArmReading]) -> None:
    path = tmp_path / "live.mcap"
    written(path, readings).close()
    encoder, kinds = ReadingMessages(), {}
    for reading in readings:
        for messages in encoder.of_reading(reading):
            kinds[messages.topic.name] = messages.topic.kind
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        assert reader.get_header().profile == ""
    assert summary is not None
    assert summary.statistics is not None
    assert summary.statistics.message_count == expected_messages(readings).total()
    assert {channel.topic for channel in summary.channels.values()} == kinds.keys()
    for channel in summary.channels.values():
        kind, schema = kinds[channel.topic], summary.schemas[channel.schema_id]
        assert isinstance(schema, Schema)
        assert channel.message_encoding == kind.message_encoding
        assert (schema.name, schema.encoding) == (kind.name, kind.schema_encoding)
        assert schema.data == kind.definition_bytes


def test_a_growing_file_is_complete(tmp_path: Path, readings: list[ArmReading]) -> None:
    path = tmp_path / "live.mcap"
    delivery = written(path, readings)
    found, everything = messages_in(path), expected_messages(readings)
    assert found <= everything
    assert {time for _, time, _ in found} >= {reading.stamp for reading in readings[:20]}
    delivery.close()


def test_a_killed_process_loses_the_last_second_at_most(tmp_path: Path) -> None:
    path = tmp_path / "live.mcap"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        os.kill(process.pid, signal.SIGKILL)
    times = sorted({time for _, time, _ in messages_in(path)})
    everything = [reading.stamp for reading in live_readings(6.0)]
    assert times == everything[: len(times)]
    assert everything[-1] - times[-1] <= 1.1e9


def test_what_exists_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "live.mcap"
    path.write_text("precious")
    with pytest.raises(InputError, match="exists already"):
        mcap_sink(str(path), SinkOptions())
    with pytest.raises(InputError, match="not a folder"):
        mcap_sink(str(tmp_path / "nowhere" / "live.mcap"), SinkOptions())
    assert path.read_text() == "precious"


def test_long_recordings_continue_in_further_files(
    tmp_path: Path, readings: list[ArmReading], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CHUNKS", 1)
    (tmp_path / "live_1.mcap").write_text("precious")
    written(tmp_path / "live.mcap", readings).close()
    files = sorted(tmp_path.glob("live*.mcap"))
    assert [file.name for file in files][:4] == [
        "live.mcap",
        "live_1.mcap",
        "live_2.mcap",
        "live_3.mcap",
    ]
    parts = [messages_in(file) for file in files if file.name != "live_1.mcap"]
    first = next(iter(parts))
    urdf = {key for key in first if key[0] == "/robot_description"}
    assert len(urdf) == 1
    every = {key for part in parts for key in part if key[0] == "/energy/total/power"}
    assert len(every) == len(readings)
    assert all("/robot_description" in {topic for topic, _, _ in part} for part in parts if part)


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left")


def test_after_a_failure_of_the_disk_another_file_follows(
    tmp_path: Path, readings: list[ArmReading], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "FIRST_PAUSE", 0.01)
    sink = mcap_sink(str(tmp_path / "live.mcap"), SinkOptions())
    until(lambda: sink.status.problem is None)
    (tmp_path / "live.mcap").rename(tmp_path / "moved.mcap")
    (tmp_path / "live.mcap").write_text("of somebody else")
    with monkeypatch.context() as broken:
        broken.setattr(McapWriter, "write_chunk", full_disk)
        sink.offer(readings[0])
        until(lambda: sink.status.dropped == 1)
    until(lambda: sink.status.problem is None)
    for reading in readings[1:]:
        sink.offer(reading)
    sink.close()
    assert (tmp_path / "live.mcap").read_text() == "of somebody else"
    assert messages_in(tmp_path / "live_1.mcap") == expected_messages(readings[1:])
