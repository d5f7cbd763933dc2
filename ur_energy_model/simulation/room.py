# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from ur_energy_model.rooms import Room

ROOM = Room(
    name="simulation",
    purpose="the arm on the desk: a simulated controller with an arm of known truth",
    requires=(),
    tests=("test/simulation",),
    pages=("docs/simulation",),
)
