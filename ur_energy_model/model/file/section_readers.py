"""Readers of a model file's sections about the whole arm: setup, bus, sessions and others."""

from __future__ import annotations

import re

import numpy as np

from ur_energy_model.model.bus_model import BusModel
from ur_energy_model.model.file.estimates import (
    Estimates,
    check_unit,
    covariance_of,
    each,
    matrix,
    unbound,
    with_unit,
)
from ur_energy_model.model.link_tensors import LinkTensors, is_possible
from ur_energy_model.model.payload_calibration import LINK_PARAMETERS, PayloadCalibration
from ur_energy_model.model.sessions import SessionSpread
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.reading import ranges
from ur_energy_model.reading.readers import Quantity, array, choice, integer, with_suggestion
from ur_energy_model.reading.record import Reader, Record
from ur_energy_model.reading.yaml_tree import YamlTree, excerpt
from ur_energy_model.robot_modes import ROBOT_MODES
from ur_energy_model.typing import Array

KINDS = ("physical", "ecbot", "catalogue")
_SHARE = Quantity("1", 0, 1)
_GAIN = Quantity("1", 0, 10, positive=True)
_DRIVER_STD = Quantity("W/A", 0, 1e12)


def read_setup(node: YamlTree) -> tuple[Setup, str]:
    """Mounting and payload, and their source."""
    with Record(node) as keys:
        source = keys["source"].text()
        gravity = array(ranges.GRAVITY_ENTRY, 3)(keys["gravity"])
        ranges.GRAVITY.check(keys["gravity"], float(np.linalg.norm(gravity)))
        mass = ranges.PAYLOAD_MASS(keys["payload_mass"])
        center = array(ranges.LENGTH, 3)(keys["payload_center_of_mass"])
        inertia = matrix(keys["payload_inertia"], ranges.INERTIA_ENTRY)
        _check_symmetric(keys["payload_inertia"], inertia)
        ranges.check_tensor(keys["payload_inertia"], inertia, mass)
    return Setup(gravity, Payload(mass, center, inertia)), source


def read_bus(node: YamlTree, joints: tuple[str, ...]) -> BusModel:
    """The bus model.

    Coefficients of EcBot may have any sign; those of the physical model may not.
    """
    with Record(node) as keys:
        kind = choice(KINDS)(keys["kind"])
        found = Estimates()
        standby = found.read(keys["standby"], "standby", ranges.POWER, sourced=False)
        if standby < 0:
            raise keys["standby"].refuse("must not be negative")
        found.std["driver"] = with_unit(_DRIVER_STD)(keys["driver_std"])
        loss, inductance = ranges.DRIVER_LOSS, ranges.INDUCTANCE
        if kind == "ecbot":
            loss, inductance = unbound(loss), unbound(inductance)
        floor = with_unit(ranges.POWER)(keys["floor"])
        if floor > standby:
            raise keys["floor"].refuse(f"{floor:g} W is above the standby power, {standby:g} W")
        source = keys["source"].text()
        spread = found.std["driver"] if source == "bus_power" else 0.0
        with Record(keys["residual"]) as residual:
            check_unit(residual["unit"], "W")
            rms = residual.read("value", ranges.POWER, float("nan"))
        row = array(ranges.ERROR, 1 + 3 * len(joints))
        return BusModel(
            kind=kind,
            standby=standby,
            driver=each(keys["driver"], joints, loss, spread),
            inductance=each(keys["inductance"], joints, inductance),
            capacitor_energy=keys.read("storage", with_unit(ranges.CAPACITOR_ENERGY), 0.0),
            floor=floor,
            std=found.std,
            errors=np.array([row(item) for item in keys["errors"].items()]),
            mode_power=_mode_power(keys["mode_power"]),
            residual=rms,
            source=source,
            reason=keys["reason"].text(),
        )


def _mode_power(node: YamlTree) -> dict[str, float]:
    """Power by robot mode [W]; a mode without a name has its code as key."""
    known = tuple(ROBOT_MODES.values())
    with Record(node) as keys:
        check_unit(keys["unit"], "W")
        out = {name: ranges.MODE_POWER(child) for name, child in keys.remaining().items()}
        for name in out:
            if name not in known and not re.fullmatch("-?[0-9]{1,3}", name):
                problem = f"no robot mode '{excerpt(name)}', known: {with_suggestion(name, known)}"
                raise node.mapping()[name].refuse(problem)
    return out


def link_tensors(joints: tuple[str, ...]) -> Reader[LinkTensors]:
    """Reader of the inertia tensors of the links that these joints move."""

    def read(node: YamlTree) -> LinkTensors:
        with Record(node) as keys:
            keys.expect(joints)
            check_unit(keys["unit"], "kg m^2")
            source = keys["source"].text()
            values, stds = [], []
            for name in joints:
                with Record(keys[name]) as link:
                    value = matrix(link["value"], ranges.INERTIA_ENTRY)
                    _check_symmetric(link["value"], value)
                    if not is_possible(value):
                        raise link["value"].refuse("is not the inertia tensor of a body")
                    values.append(value)
                    stds.append(matrix(link["std"], ranges.DRIVE_INERTIA))
        return LinkTensors(np.array(values), np.array(stds), source)

    return read


def sessions(joints: tuple[str, ...]) -> Reader[SessionSpread]:
    """Reader of the spread between sessions of an arm with these joints."""

    def read(node: YamlTree) -> SessionSpread:
        with Record(node) as keys:
            standby = with_unit(ranges.POWER)(keys["standby_std"])
            with Record(keys["friction_std"]) as friction:
                friction.expect(joints)
                spread = [_SHARE(friction[name]) for name in joints]
            return SessionSpread(standby, np.array(spread), integer(0, 10**6)(keys["count"]))

    return read


def _check_symmetric(node: YamlTree, value: Array) -> None:
    if not np.allclose(value, value.T, rtol=1e-6, atol=0.0):
        raise node.refuse("is not symmetric, so it is not the inertia tensor of a body")


def payload_calibration(joints: tuple[str, ...]) -> Reader[PayloadCalibration]:
    """Reader of the payload calibration of these joints."""

    def read(node: YamlTree) -> PayloadCalibration:
        with Record(node) as keys:
            keys.expect((*joints, "covariance"))
            check_unit(keys["unit"], "kg, kg m, 1")
            links, gains = [], []
            for name in joints:
                with Record(keys[name]) as joint:
                    links.append(array(ranges.VARIANCE, LINK_PARAMETERS)(joint["link"]))
                    gains.append([_GAIN(joint["link_gain"]), _GAIN(joint["payload_gain"])])
            size = (LINK_PARAMETERS + 2) * len(joints)
            covariance = covariance_of(size)(keys["covariance"])
        link_gain, payload_gain = np.array(gains).T
        return PayloadCalibration(np.array(links), link_gain, payload_gain, covariance)

    return read
