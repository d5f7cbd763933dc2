# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Model files: an EnergyModel as YAML that people can read and edit.

Each quantity has value, unit, standard deviation and source. Reading is strict: unknown
keys, missing joints, NaN, wrong units and impossible values are refused with the line to
correct. An optional key is written in `document` and read in `_model`, or in the
functions of its section.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ur_energy_model import ranges
from ur_energy_model.codec import plain
from ur_energy_model.errors import ModelFileError, RobotFileError
from ur_energy_model.files import write_text
from ur_energy_model.model.cable import Cable
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.drives import MOTION_STD, BusModel, JointModel
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
from ur_energy_model.model.wall import SQUARE, STATES, SUPPLY, WallModel, wall_from_vector
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

SCHEMA = 1
KIND = "ur_energy_model"
CHANCE = 5.0
"""Standard deviations by which a fitted value may have the wrong sign."""
BUS_KINDS = ("physical", "ecbot", "catalogue")
_DIGITS = 8
"""Significant digits: more than any measurement has, and still readable."""
_REMEDY = "correct the line or identify again with ur_energy identify"
_HEADER = """\
# Electro-mechanical model of a robot arm, made by ur_energy identify.
# Inertia is joint side; torque constant, friction and motor constants are motor side.
"""

_CONSTANTS: dict[str, Quantity] = {
    "gear_ratio": ranges.GEAR_RATIO,
    "reflected_inertia": ranges.REFLECTED_INERTIA,
    "torque_constant": ranges.TORQUE_CONSTANT,
    "winding_resistance": ranges.RESISTANCE,
    "back_emf_constant": ranges.BACK_EMF,
}
"""Unit and range of each constant of a joint other than friction."""
_OF_POWER = ("winding_resistance", "back_emf_constant")
"""Those that a fit to bus power determines, which may return any sign."""
_SHAPES: dict[str, tuple[float, float, bool]] = {
    "smoothing": (0.0, 10.0, True),
    "stribeck_speed": (0.0, 10.0, True),
    "exponent": (0.0, 3.0, True),
    "pace": (0.0, 10.0, True),
    "reference_temperature": (ranges.TEMPERATURE.low, ranges.TEMPERATURE.high, False),
}
"""Lowest and highest value, and whether zero is impossible; for units see SHAPE_UNITS."""
_LARGEST_FRICTION = 1e5
"""Of any friction parameter, in its own unit."""
_NOT_NEGATIVE = {"viscous", "coulomb", "coulomb_direct", "coulomb_reverse"}
"""Parameters that are not negative in laws without other parameters."""
_ANY = 1e12
"""More than a fit returns for an unidentifiable parameter."""
_STD = Quantity("1", 0, _ANY)
_DRIVER_STD = Quantity("W/A", 0, _ANY)
_SHARE = Quantity("1", 0, 1)
_GAIN = Quantity("1", 0, 10, positive=True)
# by chance negative where the recordings do not separate it
_BOX = Quantity("W", -100, 1e4)
_SUPPLY = {
    "proportional": Quantity("1", 0.5, 3),
    "quadratic": Quantity("1/W", -0.01, 0.01),
}
_METER_TIME = Quantity("s", -1, 60)
_PERCENT = Quantity("%", 0, 1e3)
_TORQUE_PER_AMPERE_STD = replace(ranges.TORQUE_PER_AMPERE, low=0.0, positive=False)
# by chance negative where it is small
_SEGMENT = Quantity(ranges.RESISTANCE.unit, -10, 10)
_SEGMENT_STD = Quantity(ranges.RESISTANCE.unit, 0, 10)
_CALIBRATION_UNIT = "kg, kg m, 1"


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
    return _model(
        YamlTree.from_content(content, Origin(Path(source), ModelFileError, _REMEDY))
    )


def model_text(model: EnergyModel, *, header: str = _HEADER) -> str:
    """Content of the model file, behind comment lines."""
    return header + yaml.safe_dump(
        document(model),
        sort_keys=False,
        default_flow_style=None,
        width=100,
        allow_unicode=True,
    )


def save_model(model: EnergyModel, path: str | Path, *, header: str = _HEADER) -> None:
    """Write a model file atomically, after checking that it can be read again.

    Raises:
        ModelFileError: the path cannot be written, or the model has impossible values.
    """
    try:
        model_from_document(document(model), str(path))
    except ModelFileError as error:
        problem = f"would not be a valid model file ({error.problem})"
        remedy = "identify from a recording with more motion of every joint"
        raise ModelFileError(path, problem, remedy, field=error.field) from None
    write_text(path, model_text(model, header=header), ModelFileError)


# The content of a model file.


def document(model: EnergyModel) -> dict[str, Any]:
    """The content of the model file as YAML data."""
    setup = model.setup
    payload = model.setup.payload
    bus = model.bus
    sessions = model.sessions
    tensors = model.link_tensors
    calibration = model.payload_calibration

    def of_joints(values: Any) -> dict[str, Any]:
        return dict(zip((joint.name for joint in model.joints), values, strict=True))

    content: dict[str, Any] = {
        "kind": KIND,
        "schema": SCHEMA,
        "robot": model.robot,
        "setup": {
            "source": model.setup_source,
            "gravity": setup.gravity,
            "payload_mass": float(payload.mass),
            "payload_center_of_mass": payload.center_of_mass,
            "payload_inertia": payload.inertia,
        },
        "joints": of_joints(map(_joint_document, model.joints)),
        "current_delay": _value(model.current_delay, "s"),
    }
    if tensors is not None:  # else those of the robot file are used
        links = [
            {"value": v, "std": s}
            for v, s in zip(tensors.values, tensors.std, strict=True)
        ]
        unit = {"unit": ranges.INERTIA_ENTRY.unit, "source": tensors.source}
        content["link_tensors"] = {**unit, **of_joints(links)}
    if model.controller_constants is not None:
        content["controller_constants"] = _constants_document(
            model.controller_constants, [joint.name for joint in model.joints]
        )
    if calibration is not None:
        gains = calibration.links, calibration.link_gain, calibration.payload_gain
        rows = [
            {"link": link, "link_gain": gain, "payload_gain": scale}
            for link, gain, scale in zip(*gains, strict=True)
        ]
        content["payload_calibration"] = {
            "unit": _CALIBRATION_UNIT,
            **of_joints(rows),
            "covariance": calibration.covariance,
        }
    content |= {
        "bus": {
            "kind": bus.kind,
            "source": bus.source,
            "reason": bus.reason,
            "standby": _value(bus.standby, "W", std=bus.std.get("standby", 0.0)),
            "driver_std": _value(bus.std.get("driver", 0.0), "W/A"),
            "motion_std": _value(bus.motion_std, "W"),
            "driver": {"unit": "W/A", **of_joints(bus.driver)},
            "inductance": {"unit": "H", **of_joints(bus.inductance)},
            "drag": _value(bus.drag, "N m"),
            "storage": _value(bus.capacitor_energy, "J"),
            "floor": _value(bus.floor, "W"),
            "residual": _value(bus.residual, "W"),
            "errors": bus.errors,
            **({"torque_errors": bus.torque_errors} if bus.torque_errors.size else {}),
            "mode_power": {
                "unit": "W",
                **{k: float(v) for k, v in bus.mode_power.items()},
            },
        },
        "sessions": {
            "standby_std": _value(sessions.standby, "W"),
            "friction_std": of_joints(sessions.friction_of(model.dof)),
            "count": sessions.count,
        },
        **({} if model.wall is None else {"wall": _wall_document(model.wall)}),
        **(
            {}
            if model.cable is None
            else {"cable": _cable_document(model.cable, of_joints)}
        ),
        "fit": model.fit,
        "validation": model.validation,
        "provenance": model.provenance,
    }
    return dict(plain(content, digits=_DIGITS))


def _constants_document(
    constants: ControllerConstants, joints: list[str]
) -> dict[str, Any]:
    """Torque constants that the controller states; joints of unknown ones are left out."""
    known = constants.known.tolist()
    values = zip(joints, known, constants.torque_per_ampere, constants.std, strict=True)
    return {
        "unit": ranges.TORQUE_PER_AMPERE.unit,
        **{
            name: {"value": float(value), "std": float(std)}
            for name, is_known, value, std in values
            if is_known
        },
    }


def _cable_document(
    cable: Cable, of_joints: Callable[[Sequence[Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Resistances of the segments that end at the joints."""
    segments = zip(cable.resistance.tolist(), cable.std.tolist(), strict=True)
    return {
        "unit": ranges.RESISTANCE.unit,
        **of_joints([{"value": value, "std": std} for value, std in segments]),
    }


def _joint_document(joint: JointModel) -> dict[str, Any]:
    friction = joint.friction

    def fitted(name: str, value: float, unit: str) -> dict[str, Any]:
        std = float(joint.std.get(name, 0.0))
        source = joint.source.get(name, "given")
        return _value(value, unit, std=std, source=source)

    of_friction: dict[str, Any] = {
        "law": friction.law.name,
        "reason": joint.friction_reason,
        "shape": {
            name: _value(value, SHAPE_UNITS[name])
            for name, value in friction.all_shape.items()
        },
        "parameters": {
            name: fitted(name, friction.parameters[name], PARAMETER_UNITS[name])
            for name in friction.law.parameters
        },
    }
    if friction.presliding:
        of_friction["presliding"] = _value(friction.presliding, "rad")
    if friction.temperature_range is not None:
        low, high = map(float, friction.temperature_range)
        of_friction["temperature_range"] = {
            "lowest": low,
            "highest": high,
            "unit": "degC",
        }
    if friction.temperature_model is not None:
        of_friction["temperature_model"] = friction.temperature_model
    return {
        **{
            name: fitted(name, getattr(joint, name), each.unit)
            for name, each in _CONSTANTS.items()
        },
        **(
            {}
            if joint.actual_inertia is None
            else {
                "actual_inertia": fitted("actual_inertia", joint.actual_inertia, "kg m^2")
            }
        ),
        **(
            {}
            if joint.load_factor == 1.0
            else {"load_factor": _value(joint.load_factor, "1")}
        ),
        "friction": of_friction,
        "current_residual": _value(joint.current_residual, "A"),
        "current_covariance": joint.current_covariance,
    }


def _wall_document(wall: WallModel) -> dict[str, Any]:
    std = wall.std
    error = wall.held_out_error_percent
    return {
        "source": wall.source,
        "box": {"unit": "W", **wall.box},
        "proportional": _value(wall.proportional, "1", std=float(std[SUPPLY])),
        "quadratic": _value(wall.quadratic, "1/W", std=float(std[SQUARE])),
        "covariance": wall.covariance,
        **({} if error is None else {"held_out_error": _value(error, "%")}),
        "delay": _value(wall.delay, "s"),
        "averaging": _value(wall.averaging, "s"),
        "resolution": _value(wall.resolution, "W"),
    }


def _value(value: float, unit: str, **more: Any) -> dict[str, Any]:
    return {"value": float(value), "unit": unit, **more}


# Reading it, section by section.


def _model(root: YamlTree) -> EnergyModel:
    kind = root.mapping().get("kind")
    if kind is None or kind.plain() != KIND:
        raise root.refuse(
            "is not a model file of this package (no 'kind: ur_energy_model')"
        )
    with Record(root) as keys:
        keys["kind"]
        keys.schema(SCHEMA)
        robot = text(keys["robot"])
        setup, source = _setup(keys["setup"])
        joints = keys["joints"].mapping()
        if not joints:
            raise keys["joints"].refuse("has no joints")
        # Joints are in the order of the arm, whatever the order in the file, as of sorted
        # keys; that of the file stays where the arm is not known, or has other joints.
        names = tuple(joints)
        try:
            of_arm = load_robot(robot).joint_names
        except RobotFileError:
            of_arm = names
        names = of_arm if sorted(of_arm) == sorted(names) else names
        bus = _bus(keys["bus"], names)
        return EnergyModel(
            robot=robot,
            setup=setup,
            setup_source=source,
            joints=tuple(
                _joint(name, joints[name], free=bus.kind == "ecbot") for name in names
            ),
            bus=bus,
            fit=tuple(_metrics(node) for node in keys["fit"].items()),
            validation=tuple(_metrics(node) for node in keys["validation"].items()),
            provenance=_metrics(keys["provenance"]),
            current_delay=keys.read("current_delay", _with_unit(ranges.DELAY), 0.0),
            link_tensors=keys.read(
                "link_tensors", lambda n: _link_tensors(n, names), None
            ),
            sessions=keys.read(
                "sessions", lambda n: _sessions(n, names), SessionSpread()
            ),
            payload_calibration=keys.read(
                "payload_calibration", lambda n: _payload_calibration(n, names), None
            ),
            wall=keys.read("wall", _wall, None),
            cable=keys.read("cable", lambda n: _cable(n, names), None),
            controller_constants=keys.read(
                "controller_constants", lambda n: _controller_constants(n, names), None
            ),
        )


def _metrics(node: YamlTree) -> dict[str, object]:
    """A mapping with any keys."""
    return {name: child.plain() for name, child in node.mapping().items()}


def _setup(node: YamlTree) -> tuple[Setup, str]:
    """Mounting and payload, and their source."""
    with Record(node) as keys:
        source = keys["source"].text()
        gravity = array(ranges.GRAVITY_ENTRY, 3)(keys["gravity"])
        ranges.GRAVITY.check(keys["gravity"], float(np.linalg.norm(gravity)))
        mass = ranges.PAYLOAD_MASS(keys["payload_mass"])
        center = array(ranges.LENGTH, 3)(keys["payload_center_of_mass"])
        inertia = _tensor(keys["payload_inertia"])
        ranges.check_tensor(keys["payload_inertia"], inertia, mass)
    return Setup(gravity, Payload(mass, center, inertia)), source


def _joint(name: str, node: YamlTree, *, free: bool) -> JointModel:
    """Constants of a joint; `free`: coefficients of power may have any sign (EcBot)."""
    std = dict[str, float]()
    source = dict[str, str]()

    def fitted(keys: Record, name: str, quantity: Quantity) -> float:
        value, std[name] = _estimate(keys[name], quantity, source, name)
        return value

    with Record(node) as keys:
        values = {
            key: fitted(
                keys, key, _unbound(quantity) if free and key in _OF_POWER else quantity
            )
            for key, quantity in _CONSTANTS.items()
        }
        for key in _OF_POWER:
            # only a fit to bus power may be negative by chance
            if values[key] < 0 and not free and source[key] != "bus_power":
                raise keys[key].refuse(f"{values[key]:g} must not be negative")
        with Record(keys["friction"]) as part:
            law = LAWS[choice(LAWS)(part["law"])]
            lowest = 0.0 if set(law.parameters) <= _NOT_NEGATIVE else -_LARGEST_FRICTION
            with Record(part["parameters"], law.parameters) as of_law:
                parameters = {
                    each: fitted(
                        of_law,
                        each,
                        Quantity(PARAMETER_UNITS[each], lowest, _LARGEST_FRICTION),
                    )
                    for each in law.parameters
                }
            with Record(part["shape"], law.shape) as of_law:
                shape = {
                    each: _with_unit(Quantity(SHAPE_UNITS[each], *_SHAPES[each]))(
                        of_law[each]
                    )
                    for each in law.shape
                }
            model = part.read("temperature_model", ranges.temperature_model, None)
            friction = Friction(
                law,
                parameters,
                shape,
                None if model is None else (model[0], model[1], model[2], model[3]),
                part.read("temperature_range", _temperature_range, None),
                part.read("presliding", _with_unit(ranges.TRAVEL), 0.0),
            )
            reason = part["reason"].text()
        covariance = np.zeros((0, 0))
        if keys["current_covariance"].items():
            covariance = _covariance(keys["current_covariance"], 1 + len(parameters))
        residual = _with_unit(ranges.CURRENT)(keys["current_residual"])
        load_factor = keys.read("load_factor", _with_unit(ranges.LOAD_FACTOR), 1.0)
        actual = keys.read(
            "actual_inertia",
            lambda n: _estimate(n, ranges.REFLECTED_INERTIA, source, "actual_inertia"),
            None,
        )
        if actual is not None:
            std["actual_inertia"] = actual[1]
    return JointModel(
        name=name,
        **values,
        friction=friction,
        std=std,
        source=source,
        current_covariance=covariance,
        current_residual=residual,
        friction_reason=reason,
        actual_inertia=None if actual is None else actual[0],
        load_factor=load_factor,
    )


def _temperature_range(node: YamlTree) -> tuple[float, float]:
    with _record(node, "degC") as keys:
        lowest = ranges.TEMPERATURE(keys["lowest"])
        highest = ranges.TEMPERATURE(keys["highest"])
        if lowest > highest:
            raise node.refuse("lowest is above highest")
    return lowest, highest


def _bus(node: YamlTree, joints: tuple[str, ...]) -> BusModel:
    """The bus model; coefficients of EcBot may have any sign, those of the physical model not."""
    with Record(node) as keys:
        kind = choice(BUS_KINDS)(keys["kind"])
        standby, standby_std = _estimate(keys["standby"], ranges.POWER)
        if standby < 0:
            raise keys["standby"].refuse("must not be negative")
        driver_std = _with_unit(_DRIVER_STD)(keys["driver_std"])
        loss = ranges.DRIVER_LOSS
        inductance = ranges.INDUCTANCE
        if kind == "ecbot":
            loss = _unbound(loss)
            inductance = _unbound(inductance)
        floor = _with_unit(ranges.POWER)(keys["floor"])
        if floor > standby:
            raise keys["floor"].refuse(
                f"{floor:g} W is above the standby power, {standby:g} W"
            )
        source = keys["source"].text()
        spread = driver_std if source == "bus_power" else 0.0
        with _record(keys["residual"], "W") as residual:
            rms = residual.read("value", ranges.POWER, float("nan"))
        drag = keys.read("drag", _with_unit(ranges.DRAG), None)
        most = 2 + 3 * len(joints)
        # of earlier versions
        row = array(ranges.ERROR, most if drag is not None else most - 1)
        errors = np.zeros((len(rows := keys["errors"].items()), most))
        for k, item in enumerate(rows):
            errors[k, : most - (drag is None)] = row(item)
        torque_errors = np.zeros((0, 0))
        rows = keys.read("torque_errors", lambda node: node.items(), [])
        if rows:
            if len(rows) != len(errors):
                raise keys["torque_errors"].refuse(
                    f"must be {len(errors)} rows, as errors has"
                )
            row = array(ranges.ERROR, len(joints))
            torque_errors = np.array([row(item) for item in rows])
        return BusModel(
            kind=kind,
            standby=standby,
            driver=_each(keys["driver"], joints, loss, spread),
            inductance=_each(keys["inductance"], joints, inductance),
            capacitor_energy=keys.read(
                "storage", _with_unit(ranges.CAPACITOR_ENERGY), 0.0
            ),
            floor=floor,
            std={
                "standby": standby_std,
                "driver": driver_std,
                "motion": keys.read("motion_std", _with_unit(ranges.POWER), MOTION_STD),
            },
            errors=errors,
            torque_errors=torque_errors,
            drag=drag or 0.0,
            mode_power=_mode_power(keys["mode_power"]),
            residual=rms,
            source=source,
            reason=keys["reason"].text(),
        )


def _mode_power(node: YamlTree) -> dict[str, float]:
    """Power by robot mode [W]; a mode without a name has its code as key."""
    known = tuple(ROBOT_MODES.values())
    with _record(node, "W") as keys:
        powers = keys.remaining()
        for name, child in powers.items():
            if name not in known and not re.fullmatch("-?[0-9]{1,3}", name):
                problem = f"no robot mode '{excerpt(name)}', known: {with_suggestion(name, known)}"
                raise child.refuse(problem)
        return {name: ranges.MODE_POWER(child) for name, child in powers.items()}


def _wall(node: YamlTree) -> WallModel:
    with Record(node) as keys:
        with _record(keys["box"], "W", STATES) as box:
            values = [_BOX(box[state]) for state in STATES]
        values += [_estimate(keys[name], each)[0] for name, each in _SUPPLY.items()]
        seconds = _with_unit(_METER_TIME)
        return wall_from_vector(
            np.array(values),
            _covariance(keys["covariance"], len(values)),
            keys["source"].text(),
            held_out_error_percent=keys.read(
                "held_out_error", _with_unit(_PERCENT), None
            ),
            delay=seconds(keys["delay"]),
            averaging=seconds(keys["averaging"]),
            resolution=_with_unit(ranges.POWER)(keys["resolution"]),
        )


def _link_tensors(node: YamlTree, joints: tuple[str, ...]) -> LinkTensors:
    """Inertia tensors of the links that these joints move."""
    with _record(node, ranges.INERTIA_ENTRY.unit, joints) as keys:
        source = keys["source"].text()
        values = []
        stds = []
        for name in joints:
            with Record(keys[name]) as link:
                values.append(_tensor(link["value"]))
                if not is_possible(values[-1]):
                    raise link["value"].refuse("is not the inertia tensor of a body")
                stds.append(array(ranges.DRIVE_INERTIA, 3, 3)(link["std"]))
        return LinkTensors(np.array(values), np.array(stds), source)


def _sessions(node: YamlTree, joints: tuple[str, ...]) -> SessionSpread:
    with Record(node) as keys:
        standby = _with_unit(ranges.POWER)(keys["standby_std"])
        with Record(keys["friction_std"], joints) as friction:
            spread = np.array([_SHARE(friction[name]) for name in joints])
        return SessionSpread(standby, spread, integer(0, 10**6)(keys["count"]))


def _controller_constants(node: YamlTree, joints: tuple[str, ...]) -> ControllerConstants:
    """Torque constants that the controller states, of those of the joints that it did of."""
    values = np.full(len(joints), np.nan)
    deviations = np.full(len(joints), np.inf)
    with _record(node, ranges.TORQUE_PER_AMPERE.unit) as keys:
        for name, child in keys.remaining().items():
            if name not in joints:
                problem = (
                    f"no joint '{excerpt(name)}', known: {with_suggestion(name, joints)}"
                )
                raise child.refuse(problem)
            with Record(child) as joint:
                place = joints.index(name)
                values[place] = ranges.TORQUE_PER_AMPERE(joint["value"])
                deviations[place] = _TORQUE_PER_AMPERE_STD(joint["std"])
    return ControllerConstants(values, deviations)


def _cable(node: YamlTree, joints: tuple[str, ...]) -> Cable:
    """Resistances of the segments of the cable, which end at the joints."""
    found = []
    with _record(node, ranges.RESISTANCE.unit, joints) as keys:
        for name in joints:
            with Record(keys[name]) as segment:
                found.append([_SEGMENT(segment["value"]), _SEGMENT_STD(segment["std"])])
    resistance, std = np.array(found).T
    return Cable(resistance, std)


def _payload_calibration(node: YamlTree, joints: tuple[str, ...]) -> PayloadCalibration:
    with _record(node, _CALIBRATION_UNIT, (*joints, "covariance")) as keys:
        links = []
        gains = []
        for name in joints:
            with Record(keys[name]) as joint:
                links.append(array(ranges.VARIANCE, LINK_PARAMETERS)(joint["link"]))
                gains.append([_GAIN(joint["link_gain"]), _GAIN(joint["payload_gain"])])
        covariance = _covariance(keys["covariance"], (LINK_PARAMETERS + 2) * len(joints))
        link_gain, payload_gain = np.array(gains).T
        return PayloadCalibration(np.array(links), link_gain, payload_gain, covariance)


# Values with units, and estimates: values with standard deviation and source.


def _record(node: YamlTree, unit: str, names: tuple[str, ...] = ()) -> Record:
    """A mapping with a unit, and with keys of these names; another unit is refused."""
    keys = Record(node, names)
    given = keys["unit"].written() if keys["unit"].is_scalar else ""
    if given != unit:
        problem = (
            f"unit '{excerpt(given)}' must be '{unit}'"
            if given
            else f"needs unit '{unit}'"
        )
        raise keys["unit"].refuse(problem)
    return keys


def _with_unit(quantity: Quantity) -> Reader[float]:
    """Reader of a value with its unit."""

    def read(node: YamlTree) -> float:
        with _record(node, quantity.unit) as keys:
            return quantity(keys["value"])

    return read


def _estimate(
    node: YamlTree,
    quantity: Quantity,
    source: dict[str, str] | None = None,
    name: str = "",
) -> tuple[float, float]:
    """A fitted value and its standard deviation; its source is put into `source`, if given."""
    with _record(node, quantity.unit) as keys:
        std = _STD(keys["std"])
        if source is not None:
            source[name] = keys["source"].text()
        value = keys["value"].number()
        quantity.check(keys["value"], value, _lowest(quantity, std))
    return value, std


def _lowest(quantity: Quantity, std: float) -> float:
    """Lowest value that a fit may have returned: slightly negative by chance."""
    return quantity.low if quantity.low != 0 else -CHANCE * std


def _unbound(quantity: Quantity) -> Quantity:
    """The quantity with the range of an unconstrained fit."""
    return replace(quantity, low=-_ANY, high=_ANY, positive=False)


def _each(
    node: YamlTree, joints: tuple[str, ...], quantity: Quantity, std: float = 0.0
) -> Array:
    """Values of all joints [n] with one unit, each with this standard deviation."""
    with _record(node, quantity.unit, joints) as keys:
        values = [keys[name].number() for name in joints]
        for name, value in zip(joints, values, strict=True):
            quantity.check(keys[name], value, _lowest(quantity, std))
    return np.array(values)


def _tensor(node: YamlTree) -> Array:
    """A symmetric tensor [3, 3]."""
    value = array(ranges.INERTIA_ENTRY, 3, 3)(node)
    if not np.allclose(value, value.T, rtol=1e-6, atol=0.0):
        raise node.refuse("is not symmetric, so it is not the inertia tensor of a body")
    return value


def _covariance(node: YamlTree, size: int) -> Array:
    """A covariance matrix [size, size]."""
    rows = node.items()
    if len(rows) != size:
        raise node.refuse(f"must be {size} rows of {size} numbers")
    covariance = np.array([array(ranges.VARIANCE, size)(row) for row in rows])
    if (
        not np.allclose(covariance, covariance.T, rtol=1e-6, atol=0.0)
        or np.linalg.eigvalsh(covariance)[0] < -1e-6 * np.abs(covariance).max()
    ):
        raise node.refuse("is not a covariance matrix")
    return covariance
