# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a learned model lacks: states of the arm that its work has not shown yet.

The model file of a learned model lists its needs in the provenance; motions of an experiment
can be designed to show them.
"""

from __future__ import annotations

from dataclasses import dataclass

NEEDS = "needs"  # key of the list of needs in the provenance of a learned model


@dataclass(frozen=True)
class Need:
    """What ordinary work has not shown yet.

    Attributes:
        joint: index of the joint, from 0; None for the whole arm.
        what: "speed", "load", "acceleration", "standstill", "bus_power" or "temperature".
        speed_range: joint speeds that would help (low, high), rad/s; None where it is not
            about speed.
        energy_share_percent: half width of the 95 % interval that this leaves open in the
            whole arm's energy over a reference work (`learning.needs`), percent.
        words: the sentence for people.
    """

    joint: int | None
    what: str
    speed_range: tuple[float, float] | None
    energy_share_percent: float
    words: str
