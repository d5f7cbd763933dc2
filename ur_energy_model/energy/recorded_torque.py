# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Joint torques of recordings without motor currents, once it is known what they contain.

A recording may have actual_current_as_torque and no actual_current, as one that was made
from a driver's JointState. What the field contains is decided from the whole recording, or
stated by the user; until then its powers are computed from the motion alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ur_energy_model.consistency.contradiction import refuse
from ur_energy_model.consistency.effort_unit import EffortUnit
from ur_energy_model.consistency.torque_field import (
    CURRENT_FIELD,
    FIELD_OF_UNIT,
    MEANING_IN_WORDS,
    STATED_FLAG,
    TORQUE_FIELD,
    TorqueContent,
    TorqueFieldCheck,
)
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry

_NO_CURRENTS = "no motor currents were recorded"


@dataclass(frozen=True)
class TorqueUse:
    """How actual_current_as_torque of a recording without motor currents is used.

    Attributes:
        unit: what it contains; None where it is not used.
        note: how it is used, or why not, as one line for users.
    """

    unit: EffortUnit | None
    note: str

    def applied(self, batch: Telemetry) -> Telemetry:
        """A batch with the field in the column of its content, or without the field."""
        columns = dict(batch.columns)
        torque = columns.pop(TORQUE_FIELD, None)
        if torque is not None and self.unit is not None:
            columns[FIELD_OF_UNIT[self.unit]] = torque
        return replace(batch, columns=columns)


def has_torques_only(bag: str | Path) -> bool:
    """Whether a recording begins with actual_current_as_torque and without actual_current."""
    first = next(iterate_bag(bag, ("actual_qd", CURRENT_FIELD, TORQUE_FIELD)), None)
    if first is None:
        return False
    return TORQUE_FIELD in first and CURRENT_FIELD not in first


def torque_use(
    bag: str | Path, read: Callable[[], Iterator[Telemetry]], calculator: EnergyCalculator
) -> TorqueUse:
    """How the torques of a recording without motor currents are used.

    Args:
        bag: the recording, for messages.
        read: begins to read it from its begin, with actual_current_as_torque.
        calculator: calculator of the arm, whose model the torques are compared with.

    Raises:
        ContradictionError: the samples exclude what the user states.
        RecordingError: the method needs currents, and the content of the field is neither
            stated nor decided.
    """
    check = TorqueFieldCheck()
    for batch in read():
        check.observe(batch)
    content = check.found(calculator.robot, calculator.model)
    stated = calculator.options.effort_unit
    if stated != "auto":
        return _stated_use(bag, stated, content)
    shown = "it was recorded without positions" if content is None else content.words()
    if content is not None and content.unit is not None:
        note = f"{_NO_CURRENTS}; {TORQUE_FIELD} is used: {shown}"
        return TorqueUse(content.unit, note)
    if calculator.options.method == "current":
        raise RecordingError(
            bag,
            f"has no motor currents, and {TORQUE_FIELD} cannot stand for them: {shown}",
            f"state what it contains ({STATED_FLAG}), or use the method motion",
        )
    note = (
        f"{_NO_CURRENTS}, and {TORQUE_FIELD} is not used: {shown}; powers are computed from "
        f"the motion; {STATED_FLAG} states what the field contains"
    )
    return TorqueUse(None, note)


def _stated_use(
    bag: str | Path, stated: EffortUnit, content: TorqueContent | None
) -> TorqueUse:
    """Use of the field as the user states it.

    Args:
        bag: the recording, for messages.
        stated: what the field contains, by the user.
        content: what it contains, by its samples; None where they show nothing.

    Raises:
        ContradictionError: the samples exclude what the user states.
    """
    note = (
        f"{_NO_CURRENTS}; {TORQUE_FIELD} is used as {MEANING_IN_WORDS[stated]}, as stated"
    )
    if content is not None:
        remedy = f"leave out {STATED_FLAG}"
        if content.unit is not None:
            remedy = f"use {STATED_FLAG} {content.unit}, or leave it out"
        found = content.contradiction(stated, f"{STATED_FLAG} is {stated}", remedy)
        if found is not None:
            refuse(bag, (found,))
        if content.kind == "undecided":
            note += f"; {content.words()}"
    return TorqueUse(stated, note)


def with_known_torques(
    bag: str | Path, read: Callable[[], Iterator[Telemetry]], calculator: EnergyCalculator
) -> Callable[[], Iterator[Telemetry]]:
    """A reader whose batches have joint torques of known content in place of the field.

    The calculator's `torque_note` is set to how they are used.

    Args:
        bag: the recording, for messages.
        read: begins to read it from its begin, with actual_current_as_torque.
        calculator: calculator of the arm.

    Raises:
        ContradictionError: the samples exclude what the user states.
        RecordingError: the method needs currents, and the content of the field is neither
            stated nor decided.
    """
    use = torque_use(bag, read, calculator)
    calculator.torque_note = use.note

    def known() -> Iterator[Telemetry]:
        """The batches, from the begin of the recording."""
        for batch in read():
            yield use.applied(batch)

    return known
