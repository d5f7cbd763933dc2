# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Whether recordings, and what is compared with them, are of one arm and one program.

A bag holds the serial number of its arm and the name of its program, where the
controller's dashboard server had them. The torque constants that a controller states
identify its arm without.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction, ContradictionError
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.telemetry.samples import RecordingInfo, same_serial


class RecordedArm(NamedTuple):
    """The arm of a recording, as far as it is known.

    Attributes:
        name: name of the bag.
        info: what the recording states about its controller and arm.
        constants: torque constants that the controller states; None if unknown.
    """

    name: str | Path
    info: RecordingInfo
    constants: ControllerConstants | None = None

    def same_constants(self, other: RecordedArm) -> bool | None:
        """Whether the stated torque constants belong to one arm; None where unknown."""
        if self.constants is None or other.constants is None:
            return None
        if self.constants.std.shape != other.constants.std.shape:
            return None
        return self.constants.same_arm(other.constants)


def check_one_arm(recordings: Sequence[RecordedArm]) -> None:
    """Refuse recordings of several arms, which are to be fitted together.

    Different serial numbers, or different torque constants that the controllers state,
    are of several arms; constants that differ within one serial number are of an
    exchanged joint.

    Args:
        recordings: what is unknown of them contradicts nothing.

    Raises:
        ContradictionError: the first recording of another arm, with both serial numbers
            or constants.
    """
    for k, each in enumerate(recordings):
        for first in recordings[:k]:
            same = same_serial(first.info.serial, each.info.serial)
            if same is False:
                raise ContradictionError(each.name, _another_serial(first, each))
            if each.same_constants(first) is False:
                found = _other_constants(first, each, one_serial=same is True)
                raise ContradictionError(each.name, found)


def _another_serial(first: RecordedArm, each: RecordedArm) -> Contradiction:
    """The difference between the serial numbers of two recordings."""
    return Contradiction(
        subject="arm",
        stated=f"is fitted together with {first.name}, which is of arm {first.info.serial}",
        shown=f"is itself of arm {each.info.serial}",
        evidence="serial numbers in the bags",
        remedy="identify each arm from its own recordings (--per-arm), or give "
        "--same-arm if it is one arm, as with an exchanged control box",
        refused=True,
    )


def _other_constants(
    first: RecordedArm, each: RecordedArm, *, one_serial: bool
) -> Contradiction:
    """The clearest difference between the stated torque constants of two recordings.

    With one serial number, a joint was exchanged in between.
    """
    own = each.constants
    before = first.constants
    assert own is not None
    assert before is not None
    relative, deviation = own.difference(before)
    j = int(np.nanargmax(np.abs(relative) / deviation))
    remedy = "identify each arm from its own recordings (--per-arm), or give --same-arm"
    if one_serial:
        remedy = "give the recordings since the joint was exchanged, or --same-arm"
    return Contradiction(
        subject="arm",
        stated=f"is fitted together with {first.name}, whose controller has "
        f"{before.torque_per_ampere[j]:.4g} N m/A for joint {j + 1}",
        shown=f"its own controller has {own.torque_per_ampere[j]:.4g} N m/A",
        evidence=f"torque constants that the controllers state, "
        f"{100.0 * relative[j]:+.1f} ± {196.0 * deviation[j]:.1f} %",
        remedy=remedy,
        refused=True,
    )


def arms_by_constants(recordings: Sequence[RecordedArm]) -> list[int]:
    """Number of the arm of each recording, from 0 on, by the stated torque constants alone.

    A recording belongs to the first arm whose recordings do not contradict it; without
    constants it belongs to the first arm.
    """
    arms: list[list[RecordedArm]] = []
    numbers = []
    for each in recordings:
        number = len(arms)
        for known, arm in enumerate(arms):
            if all(each.same_constants(other) is not False for other in arm):
                number = known
                break
        if number == len(arms):
            arms.append([])
        arms[number].append(each)
        numbers.append(number)
    return numbers


_NO_LETTER = re.compile(r"[^a-z0-9]+")


def another_program(script: str, recorded: str | None) -> list[Contradiction]:
    """The contradiction between the programs of a script and of a recording, if they differ.

    Args:
        script: name of the program in the script; PolyScope replaces blanks by
            underscores.
        recorded: name of the program in the recording; None if it is unknown.
    """
    if recorded is None:
        return []
    names = (_NO_LETTER.sub("_", name.lower()).strip("_") for name in (script, recorded))
    if len(set(names)) == 1:
        return []
    return [
        Contradiction(
            subject="program",
            stated=f"the script is that of the program {script}",
            shown=f"the recording is of the program {recorded}",
            evidence="names in the script and in the bag",
            remedy="lines and nodes may be those of another program; give the script of the "
            "recorded one, as the controller saves it beside the .urp file",
        )
    ]
