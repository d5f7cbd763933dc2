# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The wall: power at the mains, from the state of the arm and the power at its supply.

    wall = box(state) + proportional p + quadratic p^2

p is the power at the 48 V supply, which telemetry measures. The box is what computer,
pendant, safety electronics and the supply without load take; the supply's losses grow
with p and its square. A model is fitted to a power meter (identification/wall_fit.py), or
generic for the controller's family (config/wall.yaml, with sources) and then not
measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.files import config_file
from ur_energy_model.formats import Key, Section
from ur_energy_model.forms import Number, Numbers, Schema, Scope
from ur_energy_model.model.robots import GENERATIONS
from ur_energy_model.typing import Array
from ur_energy_model.yaml_reader import Quantity, YamlTree

STATES = ("off", "braked", "running")
"""States of the box: arm without power, brakes engaged, brakes released."""
TERMS = len(STATES) + 2
"""Number of the terms that the wall is linear in: time in each state, power at the supply and its
square."""
SUPPLY = len(STATES)  # place of the power at the supply among the terms
SQUARE = len(STATES) + 1  # place of the square of this power
_TIMES = np.repeat([1.0, 0.0], [len(STATES), 2])

GENERIC = "generic"
MODEL = "model"
MEASURED = "meter"
"""Sources of an energy at the mains. A model has GENERIC or MEASURED as its source."""


@dataclass(frozen=True)
class WallModel:
    """Power at the mains of one cell.

    Attributes:
        box: power by state of the box [W].
        proportional: coefficient of the power at the supply [1].
        quadratic: coefficient of the square of this power [1/W].
        covariance: covariance of box, proportional and quadratic, in this order [5, 5].
        source: "meter", or "generic" where nothing was measured.
        held_out_error_percent: error of the energy of times held out from the fit, RMS
            over them.
        delay: time of the meter from the end of its averaging time to the reading [s].
        averaging: averaging time of the meter [s].
        resolution: resolution of the meter [W].
    """

    box: Mapping[str, float]
    proportional: float
    quadratic: float
    covariance: Array
    source: str = MEASURED
    held_out_error_percent: float | None = None
    delay: float = 0.0
    averaging: float = 0.0
    resolution: float = 0.0

    @cached_property
    def coefficients(self) -> Array:
        """Box by state, proportional and quadratic [5]."""
        box = [self.box[state] for state in STATES]
        return np.array([*box, self.proportional, self.quadratic])

    @property
    def energy_source(self) -> str:
        """Source of the energies by this model: "model" or "generic"."""
        return GENERIC if self.source == GENERIC else MODEL

    @property
    def std(self) -> Array:
        """Standard deviations of the coefficients [5]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def value(self, terms: Array) -> Array:
        """Energy [...], J, from integrals of the terms [..., 5]; or power, W, from their means."""
        return np.asarray(terms @ self.coefficients)

    def deviation(self, terms: Array, supply_std: Array | float) -> Array:
        """Standard deviation of `value` [...], J or W.

        It contains the errors of the model and of the energy at the supply, which are
        independent.

        Args:
            terms: see `value` [..., 5].
            supply_std: standard deviation of the energy, or power, at the supply [...].
        """
        own = ((terms @ self.covariance) * terms).sum(axis=-1)
        mean_power = terms[..., SUPPLY] / np.maximum(terms @ _TIMES, 1e-9)
        supply = self.slope(mean_power) * supply_std
        return np.asarray(np.sqrt(np.maximum(own, 0.0) + supply * supply))

    def slope(self, power: Array | float) -> Array | float:
        """Change of the power at the wall per change at the supply, at a power there [W]."""
        return self.proportional + 2.0 * self.quadratic * power

    def of_cycle(self, energy: float, seconds: float, state: str = "running") -> float:
        """Energy at the wall [J] of an energy at the supply [J] in a time [s] of steady power."""
        of_box = self.box[state] * seconds
        square = energy * energy / seconds
        return of_box + self.proportional * energy + self.quadratic * square


def wall_from_vector(
    values: Array, covariance: Array, source: str, **more: Any
) -> WallModel:
    """The model with these coefficients [5] and their covariance [5, 5].

    `more` are further attributes of `WallModel`.
    """
    *box, proportional, quadratic = map(float, values)
    boxes = dict(zip(STATES, box, strict=True))
    return WallModel(boxes, proportional, quadratic, covariance, source, **more)


# The walls of config/wall.yaml, where nothing was measured.

_TERM = Numbers(Quantity("1", 0, 1e3), (2,))
_FAMILY = Section(
    lambda found: np.array(list(found.values())),
    (
        *(Key(state, _TERM, "power of the box and its deviation, W") for state in STATES),
        Key("proportional", _TERM, "of the power at the supply, and its deviation"),
        Key("quadratic", _TERM, "of its square, and its deviation, 1/W"),
    ),
)
_GENERATION = "<generation>"
_WALLS = Section(
    dict,
    (
        Key("schema", Schema(1), "version of the format"),
        Key("common", Number(Quantity("1", 0, 1)), "correlation of the box's states"),
        Key(_GENERATION, _FAMILY, "walls of cells with a controller of this generation"),
    ),
)


@cache
def generic_wall(generation: str) -> WallModel:
    """What is known of the wall of any cell with a controller of this generation.

    The interval of the model is the spread between cells.

    Args:
        generation: `RobotDescription.generation`: "e-series", "cb3" or "other".
    """
    tree = YamlTree.read(config_file("wall.yaml"), InputError, "restore the file")
    walls = _WALLS.read(tree, Scope({_GENERATION: GENERATIONS}))
    values, std = walls[_GENERATION][generation].T
    correlation = np.eye(TERMS)
    correlation[:SUPPLY, :SUPPLY] += walls["common"] * (1.0 - np.eye(len(STATES)))
    return wall_from_vector(values, np.outer(std, std) * correlation, GENERIC)
