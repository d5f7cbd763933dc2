"""The model file: EnergyModel <-> YAML that people can read, edit and trust.

Every quantity stands with value, unit, standard deviation and the stage it comes from. Reading
is strict: unknown keys, missing joints, NaN and wrong units are refused with the line to mend.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from ur_energy_model.errors import ModelFileError
from ur_energy_model.files import write_text
from ur_energy_model.model.energy_model import BusModel, EnergyModel, JointModel
from ur_energy_model.model.friction import LAWS, PARAMETER_UNITS, SHAPE_UNITS, Friction
from ur_energy_model.model.link_tensors import LinkTensors, is_possible
from ur_energy_model.model.model_document import JOINT_UNITS, KIND, SCHEMA, document
from ur_energy_model.model.payload_calibration import LINK_PARAMETERS, PayloadCalibration
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.model.yaml_tree import YamlTree

Array = NDArray[np.float64]

_POSITIVE = ("gear_ratio", "torque_constant")
_REMEDY = "mend the line or identify again with ur_energy identify"
_HEADER = """\
# Electro-mechanical model of a robot arm, made by ur_energy identify.
# Inertia is joint side; torque constant, friction and motor constants are motor side.
"""


def save_model(model: EnergyModel, path: str | Path) -> None:
    """Write a model file atomically: the old file stays whole until the new one is complete.

    Raises:
        ModelFileError: the place cannot be written.
    """
    text = _HEADER + yaml.safe_dump(
        document(model), sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )
    write_text(path, text, ModelFileError)


def load_model(path: str | Path) -> EnergyModel:
    """Read a model file.

    Raises:
        ModelFileError: names the line and key to mend.
    """
    root = YamlTree.read(path, ModelFileError, _REMEDY)
    kind = root.mapping().get("kind")
    if kind is None or kind.scalar() != KIND:
        raise root.refuse("is not a model file of this package (no 'kind: ur_energy_model')")
    keys = root.keys(
        "kind", "schema", "robot", "setup", "joints", "bus", "fit", "validation", "provenance",
        optional=("link_tensors", "payload_calibration", "current_delay"),
    )  # fmt: skip
    if keys["schema"].integer() != SCHEMA:
        raise keys["schema"].refuse(f"this version reads schema {SCHEMA} only")
    names = keys["joints"].mapping()
    if not names:
        raise keys["joints"].refuse("names no joints")
    joints = tuple(_joint(name, node) for name, node in names.items())
    setup, source = _setup(keys["setup"])
    return EnergyModel(
        robot=keys["robot"].text(),
        setup=setup,
        setup_source=source,
        joints=joints,
        bus=_bus(keys["bus"], tuple(names)),
        fit=tuple(node.plain() for node in keys["fit"].items()),
        validation=tuple(node.plain() for node in keys["validation"].items()),
        provenance=_plain_mapping(keys["provenance"]),
        current_delay=_with_unit(keys["current_delay"], "s") if "current_delay" in keys else 0.0,
        link_tensors=(
            _link_tensors(keys["link_tensors"], tuple(names)) if "link_tensors" in keys else None
        ),
        payload_calibration=(
            _payload_calibration(keys["payload_calibration"], tuple(names))
            if "payload_calibration" in keys
            else None
        ),
    )


def _joint(name: str, node: YamlTree) -> JointModel:
    keys = node.keys(*JOINT_UNITS, "friction", "current_residual", "current_covariance")
    std: dict[str, float] = {}
    source: dict[str, str] = {}
    values = {
        key: _read_quantity(keys[key], key, unit, std, source, positive=key in _POSITIVE)
        for key, unit in JOINT_UNITS.items()
    }
    friction, reason = _friction(keys["friction"], std, source)
    size = 1 + len(friction.law.parameters)
    covariance = keys["current_covariance"].covariance(size, optional=True)
    return JointModel(
        name=name,
        **values,
        friction=friction,
        std=std,
        source=source,
        current_covariance=covariance,
        current_residual=_with_unit(keys["current_residual"], "A"),
        friction_reason=reason,
    )


def _friction(
    node: YamlTree, std: dict[str, float], source: dict[str, str]
) -> tuple[Friction, str]:
    keys = node.keys(
        "law",
        "reason",
        "shape",
        "parameters",
        optional=("presliding", "temperature_range", "temperature_model"),
    )
    law = LAWS.get(keys["law"].text())
    if law is None:
        raise keys["law"].refuse(f"no such friction law (known: {', '.join(LAWS)})")
    parameters = {
        name: _read_quantity(child, name, PARAMETER_UNITS[name], std, source)
        for name, child in keys["parameters"].keys(*law.parameters).items()
    }
    shape = {
        name: _with_unit(child, SHAPE_UNITS[name])
        for name, child in keys["shape"].keys(*law.shape).items()
    }
    for name, value in shape.items():
        if name in {"smoothing", "stribeck_speed"} and value <= 0:
            raise keys["shape"].refuse(f"{name} must be positive")
    limits = None
    if "temperature_range" in keys:
        ends = keys["temperature_range"].keys("lowest", "highest", "unit")
        _check_unit(ends["unit"], "degC")
        limits = (ends["lowest"].number(), ends["highest"].number())
        if limits[0] > limits[1]:
            raise keys["temperature_range"].refuse("lowest is above highest")
    model = None
    if "temperature_model" in keys:
        a, b, c, d = keys["temperature_model"].numbers(4)
        model = (a, b, c, d)
    travel = _with_unit(keys["presliding"], "rad") if "presliding" in keys else 0.0
    if travel < 0:
        raise keys["presliding"].refuse("must not be negative")
    friction = Friction(
        law, {name: parameters[name] for name in law.parameters}, shape, model, limits, travel
    )
    return friction, keys["reason"].text()


def _link_tensors(node: YamlTree, joints: tuple[str, ...]) -> LinkTensors:
    keys = node.keys("unit", "source", *joints)
    _check_unit(keys["unit"], "kg m^2")
    values, stds = [], []
    for name in joints:
        link = keys[name].keys("value", "std")
        value, std = _matrix(link["value"]), _matrix(link["std"])
        if not np.allclose(value, value.T, rtol=1e-6, atol=0.0) or not is_possible(value):
            raise link["value"].refuse("is not an inertia tensor that a body can have")
        if (std < 0).any():
            raise link["std"].refuse("must not be negative")
        values.append(value)
        stds.append(std)
    return LinkTensors(np.array(values), np.array(stds), keys["source"].text())


def _payload_calibration(node: YamlTree, joints: tuple[str, ...]) -> PayloadCalibration:
    keys = node.keys("unit", "covariance", *joints)
    _check_unit(keys["unit"], "kg, kg m, 1")
    links, gains = [], []
    for name in joints:
        joint = keys[name].keys("link", "link_gain", "payload_gain")
        links.append(joint["link"].numbers(LINK_PARAMETERS))
        gains.append([joint[gain].number() for gain in ("link_gain", "payload_gain")])
        if min(gains[-1]) <= 0:
            raise keys[name].refuse("gains must be positive")
    covariance = keys["covariance"].covariance((LINK_PARAMETERS + 2) * len(joints))
    link_gain, payload_gain = np.array(gains).T
    return PayloadCalibration(np.array(links), link_gain, payload_gain, covariance)


def _matrix(node: YamlTree) -> Array:
    """Three rows of three numbers."""
    rows = node.items()
    if len(rows) != 3:
        raise node.refuse("must have 3 rows of 3 numbers")
    return np.array([row.numbers(3) for row in rows])


def _setup(node: YamlTree) -> tuple[Setup, str]:
    keys = node.keys(
        "source", "gravity", "payload_mass", "payload_center_of_mass", "payload_inertia"
    )
    mass = keys["payload_mass"].number()
    if mass < 0:
        raise keys["payload_mass"].refuse("must not be negative")
    payload = Payload(
        mass,
        np.array(keys["payload_center_of_mass"].numbers(3)),
        _matrix(keys["payload_inertia"]),
    )
    return Setup(np.array(keys["gravity"].numbers(3)), payload), keys["source"].text()


def _bus(node: YamlTree, joints: tuple[str, ...]) -> BusModel:
    keys = node.keys(
        "kind", "source", "reason", "standby", "driver_std", "driver", "inductance", "floor",
        "residual", "errors", "mode_power", optional=("storage",),
    )  # fmt: skip
    kind = keys["kind"].text()
    if kind not in {"physical", "ecbot"}:
        raise keys["kind"].refuse(f"'{kind}' must be physical or ecbot")
    std: dict[str, float] = {}
    standby = _read_quantity(keys["standby"], "standby", "W", std, {}, sourced=False)
    if standby < 0:
        raise keys["standby"].refuse("must not be negative")
    std["driver"] = _with_unit(keys["driver_std"], "W/A")
    modes = keys["mode_power"].mapping()
    _check_unit(modes.pop("unit", keys["mode_power"]), "W")
    residual = keys["residual"].keys("value", "unit")
    _check_unit(residual["unit"], "W")
    return BusModel(
        kind=kind,
        standby=standby,
        driver=_each(keys["driver"], joints, "W/A"),
        inductance=_each(keys["inductance"], joints, "H"),
        storage=_storage(keys["storage"]) if "storage" in keys else 0.0,
        floor=_with_unit(keys["floor"], "W"),
        std=std,
        errors=np.array([row.numbers(1 + 3 * len(joints)) for row in keys["errors"].items()]),
        mode_power={name: child.number() for name, child in modes.items()},
        residual=float("nan") if residual["value"].is_null else residual["value"].number(),
        source=keys["source"].text(),
        reason=keys["reason"].text(),
    )


def _storage(node: YamlTree) -> float:
    value = _with_unit(node, "J")
    if value < 0:
        raise node.refuse("must not be negative")
    return value


def _read_quantity(
    node: YamlTree, name: str, unit: str, std: dict[str, float], source: dict[str, str], *,
    positive: bool = False, sourced: bool = True,
) -> float:  # fmt: skip
    keys = node.keys("value", "unit", "std", *(("source",) if sourced else ()))
    _check_unit(keys["unit"], unit)
    std[name] = keys["std"].number()
    if std[name] < 0:
        raise keys["std"].refuse("must not be negative")
    if sourced:
        source[name] = keys["source"].text()
    value = keys["value"].number()
    if positive and value <= 0:
        raise keys["value"].refuse(f"{value} must be positive")
    return value


def _with_unit(node: YamlTree, unit: str) -> float:
    keys = node.keys("value", "unit")
    _check_unit(keys["unit"], unit)
    return keys["value"].number()


def _each(node: YamlTree, joints: tuple[str, ...], unit: str) -> Array:
    keys = node.keys("unit", *joints)
    _check_unit(keys["unit"], unit)
    return np.array([keys[name].number() for name in joints])


def _check_unit(node: YamlTree, unit: str) -> None:
    given = str(node.scalar()) if isinstance(node.node, yaml.ScalarNode) else None
    if given != unit:
        raise node.refuse(f"unit '{given}' must be '{unit}'" if given else f"needs unit '{unit}'")


def _plain_mapping(node: YamlTree) -> dict[str, Any]:
    node.mapping()
    return dict(node.plain())
