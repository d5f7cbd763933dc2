# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Events that a recorder wrote into a bag, for tests: no command reads them."""

from __future__ import annotations

from pathlib import Path

from ur_energy_model.telemetry.bag.decoding import (
    MAX_MESSAGE,
    are_packed,
    unpacked_messages,
)
from ur_energy_model.telemetry.bag.files import bag_files
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.messages import EVENTS_TOPIC, LOG, decode_event
from ur_energy_model.telemetry.bag.sqlite_reader import sqlite_messages
from ur_energy_model.telemetry.bag.storage import budget_of, plain_file
from ur_energy_model.telemetry.samples import Event
from ur_energy_model.typing import Bytes


def read_events(path: Path | str) -> list[Event]:
    """Events of a bag, a folder or one of its files, in order of their stamps."""
    files, _ = bag_files(Path(path))
    budget = budget_of(Path(path), files)
    events: list[Event] = []
    for file in files:
        with plain_file(file, budget) as (plain, kind):
            groups: list[Bytes] = []
            if kind == "mcap":
                reader = McapReader(plain, budget)
                groups += [block.payload for block in reader.blocks(EVENTS_TOPIC)]
            else:
                found = sqlite_messages(plain, EVENTS_TOPIC, LOG.name, MAX_MESSAGE)
                groups += [messages for _, messages in found]
            for group in groups:
                parts = [group]
                if are_packed(group):
                    parts = list(unpacked_messages(file, group, budget))
                for messages in parts:
                    events += [decode_event(row.tobytes()) for row in messages]
    return sorted(events, key=lambda event: event.stamp)
