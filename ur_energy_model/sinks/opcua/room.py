# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from ur_energy_model.rooms import Room

ROOM = Room(
    name="sinks/opcua",
    purpose="OPC UA server",
    requires=(),
    tests=("test/sinks/opcua",),
    pages=("docs/sinks/opcua",),
)
