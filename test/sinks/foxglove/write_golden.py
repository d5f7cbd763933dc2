"""Writes golden.json, the recorded messages of test_reading_messages.py."""

from __future__ import annotations

import json

from test.sinks.foxglove.test_reading_messages import GOLDEN, golden_messages

if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(golden_messages(), indent=1) + "\n")
