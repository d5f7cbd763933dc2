"""Readings as plain JSON, for clients that do not read Sparkplug payloads."""

from __future__ import annotations

import json
from datetime import datetime, timezone

from ur_energy_model.sinks.mqtt.edge_node import Message
from ur_energy_model.sinks.mqtt.metrics import values_of
from ur_energy_model.sinks.mqtt.reading_store import Batch


def json_messages(group: str, node: str, batch: Batch) -> list[Message]:
    """One message per reading on GROUP/NODE/ARM/energy; numbers that are unknown are null."""
    out = []
    for reading in batch.readings:
        time = datetime.fromtimestamp(reading.stamp / 1000.0, timezone.utc)
        content = {
            "time": time.isoformat(timespec="milliseconds"),
            "historical": reading is not batch.newest[reading.arm],
            **values_of(reading),
        }
        topic = f"{group}/{node}/{reading.arm}/energy"
        out.append(Message(topic, json.dumps(content, separators=(",", ":")).encode()))
    return out
