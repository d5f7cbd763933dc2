# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags as other packages read them: mcap and rosbags."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcap.reader import make_reader
from rosbags.highlevel import AnyReader


@dataclass
class Content:
    """A bag as another reader finds it: what each topic is, and the number of its messages."""

    topics: dict[str, Any]
    counts: dict[str, int]


def by_mcap(bag: Path) -> Content:
    """Read every message with the mcap package, with its checksums."""
    topics = {}
    counts = {}
    for path in sorted(bag.glob("*.mcap")):
        with path.open("rb") as file:
            for schema, channel, _ in make_reader(file, validate_crcs=True).iter_messages(
                log_time_order=False
            ):
                assert schema is not None
                digest = hashlib.sha256(schema.data).hexdigest()[:16]
                topics[channel.topic] = {
                    "type": schema.name,
                    "schema": f"{schema.encoding} {digest}",
                    "encoding": channel.message_encoding,
                }
                counts[channel.topic] = counts.get(channel.topic, 0) + 1
    return Content(topics, counts)


def by_rosbags(bag: Path) -> Content:
    """Read every message with rosbags, and decode the first of each topic."""
    topics: dict[str, Any] = {}
    counts: dict[str, int] = {}
    with AnyReader([bag]) as reader:
        for connection, _, raw in reader.messages():
            topic = connection.topic
            counts[topic] = counts.get(topic, 0) + 1
            if topic in topics:
                continue
            message: Any = reader.deserialize(raw, connection.msgtype)
            topics[topic] = {"type": connection.msgtype, "hash": connection.digest}
            if topic == "/rtde/joint_telemetry":
                topics[topic]["names"] = list(message.joint_names)
    return Content(topics, counts)
