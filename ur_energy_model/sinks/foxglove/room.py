# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from ur_energy_model.rooms import Room

ROOM = Room(
    name="sinks/foxglove",
    purpose="live values for Foxglove and Lichtblick, and MCAP files",
    requires=(),
    tests=("test/sinks/foxglove",),
    pages=("docs/sinks/foxglove",),
)
