# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of a friction law that a user has written, by its values at many operating points.

A law that passes works wherever the package's laws do: its terms are finite, one value for
each sample, and distinguishable from each other in a regression.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from ur_energy_model.model.drives import CONSTANTS as JOINT_CONSTANTS
from ur_energy_model.model.friction import FrictionLaw
from ur_energy_model.model.friction_terms import (
    CONSTANTS,
    SMOOTHING,
    TERMS,
    OperatingPoint,
    ShapeConstant,
    Term,
)
from ur_energy_model.typing import Array

MOST_TERMS = 12
"""Most terms of a law: a recording does not distinguish more."""
MOST_FITTED_CONSTANTS = 2
"""Most shape constants of a law that are fitted, because all combinations of their values are
tried."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_RESERVED = {*JOINT_CONSTANTS, "actual_inertia", "load_factor", "auto"}
"""Names of other estimates of a joint, and of the choice among laws."""
_UNIT = re.compile(r"[ -~]{1,40}")
_LARGEST = 1e9  # largest torque per unit of a parameter, in its own unit
_SAME = 1e-9  # relative difference of values that count as equal
_INDEPENDENT = 1e-6
"""Least singular value of the terms at the check points, each with the length one."""

_RATIO = 101.0
_SPEEDS = SMOOTHING * np.geomspace(0.1, 4000.0, 12)
_LOADS = np.array([-80.0, -3.0, 0.0, 7.0, 60.0])
_TEMPERATURES = np.array([10.0, 35.0, 55.0])


def check_points(direction: bool = False) -> OperatingPoint:
    """Operating points of one joint: speeds of both directions, and standstill [samples].

    Args:
        direction: whether the direction of Coulomb friction is known (see `presliding`).
    """
    speeds = np.concatenate([-_SPEEDS, [0.0], _SPEEDS])
    grid = np.meshgrid(speeds, _LOADS, _TEMPERATURES, indexing="ij")
    speed, load, temperature = (axis.ravel() for axis in grid)
    known = np.cos(np.arange(len(speed))) if direction else None
    return _read_only(OperatingPoint(speed, load, _RATIO, temperature, direction=known))


def signature(law: FrictionLaw, shape: Mapping[str, float]) -> Array:
    """One number for each term [p], which another definition of the term does not have.

    It is a weighted sum of the term's values at the check points.

    Args:
        law: the law.
        shape: shape constants by name.

    Raises:
        KeyError: the law has another shape constant.
    """
    points = check_points(direction=True)
    weights = np.cos(1.7 * np.arange(len(points.speed)) + 0.3)
    return np.asarray(weights @ law.regressor(points, shape))


def same_signature(first: Array, second: Array) -> bool:
    """Whether two signatures [p] are of the same definition, which files have rounded."""
    return first.shape == second.shape and np.allclose(
        first, second, rtol=1e-5, atol=1e-9
    )


def problem_of(law: FrictionLaw, units: Mapping[str, str]) -> str | None:
    """What is wrong with a law; None if it can be used.

    Args:
        law: the law.
        units: units that parameters and shape constants have in other laws, by name.

    Returns:
        The first problem, in one line.
    """
    return next(_problems(law, units), None)


def _problems(law: Any, units: Mapping[str, str]) -> Iterator[str]:
    """Everything that is wrong with a law, whose attributes may be anything."""
    if not isinstance(law.name, str) or not _NAME.fullmatch(law.name):
        yield f"the name {law.name!r} is not made of a-z, 0-9 and _"
        return
    if law.name in _RESERVED:
        yield f"the name '{law.name}' has another meaning"
        return
    # Each step needs what the steps before have not refused.
    for problem in chain(
        _problems_of_records(law, units),
        _problems_of_start(law),
        _problems_of_values(law),
    ):
        yield f"{law.name}: {problem}"


def _problems_of_records(law: Any, units: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the names, units and constants of a law."""
    if not isinstance(law.description, str) or "\n" in law.description:
        yield "its description is not one line of text"
    if not isinstance(law.terms, Mapping) or not 1 <= len(law.terms) <= MOST_TERMS:
        yield f"terms must be a dictionary of 1 to {MOST_TERMS} terms by name"
        return
    if not isinstance(law.constants, Mapping):
        yield "constants must be a dictionary of shape constants by name"
        return
    for name, constant in law.constants.items():
        if not isinstance(constant, ShapeConstant):
            yield f"constant {name!r} is not a ShapeConstant"
            return
        yield from _problems_of_name(name, constant.unit, units)
        yield from _problems_of_constant(name, constant)
    for name, term in law.terms.items():
        if not isinstance(term, Term):
            yield f"term {name!r} is not a Term"
            return
        yield from _problems_of_name(name, term.unit, units)
        if name in TERMS and term is not TERMS[name]:
            yield f"'{name}' is a term of the package: use TERMS['{name}'], or another name"
        values: dict[str, Any] = vars(term)
        if not callable(values["function"]):
            yield f"the function of {name} is not a function"
        if values["kind"] not in ("coulomb", "speed", "load"):
            yield f"the kind of {name} is not coulomb, speed or load"
        if not isinstance(values["uses"], tuple):
            yield f"uses of {name} must be a tuple of names, such as ('smoothing',)"
            return
        for constant_name in term.uses:
            if constant_name not in {**CONSTANTS, **law.constants}:
                yield f"{name} uses {constant_name!r}, which is not among the constants"
                return
    unused = sorted(set(law.constants) - set(law.shape))
    if unused:
        yield f"no term uses the constant '{unused[0]}'; name it in uses of a Term"
    fitted = [name for name, constant in law.shape.items() if not constant.is_fixed]
    if len(fitted) > MOST_FITTED_CONSTANTS:
        yield (
            f"{len(fitted)} shape constants are fitted, and at most "
            f"{MOST_FITTED_CONSTANTS} can be: set low = default = high for others"
        )


def _problems_of_name(name: Any, unit: Any, units: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the name and unit of a parameter or shape constant."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"the name {name!r} is not made of a-z, 0-9 and _"
    elif name in _RESERVED:
        yield f"the name '{name}' is that of another constant of a joint"
    elif not isinstance(unit, str) or not _UNIT.fullmatch(unit):
        yield f"the unit of {name} is not text such as 'N m'; '1' stands for no unit"
    elif units.get(name, unit) != unit:
        yield f"{name} has the unit {units[name]} in another law, not {unit}"


def _problems_of_constant(name: str, constant: ShapeConstant) -> Iterator[str]:
    """What is wrong with the values of a shape constant."""
    values = (constant.low, constant.default, constant.high)
    if not all(_is_number(value) for value in values):
        yield f"low, default and high of {name} must be finite numbers"
    elif not 0.0 < constant.low <= constant.default <= constant.high <= 1e5:
        yield f"{name} needs 0 < low <= default <= high <= 1e5"


def _problems_of_start(law: Any) -> Iterator[str]:
    """What is wrong with the starting values of a law."""
    for name, term in law.terms.items():
        if term.start is None or callable(term.start):
            continue
        start = term.start
        is_pair = isinstance(start, tuple) and len(start) == 2
        if not is_pair or not all(_is_number(value) for value in start) or start[1] <= 0:
            yield (
                f"start of {name} must be (value, standard deviation above zero), or a "
                "function of the TypicalFriction that returns them"
            )


def _is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


# Values of the terms.


def _problems_of_values(law: FrictionLaw) -> Iterator[str]:
    """What is wrong with the torques of a law's terms."""
    with np.errstate(all="ignore"):
        for name, term in law.terms.items():
            problem = _problem_of_term(law, term)
            if problem is not None:
                yield f"{name} {problem}"
                return
        columns = law.regressor(check_points(), law.default_shape)
        sizes = np.linalg.norm(columns, axis=0)
        if np.linalg.svd(columns / sizes, compute_uv=False)[-1] < _INDEPENDENT:
            yield "its terms are not independent: one is a sum of the others"


def _problem_of_term(law: FrictionLaw, term: Term) -> str | None:
    """What is wrong with the torque of a term, as text that follows its name; None if nothing."""
    try:
        return next(_problems_of_term(law, term), None)
    except Exception as error:  # the function is the user's, and may raise anything
        return f"cannot be computed: {type(error).__name__}: {error}{_place(error)}"


def _place(error: Exception) -> str:
    """Line of a file in which an error came up, as " (line 12)"."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return "" if place is None else f" (line {place.tb_lineno})"


def _problems_of_term(law: FrictionLaw, term: Term) -> Iterator[str]:
    """What is wrong with the torque of a term, as text that follows its name."""
    default = law.default_shape
    points = check_points()
    values = term(points, default)
    if not isinstance(values, np.ndarray) or values.shape != points.speed.shape:
        yield f"does not return one number for each sample, but {_described(values)}"
        return
    for shape in _shapes(law):
        for point in (points, check_points(direction=True)):
            found = np.asarray(term(point, shape), dtype=float)
            if not np.isfinite(found).all():
                number = int(np.flatnonzero(~np.isfinite(found))[0])
                yield (
                    f"is {found[number]} at {point.speed[number]:.3g} rad/s, load "
                    f"{point.load[number]:g} N m and {_words(shape)}"
                )
                return
            if np.abs(found).max() > _LARGEST:
                yield f"is above {_LARGEST:g} within 4 rad/s, in its unit {term.unit}"
                return
    if not np.any(values):
        yield "is zero everywhere"
        return
    if not _equal(term(points, default), values):
        yield "gives other values the second time: it must only depend on its arguments"
    few = slice(3, None, 7)
    part = term(_taken(points, few), default)
    if not _equal(np.broadcast_to(part, values[few].shape), values[few]):
        yield "depends on other samples: each sample must be computed by itself"
    opposite = term(_opposite(check_points(direction=True)), default)
    if term.odd and not _equal(-opposite, term(check_points(direction=True), default)):
        yield "is not the opposite for the opposite speed and load: say odd=False"
    unknown = term(_without_temperature(points), default)
    if not np.isfinite(np.broadcast_to(unknown, values.shape)).all():
        yield "is not finite where the temperature is unknown (None)"
    if "reference_temperature" not in term.uses and not _equal(unknown, values):
        yield "depends on the temperature: name 'reference_temperature' in uses"
    yield from _problems_of_joints(law, term)


def _problems_of_joints(law: FrictionLaw, term: Term) -> Iterator[str]:
    """What is wrong with a term where several joints are computed together [samples, k]."""
    shapes = list(_shapes(law))[:3]
    one = check_points()
    several = OperatingPoint(
        speed=np.repeat(one.speed[:, None], len(shapes), axis=1),
        load=np.repeat(one.load[:, None], len(shapes), axis=1),
        gear_ratio=np.full(len(shapes), _RATIO),
        temperature=np.asarray(one.temperature)[:, None],
    )
    together = {
        name: np.array([shape[name] for shape in shapes]) for name in law.default_shape
    }
    found = term(_read_only(several), together)
    for k, shape in enumerate(shapes):
        alone = term(one, shape)
        if found.shape != several.speed.shape or not _equal(found[:, k], alone):
            yield "differs for several joints together: write it for arrays [samples, joints]"
            return


def _shapes(law: FrictionLaw) -> Iterator[dict[str, float]]:
    """Default, lowest and highest values of the shape constants, and one of them alone."""
    default = law.default_shape
    yield default
    yield {name: constant.low for name, constant in law.shape.items()}
    yield {name: constant.high for name, constant in law.shape.items()}
    for name, constant in law.shape.items():
        yield {**default, name: constant.low}
        yield {**default, name: constant.high}


def _words(shape: Mapping[str, float]) -> str:
    """Shape constants in a message."""
    return (
        ", ".join(f"{name} {value:g}" for name, value in shape.items()) or "no constants"
    )


def _described(values: Any) -> str:
    """What a function has returned, for a message."""
    if isinstance(values, np.ndarray):
        return f"an array {list(values.shape)}"
    return f"a {type(values).__name__}"


def _equal(first: Array, second: Array) -> bool:
    """Whether two arrays are equal but for rounding."""
    first = np.asarray(first, dtype=float)
    size = max(float(np.abs(second).max(initial=0.0)), 1e-300)
    return first.shape == second.shape and bool(
        np.allclose(first, second, rtol=_SAME, atol=_SAME * size)
    )


# Operating points.


def _read_only(point: OperatingPoint) -> OperatingPoint:
    """The point with arrays that a term cannot change."""
    for each in (point.speed, point.load, point.temperature, point.direction):
        if isinstance(each, np.ndarray):
            each.setflags(write=False)
    return point


def _taken(point: OperatingPoint, samples: slice) -> OperatingPoint:
    """Some of the samples."""
    temperature = np.asarray(point.temperature)[samples]
    return OperatingPoint(point.speed[samples], point.load[samples], _RATIO, temperature)


def _opposite(point: OperatingPoint) -> OperatingPoint:
    """The samples with the opposite speed, load and direction."""
    assert point.direction is not None
    return OperatingPoint(
        -point.speed, -point.load, _RATIO, point.temperature, direction=-point.direction
    )


def _without_temperature(point: OperatingPoint) -> OperatingPoint:
    """The samples without their temperatures."""
    return OperatingPoint(point.speed, point.load, _RATIO)
