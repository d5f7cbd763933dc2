"""Unknowns of one setup as a vector: gravity, payload, delay of target_moment; their priors."""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.dynamics.physical_consistency import possible_inertia
from ur_energy_model.model.inertial_parameters import entries_of, tensor_of
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.typing import Array

GRAVITY = slice(0, 3)
"""Gravity in the base frame [m/s^2]."""
MASS = 3
"""Mass of the payload [kg]."""
CENTER = slice(4, 7)
"""Centre of mass of the payload, in the flange frame [m]."""
TENSOR = slice(7, 13)
"""Entries of the payload's inertia tensor about its centre of mass [kg m^2]."""
DELAY = 13
"""Delay of target_moment beyond the nominal one [s]."""
COUNT = 14
"""Unknowns of a setup."""

GRAVITY_STD = 3.0
"""Prior of each component of gravity [m/s^2]: users often forget to state the mounting."""
MASS_STD = 2.0
"""Prior of the payload [kg]."""
_CENTER_STD = 0.3
_TENSOR_STD = 1e-3
_DELAY_STD = 0.003
_LEAST_MASS = 0.002
"""Lighter payloads count as none [kg]."""


def _prior_std() -> Array:
    std = np.empty(COUNT)
    std[GRAVITY], std[MASS], std[CENTER] = GRAVITY_STD, MASS_STD, _CENTER_STD
    std[TENSOR], std[DELAY] = _TENSOR_STD, _DELAY_STD
    return std


PRIOR_STD = _prior_std()
"""Standard deviations of the prior [COUNT]."""


def stated_unknowns(setup: Setup) -> Array:
    """Unknowns [COUNT] of a stated setup, without delay: the mean of the prior."""
    out = np.zeros(COUNT)
    out[GRAVITY], out[MASS] = setup.gravity, setup.payload.mass
    out[CENTER], out[TENSOR] = setup.payload.center_of_mass, entries_of(setup.payload.inertia)
    return out


def payload_from(unknowns: Array, mass_std: float) -> Payload:
    """Physically possible payload; none where the mass does not differ from zero."""
    mass = float(unknowns[MASS])
    if mass < max(_LEAST_MASS, 2 * mass_std):
        return Payload()
    tensor = possible_inertia(tensor_of(unknowns[TENSOR]))
    return Payload(mass, unknowns[CENTER].copy(), tensor)
