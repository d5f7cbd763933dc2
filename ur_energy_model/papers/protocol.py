# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One run of a protocol: robot, output, recorded motions, figures beside published ones."""

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
    """A number of a paper, or of this package beside it."""

    figure: str  # name with unit; {names} are filled in
    published: Any = None  # value in the paper, None without one
    # how the paper computes the number, one clause; here follows it exactly
    how: str = ""
    # what is not as in the paper, such as "arm", "data", "method"
    differs: tuple[str, ...] = ()
    # relative difference up to which the two agree; None if it is not for a tolerance to
    # decide
    tolerance: float | None = None
    # lowest and highest value here that agree with words, or with numbers for which no
    # relative difference decides; numbers, or one per value
    within: tuple[Any, Any] | None = None
    because: str = ""  # reason of the tolerance or the range
    # whether it is a constant of the run, such as a published number that it takes, so
    # that agreement is no evidence
    input: bool = False
    shown: bool = False  # whether the page has it although the paper prints no value


@dataclass(frozen=True)
class Erratum:
    """What does not hold as printed, with the reason that a reader can check."""

    place: str
    text: str


@dataclass(frozen=True)
class PublishedItem:
    """A table, figure or section of a paper."""

    place: str  # as the paper calls it, such as "Table V"
    shows: str  # what it shows
    reason: str = ""  # why nothing can be obtained for it; "" if something can
    # its numbers, by a key of ours
    rows: dict[str, PublishedRow] = field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """A paper and everything that it shows."""

    key: str  # protocol, "s0" to "s4"
    title: str  # of the paper
    source: str  # authors, journal, DOI
    items: tuple[PublishedItem, ...]  # in the order of the paper
    # numbers that the protocol needs and no row shows
    inputs: dict[str, Any] = field(default_factory=dict)
    # what of the paper holds, what does not, what this package adds; sentences
    summary: tuple[str, ...] = ()
    errata: tuple[Erratum, ...] = ()  # in the order of the paper

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
    ) -> Row:
        """A row of the verdict with the value found here.

        `evidence` and `note`: see `Row`; `named` has attributes of the row that depend on
        the run, and names in its texts.
        """
        place, row = self._rows[key]
        content = vars(row) | {each: named.pop(each) for each in _CHANGED & named.keys()}
        for text in ("figure", "how"):
            content[text] = content[text].format(**{**self.inputs, **named})
        return Row(
            **content, key=key, here=here, place=place, evidence=evidence, note=note
        )


WIDE = 0.5  # relative tolerance from which on the verdict states it
_CHANGED = {"published", "differs", "tolerance", "within", "because"}


def papers() -> tuple[Paper, ...]:
    """The papers in order."""
    content = YamlTree.read(
        config_file("papers.yaml"), InputError, "restore the file"
    ).plain()
    return built(tuple[Paper, ...], content["papers"])


def paper(key: str) -> Paper:
    """The paper of a protocol."""
    return next(each for each in papers() if each.key == key)


# Result of a protocol: the figures found beside the published ones.


@dataclass(frozen=True)
class Row(PublishedRow):
    """A published row with what was found: one row of a verdict."""

    key: str = ""  # of the published row
    here: Any = None  # value found on this arm
    place: str = ""  # table, figure, equation or section of the paper, such as "Table V"
    evidence: bool = True  # False where simulator and model share the constant
    note: str = ""  # words about a value that does not agree, or that no number decides

    @property
    def agrees(self) -> bool | None:
        """Whether the value here agrees with the published one; None where no number decides."""
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
    """Result of a protocol: rows, warnings, and pictures (file in the output folder, caption)."""

    protocol: str
    source: str
    robot: str
    simulated: bool
    rows: Sequence[Row]
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
    """A value as text with four significant digits; `between` joins several."""
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
    """Options of the arm of the run, and what runs plans on a new arm with other options."""

    options: ArmOptions
    make: Callable[[ArmOptions], Run]


@dataclass
class ProtocolRun:
    """One run of a protocol."""

    robot: RobotDescription  # the arm
    folder: Path  # output folder
    run: Run  # executes a plan and records it to a bag
    # asks for a payload of this mass [kg] on the flange; None if it cannot be mounted
    mount: Mount | None
    progress: Progress  # called with a fraction and a text
    seed: int = 0  # of all random choices
    design_seconds: float = 25.0  # time limit of a design [s]
    simulated: bool = False  # whether the arm is simulated
    # design with the limits and the genetic algorithm of the paper
    paper_settings: bool = False
    # shorter motions and searches, for a first look; the outcome reports it
    quick: bool = False
    draw: bool = True  # whether pictures are drawn
    campaign: bool = False  # s1 only: cold run, warm-up and warm run, too
    another: OtherArms | None = None  # makes further simulated arms; None on a robot
    # for the user, collected during the run
    warnings: list[str] = field(default_factory=list)
    # files in the output folder with their captions, collected during the run
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
        """Design an exciting trajectory (None: the usual one) and save it under this name.

        `population` and `binary` genes are those of the genetic algorithm of the papers'
        settings.
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
        """Run and record a motion, after `warm_up` seconds of it; returns the path of the bag."""
        bag = self.folder / name
        self.run(ExecutionPlan(motion, self.limits, warm_up=warm_up), bag)
        return bag

    def picture(self, chart: Chart, place: str) -> None:
        """Draw a chart for a figure of the paper, such as "Fig. 3"."""
        if not self.draw:
            return
        (path,) = save_chart(chart, self.folder / PICTURES, dpi=_DPI)
        self.pictures.append((f"{PICTURES}/{path.name}", f"{place}: {chart.title}"))

    def first_safe(
        self, candidates: Callable[[int], RepeatedMotion], seed: int
    ) -> RepeatedMotion:
        """The first of 100 seeded motions that passes every check; refused where none does."""
        limits = self.limits
        for attempt in range(100):
            motion = candidates(seed + 1000 * attempt)
            if check(motion, limits).passed:
                return motion
        raise MotionRefusedError(f"no test motion of {self.robot.name} passes the checks")

    def finish(self, paper: Paper, rows: Sequence[Row]) -> Outcome:
        """Write the outcome as verdict.md and verdict.json, and return it."""
        of_run = (self.robot.name, self.simulated, rows, self.warnings, self.pictures)
        outcome = Outcome(paper.key, paper.source, *of_run)
        write_text(self.folder / "verdict.md", outcome.markdown())
        text = json.dumps(plain(outcome.as_dict()), indent=2, allow_nan=False)
        write_text(self.folder / VERDICT, text + "\n")
        return outcome
