"""Foxglove's own client library for Node.js reads the server."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("foxglove")

from test.sinks.live_readings import live_readings
from test.sinks.servers import NODE_PACKAGES, needs_node_package
from test.sinks.waiting import until
from ur_energy_model.energy.energy_bag import CYCLE
from ur_energy_model.sinks.foxglove import FoxgloveDelivery
from ur_energy_model.sinks.foxglove_messages import ReadingMessages
from ur_energy_model.sinks.options import Address

READER = Path(__file__).with_name("read_messages.cjs")


@needs_node_package("@foxglove/ws-protocol")
@needs_node_package("ws")
def test_the_client_of_foxglove_gets_every_message() -> None:
    readings = list(live_readings(1.0))
    encoder = ReadingMessages()
    encoded = [encoder.of_reading(reading) for reading in readings]
    kinds = {each.topic.name: each.topic.kind for each in encoded[0]}
    kinds[CYCLE.name] = CYCLE.kind
    expected = Counter(
        (each.topic.name, str(stamp), payload.tobytes().hex())
        for messages in encoded[1:9]
        for each in messages
        for stamp, payload in zip(each.stamp.tolist(), each.payload, strict=True)
    )
    urdf = 1  # sent again to the client that subscribes late
    delivery = FoxgloveDelivery(Address("127.0.0.1", 0))
    delivery.open()
    delivery.deliver(readings[0])
    command = ["node", str(READER), str(delivery.address.port), str(expected.total() + urdf)]
    environment = {**os.environ, "NODE_PATH": str(NODE_PACKAGES)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        try:
            until(lambda: delivery.subscriptions == len(kinds))
            for reading in readings[1:9]:
                delivery.deliver(reading)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
            delivery.close()
    lines = [json.loads(line) for line in output.splitlines()]
    assert lines[0] == {"server": "ur_energy_model"}
    channels = {line["topic"]: line for line in lines if "schemaName" in line}
    assert channels.keys() == kinds.keys()
    for topic, kind in kinds.items():
        assert channels[topic]["schemaName"] == kind.name
        assert channels[topic]["schemaEncoding"] == kind.schema_encoding
        assert channels[topic]["encoding"] == kind.message_encoding
    got = Counter(
        (line["topic"], line["time"], line["payload"]) for line in lines if "payload" in line
    )
    late = got - expected
    assert got - late == expected
    assert [topic for topic, _, _ in late] == ["/robot_description"]
