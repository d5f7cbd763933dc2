"""Model files: an EnergyModel as YAML that people can read and edit.

Each quantity has value, unit, standard deviation and source. Reading is strict: unknown keys,
missing joints, NaN, wrong units and impossible values are refused with the line to correct. To add
an optional key, read it in `load_model`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from ur_energy_model import ranges
from ur_energy_model.errors import ModelFileError, RobotFileError
from ur_energy_model.files import write_text
from ur_energy_model.model.document import JOINT_UNITS, KIND, SCHEMA, document
from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.energy_model import (
    LINK_PARAMETERS,
    EnergyModel,
    LinkTensors,
    PayloadCalibration,
    is_possible,
)
from ur_energy_model.model.friction import LAWS, PARAMETER_UNITS, SHAPE_UNITS, Friction
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import SessionSpread
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.ranges import VARIANCE
from ur_energy_model.robot_modes import ROBOT_MODES
from ur_energy_model.typing import Array
from ur_energy_model.yaml_reader import (
    Origin,
    Quantity,
    Reader,
    Record,
    YamlTree,
    array,
    choice,
    excerpt,
    integer,
    text,
    with_suggestion,
)

# Readers of values with units, and of estimates: values with standard deviation and source.

CHANCE = 5.0
"""Standard deviations by which a fitted value may have the wrong sign."""
_ANY = 1e12
"""More than a fit returns for an unidentifiable parameter."""
_STD = Quantity("1", 0, 1e12)


@dataclass
class Estimates:
    """Standard deviations and sources of fitted values by name, collected while they are read."""

    std: dict[str, float] = field(default_factory=dict)
    source: dict[str, str] = field(default_factory=dict)

    def read(self, node: YamlTree, name: str, quantity: Quantity, *, free: bool = False) -> float:
        """Value of a fitted quantity from a mapping of value, unit, std and perhaps source.

        `name` is the key in `std` and `source`; `free`: the fit may have returned any sign.
        """
        with Record(node) as keys:
            _check_unit(keys["unit"], quantity.unit)
            self.std[name] = _STD(keys["std"])
            if name != "standby":  # the source of the power model is that of all of it
                self.source[name] = keys["source"].text()
            quantity = _unbound(quantity) if free else quantity
            value = keys["value"].number()
            quantity.check(keys["value"], value, _lowest(quantity, self.std[name]))
        return value


def _lowest(quantity: Quantity, std: float) -> float:
    """Lowest value that a fit may have returned: slightly negative by chance."""
    return quantity.low if quantity.low != 0 else -CHANCE * std


def _unbound(quantity: Quantity) -> Quantity:
    """The quantity with the range of an unconstrained fit."""
    return replace(quantity, low=-_ANY, high=_ANY, positive=False)


def _with_unit(quantity: Quantity) -> Reader[float]:
    """Reader of a value with its unit."""

    def read(node: YamlTree) -> float:
        with Record(node) as keys:
            _check_unit(keys["unit"], quantity.unit)
            return quantity(keys["value"])

    return read


def _each(node: YamlTree, joints: tuple[str, ...], quantity: Quantity, std: float = 0.0) -> Array:
    """Values of all joints [n] with one unit, each with this standard deviation."""
    with Record(node) as keys:
        keys.expect(joints)
        _check_unit(keys["unit"], quantity.unit)
        values = [keys[name].number() for name in joints]
        for name, value in zip(joints, values, strict=True):
            quantity.check(keys[name], value, _lowest(quantity, std))
    return np.array(values)


def _matrix(node: YamlTree, quantity: Quantity) -> Array:
    """A matrix [3, 3]."""
    return np.array([[quantity(entry) for entry in row.items(3)] for row in node.items(3)])


def _check_unit(node: YamlTree, unit: str) -> None:
    """Refuse another unit."""
    given = node.written() if node.is_scalar else ""
    if given != unit:
        problem = f"unit '{excerpt(given)}' must be '{unit}'" if given else f"needs unit '{unit}'"
        raise node.refuse(problem)


def _covariance(node: YamlTree, size: int) -> Array:
    """A covariance matrix [size, size]."""
    rows = node.items()
    if len(rows) != size:
        raise node.refuse(f"must be {size} rows of {size} numbers")
    covariance = np.array([array(VARIANCE, size)(row) for row in rows])
    if (
        not np.allclose(covariance, covariance.T, rtol=1e-6, atol=0.0)
        or np.linalg.eigvalsh(covariance)[0] < -1e-6 * np.abs(covariance).max()
    ):
        raise node.refuse("is not a covariance matrix")
    return covariance


# Readers of a model file's sections about the whole arm: setup, bus, sessions and others.

KINDS = ("physical", "ecbot", "catalogue")
_SHARE = Quantity("1", 0, 1)
_GAIN = Quantity("1", 0, 10, positive=True)
_DRIVER_STD = Quantity("W/A", 0, 1e12)


def _setup(node: YamlTree) -> tuple[Setup, str]:
    """Mounting and payload, and their source."""
    with Record(node) as keys:
        source = keys["source"].text()
        gravity = array(ranges.GRAVITY_ENTRY, 3)(keys["gravity"])
        ranges.GRAVITY.check(keys["gravity"], float(np.linalg.norm(gravity)))
        mass = ranges.PAYLOAD_MASS(keys["payload_mass"])
        center = array(ranges.LENGTH, 3)(keys["payload_center_of_mass"])
        inertia = _matrix(keys["payload_inertia"], ranges.INERTIA_ENTRY)
        _check_symmetric(keys["payload_inertia"], inertia)
        ranges.check_tensor(keys["payload_inertia"], inertia, mass)
    return Setup(gravity, Payload(mass, center, inertia)), source


def _bus(node: YamlTree, joints: tuple[str, ...]) -> BusModel:
    """The bus model.

    Coefficients of EcBot may have any sign; those of the physical model may not.
    """
    with Record(node) as keys:
        kind = choice(KINDS)(keys["kind"])
        found = Estimates()
        standby = found.read(keys["standby"], "standby", ranges.POWER)
        if standby < 0:
            raise keys["standby"].refuse("must not be negative")
        found.std["driver"] = _with_unit(_DRIVER_STD)(keys["driver_std"])
        loss, inductance = ranges.DRIVER_LOSS, ranges.INDUCTANCE
        if kind == "ecbot":
            loss, inductance = _unbound(loss), _unbound(inductance)
        floor = _with_unit(ranges.POWER)(keys["floor"])
        if floor > standby:
            raise keys["floor"].refuse(f"{floor:g} W is above the standby power, {standby:g} W")
        source = keys["source"].text()
        spread = found.std["driver"] if source == "bus_power" else 0.0
        with Record(keys["residual"]) as residual:
            _check_unit(residual["unit"], "W")
            rms = residual.read("value", ranges.POWER, float("nan"))
        row = array(ranges.ERROR, 1 + 3 * len(joints))
        return BusModel(
            kind=kind,
            standby=standby,
            driver=_each(keys["driver"], joints, loss, spread),
            inductance=_each(keys["inductance"], joints, inductance),
            capacitor_energy=keys.read("storage", _with_unit(ranges.CAPACITOR_ENERGY), 0.0),
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
        _check_unit(keys["unit"], "W")
        out = {name: ranges.MODE_POWER(child) for name, child in keys.remaining().items()}
        for name in out:
            if name not in known and not re.fullmatch("-?[0-9]{1,3}", name):
                problem = f"no robot mode '{excerpt(name)}', known: {with_suggestion(name, known)}"
                raise node.mapping()[name].refuse(problem)
    return out


def _link_tensors(node: YamlTree, joints: tuple[str, ...]) -> LinkTensors:
    """Inertia tensors of the links that these joints move."""
    with Record(node) as keys:
        keys.expect(joints)
        _check_unit(keys["unit"], "kg m^2")
        source = keys["source"].text()
        values, stds = [], []
        for name in joints:
            with Record(keys[name]) as link:
                value = _matrix(link["value"], ranges.INERTIA_ENTRY)
                _check_symmetric(link["value"], value)
                if not is_possible(value):
                    raise link["value"].refuse("is not the inertia tensor of a body")
                values.append(value)
                stds.append(_matrix(link["std"], ranges.DRIVE_INERTIA))
    return LinkTensors(np.array(values), np.array(stds), source)


def _sessions(node: YamlTree, joints: tuple[str, ...]) -> SessionSpread:
    """The spread between sessions."""
    with Record(node) as keys:
        standby = _with_unit(ranges.POWER)(keys["standby_std"])
        with Record(keys["friction_std"]) as friction:
            friction.expect(joints)
            spread = np.array([_SHARE(friction[name]) for name in joints])
        return SessionSpread(standby, spread, integer(0, 10**6)(keys["count"]))


def _check_symmetric(node: YamlTree, value: Array) -> None:
    if not np.allclose(value, value.T, rtol=1e-6, atol=0.0):
        raise node.refuse("is not symmetric, so it is not the inertia tensor of a body")


def _payload_calibration(node: YamlTree, joints: tuple[str, ...]) -> PayloadCalibration:
    with Record(node) as keys:
        keys.expect((*joints, "covariance"))
        _check_unit(keys["unit"], "kg, kg m, 1")
        links, gains = [], []
        for name in joints:
            with Record(keys[name]) as joint:
                links.append(array(ranges.VARIANCE, LINK_PARAMETERS)(joint["link"]))
                gains.append([_GAIN(joint["link_gain"]), _GAIN(joint["payload_gain"])])
        covariance = _covariance(keys["covariance"], (LINK_PARAMETERS + 2) * len(joints))
    link_gain, payload_gain = np.array(gains).T
    return PayloadCalibration(np.array(links), link_gain, payload_gain, covariance)


# Reader of a joint in a model file: motor constants and friction.

_QUANTITIES: dict[str, Quantity] = {
    "gear_ratio": ranges.GEAR_RATIO,
    "reflected_inertia": ranges.REFLECTED_INERTIA,
    "torque_constant": ranges.TORQUE_CONSTANT,
    "winding_resistance": ranges.RESISTANCE,
    "back_emf_constant": ranges.BACK_EMF,
}
"""Unit and range of each key of JOINT_UNITS."""
_FREE = ("winding_resistance", "back_emf_constant")
_LARGEST_FRICTION = 1e5
"""Of any friction parameter, in its own unit."""
_SHAPES: dict[str, tuple[float, float, bool]] = {
    "smoothing": (0.0, 10.0, True),
    "stribeck_speed": (0.0, 10.0, True),
    "exponent": (0.0, 3.0, True),
    "reference_temperature": (ranges.TEMPERATURE.low, ranges.TEMPERATURE.high, False),
}
"""Lowest and highest value, and whether zero is impossible; for units see SHAPE_UNITS."""
_NOT_NEGATIVE = {"viscous", "coulomb", "coulomb_direct", "coulomb_reverse"}
"""Parameters that are not negative in laws without other parameters."""


def _joint(name: str, node: YamlTree, *, free: bool) -> JointModel:
    """Constants of a joint; `free`: coefficients of power may have any sign (EcBot)."""
    found = Estimates()
    with Record(node) as keys:
        values = {
            key: found.read(keys[key], key, _QUANTITIES[key], free=free and key in _FREE)
            for key in JOINT_UNITS
        }
        for key in _FREE:
            # only a fit to bus power may be negative by chance
            if values[key] < 0 and not free and found.source[key] != "bus_power":
                raise keys[key].refuse(f"{values[key]:g} must not be negative")
        friction, reason = _friction(keys["friction"], found)
        covariance, size = keys["current_covariance"], 1 + len(friction.law.parameters)
        return JointModel(
            name=name,
            **values,
            friction=friction,
            std=found.std,
            source=found.source,
            current_covariance=(
                _covariance(covariance, size) if covariance.items() else np.zeros((0, 0))
            ),
            current_residual=_with_unit(ranges.CURRENT)(keys["current_residual"]),
            friction_reason=reason,
        )


def _friction(node: YamlTree, found: Estimates) -> tuple[Friction, str]:
    with Record(node) as keys:
        law = LAWS[choice(LAWS)(keys["law"])]
        parameters, shape = {}, {}
        lowest = 0.0 if set(law.parameters) <= _NOT_NEGATIVE else -_LARGEST_FRICTION
        with Record(keys["parameters"]) as part:
            part.expect(law.parameters)
            for name in law.parameters:
                quantity = Quantity(PARAMETER_UNITS[name], lowest, _LARGEST_FRICTION)
                parameters[name] = found.read(part[name], name, quantity)
        with Record(keys["shape"]) as part:
            part.expect(law.shape)
            for name in law.shape:
                low, high, positive = _SHAPES[name]
                quantity = Quantity(SHAPE_UNITS[name], low, high, positive)
                shape[name] = _with_unit(quantity)(part[name])
        model = keys.read("temperature_model", ranges.temperature_model, None)
        friction = Friction(
            law,
            parameters,
            shape,
            None if model is None else (model[0], model[1], model[2], model[3]),
            keys.read("temperature_range", _temperature_range, None),
            keys.read("presliding", _with_unit(ranges.TRAVEL), 0.0),
        )
        return friction, keys["reason"].text()


def _temperature_range(node: YamlTree) -> tuple[float, float]:
    with Record(node) as keys:
        _check_unit(keys["unit"], "degC")
        lowest, highest = ranges.TEMPERATURE(keys["lowest"]), ranges.TEMPERATURE(keys["highest"])
        if lowest > highest:
            raise node.refuse("lowest is above highest")
    return lowest, highest


_REMEDY = "correct the line or identify again with ur_energy identify"
_HEADER = """\
# Electro-mechanical model of a robot arm, made by ur_energy identify.
# Inertia is joint side; torque constant, friction and motor constants are motor side.
"""


def model_text(model: EnergyModel, *, header: str = _HEADER) -> str:
    """Content of the model file, behind comment lines."""
    return header + yaml.safe_dump(
        document(model), sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )


def save_model(model: EnergyModel, path: str | Path, *, header: str = _HEADER) -> None:
    """Write a model file atomically, after checking that it can be read again.

    Raises:
        ModelFileError: the path cannot be written, or the model has impossible values.
    """
    content = model_text(model, header=header)
    with TemporaryDirectory() as folder:
        trial = Path(folder) / "model.yaml"
        trial.write_text(content, encoding="utf-8")
        try:
            load_model(trial)
        except ModelFileError as error:
            raise ModelFileError(
                path,
                f"would not be a valid model file ({error.problem})",
                "identify from a recording with more motion of every joint",
                field=error.field,
            ) from None
    write_text(path, content, ModelFileError)


def load_model(path: str | Path) -> EnergyModel:
    """Read a model file.

    Raises:
        ModelFileError: names the line and key to correct.
    """
    return _model(YamlTree.read(path, ModelFileError, _REMEDY))


def model_from_document(content: dict[str, Any], source: str) -> EnergyModel:
    """The model that `document` turned into plain data, of a source for error messages.

    Raises:
        ModelFileError: names the key at fault.
    """
    return _model(YamlTree.from_content(content, Origin(Path(source), ModelFileError, _REMEDY)))


def _model(root: YamlTree) -> EnergyModel:
    kind = root.mapping().get("kind")
    if kind is None or kind.plain() != KIND:
        raise root.refuse("is not a model file of this package (no 'kind: ur_energy_model')")
    with Record(root) as keys:
        keys["kind"]
        keys.schema(SCHEMA)
        robot = text(keys["robot"])
        setup, source = _setup(keys["setup"])
        joints = keys["joints"].mapping()
        if not joints:
            raise keys["joints"].refuse("has no joints")
        names = _in_order(tuple(joints), robot)
        bus = _bus(keys["bus"], names)
        free = bus.kind == "ecbot"
        return EnergyModel(
            robot=robot,
            setup=setup,
            setup_source=source,
            joints=tuple(_joint(name, joints[name], free=free) for name in names),
            bus=bus,
            fit=tuple(_metrics(node) for node in keys["fit"].items()),
            validation=tuple(_metrics(node) for node in keys["validation"].items()),
            provenance=_metrics(keys["provenance"]),
            current_delay=keys.read("current_delay", _with_unit(ranges.DELAY), 0.0),
            link_tensors=keys.read("link_tensors", lambda n: _link_tensors(n, names), None),
            sessions=keys.read("sessions", lambda n: _sessions(n, names), SessionSpread()),
            payload_calibration=keys.read(
                "payload_calibration", lambda n: _payload_calibration(n, names), None
            ),
        )


def _in_order(names: tuple[str, ...], robot: str) -> tuple[str, ...]:
    """Names of joints in the order of the arm, whatever the order in the file, as of sorted keys.

    That order stays where the arm is not known, or has other joints.
    """
    try:
        known = load_robot(robot).joint_names
    except RobotFileError:
        return names
    return tuple(known) if sorted(known) == sorted(names) else names


def _metrics(node: YamlTree) -> dict[str, object]:
    """A mapping with any keys."""
    return {name: child.plain() for name, child in node.mapping().items()}
