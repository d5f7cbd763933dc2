# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from ur_energy_model.rooms import Room

ROOM = Room(
    name="experiment",
    purpose="motions that make a model identifiable: design, checks, execution",
    requires=("optimization",),
    tests=("test/experiment",),
    pages=("docs/experiment",),
)
