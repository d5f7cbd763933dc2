# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One run of a protocol: robot, output, recorded motions, figures beside published ones.

What a paper shows is data: config/papers.yaml has its tables, figures and sections with
their numbers, definitions and tolerances, as `Paper`. A protocol finds the same numbers on
an arm, each as a `ResultRow`; the rows of a run are its `Outcome`.
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
from ur_energy_model.report.chart import Chart
from ur_energy_model.report.figures import save_chart
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.trajectory.fourier import load_trajectory, save_trajectory
from ur_energy_model.typing import Progress
from ur_energy_model.yaml_reader import YamlTree

# What the papers show: config/papers.yaml.


@dataclass(frozen=True)
class PublishedRow:
    """A number of a paper, or of this package beside it.

    Attributes:
        figure: name with unit; {names} are filled in.
        published: value in the paper, None without one.
        how: how the paper computes the number, one clause; here follows it exactly.
        differs: what is not as in the paper, such as "arm", "data", "method".
        tolerance: relative difference up to which the two agree; None if it is not for a
            tolerance to decide.
        within: lowest and highest value here that agree with words, or with numbers for
            which no relative difference decides; numbers, or one per value.
        because: reason of the tolerance or the range.
        input: whether it is a constant of the run, such as a published number that it
            takes, so that agreement is no evidence.
        shown: whether the page has it although the paper prints no value.
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
    """What does not hold as printed, with the reason that a reader can check.

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
        place: as the paper calls it, such as "Table V".
        shows: what it shows.
        reason: why nothing can be obtained for it; "" if something can.
        rows: its numbers, by a key of ours.
    """

    place: str
    shows: str
    reason: str = ""
    rows: dict[str, PublishedRow] = field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """A paper and everything that it shows.

    Attributes:
        key: protocol, "s0" to "s4".
        title: of the paper.
        source: authors, journal, DOI.
        items: in the order of the paper.
        inputs: numbers that the protocol needs and no row shows.
        summary: what of the paper holds, what does not, what this package adds;
            sentences.
        errata: in the order of the paper.
    """

    key: str
    title: str
    source: str
    items: tuple[PublishedItem, ...]
    inputs: dict[str, Any] = field(default_factory=dict)
    summary: tuple[str, ...] = ()
    errata: tuple[Erratum, ...] = ()

    def __getitem__(self, key: str) -> Any:
        """The published value of a row, or an input."""
        return self.inputs[key] if key in self.inputs else self._rows[key][1].published

    @cached_property
    def _rows(self) -> dict[str, tuple[str, PublishedRow]]:
        return {
            key: (item.place, row)
            for item in self.items
            for key, row in item.rows.items()
        }

    def row(
        self, key: str, here: Any, *, evidence: bool = True, note: str = "", **named: Any
    ) -> ResultRow:
        """A row of the verdict with the value found here.

        Args:
            key: of the published row.
            here: value found on this arm: a number, several, a word, or None.
            evidence: False where simulator and model share the constant.
            note: words about a value that does not agree.
            named: attributes of the row that depend on the run (`published`, `differs`,
                `tolerance`, `within`, `because`), and names in its texts.

        Raises:
            KeyError: the paper has no such row, or a name in its texts is missing.
        """
        place, row = self._rows[key]
        content = vars(row) | {each: named.pop(each) for each in _CHANGED & named.keys()}
        for text in ("figure", "how"):
            content[text] = content[text].format(**{**self.inputs, **named})
        return ResultRow(
            **content, key=key, here=here, place=place, evidence=evidence, note=note
        )


WIDE = 0.5  # relative tolerance from which on the verdict states it
_CHANGED = {"published", "differs", "tolerance", "within", "because"}


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


# Result of a protocol: the figures found beside the published ones.


@dataclass(frozen=True)
class ResultRow(PublishedRow):
    """A published row with what was found: one row of a verdict.

    Attributes:
        key: of the published row.
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

        A range (`within`) decides before a tolerance. Of several numbers all must agree.

        Returns:
            None where no number decides: words, no tolerance, or other numbers of values.
        """
        if isinstance(self.here, str):
            return None
        here = np.asarray(self.here, float)
        if self.within is not None:
            low = np.asarray(self.within[0], float)
            high = np.asarray(self.within[1], float)
            return bool(np.all((low <= here) & (here <= high)))
        tolerance = 1e-6 if self.input and self.tolerance is None else self.tolerance
        if tolerance is None or isinstance(self.published, str):
            return None
        published = np.asarray(self.published, float)
        if published.ndim and published.shape != here.shape:
            return None
        return bool(np.all(np.abs(here - published) <= tolerance * np.abs(published)))

    @property
    def verdict(self) -> str:
        """One of agrees, differs, input, not evidence, not published, not obtained, see text.

        Of two numbers that agree although arm, data or method differ, the verdict names
        these.
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
        if agrees and self.within is None and (self.tolerance or 0.0) >= WIDE:
            word += f" within ±{100 * (self.tolerance or 0.0):.0f} %"
        if self.note and not agrees:
            word += f": {self.note}"
        if agrees is None or not self.differs:
            return word
        return f"{word}; another {' and '.join(self.differs)}"


@dataclass(frozen=True)
class Outcome:
    """Result of a protocol on one arm.

    Attributes:
        protocol: "s0" to "s4".
        source: authors, journal and DOI of the paper.
        robot: name of the arm.
        simulated: whether it is simulated.
        rows: published values with those found here.
        warnings: for the user, one sentence each.
        pictures: file in the output folder and caption of each picture.
    """

    protocol: str
    source: str
    robot: str
    simulated: bool
    rows: Sequence[ResultRow]
    warnings: Sequence[str] = ()
    pictures: Sequence[tuple[str, str]] = ()

    def as_dict(self) -> dict[str, Any]:
        """Content of verdict.json."""
        names = ("protocol", "source", "robot", "simulated", "warnings")
        shown = (
            *(
                "key",
                "figure",
                "published",
                "here",
                "place",
                "differs",
                "tolerance",
                "within",
            ),
            *("because", "shown", "verdict"),
        )
        return {
            **{name: getattr(self, name) for name in names},
            "figures": [
                {name: getattr(row, name) for name in shown} | {"definition": row.how}
                for row in self.rows
            ],
            "pictures": [
                {"file": file, "caption": caption} for file, caption in self.pictures
            ],
        }

    def markdown(self) -> str:
        """The result as a Markdown page."""
        lines = [
            f"# Protocol {self.protocol} on {self.robot}{' (simulated)' * self.simulated}",
            "",
            f"Published figures: {self.source}",
            "",
            "| figure | published | here |",
            "|---|---|---|",
            *(
                f"| {r.figure} | {cell(r.published)} | {cell(r.here)} |"
                for r in self.rows
            ),
            "",
            *(f"- {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines).rstrip() + "\n"


def cell(value: Any, between: str = " ") -> str:
    """A value as text with four significant digits.

    Args:
        value: number, text, array, or None, which becomes a dash.
        between: what joins several numbers.
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
Mount = Callable[[float], None]
VERDICT = "verdict.json"  # outcome in the output folder
PICTURES = "pictures"  # folder of the pictures in the output folder
_DPI = 90  # resolution of the pictures
_SLOWER = 0.3  # longer period of the second trajectory of a quick run, relative


@dataclass(frozen=True)
class OtherArms:
    """Makes further simulated arms for a run.

    Attributes:
        options: of the arm of the run.
        make: returns what runs plans on a new arm with other options.
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
        mount: asks for a payload of this mass [kg] on the flange; None if it cannot be
            mounted.
        progress: called with a fraction and a text.
        seed: of all random choices.
        design_seconds: time limit of a design [s].
        simulated: whether the arm is simulated.
        paper_settings: design with the limits and the genetic algorithm of the paper.
        quick: shorter motions and searches, for a first look; the outcome reports it.
        draw: whether pictures are drawn.
        campaign: s1 only: cold run, warm-up and warm run, too.
        another: makes further simulated arms; None on a robot.
        warnings: for the user, collected during the run.
        pictures: files in the output folder with their captions, collected during the
            run.
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
    pictures: list[tuple[str, str]] = field(default_factory=list)

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

        With the papers' settings the search is the genetic one, else gradient descents; a quick
        run takes the trajectory that the package includes.

        Args:
            name: of the file, without suffix.
            seed: of the search.
            request: what the trajectory must be; None for the usual one.
            population: of the genetic search.
            binary: whether the genetic search codes in bits.

        Raises:
            MotionRefusedError: no trajectory passed the checks.
        """
        wanted = replace(request or DesignRequest(self.robot), seed=seed)
        if self.quick and request is None:
            design = self._ready(wanted)
        elif self.paper_settings:
            design = genetic_search(
                wanted, population=population, binary=binary, progress=self.progress
            )
        else:
            limit = self.design_seconds
            design = design_trajectory(wanted, time_limit=limit, progress=self.progress)
        save_trajectory(self.folder / f"{name}.yaml", design.trajectory)
        return design

    def _ready(self, request: DesignRequest) -> Design:
        """The included trajectory if it passes the checks, slower for every further seed."""
        shipped = load_trajectory(config_file("excitation", f"{self.robot.name}.yaml"))
        pace = 1 + _SLOWER * (request.seed - self.seed)
        trajectory = replace(shipped, period=pace * shipped.period)
        problem = DesignProblem(request)
        verdict = check(trajectory, problem.limits)
        if not verdict.passed:
            raise MotionRefusedError(
                f"the trajectory of {self.robot.name}: {verdict.problems[0]}"
            )
        condition = problem.condition_number(trajectory)
        return Design(trajectory, condition, "condition", condition, verdict, 0.0, 0)

    def record(self, name: str, motion: PeriodicMotion, *, warm_up: float = 0.0) -> Path:
        """Run and record a motion.

        Args:
            name: of the bag in the output folder.
            motion: from its start, which the arm moves to first.
            warm_up: time for which the motion is repeated before the recording [s].

        Returns:
            Path of the bag.
        """
        bag = self.folder / name
        self.run(ExecutionPlan(motion, self.limits, warm_up=warm_up), bag)
        return bag

    def picture(self, chart: Chart, place: str) -> None:
        """Draw a chart for a figure of the paper into the folder of pictures.

        Args:
            chart: to draw; nothing happens where pictures are not drawn.
            place: the figure, such as "Fig. 3".
        """
        if not self.draw:
            return
        (path,) = save_chart(chart, self.folder / PICTURES, dpi=_DPI)
        self.pictures.append((f"{PICTURES}/{path.name}", f"{place}: {chart.title}"))

    def first_safe(
        self, candidates: Callable[[int], RepeatedMotion], seed: int
    ) -> RepeatedMotion:
        """The first of 100 seeded motions that passes every check.

        Args:
            candidates: makes a motion of a seed.
            seed: of the first candidate; those of further ones follow in steps of 1000.

        Raises:
            MotionRefusedError: none of them passes.
        """
        limits = self.limits
        for attempt in range(100):
            motion = candidates(seed + 1000 * attempt)
            if check(motion, limits).passed:
                return motion
        raise MotionRefusedError(f"no test motion of {self.robot.name} passes the checks")

    def finish(self, paper: Paper, rows: Sequence[ResultRow]) -> Outcome:
        """Write the outcome as verdict.md and verdict.json, and return it."""
        of_run = (self.robot.name, self.simulated, rows, self.warnings, self.pictures)
        outcome = Outcome(paper.key, paper.source, *of_run)
        write_text(self.folder / "verdict.md", outcome.markdown())
        text = json.dumps(plain(outcome.as_dict()), indent=2, allow_nan=False)
        write_text(self.folder / VERDICT, text + "\n")
        return outcome
