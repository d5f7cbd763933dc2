# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Published numbers, and the verdict on the number that a run finds beside each.

The contents of the papers are data: config/papers.yaml has tables, figures and sections
with their numbers, definitions and tolerances, which `Paper` holds. A protocol finds the
same numbers on an arm, each as a `ResultRow` with a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ur_energy_model.codec import built
from ur_energy_model.errors import InputError
from ur_energy_model.files import config_file
from ur_energy_model.yaml_reader import YamlTree


@dataclass(frozen=True)
class PublishedRow:
    """A number of a paper, or of this package beside it.

    Attributes:
        figure: name of the number with its unit; {names} in braces are filled in.
        published: value in the paper; None where the paper prints none.
        how: one clause on how the paper computes the number, which a run follows exactly.
        differs: conditions of a run that are not as in the paper, such as "arm", "data"
            or "method".
        tolerance: relative difference up to which both values agree; None where no
            tolerance decides.
        within: lowest and highest value of a run that agree with the paper, where the
            paper has words or no relative difference decides; numbers, or arrays with one
            number per value.
        because: reason of the tolerance or the range.
        input: whether the number is a constant of the run, such as a published number
            that the run takes, so that agreement is no evidence.
        given: what a simulated run is given of the number, such as "the simulator draws it
            within 3 % of the published one", so that the run can only recover the number;
            "" where nothing is.
        shown: whether the page has the row although the paper prints no value.
    """

    figure: str
    published: Any = None
    how: str = ""
    differs: tuple[str, ...] = ()
    tolerance: float | None = None
    within: tuple[Any, Any] | None = None
    because: str = ""
    input: bool = False
    given: str = ""
    shown: bool = False


@dataclass(frozen=True)
class Erratum:
    """A statement of a paper that does not hold as printed, with a reason to check.

    Attributes:
        place: table, figure, equation or section of the paper.
        text: the reason, in sentences.
    """

    place: str
    text: str


@dataclass(frozen=True)
class PublishedItem:
    """A table, figure or section of a paper.

    Attributes:
        place: name in the paper, such as "Table V".
        shows: content in a few words.
        reason: why a run can obtain nothing for the item; "" where a run can.
        rows: numbers of the item, by a key of this package.
    """

    place: str
    shows: str
    reason: str = ""
    rows: dict[str, PublishedRow] = field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """A paper with its tables, figures and sections.

    Attributes:
        key: protocol, "s0" to "s4".
        title: title of the paper.
        source: authors, journal, DOI.
        items: tables, figures and sections, in the order of the paper.
        inputs: numbers that the protocol needs and no row shows, and texts that rows
            share.
        summary: sentences: what holds, what does not, and what this package adds.
        errata: errors in the paper, in the order of the paper.
        simulated: whether rows are found on a simulated arm, which is given some of the
            numbers (`PublishedRow.given`); a real arm is given none.
    """

    key: str
    title: str
    source: str
    items: tuple[PublishedItem, ...]
    inputs: dict[str, Any] = field(default_factory=dict)
    summary: tuple[str, ...] = ()
    errata: tuple[Erratum, ...] = ()
    simulated: bool = False

    def __getitem__(self, key: str) -> Any:
        """An input, or the published value of a row.

        Raises:
            KeyError: the paper has neither.
        """
        if key in self.inputs:
            return self.inputs[key]
        return self.published_row(key).published

    def published_row(self, key: str) -> PublishedRow:
        """The row with a key.

        Raises:
            KeyError: the paper has no such row.
        """
        return self._item_of_row[key].rows[key]

    @cached_property
    def _item_of_row(self) -> dict[str, PublishedItem]:
        """The items by the keys of their rows."""
        return {key: item for item in self.items for key in item.rows}

    def row(
        self, key: str, here: Any, *, evidence: bool = True, note: str = "", **named: Any
    ) -> ResultRow:
        """A row of the verdict with the value found here.

        Args:
            key: key of the published row.
            here: value found on this arm: a number, several numbers, a word, or None.
            evidence: False where simulator and model share the constant.
            note: words about a value that does not agree.
            named: attributes of the row that depend on the run (`published`, `differs`,
                `tolerance`, `within`, `because`), and values for the {names} in the texts
                of the row.

        Raises:
            KeyError: the paper has no such row, or a name in the texts has no value.
        """
        content = dict(vars(self.published_row(key)))
        words = dict(self.inputs)
        for name, value in named.items():
            target = content if name in _OF_A_RUN else words
            target[name] = value
        content["figure"] = content["figure"].format(**words)
        content["how"] = content["how"].format(**words)
        given = content["given"] if self.simulated else ""
        content["given"] = given.format(**words)
        return ResultRow(
            **content,
            key=key,
            here=here,
            place=self._item_of_row[key].place,
            evidence=evidence,
            note=note,
        )


WIDE = 0.5  # least relative tolerance that a verdict names
_OF_A_RUN = {"published", "differs", "tolerance", "within", "because"}
"""Attributes of a row that may depend on the run."""
_INPUT_TOLERANCE = 1e-6  # relative tolerance of inputs, where the row has none


def papers() -> tuple[Paper, ...]:
    """The papers in order, from config/papers.yaml.

    Raises:
        InputError: the file is missing or damaged.
    """
    content = YamlTree.read(
        config_file("papers.yaml"), InputError, "restore the file"
    ).plain()
    return built(tuple[Paper, ...], content["papers"])


def paper(key: str) -> Paper:
    """The paper of a protocol, such as "s0".

    Raises:
        InputError: the file of the papers is missing or damaged.
    """
    return next(each for each in papers() if each.key == key)


# The values found on an arm beside the published ones.


@dataclass(frozen=True)
class ResultRow(PublishedRow):
    """A published row with the value found on an arm: one row of a verdict.

    Attributes:
        key: key of the published row.
        here: value found on this arm.
        place: table, figure, equation or section of the paper, such as "Table V".
        evidence: False where simulator and model share the constant.
        note: words about a value that does not agree, or that no number decides.
    """

    key: str = ""
    here: Any = None
    place: str = ""
    evidence: bool = True
    note: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether the value here agrees with the published one.

        A range (`within`) takes precedence over a tolerance. Of several numbers all must
        agree.

        Returns:
            None where no number decides: the value is a word, there is no tolerance, or
            both sides have different numbers of values.
        """
        if isinstance(self.here, str):
            return None
        here = np.asarray(self.here, float)
        if self.within is not None:
            low = np.asarray(self.within[0], float)
            high = np.asarray(self.within[1], float)
            return bool(np.all((low <= here) & (here <= high)))
        tolerance = self.tolerance
        if self.input and tolerance is None:
            tolerance = _INPUT_TOLERANCE
        if tolerance is None or isinstance(self.published, str):
            return None
        published = np.asarray(self.published, float)
        if published.ndim and published.shape != here.shape:
            return None
        return bool(np.all(np.abs(here - published) <= tolerance * np.abs(published)))

    @property
    def verdict(self) -> str:
        """One of the words of `VERDICTS`, with conditions of the run.

        Where arm, data or method differ from the paper, the verdict names them. Where a
        number is recovered, it names what was given.
        """
        if self.here is None:
            return "not obtained"
        if self.published is None:
            return "not published"
        if not self.evidence:
            return "not evidence"
        agrees = self.agrees
        if agrees is None:
            return "see text" if not self.note else f"see text: {self.note}"
        if agrees and self.input:
            return "input"
        if agrees and self.given:
            return f"recovered{self._wide}: {self.given}"
        word = f"agrees{self._wide}" if agrees else "differs"
        if self.note and not agrees:
            word += f": {self.note}"
        if self.differs:
            word += f"; another {' and '.join(self.differs)}"
        return word

    @property
    def _wide(self) -> str:
        """Words about a wide tolerance that decides; "" for others."""
        tolerance = self.tolerance or 0.0
        if self.within is not None or tolerance < WIDE:
            return ""
        return f" within ±{100 * tolerance:.0f} %"


VERDICTS = {
    "agrees": "within the tolerance of the row, whose reason stands beside it",
    "recovered": "within it, too, but the simulated arm was given the number, or most of it: "
    "the simulator draws it, or the run takes it from the file of the robot, as the definition "
    "says; the method is shown to find it, the paper is not confirmed",
    "differs": "beyond the tolerance",
    "input": "a constant of the run",
    "not evidence": "simulator and model share the constant",
    "see text": "words, or values to compare by eye",
    "not published": "found here only",
    "not obtained": "found there only",
}
"""The words of verdicts and their meaning."""


def cell(value: Any, between: str = " ") -> str:
    """A value as text with four significant digits.

    Args:
        value: number, text, array, or None, which becomes a dash.
        between: text between several numbers.
    """
    match value:
        case None:
            return "-"
        case str():
            return value
        case list() | tuple() | np.ndarray():
            return between.join(cell(each, between) for each in value)
        case float() | np.floating():
            return f"{value:.4g}" if np.isfinite(value) else "-"
        case _:
            return str(value)
