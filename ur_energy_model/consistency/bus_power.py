# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The power of the robot bus, which is the total of a recording, beside what a model explains.

The measured total does not depend on the model, so that no model shows a small error of
it. A factor between the two, beyond what any model is wrong by, shows a wrong unit, a
wrong column, or a model or payload of another arm.
"""

from __future__ import annotations

from ur_energy_model.consistency.contradiction import Contradiction

FACTOR = 1.5
"""Measured over modelled energy, or the inverse, from which a warning is due: generic models of
real arms are within 1.1 with the standby power followed, and within 1.5 without."""
CERTAIN = 3.0  # standard deviations of the difference beside it


def bus_contradictions(
    measured: float, modelled: float, std: float
) -> tuple[Contradiction, ...]:
    """The contradiction between measured and modelled energy of the same time, if there is one.

    Args:
        measured: integral of voltage times current of the robot bus [J].
        modelled: sum of the modelled parts over the same time [J].
        std: standard deviation of their difference [J].
    """
    far = measured > FACTOR * modelled or modelled > FACTOR * max(measured, 0.0)
    if not far or abs(measured - modelled) <= CERTAIN * std:
        return ()
    found = Contradiction(
        subject="bus_power",
        stated=f"bus voltage and current make {measured:.0f} J",
        shown=f"the model explains {modelled:.0f} J",
        evidence=f"{abs(measured - modelled) / std:.0f} standard deviations apart",
        remedy="check the units of actual_robot_voltage [V] and actual_robot_current [A], and that "
        "the model is of this arm and payload",
    )
    return (found,)
