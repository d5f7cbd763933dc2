"""What no port of a simulated controller expects."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from test.torture.hostile_scripts import hostile_script
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.rtde.protocol import (
    MAX_FRAME,
    PacketType,
    encode_output_setup,
    frame,
)

PORTS = (29998, 29999, 30001, 30002, 30003, 30004)
"""Control port, dashboard, client interfaces and RTDE."""


def junk(draw: random.Random) -> Iterator[bytes]:
    """Bytes for any port: junk, endless lines, lying frames, hostile setups and scripts."""
    names = ",".join(sorted(FIELDS)).encode()
    frequency = struct.pack(">d", draw.choice((0.0, -1.0, float("nan"), 1e300, 1e-320, 500.0)))
    yield draw.randbytes(draw.randint(1, 5000))
    yield b"\n" * 20_000
    yield b"x" * 200_000 + b"\n"
    yield b"load " + b"\xff" * 3000 + b"\x1b[2J.urp\nplay\nget loaded program\n" * 20
    yield b"fault garbage_values:timestamp\nclear\n" * 200
    yield struct.pack(">HB", 2, ord("V"))
    yield frame(PacketType.SETUP_OUTPUTS, encode_output_setup(("actual_q",) * 1500, 500.0))
    yield frame(PacketType.SETUP_OUTPUTS, encode_output_setup(("x",) * 30_000, 500.0))
    yield frame(PacketType.SETUP_OUTPUTS, (frequency + names)[: MAX_FRAME - 3])
    yield frame(PacketType.SETUP_INPUTS, b"speed_slider_mask") + frame(
        PacketType.DATA_PACKAGE, b"\x01\xff\xff\xff\xff"
    )
    yield frame(PacketType.SETUP_INPUTS, b"input_double_register_0") * 300
    for kind in range(256):
        yield frame(kind, draw.randbytes(draw.randint(0, 20)))
    yield hostile_script(draw) * 3
