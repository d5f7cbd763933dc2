"""What the recipes of the papers share: folder, robot, motions recorded to bags, verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.design.design import Design
from ur_energy_model.experiment.design.problem import DesignRequest, limits_of
from ur_energy_model.experiment.design.search import design_trajectory
from ur_energy_model.experiment.execution.execution_plan import ExecutionPlan, ExecutionResult
from ur_energy_model.experiment.limits import SafetyLimits, check
from ur_energy_model.experiment.runnable import RepeatedMotion, Runnable
from ur_energy_model.files import write_text
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.plain import plain
from ur_energy_model.trajectory.fourier import save_trajectory
from ur_energy_model.typing import Progress

Run = Callable[[ExecutionPlan, Path], ExecutionResult]
Mount = Callable[[float], None]


@dataclass(frozen=True)
class Row:
    """One line of a verdict.

    Attributes:
        figure: what it is, with its unit.
        published: what the paper reports, None where it reports nothing.
        here: what was found on this arm.
    """

    figure: str
    published: Any
    here: Any


@dataclass(frozen=True)
class Outcome:
    """What a protocol came to.

    Attributes:
        protocol: "s0", "s1", "s2" or "s4".
        source: the paper.
        robot: arm it was run on.
        simulated: whether that was a simulated one.
        rows: figures beside the published ones.
        warnings: for the user, one line each.
    """

    protocol: str
    source: str
    robot: str
    simulated: bool
    rows: Sequence[Row]
    warnings: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "protocol": self.protocol,
            "source": self.source,
            "robot": self.robot,
            "simulated": self.simulated,
            "figures": [
                {"figure": row.figure, "published": row.published, "here": row.here}
                for row in self.rows
            ],
            "warnings": list(self.warnings),
        }

    def markdown(self) -> str:
        """The table as a Markdown page."""
        lines = [
            f"# Protocol {self.protocol} on {self.robot}{' (simulated)' * self.simulated}",
            "",
            f"Published figures: {self.source}",
            "",
            "| figure | published | here |",
            "|---|---|---|",
            *(f"| {r.figure} | {cell(r.published)} | {cell(r.here)} |" for r in self.rows),
            "",
            *(f"- {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines).rstrip() + "\n"


def cell(value: Any) -> str:
    """A figure as text, to four significant digits."""
    match value:
        case None:
            return "-"
        case str():
            return value
        case list() | tuple() | np.ndarray():
            return " ".join(cell(each) for each in value)
        case float() | np.floating():
            return f"{value:.4g}" if np.isfinite(value) else "-"
        case _:
            return str(value)


@dataclass
class ProtocolRun:
    """One run of a protocol.

    Attributes:
        robot: the arm.
        folder: where everything goes.
        run: executes a plan and records it to a bag.
        mount: has a payload of this mass [kg] put on the flange, None where nobody can.
        progress: called with a fraction and a text.
        seed: of all random choices.
        design_seconds: time a design may take [s].
        simulated: whether the arm is a simulated one.
        warnings: for the user, filled on the way.
    """

    robot: RobotDescription
    folder: Path
    run: Run
    mount: Mount | None
    progress: Progress
    seed: int = 0
    design_seconds: float = 25.0
    simulated: bool = False
    warnings: list[str] = field(default_factory=list)

    @property
    def limits(self) -> SafetyLimits:
        """What every motion keeps: an upright arm on a table."""
        return limits_of(DesignRequest(self.robot))

    def design(self, name: str, seed: int) -> Design:
        """Design an exciting trajectory, and keep its file."""
        design = design_trajectory(
            DesignRequest(self.robot, seed=seed),
            time_limit=self.design_seconds,
            progress=self.progress,
        )
        save_trajectory(self.folder / f"{name}.yaml", design.trajectory)
        return design

    def record(self, name: str, motion: Runnable) -> Path:
        """Run a motion and record it; the bag's path."""
        bag = self.folder / name
        self.run(ExecutionPlan(motion, self.limits), bag)
        return bag

    def safe(self, candidates: Callable[[int], RepeatedMotion], seed: int) -> RepeatedMotion:
        """The first of seeded motions that passes every check.

        Raises:
            MotionRefusedError: none of many does.
        """
        limits = self.limits
        for attempt in range(100):
            motion = candidates(seed + 1000 * attempt)
            if check(motion, limits).passed:
                return motion
        raise MotionRefusedError(f"no test motion of {self.robot.name} passes the checks")

    def finish(self, protocol: str, published: Mapping[str, Any], rows: Sequence[Row]) -> Outcome:
        """The outcome, also written as verdict.md and verdict.json."""
        outcome = Outcome(
            protocol, published["source"], self.robot.name, self.simulated, rows, self.warnings
        )
        write_text(self.folder / "verdict.md", outcome.markdown())
        text = json.dumps(plain(outcome.as_dict()), indent=2, allow_nan=False)
        write_text(self.folder / "verdict.json", text + "\n")
        return outcome
