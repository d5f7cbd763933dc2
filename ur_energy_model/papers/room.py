# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from ur_energy_model.rooms import Room

ROOM = Room(
    name="papers",
    purpose="the experiments of the papers, and published beside obtained results",
    requires=("experiment", "optimization", "simulation"),
    tests=("test/papers",),
    pages=("docs/papers",),
)
