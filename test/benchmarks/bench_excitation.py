"""Design of an exciting trajectory for the UR5e, beside the genetic search of Raviola et al. 2021.

Both keep the same limits and clearances, and are judged by the same checks in one run.
"""

from __future__ import annotations

from ur_energy_model.cli.output import print_table
from ur_energy_model.experiment.design import design_trajectory, genetic_search
from ur_energy_model.experiment.design_problem import DesignRequest
from ur_energy_model.model.robots import load_robot

PUBLISHED_CONDITION_NUMBER = 153
LIMIT = 60.0
"""Of the time of our search [s]."""


def main() -> None:
    """Print condition number, clearance and time of both searches."""
    request, rows = DesignRequest(load_robot("ur5e")), []
    for name, design in (
        ("genetic, 300 x 5", genetic_search(request)),
        ("gradient, all cores", design_trajectory(request, time_limit=LIMIT)),
    ):
        verdict = design.verdict
        limits = (verdict.clearance, verdict.max_velocity_ratio, verdict.max_tool_speed)
        rows.append([name, design.condition_number, *limits, design.starts, design.seconds])
    print_table(
        f"UR5e, limit {LIMIT:g} s; published for a UR5: {PUBLISHED_CONDITION_NUMBER}",
        ["search", "condition", "clearance m", "velocity", "tool m/s", "tried", "seconds"],
        rows,
    )
