# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Options that several subcommands share: single ones as functions, groups as tables.

The tables of commands, in `commands` and in the `room` modules, are made of them. This
module imports nothing but the ground floor, so that `ur_energy --help` is fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ur_energy_model.options import option
from ur_energy_model.rooms import choices_of, loaded
from ur_energy_model.typed_numbers import likely_form, right_form

PAYLOAD = "--payload"
"""Option of the payload, which errors about a payload that an arm cannot carry name."""
IDENTIFY = "identify"
"""Word in place of the mass of a payload, which is then identified from the motor currents."""


# Groups of commands in `ur_energy --help`.

EVERYDAY = "everyday"
"""The group of commands that `ur_energy --help` lists first."""
RECORDINGS = "recordings"
MODELS = "models of arms"
MOTIONS = "motions and experiments"
DESK = "without a robot"
FILES = "files for other programs"
GROUPS = (EVERYDAY, RECORDINGS, MODELS, MOTIONS, DESK, FILES)
"""Groups of commands, in the order of the help; other groups of rooms follow."""

SUBJECT_HEADINGS = {"sinks": "where else the energies go (each may be repeated)"}
"""Headings in the help for what rooms add to the subjects of a command."""


# Input: recordings, models and arms.


def model_option() -> Any:
    """MODEL.yaml, for a command that has no use for a generic model."""
    return option(
        None,
        "identified model of the arm",
        positional=True,
        metavar="MODEL.yaml",
        holds="model",
    )


def model_or_robot_option() -> Any:
    """MODEL.yaml, in place of which `robot_of_model_option` chooses a generic model."""
    return option(
        None,
        "identified model (default: the generic one of --robot)",
        positional=True,
        metavar="MODEL.yaml",
        holds="model",
    )


def robot_of_model_option() -> Any:
    """--robot, beside an optional MODEL.yaml."""
    return option(
        None,
        "name of the robot, such as ur5e (default: the one of the model, or of the bag)",
        metavar="NAME",
        offered=robots,
    )


def robot_option(default: str) -> Any:
    """--robot, with the robot in words that is meant without it."""
    return option(
        None,
        f"name of the robot, such as ur5e, or its YAML file (default: {default})",
        metavar="NAME",
        offered=robots,
    )


def robots() -> tuple[str, ...]:
    """Names of the robots that the package includes."""
    names: tuple[str, ...] = loaded("ur_energy_model.model.robots:available_robots")()
    return names


def bag_option(help: str = "recording (a rosbag2 directory)") -> Any:
    """BAG, a single recording."""
    return option(help=help, positional=True, metavar="BAG", holds="recording")


def bags_option(what: str) -> Any:
    """BAG..., one or more recordings; `what` describes them."""
    return option(
        help=f"{what} (rosbag2 directories)",
        positional=True,
        metavar="BAG",
        holds="recording",
    )


def validate_option() -> Any:
    """--validate, recordings that are predicted and not fitted."""
    return option(
        (),
        "held-out recording: predicted, not fitted (may be repeated)",
        metavar="BAG",
        holds="recording",
    )


def same_arm_option() -> Any:
    """--same-arm: the serial numbers of model and recording do not matter."""
    return option(
        False,
        "the model is of this very arm, whatever the serial numbers are, as after an "
        "exchange of its control box",
    )


def payload_option(default: str, *, identify: bool = False) -> Any:
    """--payload: mass [kg] alone, or followed by the centre of mass [m], as a tuple.

    Args:
        default: payload that is meant without the option, in words.
        identify: whether "identify" is allowed in place of the mass, which is then the
            value.
    """
    word = f", or '{IDENTIFY}' to identify it from the currents" if identify else ""
    return option(
        None,
        "actual payload: mass [kg], optionally followed by its centre of mass X Y Z in "
        f"the flange frame [m], also in one word as KG,X,Y,Z{word} (default: {default})",
        metavar="KG",
        several=True,
        parse=_payload_or_word if identify else payload_numbers,
    )


def _payload_or_word(text: str) -> tuple[float, ...] | str:
    """The word "identify", or the numbers of a payload."""
    return IDENTIFY if text == IDENTIFY else payload_numbers(text)


def payload_numbers(text: str) -> tuple[float, ...]:
    """The numbers of "KG", "KG X Y Z" or "KG,X,Y,Z".

    Returns:
        Mass [kg], and where it is stated the centre of mass in the flange frame [m].

    Raises:
        ValueError: another text, or a payload that no arm can carry.
    """
    from ur_energy_model.ranges import LENGTH, PAYLOAD_MASS  # imports numpy

    if text == IDENTIFY:
        raise ValueError("cannot be identified here; give KG")
    try:
        numbers = [float(each) for word in text.split() for each in word.split(",")]
    except ValueError:
        numbers = []
    valid = len(numbers) in (1, 4) and all(map(math.isfinite, numbers))
    if not valid:
        right = right_form(text, "kg")
        if right is not None:
            raise ValueError(f"'{text}' is not a mass in kg, write {right}")
        raise ValueError(
            f"'{text}' is not a mass; give KG, or KG and the centre X Y Z, or KG,X,Y,Z "
            "in one word"
        )
    mass, *center = numbers
    if mass > PAYLOAD_MASS.high:
        meant = likely_form(mass, "kg", 0.0, PAYLOAD_MASS.high)
        if meant is not None:
            raise ValueError(f"'{text}' is not a mass in kg, write {meant}")
    if not 0.0 <= mass <= PAYLOAD_MASS.high:
        raise ValueError(f"'{text}' is not a mass that an arm can carry")
    if any(abs(distance) > LENGTH.high for distance in center):
        raise ValueError(f"'{text}' has a centre of mass that is not in m")
    return tuple(numbers)


# Output.


def json_option() -> Any:
    """--json: figures for programs."""
    return option(False, "print one JSON object on stdout and nothing else")


def overwrite_option() -> Any:
    """--overwrite: the one rule for files that exist already."""
    return option(
        False, "replace what exists already: files of the same names, nothing else"
    )


@dataclass(frozen=True, kw_only=True)
class TariffOptions:
    """Options of the costs of energy.

    Attributes:
        tariff: price per kWh; None for no cost.
        currency: currency of the price.
        co2: kg of CO2 per kWh; None for no emission.
        supply_efficiency: share of the wall power that reaches the robot bus; None where
            the model of the wall, control box included, states it.
    """

    tariff: float | None = option(
        None,
        "price per kWh (default: no cost)",
        metavar="PRICE",
        unit="price",
        limits=(-1e6, 1e6),
    )
    currency: str = option("EUR", "of the price", metavar="NAME")
    co2: float | None = option(
        None,
        "kg of CO2 per kWh (default: no emission)",
        metavar="KG",
        unit="kg",
        limits=(0.0, 5.0),
    )
    supply_efficiency: float | None = option(
        None,
        "share of the wall power that reaches the robot bus (default: cost and CO2 of the "
        "energy at the wall, control box included)",
        metavar="SHARE",
        unit="share",
        limits=(0.01, 1.0),
    )


@dataclass(frozen=True, kw_only=True)
class SavingsOptions(TariffOptions):
    """Options of the costs of energy, and of the saving in a year.

    Attributes:
        hours_per_year: time of such work in a year [h].
    """

    hours_per_year: float = option(
        8760.0,
        "hours of such work in a year, for what is saved in a year",
        metavar="H",
        limits=(1.0, 8784.0),
    )


# Work on many bags, controllers and motions.


def workers_option() -> Any:
    """--workers, for a command that works on many bags."""
    return option(
        None,
        "number of processes of this machine (default: as many as save time)",
        metavar="N",
        limits=(1, 1024),
    )


def host_option() -> Any:
    """--host ADDRESS of a robot controller, for a command that can do without one."""
    return option(
        None, "address of the robot controller", metavar="ADDRESS", address=True
    )


def yes_option() -> Any:
    """--yes, for commands that move a robot."""
    return option(False, "move the robot without asking")


def another_arm_option() -> Any:
    """--another-arm, for commands that move a robot."""
    return option(
        False,
        "run although serial number, mounting, payload, tool or pose are not those that "
        "the motion was recorded with or planned for (never on another model)",
    )


def geometry_option() -> Any:
    """--geometry, for commands that keep an arm clear of itself and its surroundings."""
    return option(
        None,
        "capsules of an arm of your own (default: those of the robot file, its URDF or the "
        "package)",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class ExecutionOptions:
    """Options of commands that move a robot.

    Attributes:
        host: address of the controller; None where nothing is to be moved.
        yes: whether to move without asking.
        another_arm: whether the arm may differ from the recorded arm.
        warm_up: time of warm-up motion before recording [min].
    """

    host: str | None = host_option()
    yes: bool = yes_option()
    another_arm: bool = another_arm_option()
    warm_up: float = option(
        0.0,
        "warm-up motion before recording [min]",
        metavar="MIN",
        unit="min",
        limits=(0.0, 1440.0),
    )


@dataclass(frozen=True, kw_only=True)
class SurroundingsOptions:
    """Options of the surroundings that a moving arm must keep away from, in the base frame.

    Attributes:
        clearance: least distance to obstacles [m].
        table: height of the table above the base [m].
        wall: half-spaces to stay out of: normal [3] and offset [m] of each.
        tool: length and radius of the tool on the flange [m]; None for no tool.
        geometry: file with the capsules of the arm; None for the usual ones.
    """

    clearance: float = option(
        0.03,
        "minimum distance to obstacles [m]",
        metavar="M",
        unit="m",
        limits=(0.0, 5.0),
    )
    table: float = option(
        0.0,
        "height of the table above the base [m]",
        metavar="M",
        unit="m",
        limits=(-5.0, 5.0),
    )
    wall: tuple[tuple[float, float, float, float], ...] = option(
        (),
        "half-space to stay out of (may be repeated)",
        metavar="NX NY NZ OFFSET",
        unit="m",
        limits=(-100.0, 100.0),
    )
    tool: tuple[float, float] | None = option(
        None,
        "size of the tool on the flange [m] (default: no tool)",
        metavar="LENGTH RADIUS",
        unit="m",
        limits=(0.0, 5.0),
    )
    geometry: Path | None = geometry_option()


# Friction laws of users.


def friction_laws_option(**named: Any) -> Any:
    """--friction-laws, files of Python code, which are run before anything else is done."""
    return option(
        (),
        "Python file with friction laws of your own, which is run (may be repeated)",
        metavar="LAWS.py",
        used_by="ur_energy_model.model.friction_files:load_friction_laws",
        **named,
    )


@dataclass(frozen=True, kw_only=True)
class FrictionLawOptions:
    """Options of commands that read models, whose friction laws may be the user's.

    Attributes:
        friction_laws: files of friction laws, whose laws are known once a command begins.
    """

    friction_laws: tuple[Path, ...] = friction_laws_option()


# The table of `ur_energy identify`, to which rooms add; they use its options.


def _friction_laws() -> tuple[str, ...]:
    """Names that --friction takes, which the completion of a shell offers."""
    return ("auto", *loaded("ur_energy_model.model.friction:LAWS"))


@dataclass(frozen=True, kw_only=True)
class IdentifyOptions:
    """Options of `ur_energy identify`.

    Attributes:
        bags: recordings that are fitted together.
        robot: name of the arm or path of its YAML file; None for the name in the bags.
        validate: recordings that are predicted and not fitted.
        same_arm: whether the serial numbers of the recordings may differ.
        output: model file to write.
        overwrite: whether a file that exists is replaced.
        friction: name of a law for all joints, or "auto" for a choice per joint.
        power_model: structure of the model of the bus power.
        link_tensors: source of the inertia tensors of the links.
        gravity: gravity in the base frame [m/s^2]; None to estimate the mounting.
        payload: mass [kg], and where it is stated the centre of mass in the flange
            frame [m]; "identify" to identify it from the currents; None for the payload
            that was set in the controller.
        workers: processes of this machine; None for as many as save time.
        json: whether the result is printed as JSON.
    """

    bags: tuple[Path, ...] = bags_option("recordings to fit, all together")
    robot: str | None = robot_option("the one that the bags name")
    validate: tuple[Path, ...] = validate_option()
    same_arm: bool = option(
        False,
        "the recordings are of one arm, whatever the serial numbers are, as "
        "after an exchange of its control box",
    )
    output: Path = option(
        help="model file to write",
        flags=("-o", "--output"),
        metavar="MODEL.yaml",
    )
    overwrite: bool = overwrite_option()
    friction: str = option(
        "auto",
        "friction law (listed below), or auto to select one per joint by "
        "cross-validation",
        metavar="LAW",
        offered=_friction_laws,
        holds="friction law",
    )
    power_model: str = option(
        "physical",
        "model of the electrical power: the physical structure with priors, or one of "
        "the literature, for comparison",
        choices=partial(choices_of, "physical", "power models"),
    )
    link_tensors: Literal["file", "identify"] = option(
        "file",
        "inertia tensors of the links: from the robot file, or identified "
        "from target_moment where the file has none or wrong ones",
    )
    gravity: tuple[float, float, float] | None = option(
        None,
        "gravity in the base frame [m/s^2], if the mounting is known "
        "(default: estimated)",
        metavar="X Y Z",
        limits=(-100, 100),
    )
    payload: tuple[float, ...] | str | None = payload_option(
        "the controller's setting, from target_moment", identify=True
    )
    workers: int | None = workers_option()
    json: bool = json_option()


# Texts that stand for a list of values.


def text_list(
    pattern: str,
    what: str,
    kind: Callable[[str], Any] = str,
    *,
    mark: str = ",",
    unit: str = "",
) -> Callable[[str], tuple[Any, ...]]:
    """A function that reads a text such as "3,5" as a tuple.

    Args:
        pattern: regular expression of the whole text.
        what: the text must be, for the error.
        kind: makes a value of each part of the text.
        mark: separator between the parts.
        unit: unit of the values; a text with another unit is refused, with the text to
            write.

    Returns:
        The values of a text; raises ValueError for a text of another form.
    """

    def read(text: str) -> tuple[Any, ...]:
        """The values of a text; ValueError for a text of another form."""
        import re

        if not re.fullmatch(pattern, text):
            hint = ""
            if unit:
                right = right_form(text, unit)
                hint = "" if right is None else f", write {right}"
            raise ValueError(f"{text!r} is not {what}{hint}")
        values: list[Any] = []
        for part in text.split(mark):
            word = part.strip()
            if word:
                values.append(kind(word))
        return tuple(values)

    return read
