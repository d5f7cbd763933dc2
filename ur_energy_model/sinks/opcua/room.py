# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package: an OPC UA server for PLCs, MES and SCADA."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.options import option
from ur_energy_model.rooms import Extension, Room
from ur_energy_model.sinks.options import SUBJECT, SinkKind, SinkOptions


@dataclass(frozen=True)
class OpcuaOptions:
    """Options of the OPC UA servers.

    Attributes:
        opcua: URL of each server.
    """

    # fmt: off
    opcua: tuple[str, ...] = option(
        (), "URLs of OPC UA servers, such as opc.tcp://127.0.0.1:4840", metavar="URL", launch=True
    )
    # fmt: on


OPCUA_PORT = 4840
"""Port that IANA has registered for OPC UA."""
OPCUA = SinkKind(
    "opcua",
    "OPC UA",
    OpcuaOptions,
    "ur_energy_model.sinks.opcua.sink:opcua_sink",
    default_port=OPCUA_PORT,
    secrets="opcua",
)
ROOM = Room(
    name="sinks/opcua",
    purpose="OPC UA server",
    extensions=(
        Extension(
            SUBJECT,
            "ur_energy_model.sinks.opcua.room:OPCUA",
            options=OpcuaOptions,
            shared=SinkOptions,
        ),
    ),
    tests=("test/sinks/opcua",),
    pages=("docs/sinks/opcua",),
    files=("config/opcua",),
)
