# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Names of Universal Robots' arms, as users, controllers and files spell them.

A robot file is named by the product in lower case ("ur5e", "ur8long"). Users write the
product in other spellings ("UR7", "UR8 Long"). A controller's dashboard server names the
arm without the e that distinguishes the e-Series from CB3 ("UR5"); the names of PolyScope X
and of the newest arms have the e ("UR7e"). A UR7e and a UR12e have the links of a UR5e and
a UR10e, and controllers name a UR7e as a UR5e and a UR12e as a UR10e, too (RobotType in
UniversalRobots/Universal_Robots_Client_Library has no entries for UR7e and UR12e).
"""

from __future__ import annotations

import re

NAMED_ALIKE = {"ur7e": "ur5e", "ur12e": "ur10e"}
"""Arms that controllers may name as another arm, and the name of this other arm."""
_ALWAYS_E = re.compile(r"ur(7|12|16)")  # arms that exist with the e only
_LONG = re.compile(r"ur8[ _-]?(l|long)?")
_BOTH_SERIES = re.compile(r"ur(3|5|10)")  # arms that exist as CB3 and as e-Series
_CB3_SOFTWARE = 3  # software version of controllers of CB3 arms
_FIRST_E_SERIES = 5  # software version from which on controllers drive no CB3 arms
_PRODUCT = re.compile(r"ur\d{1,2}(e|long)?")
_REPORTED = re.compile(r"UR\d{1,2}([A-Za-z _.-][A-Za-z0-9 _.-]{0,24})?", re.IGNORECASE)


def product_name(text: str) -> str:
    """Name of the robot file of an arm in any spelling: "ur7e" for "UR7", "ur8long" for "UR8L".

    "UR5" remains "ur5", the arm of the CB3 series. Names of other arms are in lower case.
    """
    name = text.strip().lower()
    if _LONG.fullmatch(name):
        return "ur8long"
    return f"{name}e" if _ALWAYS_E.fullmatch(name) else name


def product_of_controller(model: str, software: int) -> str:
    """Name of the arm that a dashboard server names: "ur5e" for "UR5" from software 5 on.

    Args:
        model: answer to `get robot model`.
        software: major version of the controller's software.
    """
    name = product_name(model)
    if software >= _FIRST_E_SERIES and _BOTH_SERIES.fullmatch(name):
        return f"{name}e"
    return name


def may_be(robot: str, model: str, software: int | None = None) -> bool:
    """Whether an arm may be the one that a dashboard server names.

    Args:
        robot: name of an arm; other arms than Universal Robots' products may be any.
        model: answer to `get robot model`.
        software: major version of the controller's software; None if unknown.
    """
    name = product_name(robot)
    if not _PRODUCT.fullmatch(name):
        return True
    versions = (_CB3_SOFTWARE, _FIRST_E_SERIES) if software is None else (software,)
    possible = {product_of_controller(model, version) for version in versions}
    return name in possible or NAMED_ALIKE.get(name) in possible


def is_reported_model(answer: str) -> bool:
    """Whether an answer to `get robot model` is the name of an arm, known or not."""
    return _REPORTED.fullmatch(answer) is not None
