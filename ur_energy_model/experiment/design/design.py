"""Result of a search for an exciting trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ur_energy_model.experiment.design.gap import shown
from ur_energy_model.experiment.design.problem import DesignProblem
from ur_energy_model.experiment.limits import TrajectoryVerdict
from ur_energy_model.trajectory.fourier import FourierTrajectory
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class DesignCandidate:
    """A trajectory that passed every check.

    Attributes:
        x: free coefficients, see `DesignProblem`.
        value: objective.
        verdict: result of the checks.
    """

    x: Array
    value: float
    verdict: TrajectoryVerdict


@dataclass(frozen=True)
class Design:
    """A designed trajectory with its figures of merit.

    Attributes:
        trajectory: passed every check.
        condition_number: of its stacked base regressor over one period.
        objective: name of the objective.
        value: objective.
        verdict: result of the checks.
        seconds: duration of the search.
        starts: number of descents (or individuals) tried.
    """

    trajectory: FourierTrajectory
    condition_number: float
    objective: str
    value: float
    verdict: TrajectoryVerdict
    seconds: float
    starts: int

    def figures(self) -> dict[str, Any]:
        """Figures of merit for JSON output and the trajectory file."""
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


def make_design(
    problem: DesignProblem, best: DesignCandidate, seconds: float, tried: int
) -> Design:
    """Design of a candidate, with its figures in the trajectory's metadata.

    Args:
        problem: the design problem.
        best: the candidate.
        seconds: duration of the search.
        tried: number of descents or individuals.
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
    if request.gaps:
        record["for_gap"] = shown(request.gaps, plain, request.robot)
    labelled = problem.trajectory(best.x, record)
    return Design(labelled, condition, request.objective, best.value, best.verdict, seconds, tried)
