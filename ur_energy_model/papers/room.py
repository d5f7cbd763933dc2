# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ur_energy_model.cli.tables import (
    MOTIONS,
    another_arm_option,
    geometry_option,
    host_option,
    json_option,
    robot_option,
    yes_option,
)
from ur_energy_model.options import option
from ur_energy_model.rooms import Command, Extension, Room


@dataclass(frozen=True, kw_only=True)
class ProtocolOptions:
    """Options of `ur_energy protocol`."""

    protocol: Literal["s0", "s1", "s2", "s3", "s4", "all"] = option(
        help="experiment (listed below)", positional=True
    )
    host: str | None = host_option()
    simulated: bool = option(
        False,
        "simulate the arm here, faster than real time, instead of moving one at --host",
    )
    output: Path = option(
        help="new folder for all results; 'all' continues in its own",
        flags=("-o", "--output"),
        metavar="DIR",
    )
    robot: str | None = robot_option(
        "the one that the controller reports, or the paper's"
    )
    geometry: Path | None = geometry_option()
    yes: bool = yes_option()
    another_arm: bool = another_arm_option()
    campaign: bool = option(
        False,
        "s1: cold run, half an hour of warm-up, warm run, and friction in both states",
    )
    paper_settings: bool = option(
        False,
        "s1, s4: limits and genetic algorithm of the paper for the exciting trajectory",
    )
    quick: bool = option(
        False,
        "shorter motions and searches, for a first look",
    )
    seed: int = option(
        0, "seed of the random choices", metavar="N", limits=(0, 4294967295)
    )
    design_time: float = option(
        25.0, "time to design each trajectory [s]", metavar="S", unit="s", limits=(0, 1e5)
    )
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class GeneticOptions:
    """Options of the genetic search for an exciting trajectory.

    Attributes:
        population: number of individuals of a generation.
        generations: number of generations after the first.
    """

    population: int = option(
        300,
        "individuals of the genetic search",
        metavar="N",
        limits=(2, 100_000),
        heading="design",
    )
    generations: int = option(
        5,
        "generations of the genetic search",
        metavar="N",
        limits=(1, 100_000),
        heading="design",
    )


_EXPERIMENTS = """experiments:
  s0   test motions A and B through random points: torque, current, energy
       (Robotica 2024)
  s1   exciting trajectory, base parameters, validation (RAAD 2021)
  s2   sinusoids, power model with all terms free (EcBot)
  s3   pick and place of the UR5 of the slides, drive model, PD control
       (Battistini et al.)
  s4   self and general verification, known payload (Machines 2024)
  all  every protocol on simulated arms, and a page of published beside obtained"""

ROOM = Room(
    name="papers",
    purpose="the experiments of the papers, and published beside obtained results",
    requires=("experiment", "optimization", "simulation"),
    commands=(
        Command(
            name="protocol",
            options=ProtocolOptions,
            run="ur_energy_model.papers.commands:protocol",
            summary="repeat the experiment of a paper and compare the results",
            description="Design, run, record, identify and evaluate as in a paper, and "
            "compare the results with the published ones. This moves the robot.",
            examples=(
                "ur_energy protocol s1 --host 192.168.56.101 -o cell_3_s1",
                "ur_energy protocol s1 --simulated --campaign -o try_s1  (a simulated arm)",
                "ur_energy protocol s4 --simulated --robot my_arm.yaml -o my_s4",
                "ur_energy protocol all --simulated -o papers            (and one page)",
            ),
            notes=_EXPERIMENTS,
            group=MOTIONS,
        ),
    ),
    extensions=(
        Extension(
            subject="design",
            provides="ur_energy_model.papers.genetic:SEARCH",
            options=GeneticOptions,
            name="genetic",
        ),
        Extension(
            subject="power models",
            provides="ur_energy_model.papers.power_models:ECBOT",
            name="ecbot",
        ),
        Extension(
            subject="power models",
            provides="ur_energy_model.papers.power_models:CATALOGUE",
            name="catalogue",
        ),
    ),
    tests=("test/papers",),
    pages=("docs/papers",),
    files=(
        "config/papers.yaml",
        "tools/papers.py",
        "tools/papers_recorded.json",
    ),
)
