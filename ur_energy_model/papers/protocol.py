# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One run of a protocol: robot, output, recorded motions, values beside published ones.

The contents of the papers are data: config/papers.yaml has tables, figures and sections
with their numbers, definitions and tolerances, which `Paper` holds. A protocol finds the
same numbers on an arm, each as a `ResultRow`; the rows of a run are its `Outcome`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.codec import built, plain
from ur_energy_model.errors import InputError, MotionRefusedError
from ur_energy_model.experiment.design import Design, design_trajectory
from ur_energy_model.experiment.design_problem import (
    DesignProblem,
    DesignRequest,
    limits_of,
)
from ur_energy_model.experiment.execution import ExecutionPlan, ExecutionResult
from ur_energy_model.experiment.limits import (
    PeriodicMotion,
    RepeatedMotion,
    SafetyLimits,
    check,
)
from ur_energy_model.files import config_file, write_text
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.genetic import genetic_search
from ur_energy_model.papers.pictures import Picture, draw_picture
from ur_energy_model.report.chart import Chart
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.trajectory.fourier import load_trajectory, save_trajectory
from ur_energy_model.typing import Progress
from ur_energy_model.yaml_reader import YamlTree

# Contents of the papers, from config/papers.yaml.


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
    """

    key: str
    title: str
    source: str
    items: tuple[PublishedItem, ...]
    inputs: dict[str, Any] = field(default_factory=dict)
    summary: tuple[str, ...] = ()
    errata: tuple[Erratum, ...] = ()

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


# Result of a protocol: the values found on an arm beside the published ones.


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
        """One of agrees, differs, input, not evidence, not published, not obtained, see text.

        Where arm, data or method differ from the paper, the verdict names them.
        """
        if self.here is None:
            return "not obtained"
        if self.published is None:
            return "not published"
        if not self.evidence:
            return "not evidence"
        agrees = self.agrees
        if agrees and self.input:
            return "input"
        word = {None: "see text", True: "agrees", False: "differs"}[agrees]
        tolerance = self.tolerance or 0.0
        if agrees and self.within is None and tolerance >= WIDE:
            word += f" within ±{100 * tolerance:.0f} %"
        if self.note and not agrees:
            word += f": {self.note}"
        if agrees is None or not self.differs:
            return word
        return f"{word}; another {' and '.join(self.differs)}"


_IN_VERDICT = (
    "key",
    "figure",
    "published",
    "here",
    "place",
    "differs",
    "tolerance",
    "within",
    "because",
    "shown",
    "verdict",
)
"""Attributes of a row in verdict.json."""


@dataclass(frozen=True)
class Outcome:
    """Result of a protocol on one arm.

    Attributes:
        protocol: "s0" to "s4".
        source: authors, journal and DOI of the paper.
        robot: name of the arm.
        simulated: whether the arm is simulated.
        rows: published values with the values found on the arm.
        warnings: warnings for the user, one sentence each.
        pictures: pictures in the output folder.
    """

    protocol: str
    source: str
    robot: str
    simulated: bool
    rows: Sequence[ResultRow]
    warnings: Sequence[str] = ()
    pictures: Sequence[Picture] = ()

    def as_dict(self) -> dict[str, Any]:
        """Content of verdict.json."""
        figures = []
        for row in self.rows:
            figure = {name: getattr(row, name) for name in _IN_VERDICT}
            figure["definition"] = row.how
            figures.append(figure)
        return {
            "protocol": self.protocol,
            "source": self.source,
            "robot": self.robot,
            "simulated": self.simulated,
            "warnings": self.warnings,
            "figures": figures,
            "pictures": [vars(picture) for picture in self.pictures],
        }

    def markdown(self) -> str:
        """The result as a Markdown page."""
        arm = f"{self.robot} (simulated)" if self.simulated else self.robot
        lines = [
            f"# Protocol {self.protocol} on {arm}",
            "",
            f"Published figures: {self.source}",
            "",
            "| figure | published | here |",
            "|---|---|---|",
        ]
        lines += [
            f"| {row.figure} | {cell(row.published)} | {cell(row.here)} |"
            for row in self.rows
        ]
        lines.append("")
        lines += [f"- {warning}" for warning in self.warnings]
        return "\n".join(lines).rstrip() + "\n"


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


Run = Callable[[ExecutionPlan, Path], ExecutionResult]
"""Executes a plan on an arm and records it to a new bag."""
Mount = Callable[[float], None]
"""Mounts a payload of a mass [kg]; 0 takes the payload off."""
VERDICT = "verdict.json"  # outcome in the output folder
PICTURES = "pictures"  # folder of the pictures in the output folder
_SLOWER = 0.3  # part by which each further trajectory of a quick run has a longer period
_ATTEMPTS = 100  # seeds that are tried for a motion that passes every check
_SEED_STEP = 1000  # step from the seed of one attempt to the next seed


@dataclass(frozen=True)
class OtherArms:
    """Makes further simulated arms for a run.

    Attributes:
        options: options of the arm of the run.
        make: makes a new arm with other options, and returns the function that runs plans
            on it.
    """

    options: ArmOptions
    make: Callable[[ArmOptions], Run]


@dataclass
class ProtocolRun:
    """One run of a protocol.

    Attributes:
        robot: the arm.
        folder: output folder.
        run: executes a plan and records it to a bag.
        mount: mounts a payload of a mass [kg] on the flange, or asks the user to do so;
            None where nobody can.
        progress: called with a fraction and a text.
        seed: seed of all random choices.
        design_seconds: time limit of a design [s].
        simulated: whether the arm is simulated.
        paper_settings: design with the limits and the genetic algorithm of the paper.
        quick: shorter motions and searches, for a first look.
        draw: whether pictures are drawn.
        campaign: s1 only: also the warm-up and the warm run.
        another: makes further simulated arms; None on a robot.
        warnings: warnings for the user, collected during the run.
        pictures: pictures in the output folder, collected during the run.
    """

    robot: RobotDescription
    folder: Path
    run: Run
    mount: Mount | None
    progress: Progress
    seed: int = 0
    design_seconds: float = 25.0
    simulated: bool = False
    paper_settings: bool = False
    quick: bool = False
    draw: bool = True
    campaign: bool = False
    another: OtherArms | None = None
    warnings: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    @property
    def limits(self) -> SafetyLimits:
        """Limits of every motion: an upright arm on a table."""
        return limits_of(DesignRequest(self.robot))

    def design(
        self,
        name: str,
        seed: int,
        request: DesignRequest | None = None,
        *,
        population: int = 300,
        binary: bool = False,
    ) -> Design:
        """Design an exciting trajectory and save it in the output folder.

        With the settings of the paper the search is the genetic one, else gradient
        descents. A quick run takes the trajectory that the package includes instead,
        unless a request is given.

        Args:
            name: name of the trajectory file, without suffix.
            seed: seed of the search.
            request: requirements on the trajectory; None for the usual ones.
            population: individuals of the genetic search.
            binary: whether the genetic search codes in bits.

        Raises:
            MotionRefusedError: no trajectory passed the checks.
        """
        wanted = replace(request or DesignRequest(self.robot), seed=seed)
        if self.quick and request is None:
            design = self._included(wanted)
        elif self.paper_settings:
            design = genetic_search(
                wanted, population=population, binary=binary, progress=self.progress
            )
        else:
            limit = self.design_seconds
            design = design_trajectory(wanted, time_limit=limit, progress=self.progress)
        save_trajectory(self.folder / f"{name}.yaml", design.trajectory)
        return design

    def _included(self, request: DesignRequest) -> Design:
        """The trajectory that the package includes, slower for every further seed.

        Args:
            request: seed and limits of the trajectory.

        Raises:
            MotionRefusedError: the trajectory does not pass the checks.
        """
        included = load_trajectory(config_file("excitation", f"{self.robot.name}.yaml"))
        slowdown = 1 + _SLOWER * (request.seed - self.seed)
        trajectory = replace(included, period=slowdown * included.period)
        problem = DesignProblem(request)
        verdict = check(trajectory, problem.limits)
        if not verdict.passed:
            raise MotionRefusedError(
                f"the trajectory of {self.robot.name}: {verdict.problems[0]}"
            )
        condition = problem.condition_number(trajectory)
        return Design(
            trajectory,
            condition,
            "condition",
            condition,
            verdict,
            seconds=0.0,
            starts=0,
        )

    def record(self, name: str, motion: PeriodicMotion, *, warm_up: float = 0.0) -> Path:
        """Run and record a motion.

        Args:
            name: name of the bag in the output folder.
            motion: motion to run; the arm first moves to its start.
            warm_up: time for which the motion is repeated before the recording [s].

        Returns:
            Path of the bag.

        Raises:
            UrEnergyError: the motion cannot be run.
        """
        bag = self.folder / name
        self.run(ExecutionPlan(motion, self.limits, warm_up=warm_up), bag)
        return bag

    def picture(self, chart: Chart, place: str) -> None:
        """Draw a chart for a figure of the paper into the folder of pictures.

        Where it shows measured beside modelled values, R2 is added (`draw_picture`).

        Args:
            chart: chart to draw; nothing happens where pictures are not drawn.
            place: the figure, such as "Fig. 3".
        """
        if self.draw:
            self.pictures.append(draw_picture(chart, self.folder / PICTURES, place))

    def first_safe(
        self, candidates: Callable[[int], RepeatedMotion], seed: int
    ) -> RepeatedMotion:
        """The first of 100 seeded motions that passes every check.

        Args:
            candidates: makes a motion from a seed.
            seed: seed of the first candidate; further seeds follow in steps of 1000.

        Raises:
            MotionRefusedError: no candidate passes.
        """
        limits = self.limits
        for attempt in range(_ATTEMPTS):
            motion = candidates(seed + _SEED_STEP * attempt)
            if check(motion, limits).passed:
                return motion
        raise MotionRefusedError(f"no test motion of {self.robot.name} passes the checks")

    def finish(self, paper: Paper, rows: Sequence[ResultRow]) -> Outcome:
        """Write the outcome as verdict.md and verdict.json, and return the outcome.

        Args:
            paper: the paper of the protocol.
            rows: rows of the paper with the values found on the arm.
        """
        outcome = Outcome(
            protocol=paper.key,
            source=paper.source,
            robot=self.robot.name,
            simulated=self.simulated,
            rows=rows,
            warnings=self.warnings,
            pictures=self.pictures,
        )
        write_text(self.folder / "verdict.md", outcome.markdown())
        text = json.dumps(plain(outcome.as_dict()), indent=2, allow_nan=False)
        write_text(self.folder / VERDICT, text + "\n")
        return outcome
