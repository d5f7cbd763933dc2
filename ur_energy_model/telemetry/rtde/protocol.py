"""The RTDE protocol as client and simulated server share it: packets, payloads, recipes.

Both protocol versions are covered: version 1 has no frequency in the output setup, and no recipe
number in its reply or in data packages. All numbers are big-endian. Source: Universal Robots'
RTDE guide.
"""

from __future__ import annotations

from ur_energy_model.telemetry.rtde.frames import (
    HEADER,
    MAX_FRAME,
    Frame,
    FrameReader,
    PacketType,
    frame,
)
from ur_energy_model.telemetry.rtde.messages import (
    SetupReply,
    TextMessage,
    decode_controller_version,
    decode_flag,
    decode_names,
    decode_output_setup,
    decode_setup_reply,
    decode_text_message,
    decode_version_request,
    encode_controller_version,
    encode_flag,
    encode_names,
    encode_output_setup,
    encode_setup_reply,
    encode_text_message,
    encode_version_request,
)
from ur_energy_model.telemetry.rtde.recipe import Recipe

__all__ = [
    "HEADER",
    "IN_USE",
    "MAX_FRAME",
    "NOT_FOUND",
    "PROTOCOL_VERSIONS",
    "SIMULATED_SERIAL_PREFIX",
    "Frame",
    "FrameReader",
    "PacketType",
    "Recipe",
    "SetupReply",
    "TextMessage",
    "decode_controller_version",
    "decode_flag",
    "decode_names",
    "decode_output_setup",
    "decode_setup_reply",
    "decode_text_message",
    "decode_version_request",
    "encode_controller_version",
    "encode_flag",
    "encode_names",
    "encode_output_setup",
    "encode_setup_reply",
    "encode_text_message",
    "encode_version_request",
    "frame",
]

PROTOCOL_VERSIONS = (2, 1)
NOT_FOUND, IN_USE = "NOT_FOUND", "IN_USE"
SIMULATED_SERIAL_PREFIX = "2000000"
"""First digits of the serial numbers of simulated arms; those of real arms begin with their year of
manufacture, and none was made in 2000."""
