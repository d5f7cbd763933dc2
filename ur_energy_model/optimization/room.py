# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from ur_energy_model.rooms import Extension, Room

ROOM = Room(
    name="optimization",
    purpose="less energy for the same work",
    requires=(),
    extensions=(
        Extension(
            subject="measures",
            provides="ur_energy_model.optimization.measures.find:ADVISER",
        ),
    ),
    tests=("test/optimization",),
    pages=("docs/optimization",),
)
