# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A friction law of your own: the steady state of the LuGre model.

Canudas de Wit et al., IEEE Transactions on Automatic Control 40(3), 1995, eq. 4 and 5: at
constant speed v the friction torque is

    sign(v) (Fc + (Fs - Fc) exp(-|v / vs|^2)) + sigma2 v

with the Coulomb friction Fc, the breakaway friction Fs - Fc above it, the Stribeck speed vs
and the viscous friction sigma2. Fit it with

    ur_energy identify my_bag --friction-laws lugre_friction.py --friction lugre -o model.yaml
"""

import numpy as np

from ur_energy_model.model.friction import FrictionLaw
from ur_energy_model.model.friction_terms import (
    TERMS,
    OperatingPoint,
    Shape,
    ShapeConstant,
    Term,
)


def breakaway(point: OperatingPoint, shape: Shape) -> np.ndarray:
    """Motor-side torque per N m of Fs - Fc, one value for each value of `point.speed`."""
    slow = np.exp(-(np.abs(point.speed / shape["slow_speed"]) ** shape["form"]))
    return np.asarray(point.coulomb(shape) * slow)


LUGRE = FrictionLaw(
    name="lugre",
    description="steady state of the LuGre model",
    terms={
        "coulomb": TERMS["coulomb"],  # a term of the package
        "breakaway": Term(
            unit="N m",
            function=breakaway,
            uses=("smoothing", "slow_speed", "form"),
            start=lambda typical: (0.3 * typical.coulomb, 0.5 * typical.coulomb),
            kind="coulomb",
        ),
        "viscous": TERMS["viscous"],
    },
    constants={
        "slow_speed": ShapeConstant("rad/s", low=0.02, default=0.1, high=0.5),
        "form": ShapeConstant("1", low=2.0, default=2.0, high=2.0),  # not fitted
    },
)
