"""What a search for an exciting trajectory finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ur_energy_model.experiment.design.problem import DesignProblem
from ur_energy_model.experiment.limits import TrajectoryVerdict
from ur_energy_model.trajectory.fourier import FourierTrajectory
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class DesignCandidate:
    """A trajectory that passed every check.

    Attributes:
        x: free coefficients, see `DesignProblem`.
        value: of the objective, as reported.
        verdict: of the checks.
    """

    x: Array
    value: float
    verdict: TrajectoryVerdict


@dataclass(frozen=True)
class Design:
    """A designed trajectory with its figures.

    Attributes:
        trajectory: passed every check.
        condition_number: of its stacked base regressor over one period.
        objective: name of what was minimised.
        value: of the objective.
        verdict: of the checks.
        seconds: that the search took.
        starts: descents (or individuals) tried.
    """

    trajectory: FourierTrajectory
    condition_number: float
    objective: str
    value: float
    verdict: TrajectoryVerdict
    seconds: float
    starts: int

    def figures(self) -> dict[str, Any]:
        """The figures of the command line's JSON and of the trajectory file."""
        return {
            "condition_number": self.condition_number,
            "objective": self.objective,
            "max_velocity_ratio": self.verdict.max_velocity_ratio,
            "max_acceleration_ratio": self.verdict.max_acceleration_ratio,
            "clearance": self.verdict.clearance,
            "seconds": self.seconds,
            "objective_value": self.value,
            "max_position_ratio": self.verdict.max_position_ratio,
            "max_torque_ratio": self.verdict.max_torque_ratio,
            "max_tool_speed": self.verdict.max_tool_speed,
            "closest": list(self.verdict.closest),
            "starts": self.starts,
        }


def design_of(problem: DesignProblem, best: DesignCandidate, seconds: float, tried: int) -> Design:
    """The design that a candidate is, with its figures in the trajectory's file.

    Args:
        problem: what was wanted.
        best: the candidate.
        seconds: that the search took.
        tried: descents or individuals.
    """
    request = problem.request
    plain = problem.trajectory(best.x)
    condition = problem.condition_number(plain)
    design = Design(plain, condition, request.objective, best.value, best.verdict, seconds, tried)
    record = {
        **design.figures(),
        "seed": request.seed,
        "clearance_kept": request.clearance,
        "tool_speed_limit": request.tool_speed,
    }
    labelled = problem.trajectory(best.x, record)
    return Design(labelled, condition, request.objective, best.value, best.verdict, seconds, tried)
