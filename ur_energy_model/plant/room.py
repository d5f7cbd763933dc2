# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from ur_energy_model.rooms import Room

ROOM = Room(
    name="plant",
    purpose="energy of many arms over months: history, health, fleet, many bags on Dask",
    requires=(),
    tests=("test/plant",),
    pages=("docs/plant",),
)
