# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Format of what a model file states of the arm's supply: bus power, and power at the mains.

Sections of `model_file.MODEL`. Powers are in watts and positive where they flow into the
arm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ur_energy_model import ranges
from ur_energy_model.formats import Found, Key, Section, table_of, unit
from ur_energy_model.forms import (
    ANY,
    ANY_TEXT,
    CHANCE,
    Covariance,
    Estimate,
    Estimated,
    Measured,
    Number,
    Numbers,
    Scope,
    one_of,
    unbounded,
)
from ur_energy_model.model.drives import MOTION_STD, BusModel
from ur_energy_model.model.joint_format import FREE_FIT, JOINT
from ur_energy_model.model.wall import SQUARE, STATES, SUPPLY, WallModel, wall_from_vector
from ur_energy_model.typing import Array
from ur_energy_model.yaml_reader import Quantity, YamlTree

MODE = "<robot mode>"
"""Stands for the names of the robot modes."""
STATE = "<state>"
"""Stands for the states of the box, `wall.STATES`."""
BUS_KINDS = ("physical", "ecbot", "catalogue")
"""Structures of power models that a file may have; the last two come from papers."""


# The power model of the whole arm.

_DRIVER_STD = Quantity("W/A", 0, ANY)


def _bus(found: Found) -> BusModel:
    """The bus model; coefficients of EcBot may have any sign, others not."""
    standby = found["standby"]
    floor = found["floor"]
    source = found["source"]
    if floor > standby.value:
        raise found.refuse(
            "floor", f"{floor:g} W is above the standby power, {standby.value:g} W"
        )
    chance = CHANCE * found["driver_std"] if source == "bus_power" else 0.0
    _check_joints(found, "driver", ranges.DRIVER_LOSS, chance)
    _check_joints(found, "inductance", ranges.INDUCTANCE, 0.0)
    return BusModel(
        kind=found["kind"],
        standby=standby.value,
        driver=found["driver"],
        inductance=found["inductance"],
        capacitor_energy=found["storage"],
        floor=floor,
        std={
            "standby": standby.std,
            "driver": found["driver_std"],
            "motion": found["motion_std"],
        },
        errors=found["errors"],
        torque_errors=found["torque_errors"],
        drag=found["drag"] or 0.0,
        mode_power=found["mode_power"],
        residual=found["residual"],
        source=source,
        reason=found["reason"],
    )


def _check_joints(found: Found, name: str, quantity: Quantity, chance: float) -> None:
    """Refuse values of the joints beyond their range.

    Where the range begins at zero, values may be below it by `chance`.
    """
    if found["kind"] == FREE_FIT[1]:
        quantity = unbounded(quantity)
    lowest = -chance if quantity.low == 0 else quantity.low
    nodes = found.nodes[name].mapping()
    for joint, value in zip(found.scope.names[JOINT], found[name], strict=True):
        quantity.check(nodes[joint], value, lowest)


def _parts_of_bus(bus: BusModel) -> Mapping[str, Any]:
    return {
        **vars(bus),
        "standby": Estimated(bus.standby, bus.std.get("standby", 0.0)),
        "driver_std": bus.std.get("driver", 0.0),
        "motion_std": bus.motion_std,
        "storage": bus.capacitor_energy,
        "torque_errors": bus.torque_errors if bus.torque_errors.size else None,
    }


class _Errors(Numbers):
    """Changes of the parameters by k independent errors [k, 3n+2].

    Files of earlier versions have no drag, and no column for it.
    """

    def __init__(self) -> None:
        super().__init__(ranges.ERROR, ("k", "3n+2"))

    def _read(self, tree: YamlTree, scope: Scope) -> Array:
        items = tree.items()
        scope.sizes["k"] = len(items)
        width = scope.size("3n+2") or 0
        if not items:
            return np.zeros((0, width))
        if scope.words.get("drag") == "none":
            older = Numbers(self.quantity, ("k", "3n+1")).read(tree, scope)
            return np.pad(older, ((0, 0), (0, 1)))
        return super()._read(tree, scope)


def _bind_drag(value: float | None, scope: Scope) -> None:
    scope.words["drag"] = "none" if value is None else "known"


BUS = Section(
    _bus,
    (
        Key("kind", one_of(BUS_KINDS), "structure of the power model"),
        Key("source", ANY_TEXT, "bus_power where it was fitted, else prior"),
        Key("reason", ANY_TEXT, "the terms of the model, and why they were chosen"),
        Key(
            "standby",
            Estimate(ranges.POWER, sourced=False, chance=0.0),
            "power at standstill, brakes released",
        ),
        Key("driver_std", Measured(_DRIVER_STD), "standard deviation of driver"),
        Key(
            "motion_std",
            Measured(ranges.POWER),
            "standard deviation of the power of a second of motion that no error explains",
            default=MOTION_STD,
            always=True,
        ),
        Key(
            "driver",
            table_of(ranges.DRIVER_LOSS, JOINT, "driver loss per ampere", checked=False),
            "losses of the drives",
        ),
        Key(
            "inductance",
            table_of(ranges.INDUCTANCE, JOINT, "of the windings", checked=False),
            "of EcBot's term L I dI/dt; zero in the physical model",
        ),
        Key(
            "drag",
            Measured(ranges.DRAG),
            "loss per motor speed that no current shows",
            default=None,
            binds=_bind_drag,
        ),
        Key(
            "storage",
            Measured(ranges.CAPACITOR_ENERGY),
            "largest regenerated energy that the bus capacitance stores",
            default=0.0,
            always=True,
        ),
        Key("floor", Measured(ranges.POWER), "lowest power that the supply delivers"),
        Key(
            "residual",
            Measured(ranges.POWER, unknown=float("nan")),
            "RMS of measured minus modelled power; null without recorded bus power",
        ),
        Key(
            "errors",
            _Errors(),
            "changes of standby, n resistances, n back-EMF constants, n driver losses and "
            "drag by k independent errors",
        ),
        Key(
            "torque_errors",
            Numbers(ranges.ERROR, ("k", "n")),
            "relative changes of the torque constants by the same errors",
            default=np.zeros((0, 0)),
        ),
        Key(
            "mode_power",
            Section(
                lambda found: dict(found[MODE]),
                (
                    unit(ranges.MODE_POWER.unit),
                    Key(
                        MODE,
                        Number(ranges.MODE_POWER),
                        "mean power in a robot mode; one without a name has its code",
                        default=None,
                        others="-?[0-9]{1,3}",
                    ),
                ),
                lambda powers: {MODE: powers},
            ),
            "power in modes other than running",
        ),
    ),
    _parts_of_bus,
)


# The wall.


_BOX = Quantity("W", -100, 1e4)
"""Power of the box; it may be negative by chance where the recordings do not separate it."""
_METER_TIME = Quantity("s", -1, 60)
_PERCENT = Quantity("%", 0, 1e3)


def _wall(found: Found) -> WallModel:
    """The wall, whose coefficients have the order of `WallModel.covariance`."""
    supply = [found["proportional"].value, found["quadratic"].value]
    return wall_from_vector(
        np.append(found["box"], supply),
        found["covariance"],
        found["source"],
        held_out_error_percent=found["held_out_error_percent"],
        delay=found["delay"],
        averaging=found["averaging"],
        resolution=found["resolution"],
    )


def _parts_of_wall(wall: WallModel) -> Mapping[str, Any]:
    return {
        **vars(wall),
        "box": [wall.box[state] for state in STATES],
        "proportional": Estimated(wall.proportional, wall.std[SUPPLY]),
        "quadratic": Estimated(wall.quadratic, wall.std[SQUARE]),
    }


WALL = Section(
    _wall,
    (
        Key("source", ANY_TEXT, "meter, or generic where nothing was measured"),
        Key(
            "box",
            table_of(_BOX, STATE, "power of the box in this state of the arm"),
            "what computer, pendant and supply take",
        ),
        Key(
            "proportional",
            Estimate(Quantity("1", 0.5, 3), sourced=False),
            "power at the mains per power at the 48 V supply",
        ),
        Key(
            "quadratic",
            Estimate(Quantity("1/W", -0.01, 0.01), sourced=False),
            "the same per square of the power",
        ),
        Key(
            "covariance",
            Covariance(ranges.VARIANCE, "w"),
            "of box by state, proportional and quadratic",
        ),
        Key(
            "held_out_error",
            Measured(_PERCENT),
            "error of the energy of times held out from the fit",
            default=None,
            attribute="held_out_error_percent",
        ),
        Key("delay", Measured(_METER_TIME), "of the meter, after its averaging time"),
        Key("averaging", Measured(_METER_TIME), "averaging time of the meter"),
        Key("resolution", Measured(ranges.POWER), "of the meter"),
    ),
    _parts_of_wall,
)
