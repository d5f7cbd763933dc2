"""Readers of values with units, and of estimates: values with standard deviation and source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ur_energy_model.reading.ranges import VARIANCE
from ur_energy_model.reading.readers import Quantity, array
from ur_energy_model.reading.record import Reader, Record
from ur_energy_model.reading.yaml_nodes import Scalar
from ur_energy_model.reading.yaml_tree import YamlTree, excerpt
from ur_energy_model.typing import Array

CHANCE = 5.0
"""Standard deviations by which a fitted value may have the wrong sign."""
_ANY = 1e12
"""More than a fit returns for an unidentifiable parameter."""
_STD = Quantity("1", 0, 1e12)


@dataclass
class Estimates:
    """Standard deviations and sources of fitted values, collected while they are read.

    Attributes:
        std: standard deviation by name.
        source: identification stage by name.
    """

    std: dict[str, float] = field(default_factory=dict)
    source: dict[str, str] = field(default_factory=dict)

    def read(
        self,
        node: YamlTree,
        name: str,
        quantity: Quantity,
        *,
        free: bool = False,
        sourced: bool = True,
    ) -> float:
        """Value of a fitted quantity.

        Args:
            node: mapping of value, unit, std and, if `sourced`, source.
            name: key in `std` and `source`.
            quantity: unit and range.
            free: whether the fit may have returned any sign.
            sourced: whether the node contains the source.
        """
        with Record(node) as keys:
            check_unit(keys["unit"], quantity.unit)
            self.std[name] = _STD(keys["std"])
            if sourced:
                self.source[name] = keys["source"].text()
            value = keys["value"].number()
            if free:
                quantity = unbound(quantity)
            quantity.check(keys["value"], value, lowest(quantity, self.std[name]))
        return value


def lowest(quantity: Quantity, std: float) -> float:
    """Lowest value that a fit may have returned.

    A fitted quantity that cannot be negative may still be slightly negative by chance.
    """
    return quantity.low if quantity.low != 0 else -CHANCE * std


def unbound(quantity: Quantity) -> Quantity:
    """The quantity with the range of an unconstrained fit."""
    return replace(quantity, low=-_ANY, high=_ANY, positive=False)


def with_unit(quantity: Quantity) -> Reader[float]:
    """Reader of a value with its unit."""

    def read(node: YamlTree) -> float:
        with Record(node) as keys:
            check_unit(keys["unit"], quantity.unit)
            return quantity(keys["value"])

    return read


def each(node: YamlTree, joints: tuple[str, ...], quantity: Quantity, std: float = 0.0) -> Array:
    """Values of all joints [n] with one unit, each with this standard deviation."""
    with Record(node) as keys:
        keys.expect(joints)
        check_unit(keys["unit"], quantity.unit)
        values = [keys[name].number() for name in joints]
        for name, value in zip(joints, values, strict=True):
            quantity.check(keys[name], value, lowest(quantity, std))
    return np.array(values)


def matrix(node: YamlTree, quantity: Quantity) -> Array:
    """A matrix [3, 3]."""
    return np.array([[quantity(entry) for entry in row.items(3)] for row in node.items(3)])


def check_unit(node: YamlTree, unit: str) -> None:
    """Refuse another unit."""
    given = node.node.text if isinstance(node.node, Scalar) else ""
    if given != unit:
        problem = f"unit '{excerpt(given)}' must be '{unit}'" if given else f"needs unit '{unit}'"
        raise node.refuse(problem)


def covariance_of(size: int, *, optional: bool = False) -> Reader[Array]:
    """Reader of a covariance matrix [size, size]; [0, 0] for an empty list if it is optional."""

    def read(node: YamlTree) -> Array:
        rows = node.items()
        if not rows and optional:
            return np.zeros((0, 0))
        if len(rows) != size:
            end = ", or []" if optional else ""
            raise node.refuse(f"must be {size} rows of {size} numbers{end}")
        covariance = np.array([array(VARIANCE, size)(row) for row in rows])
        if (
            not np.allclose(covariance, covariance.T, rtol=1e-6, atol=0.0)
            or np.linalg.eigvalsh(covariance)[0] < -1e-6 * np.abs(covariance).max()
        ):
            raise node.refuse("is not a covariance matrix")
        return covariance

    return read
