"""Bounds of the payloads that clients may mount or configure on a simulated arm."""

from __future__ import annotations

import numpy as np

from ur_energy_model.model.setup import Payload

HEAVIEST, FARTHEST, MOST_INERTIA = 100.0, 2.0, 100.0
"""Mass [kg], coordinate of the centre of mass [m] and inertia [kg m^2]; beyond every arm."""


def is_possible(payload: Payload) -> bool:
    """Whether the motion of an arm with this payload can be computed."""
    bounded = (
        0.0 <= payload.mass <= HEAVIEST
        and bool((np.abs(payload.center_of_mass) <= FARTHEST).all())
        and bool((np.abs(payload.inertia) <= MOST_INERTIA).all())
    )
    if not bounded or not payload.inertia.any():
        return bounded
    return bool(np.linalg.eigvalsh(payload.inertia).min() >= 0.0)
