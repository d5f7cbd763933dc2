# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.options import option
from ur_energy_model.rooms import Extension, Room


@dataclass(frozen=True)
class GeneticOptions:
    """Options of the genetic search for an exciting trajectory."""

    population: int = option(
        300,
        "individuals of the genetic search",
        limits=(2, 100_000),
        flags=("--population",),
    )
    generations: int = option(
        5,
        "generations of the genetic search",
        limits=(1, 100_000),
        flags=("--generations",),
    )


ROOM = Room(
    name="papers",
    purpose="the experiments of the papers, and published beside obtained results",
    requires=("experiment", "optimization", "simulation"),
    extensions=(
        Extension(
            subject="design",
            provides="ur_energy_model.papers.genetic:SEARCH",
            options=GeneticOptions,
        ),
        Extension(
            subject="power models",
            provides="ur_energy_model.papers.power_models:ECBOT",
        ),
        Extension(
            subject="power models",
            provides="ur_energy_model.papers.power_models:CATALOGUE",
        ),
    ),
    tests=("test/papers",),
    pages=("docs/papers",),
)
