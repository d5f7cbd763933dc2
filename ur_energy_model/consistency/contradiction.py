# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contradiction: a statement about a recording that the recording itself does not agree with.

A file, a parameter, a user or a device states which arm was recorded, in which unit
efforts are, which payload the arm carried, what a power meter measures. Physics ties
these statements to the samples: the rigid bodies of an arm determine its torques, the
power at the mains cannot be below the power of the robot's bus. Each chapter of this room
compares one statement with the samples and returns the contradictions that it finds;
commands, nodes and reports treat all of them alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, cast

from ur_energy_model import codec
from ur_energy_model.errors import InputError

Subject = Literal[
    "robot",
    "arm",
    "program",
    "effort_unit",
    "torque_constants",
    "wall_meter",
    "payload",
    "time",
    "bus_power",
]
"""What a statement is about: the type of the arm, the individual arm (its serial number),
the program that it ran, the unit of efforts, the units of target_current and
target_moment, the power meter at the mains, the payload, the time, the power of the robot
bus."""


@dataclass(frozen=True)
class Contradiction:
    """One statement about a recording, and what the recording shows instead.

    All texts are clauses without a full stop, with values and units, for one line of a
    terminal.

    Attributes:
        subject: what the statement is about.
        stated: the statement and who made it, such as "imported as ur5e".
        shown: what the samples show, such as "the torques are those of a ur10e".
        evidence: the figures that show it, such as "R2 of target_moment 0.9998, as ur5e
            0.075".
        remedy: what the user can type or set, such as "import again with --robot ur10e".
        refused: whether results computed from the statement would be wrong, so that
            commands refuse it; otherwise it is a warning.
    """

    subject: Subject
    stated: str
    shown: str
    evidence: str
    remedy: str
    refused: bool = False

    def words(self) -> str:
        """The contradiction as one line for users."""
        return f"{self.stated}, but {self.shown} ({self.evidence}); {self.remedy}"

    def as_json(self) -> dict[str, Any]:
        """The contradiction as an entry of `contradictions` in JSON output."""
        content: dict[str, Any] = codec.plain(self)
        return {**content, "words": self.words()}


class Doubtful(Protocol):
    """A dataclass of results: its warnings for the user, one line each, and contradictions."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The contradictions in words are among them."""

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Statements about the recording that it does not agree with."""


Result = TypeVar("Result", bound=Doubtful)


def with_contradictions(result: Result, found: Iterable[Contradiction]) -> Result:
    """The same results with further contradictions, which come first among the warnings."""
    further = tuple(found)
    changed: Any = result
    return cast(
        Result,
        replace(
            changed,
            contradictions=(*further, *result.contradictions),
            warnings=(*(each.words() for each in further), *result.warnings),
        ),
    )


class ContradictionError(InputError):
    """A recording that contradicts what was stated about it.

    Attributes:
        contradiction: the statement, and what the recording shows instead.
    """

    def __init__(self, source: str | Path, contradiction: Contradiction) -> None:
        self.contradiction = contradiction
        problem = f"{contradiction.stated}, but {contradiction.shown} ({contradiction.evidence})"
        super().__init__(source, problem, contradiction.remedy)


def refuse(source: str | Path, contradictions: Iterable[Contradiction]) -> None:
    """Refuse a recording if one of its contradictions would make results wrong.

    Args:
        source: name of the bag, file or address.
        contradictions: all that were found; those that are warnings are passed over.

    Raises:
        ContradictionError: the first contradiction whose `refused` is set.
    """
    for contradiction in contradictions:
        if contradiction.refused:
            raise ContradictionError(source, contradiction)
