"""Places of messages found a pattern at a time are those found record by record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from test.telemetry.bag.bag_files import record
from ur_energy_model.telemetry.bag.mcap_format import MESSAGE_HEAD, Channel, Op, pack
from ur_energy_model.telemetry.bag.mcap_reader import McapReader, budget_of


def message(channel: int, size: int) -> bytes:
    """A message record of this channel with `size` bytes."""
    return record(Op.MESSAGE, MESSAGE_HEAD.pack(channel, 0, 0, 0) + bytes(size))


PATTERN = [(1, 40)] * 10 + [(2, 7), (3, 90)]
CHUNKS = {
    "one topic": [(1, 40)] * 500,
    "two rates": [(1, 40), *PATTERN * 40, (1, 40)],
    "sizes that change": [*PATTERN * 5, (1, 41), *PATTERN * 5, *[(2, 7)] * 70],
    "no pattern": [(k % 3 + 1, k % 17) for k in np.random.default_rng(0).integers(0, 99, 300)],
    "few": [(1, 40)] * 3,
    "none": [],
}


@pytest.mark.parametrize("definitions_every", [0, 7, 50])
@pytest.mark.parametrize("messages", CHUNKS.values(), ids=CHUNKS)
def test_places_are_those_of_the_records(
    messages: list[tuple[int, int]], definitions_every: int, tmp_path: Path
) -> None:
    body, expected = b"", dict[int, list[tuple[int, int]]]()
    for number, (channel, size) in enumerate(messages):
        if definitions_every and number % definitions_every == 0:
            body += pack(Op.CHANNEL, *Channel(9, 1, "/another"))
        head = len(record(Op.MESSAGE, b""))
        expected.setdefault(int(channel), []).append(
            (len(body) + head, MESSAGE_HEAD.size + int(size))
        )
        body += message(int(channel), int(size))
    found = McapReader(tmp_path, budget_of(tmp_path, [])).message_places(body)
    assert {
        channel: list(zip(starts.tolist(), lengths.tolist(), strict=True))
        for channel, (starts, lengths) in found.items()
    } == expected
