"""What is known of an arm's constants before its own recordings, and what these say alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.dynamics.reflected_inertia import InertiaEstimate
from ur_energy_model.identification.friction.joint_estimate import JointEstimate
from ur_energy_model.identification.friction.torque_constants import (
    TorqueConstantPrior,
    own_deviation,
)
from ur_energy_model.typing import Array

EVIDENCE = "evidence"
"""Key of `Evidence` in the provenance of a model."""
_LEAST_GAIN = 0.01
"""Information of the data, over that of the prior, below which they say nothing."""


@dataclass(frozen=True)
class ArmPrior:
    """Prior of an arm with n joints, from other arms.

    Attributes:
        torque_constant: of the torque constants; None for that of the type.
        inertia: reflected inertias, joint side; None for those of the type.
    """

    torque_constant: TorqueConstantPrior | None = None
    inertia: InertiaEstimate | None = None


OF_TYPE = ArmPrior()
"""Prior of an arm without others: that of its type."""


@dataclass(frozen=True)
class Evidence:
    """What the recordings of an arm with n joints say without any prior; NaN where nothing.

    Attributes:
        torque_constant, torque_constant_std: [n], N m/A. The deviation does not include the error
            of the links' weight, which all arms of a type have in common.
        inertia, inertia_std: reflected inertia, joint side [n], kg m^2.
        from_links: 1 where that error is in the torque constant, 0 where bus power decides [n].
    """

    torque_constant: Array
    torque_constant_std: Array
    inertia: Array
    inertia_std: Array
    from_links: Array

    def as_json(self) -> dict[str, list[float | None]]:
        """Entry of the provenance; None stands for NaN."""
        return {
            name: [float(value) if np.isfinite(value) else None for value in values]
            for name, values in vars(self).items()
        }


def torque_constant_evidence(
    regressed: tuple[JointEstimate, ...],
    shared: tuple[JointEstimate, ...],
    found: tuple[JointEstimate, ...],
) -> tuple[Array, Array, Array]:
    """What data alone say of the torque constants: value, std, from_links of `Evidence` [n] each.

    Args:
        regressed: from the currents.
        shared: with the prior and the information of joints of the same size.
        found: with that of bus power.
    """
    own = np.array([own_deviation(fit) for fit in regressed])
    told = np.array([fit.regressed_constant for fit in regressed])
    usable = np.isfinite(own) & np.isfinite(told)
    precision = np.where(usable, 1.0 / np.square(np.where(usable, own * told, 1.0)), 0.0)
    product = precision * np.where(usable, told, 0.0)
    links = np.ones(len(regressed))
    for j, (before, after) in enumerate(zip(shared, found, strict=True)):
        gained = after.torque_constant_std**-2 - before.torque_constant_std**-2
        if after.source["torque_constant"] != before.source["torque_constant"] and gained > 0.0:
            precision[j] += gained
            links[j] = 0.0
            product[j] += after.torque_constant * after.torque_constant_std**-2
            product[j] -= before.torque_constant * before.torque_constant_std**-2
    return (*_from_information(precision, product), links)


def inertia_evidence(before: InertiaEstimate, after: InertiaEstimate) -> tuple[Array, Array]:
    """Reflected inertias from the data alone, and standard deviations [n], kg m^2.

    Args:
        before: the prior, or from target_moment, which has no prior to speak of.
        after: with the currents.
    """
    direct = np.array([source == "target_moment" for source in before.source])
    least = _LEAST_GAIN * before.std**-2.0
    gained = after.std**-2.0 - before.std**-2.0
    gained = np.where(gained > least, gained, 0.0)
    product = after.value * after.std**-2.0 - before.value * before.std**-2.0
    value, std = _from_information(gained, np.where(gained > 0.0, product, 0.0))
    return np.where(direct, after.value, value), np.where(direct, after.std, std)


def _from_information(precision: Array, product: Array) -> tuple[Array, Array]:
    known = precision > 0.0
    safe = np.where(known, precision, 1.0)
    return np.where(known, product / safe, np.nan), np.where(known, safe**-0.5, np.nan)
