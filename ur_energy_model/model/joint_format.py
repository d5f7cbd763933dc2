# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Format of what a model file states of the arm's joints: setup, drives, friction and links.

Sections of `model_file.MODEL`. Torque constants, friction and motor constants are motor
side, inertia is joint side. Sections with one entry a joint have the placeholder JOINT in
their tables, and arrays [n] in the order of the arm as their objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
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
    Form,
    Measured,
    Number,
    Numbers,
    Scope,
    whole_number,
)
from ur_energy_model.model.cable import Cable
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.drives import CONSTANTS, JointModel
from ur_energy_model.model.energy_model import (
    LINK_PARAMETERS,
    LinkTensors,
    PayloadCalibration,
    is_possible,
)
from ur_energy_model.model.friction import (
    LAWS,
    Friction,
    FrictionLaw,
    constant_units,
    parameter_units,
)
from ur_energy_model.model.friction_files import FRICTION_LAWS, LawRecord
from ur_energy_model.model.sessions import SessionSpread
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.typing import Array
from ur_energy_model.yaml_nodes import excerpt
from ur_energy_model.yaml_reader import Quantity, YamlTree, with_suggestion

JOINT = "<joint>"
"""Stands for the names of the n joints."""
FREE_FIT = ("bus kind", "ecbot")
"""Word of the scope where a power model was fitted without constraints: its coefficients
have any sign, also of the joints."""


# The setup.


def _setup(found: Found) -> tuple[Setup, str]:
    """Mounting and payload, and their source."""
    gravity = found["gravity"]
    mass = found["payload_mass"]
    inertia = found["payload_inertia"]
    ranges.GRAVITY.check(found.nodes["gravity"], float(np.linalg.norm(gravity)))
    ranges.check_tensor(found.nodes["payload_inertia"], inertia, mass)
    payload = Payload(mass, found["payload_center_of_mass"], inertia)
    return Setup(gravity, payload), found["source"]


def _parts_of_setup(value: tuple[Setup, str]) -> Mapping[str, Any]:
    setup, source = value
    return {
        "source": source,
        "gravity": setup.gravity,
        "payload_mass": setup.payload.mass,
        "payload_center_of_mass": setup.payload.center_of_mass,
        "payload_inertia": setup.payload.inertia,
    }


class Tensor(Numbers):
    """A symmetric tensor [3, 3], kg m^2."""

    def __init__(self) -> None:
        super().__init__(ranges.INERTIA_ENTRY, (3, 3))

    def _read(self, tree: YamlTree, scope: Scope) -> Array:
        value = super()._read(tree, scope)
        if not np.allclose(value, value.T, rtol=1e-6, atol=0.0):
            raise tree.refuse(
                "is not symmetric, so it is not the inertia tensor of a body"
            )
        return value


SETUP = Section(
    _setup,
    (
        Key("source", ANY_TEXT, "who says so: given, rtde, estimated or assumed"),
        Key(
            "gravity",
            Numbers(ranges.GRAVITY_ENTRY, (3,)),
            "acceleration of gravity in the base frame: the mounting",
        ),
        Key("payload_mass", Number(ranges.PAYLOAD_MASS), "of what is on the flange"),
        Key(
            "payload_center_of_mass",
            Numbers(ranges.LENGTH, (3,)),
            "in the flange frame",
        ),
        Key("payload_inertia", Tensor(), "about its centre of mass, flange axes"),
    ),
    _parts_of_setup,
)


# Friction.

_LARGEST_FRICTION = 1e5  # largest friction parameter, in its own unit
_NOT_NEGATIVE = {"viscous", "coulomb", "coulomb_direct", "coulomb_reverse"}
"""Parameters that are not negative in laws without other parameters."""
_RANGES_OF_SHAPES: dict[str, tuple[float, float, bool]] = {
    "smoothing": (0.0, 10.0, True),
    "stribeck_speed": (0.0, 10.0, True),
    "exponent": (0.0, 3.0, True),
    "pace": (0.0, 10.0, True),
    "reference_temperature": (ranges.TEMPERATURE.low, ranges.TEMPERATURE.high, False),
}
"""Lowest and highest value of each shape constant, and whether zero is impossible."""
_RANGE_OF_OTHER_SHAPES = (0.0, _LARGEST_FRICTION, True)
"""The same for the shape constants of users' laws."""


class _FormsByName(Mapping[str, Form[Any]]):
    """Forms of values by name; names and units are those of all laws, users' laws included.

    Args:
        units: returns the units by name.
        form: makes the form of a value, given its name and unit.
    """

    def __init__(
        self, units: Callable[[], dict[str, str]], form: Callable[[str, str], Form[Any]]
    ) -> None:
        self._units = units
        self._form = form

    def __getitem__(self, name: str) -> Form[Any]:
        return self._form(name, self._units()[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._units())

    def __len__(self) -> int:
        return len(self._units())


def _shape_form(name: str, unit_of_shape: str) -> Form[Any]:
    """The form of a shape constant."""
    limits = _RANGES_OF_SHAPES.get(name, _RANGE_OF_OTHER_SHAPES)
    return Measured(Quantity(unit_of_shape, *limits))


def _parameter_form(name: str, unit_of_parameter: str) -> Form[Any]:
    """The form of a parameter; in laws that only have _NOT_NEGATIVE ones, it begins at zero."""
    limits = (-_LARGEST_FRICTION, _LARGEST_FRICTION)
    return Estimate(Quantity(unit_of_parameter, *limits))


_SHAPES = _FormsByName(constant_units, _shape_form)
_PARAMETERS = _FormsByName(parameter_units, _parameter_form)


class _Law(Form[FrictionLaw]):
    """A friction law by its name; its parameters and shape constants are further keys."""

    def _read(self, tree: YamlTree, scope: Scope) -> FrictionLaw:
        name = tree.text()
        law = LAWS.get(name)
        if law is None:
            words = with_suggestion(name, tuple(LAWS))
            problem = f"'{excerpt(name)}' must be one of {words}"
            remedy = f"correct it, or give the file of this law with {FRICTION_LAWS}"
            error = tree.refuse(problem, remedy)
            error.options = (FRICTION_LAWS,)
            raise error
        return law

    def _write(self, value: FrictionLaw, scope: Scope) -> str:
        return value.name

    def _words(self) -> str:
        return f"one of {', '.join(LAWS)}, or a law of your own"


def _bind_law(law: FrictionLaw, scope: Scope) -> None:
    """Names of the shape constants and parameters depend on the law."""
    scope.names["<shape>"] = tuple(law.shape)
    scope.names["<parameter>"] = tuple(law.parameters)
    scope.sizes["p"] = len(law.parameters)


def _temperature_range(found: Found) -> tuple[float, float]:
    lowest = found["lowest"]
    highest = found["highest"]
    if lowest > highest:
        raise found.tree.refuse("lowest is above highest")
    return lowest, highest


class _TemperatureModel(Numbers):
    """a, b, c, d of friction in proportion to a exp(b T) + c exp(d T), T in degC."""

    def __init__(self) -> None:
        super().__init__(ranges.FACTOR, (4,))

    def _read(self, tree: YamlTree, scope: Scope) -> Any:
        return tuple(ranges.temperature_model(tree).tolist())


def _friction(found: Found) -> tuple[Friction, dict[str, Estimated], str]:
    """A joint's friction, the estimates of its parameters and the reason for its law."""
    law = found["law"]
    estimates = found["parameters"]
    if set(law.parameters) <= _NOT_NEGATIVE:
        for name, (value, std, _) in estimates.items():
            quantity = Quantity(law.units[name], 0.0, _LARGEST_FRICTION)
            node = found.nodes["parameters"].mapping()[name].mapping()["value"]
            quantity.check(node, value, -CHANCE * std)
    friction = Friction(
        law=law,
        parameters={name: each.value for name, each in estimates.items()},
        shape=found["shape"],
        temperature_model=found["temperature_model"],
        temperature_range=found["temperature_range"],
        presliding=found["presliding"],
    )
    return friction, estimates, found["reason"]


def _parts_of_friction(
    value: tuple[Friction, dict[str, Estimated], str],
) -> Mapping[str, Any]:
    friction, estimates, reason = value
    return {
        **vars(friction),
        "shape": friction.all_shape,
        "parameters": {name: estimates[name] for name in friction.law.parameters},
        "reason": reason,
    }


def _by_name(placeholder: str, key: Key) -> Section[dict[str, Any]]:
    """A section of values by name, all with the same key."""
    return Section(
        lambda found: dict(found[placeholder]),
        (key,),
        lambda values: {placeholder: values},
    )


FRICTION = Section(
    _friction,
    (
        Key("law", _Law(), "friction law", binds=_bind_law),
        Key("reason", ANY_TEXT, "why this law was chosen"),
        Key(
            "shape",
            _by_name("<shape>", Key("<shape>", _SHAPES, "if the law has it")),
            "constants that the law is not linear in; speeds are joint side",
        ),
        Key(
            "parameters",
            _by_name("<parameter>", Key("<parameter>", _PARAMETERS, "if the law has it")),
            "parameters that the law is linear in, motor side",
        ),
        Key(
            "presliding",
            Measured(ranges.TRAVEL),
            "joint travel within which Coulomb friction reverses",
            default=0.0,
        ),
        Key(
            "temperature_range",
            Section(
                _temperature_range,
                (
                    Key("lowest", Number(ranges.TEMPERATURE), "coldest joint"),
                    Key("highest", Number(ranges.TEMPERATURE), "warmest joint"),
                    unit("degC"),
                ),
                lambda ends: {"lowest": ends[0], "highest": ends[1]},
            ),
            "joint temperatures of the fitted recordings",
            default=None,
        ),
        Key(
            "temperature_model",
            _TemperatureModel(),
            "a, b, c, d of a exp(b T) + c exp(d T) with T in degC, of laws that use it",
            default=None,
        ),
    ),
    _parts_of_friction,
)


LAW = "<law>"
"""Stands for the names of users' friction laws."""
LAW_CONSTANT = "<constant>"
"""Stands for the names of their shape constants."""
_ANY_NUMBER = Quantity("1", -ANY, ANY)


def _law_record(found: Found) -> LawRecord:
    """The record of a law."""
    signature = tuple(found["signature"].tolist())
    return LawRecord(found["file"], found["shape"], signature)


def _same_laws(found: Found) -> dict[str, LawRecord]:
    """The records of laws; refused where a law is not known, or is another one now."""
    records: dict[str, LawRecord] = found[LAW]
    for name, record in records.items():
        problem = record.problem(excerpt(name))
        if problem is not None:
            node = found.tree.mapping()[name]
            error = node.refuse(problem, record.remedy(name))
            error.options = (FRICTION_LAWS,)
            raise error
    return records


LAW_RECORDS = Section(
    _same_laws,
    (
        Key(
            LAW,
            Section(
                _law_record,
                (
                    Key(
                        "file", ANY_TEXT, "name of its file, which is never run for that"
                    ),
                    Key(
                        "shape",
                        _by_name(
                            LAW_CONSTANT,
                            Key(
                                LAW_CONSTANT,
                                Number(_ANY_NUMBER),
                                "shape constant",
                                default=None,
                                others=".+",
                            ),
                        ),
                        "values at which the signature was computed",
                    ),
                    Key(
                        "signature",
                        Numbers(_ANY_NUMBER, ("s",)),
                        "a number for each term, by which another law of this name is "
                        "noticed",
                    ),
                ),
                lambda record: {**vars(record), "signature": np.array(record.signature)},
            ),
            "a law of your own",
            default=None,
            others=".+",
        ),
    ),
    lambda records: {LAW: records},
)


# Joints.


def _bind_law_of_joint(
    value: tuple[Friction, dict[str, Estimated], str], scope: Scope
) -> None:
    """The covariance of a joint depends on its law, too, which the section below has."""
    _bind_law(value[0].law, scope)


def _joint(found: Found) -> JointModel:
    """A joint; it gets its name later."""
    friction, estimates, reason = found["friction"]
    estimates = {name: found[name] for name in CONSTANTS} | estimates
    actual = found["actual_inertia"]
    if actual is not None:
        estimates["actual_inertia"] = actual
    return JointModel(
        name="",
        **{name: found[name].value for name in CONSTANTS},
        friction=friction,
        std={name: each.std for name, each in estimates.items()},
        source={name: each.source for name, each in estimates.items()},
        current_covariance=found["current_covariance"],
        current_residual=found["current_residual"],
        friction_reason=reason,
        actual_inertia=None if actual is None else actual.value,
        load_factor=found["load_factor"],
    )


def _parts_of_joint(joint: JointModel) -> Mapping[str, Any]:
    """Parts of the section of a joint, by key."""

    def estimated(name: str, value: float) -> Estimated:
        std = joint.std.get(name, 0.0)
        return Estimated(value, std, joint.source.get(name, "given"))

    parts = dict(vars(joint))
    for name, value in joint.constants.items():
        parts[name] = estimated(name, value)
    if joint.actual_inertia is not None:
        parts["actual_inertia"] = estimated("actual_inertia", joint.actual_inertia)
    parameters = joint.friction.parameters
    estimates = {name: estimated(name, value) for name, value in parameters.items()}
    parts["friction"] = (joint.friction, estimates, joint.friction_reason)
    return parts


def _of_power(quantity: Quantity) -> Estimate:
    """A constant that a fit to bus power determines, which may be negative by chance."""
    return Estimate(quantity, chance_of="bus_power", unbounded_if=FREE_FIT)


JOINT_MODEL = Section(
    _joint,
    (
        Key("gear_ratio", Estimate(ranges.GEAR_RATIO), "motor turns per joint turn"),
        Key(
            "reflected_inertia",
            Estimate(ranges.REFLECTED_INERTIA),
            "of motor and reducer, joint side, as it is in target_moment",
        ),
        Key(
            "torque_constant",
            Estimate(ranges.TORQUE_CONSTANT),
            "motor torque per ampere of actual_current",
        ),
        Key(
            "winding_resistance",
            _of_power(ranges.RESISTANCE),
            "copper loss per ampere squared",
        ),
        Key(
            "back_emf_constant",
            _of_power(ranges.BACK_EMF),
            "converted power per ampere and motor speed",
        ),
        Key(
            "actual_inertia",
            Estimate(ranges.REFLECTED_INERTIA),
            "of the arm's own motor and reducer, where target_moment has that of the "
            "controller",
            default=None,
        ),
        Key(
            "load_factor",
            Measured(ranges.LOAD_FACTOR),
            "torque of links, payload and rotor over that by published masses",
            default=1.0,
        ),
        Key("friction", FRICTION, "motor side", binds=_bind_law_of_joint),
        Key(
            "current_residual",
            Measured(ranges.CURRENT),
            "RMS of measured minus modelled current while moving",
        ),
        Key(
            "current_covariance",
            Covariance(ranges.VARIANCE, "p+1", empty=True),
            "of (load factor / k_t, p friction parameters / k_t); empty if unknown",
        ),
    ),
    _parts_of_joint,
)


def _joints(found: Found) -> tuple[JointModel, ...]:
    return tuple(replace(joint, name=name) for name, joint in found[JOINT].items())


JOINTS = Section(
    _joints,
    (Key(JOINT, JOINT_MODEL, "a joint, named as in the robot's URDF"),),
    lambda joints: {JOINT: joints},
)


# Link tensors, sessions, controller's constants, cable and calibration.

_SHARE = Quantity("1", 0, 1)
_GAIN = Quantity("1", 0, 10, positive=True)
_TORQUE_PER_AMPERE_STD = replace(ranges.TORQUE_PER_AMPERE, low=0.0, positive=False)
_SEGMENT = Quantity(ranges.RESISTANCE.unit, -10, 10)
"""Resistance of a segment of the cable; a small one may be negative by chance."""
_SEGMENT_STD = Quantity(ranges.RESISTANCE.unit, 0, 10)


class _LinkTensor(Tensor):
    """The inertia tensor of a link, kg m^2: one that a body can have."""

    def _read(self, tree: YamlTree, scope: Scope) -> Array:
        value = super()._read(tree, scope)
        if not is_possible(value):
            raise tree.refuse("is not the inertia tensor of a body")
        return value


def _with_std(value: Form[Any], std: Form[Any], meaning: str) -> Section[tuple[Any, Any]]:
    """A value and its standard deviation in the unit of the section above."""
    return Section(
        lambda found: (found["value"], found["std"]),
        (Key("value", value, meaning), Key("std", std, "its standard deviation")),
        lambda pair: {"value": pair[0], "std": pair[1]},
    )


def _pairs(found: Found) -> tuple[Array, Array]:
    """Values [n, ...] and standard deviations [n, ...] of all joints."""
    values, stds = zip(*found[JOINT].values(), strict=True)
    return np.array(values), np.array(stds)


LINK_TENSORS = Section(
    lambda found: LinkTensors(*_pairs(found), found["source"]),
    (
        unit(ranges.INERTIA_ENTRY.unit),
        Key("source", ANY_TEXT, "stage of the identification"),
        Key(
            JOINT,
            _with_std(
                _LinkTensor(),
                Numbers(ranges.DRIVE_INERTIA, (3, 3)),
                "about the centre of mass, axes of the link's frame",
            ),
            "tensor of the link that the joint moves",
        ),
    ),
    lambda tensors: {
        "source": tensors.source,
        JOINT: zip(tensors.values, tensors.std, strict=True),
    },
)


def _controller_constants(found: Found) -> ControllerConstants:
    """Torque constants; NaN for joints whose controller states none."""
    names = found.scope.names[JOINT]
    unknown = (np.nan, np.inf)
    values, stds = zip(*(found[JOINT].get(name, unknown) for name in names), strict=True)
    return ControllerConstants(np.array(values), np.array(stds))


CONTROLLER_CONSTANTS = Section(
    _controller_constants,
    (
        unit(ranges.TORQUE_PER_AMPERE.unit),
        Key(
            JOINT,
            _with_std(
                Number(ranges.TORQUE_PER_AMPERE),
                Number(_TORQUE_PER_AMPERE_STD),
                "joint torque over motor current",
            ),
            "torque constant, joint side; joints that nothing loaded are left out",
            default=None,
        ),
    ),
    lambda constants: {
        JOINT: [
            (value, std) if known else None
            for value, std, known in zip(
                constants.torque_per_ampere, constants.std, constants.known, strict=True
            )
        ]
    },
)

CABLE = Section(
    lambda found: Cable(*_pairs(found)),
    (
        unit(ranges.RESISTANCE.unit),
        Key(
            JOINT,
            _with_std(Number(_SEGMENT), Number(_SEGMENT_STD), "resistance"),
            "segment of the cable that ends at the joint",
        ),
    ),
    lambda cable: {JOINT: zip(cable.resistance, cable.std, strict=True)},
)

SESSIONS = Section(
    SessionSpread,
    (
        Key(
            "standby_std",
            Measured(ranges.POWER),
            "standard deviation of standby power",
            attribute="standby",
        ),
        Key(
            "friction_std",
            table_of(_SHARE, JOINT, "relative standard deviation", with_unit=False),
            "of the friction of each joint",
            attribute="friction",
        ),
        Key(
            "count",
            whole_number(0, 10**6),
            "number of compared sessions; 0 if the spreads are typical ones",
        ),
    ),
    lambda spread: vars(spread),
)

_CALIBRATED = ("link", "link_gain", "payload_gain")


def _calibration(found: Found) -> PayloadCalibration:
    """The corrections of all joints."""
    links, link_gains, payload_gains = zip(*found[JOINT].values(), strict=True)
    return PayloadCalibration(
        np.array(links),
        np.array(link_gains),
        np.array(payload_gains),
        found["covariance"],
    )


PAYLOAD_CALIBRATION = Section(
    _calibration,
    (
        unit("kg, kg m, 1"),
        Key(
            JOINT,
            Section(
                lambda found: tuple(found[name] for name in _CALIBRATED),
                (
                    Key(
                        "link",
                        Numbers(ranges.VARIANCE, (LINK_PARAMETERS,)),
                        "deviation of the link's mass and first moments, link frame",
                    ),
                    Key("link_gain", Number(_GAIN), "measured over published torque"),
                    Key("payload_gain", Number(_GAIN), "of the payload over the links"),
                ),
                lambda values: dict(zip(_CALIBRATED, values, strict=True)),
            ),
            "corrections of the link that the joint moves",
        ),
        Key(
            "covariance",
            Covariance(ranges.VARIANCE, "6n"),
            "of the links row by row, the link gains and the payload gains",
        ),
    ),
    lambda calibration: {
        JOINT: zip(
            calibration.links,
            calibration.link_gain,
            calibration.payload_gain,
            strict=True,
        ),
        "covariance": calibration.covariance,
    },
)
