# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Advice: what can be done for less energy in the work that a recording shows.

Commands and reports show advice wherever they show energies. What it consists of is the
matter of a room that adds an `Adviser` to the subject "measures"; without such a room the
advice is empty, and nothing is printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.energy.work_log import WorkLog
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.setup import Payload
from ur_energy_model.rooms import extensions

SUBJECT = "measures"
"""Subject of the rooms' extensions; each of them provides an `Adviser`."""


class AdviceTable(NamedTuple):
    """A table of texts.

    Attributes:
        title: heading, without a full stop.
        columns: headings of the columns; the first one is empty.
        rows: cells of each row, the first of which names it.
        note: how to read the table, in sentences; none if empty.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


class AdviceSection(NamedTuple):
    """Advice as a section of a report.

    Attributes:
        key: anchor of the section in a page.
        title: heading.
        text: introduction, in sentences.
        tables: what can be done, and why nothing else.
    """

    key: str
    title: str
    text: str
    tables: Sequence[AdviceTable]


class Advice(Protocol):
    """What can be done for less energy, in the forms in which it is shown.

    Advice can be pickled, since recordings are evaluated in processes of their own.
    """

    def as_json(self, tariff: Tariff) -> Mapping[str, Any]:
        """The entries of JSON output, which belong to the top level of a command's JSON.

        Args:
            tariff: price, CO2 and hours of work, by which savings in a year are stated.
        """

    def text_lines(self, tariff: Tariff, *, named: bool = False) -> Iterator[str]:
        """Lines for people, not wrapped.

        A line that continues an item is indented by as much as the text of that item; a
        command to copy begins with "$ ".

        Args:
            tariff: price, CO2 and hours of work.
            named: whether each item names its recording, where there are several.
        """

    def section(self, tariff: Tariff) -> AdviceSection | None:
        """The section of a report; None for no section."""


class PayloadFinding(Protocol):
    """A payload that was set or stated, against the one that the currents show."""

    @property
    def contradiction(self) -> Contradiction:
        """The statement, and what the recording shows instead."""

    @property
    def shown(self) -> Payload:
        """The payload that the currents show."""


class Adviser(Protocol):
    """Finds what can be done for less energy in the work that a recording shows."""

    def advise(
        self,
        model: EnergyModel,
        bag: str | Path,
        log: WorkLog,
        *,
        model_path: str | Path | None = None,
        wrong_payload: PayloadFinding | None = None,
        payload: Payload | None = None,
        named: str | Path | None = None,
        host: str | None = None,
    ) -> Advice:
        """What can be done for less energy in the work that a recording shows.

        Args:
            model: model of the arm, or generic; then its intervals are wider.
            bag: recording of the work.
            log: what the arm did in it, finished.
            model_path: path of the model, for commands to type; None for one that is to
                be identified.
            wrong_payload: the payload that was set, or stated, and the one that the
                currents show; None where they agree. What is predicted is for the latter.
            payload: payload that the user states; None for the one that was set.
            named: the user's recording, where `bag` is a part of it; None for `bag`.
            host: address of the controller, where `bag` has what was seen live and will
                not stay, so that commands begin with a recording; None for a recording
                of the user's.

        Raises:
            UrEnergyError: the recording cannot be read.
        """

    def together(self, parts: Sequence[Advice]) -> Advice:
        """The advice of several recordings, which are one after another in a year's work.

        Args:
            parts: what `advise` has returned for each recording; none of them is the
                advice where nothing was recorded.
        """


class NoAdvice:
    """Advice where no room gives any: nothing is printed or listed."""

    def as_json(self, tariff: Tariff) -> dict[str, Any]:
        """No entries: nothing was looked for."""
        return {}

    def text_lines(self, tariff: Tariff, *, named: bool = False) -> Iterator[str]:
        """No lines."""
        return iter(())

    def section(self, tariff: Tariff) -> None:
        """No section."""


class NoAdviser:
    """The adviser where no room provides one."""

    def advise(
        self, model: EnergyModel, bag: str | Path, log: WorkLog, **how: Any
    ) -> NoAdvice:
        """Empty advice, whatever was recorded."""
        return NoAdvice()

    def together(self, parts: Sequence[Advice]) -> NoAdvice:
        """Empty advice."""
        return NoAdvice()


def adviser() -> Adviser:
    """The adviser that a room provides; one that gives empty advice where no room does.

    Raises:
        MissingPackageError: the room's adviser needs a package that is not installed.
    """
    for extension in extensions(SUBJECT):
        return cast(Adviser, extension.load())
    return NoAdviser()
