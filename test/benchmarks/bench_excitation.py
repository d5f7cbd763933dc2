"""Design of an exciting trajectory for the UR5e, beside the genetic search of Raviola et al. 2021.

Both keep the same limits and clearances, and are judged by the same checks in one run.
"""

from __future__ import annotations

from ur_energy_model.cli.output import print_table
from ur_energy_model.experiment.design import Design, design_trajectory, genetic_search
from ur_energy_model.experiment.design_problem import DesignRequest
from ur_energy_model.model.robots import load_robot

PUBLISHED_CONDITION_NUMBER = 153


def row(name: str, design: Design) -> list[object]:
    verdict = design.verdict
    return [
        name,
        design.condition_number,
        verdict.clearance,
        verdict.max_velocity_ratio,
        verdict.max_tool_speed,
        design.starts,
        design.seconds,
    ]


def main(time_limit: float = 60.0) -> None:
    """Print condition number, clearance and time of both searches."""
    request = DesignRequest(load_robot("ur5e"))
    genetic = genetic_search(request)
    gradient = design_trajectory(request, time_limit=time_limit)
    print_table(
        f"UR5e, limit {time_limit:g} s; published for a UR5: {PUBLISHED_CONDITION_NUMBER}",
        ["search", "condition", "clearance m", "velocity", "tool m/s", "tried", "seconds"],
        [row("genetic, 300 x 5", genetic), row("gradient, all cores", gradient)],
    )
