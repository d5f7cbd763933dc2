"""What target_moment shows of the arm and its setups."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.model.link_tensors import LinkTensors
from ur_energy_model.model.setup import Setup
from ur_energy_model.typing import Array, Mask


@dataclass(frozen=True)
class SetupSolution:
    """Solution for one setup.

    Attributes:
        setup: mounting and payload.
        gravity_std, mass_std, center_std: standard deviations [3], scalar, [3].
        delay: of target_moment beyond the nominal one [s].
        squares: sum of squared torque residuals per joint [n], (N m)^2.
        spread: sum of squared deviations of the torque from its mean [n], (N m)^2.
    """

    setup: Setup
    gravity_std: Array
    mass_std: float
    center_std: Array
    delay: float
    squares: Array
    spread: Array


@dataclass(frozen=True)
class ArmSolution:
    """Solution for the arm and all its setups.

    Attributes:
        reflected_inertia, std: joint side [n], kg m^2.
        std_given_tensors: standard deviation of the inertia for given link tensors [n]. Only the
            sum of the first joint's inertia and its link's tensor shows in the motion.
        link_tensors: of the moving links, None unless requested.
        moved: joints that moved in some recording [n].
        setups: one per setup.
    """

    reflected_inertia: Array
    std: Array
    std_given_tensors: Array
    link_tensors: LinkTensors | None
    moved: Mask
    setups: tuple[SetupSolution, ...]
