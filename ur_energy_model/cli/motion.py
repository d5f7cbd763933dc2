"""Asking before a robot moves, and telling what became of it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ur_energy_model.cli.output import note, print_json, print_table, progress
from ur_energy_model.errors import MotionRefusedError

if TYPE_CHECKING:
    from ur_energy_model.experiment.execution.execution_plan import (
        ExecutionPlan,
        ExecutionResult,
        MotionSummary,
    )


def run_recorded(plan: ExecutionPlan, host: str, bag: Path, *, assume_yes: bool) -> ExecutionResult:
    """Run a trajectory and record it, with confirmation and progress.

    Raises:
        MotionRefusedError: it did not run to its end; the bag is kept.
    """
    from ur_energy_model.experiment.execution.execution import execute

    def approve(summary: MotionSummary) -> bool:
        describe(summary)
        return assume_yes or _asked()

    with progress(f"running on {host}") as bar:
        result = execute(plan, host, bag, approve=approve, progress=bar)
    if not result.completed:
        raise MotionRefusedError(
            f"stopped: {result.reason}; {result.status.samples} samples are kept in {bag}"
        )
    return result


def run_and_report(
    plan: ExecutionPlan, host: str, bag: Path, *, assume_yes: bool, as_json: bool
) -> int:
    """Run, record and print what was recorded."""
    result = run_recorded(plan, host, bag, assume_yes=assume_yes)
    status = result.status
    if as_json:
        print_json(
            {
                "bag": str(bag),
                "completed": result.completed,
                "samples": status.samples,
                "lost": status.lost,
                "duplicates": status.duplicates,
                "gaps": [asdict(gap) for gap in status.gaps],
                "seconds": status.seconds,
                "max_following_error": result.following_error,
                "joint_temperatures": result.temperatures,
            }
        )
        return 0
    rows: list[list[Any]] = [
        ["samples", status.samples],
        ["lost", status.lost],
        ["largest following error, rad", result.following_error],
        [
            "hottest joint before and after, degC",
            " ".join(f"{value:.1f}" for value in result.temperatures.max(axis=1)),
        ],
    ]
    print_table(f"Recorded {bag}", ["figure", "value"], rows)
    note(f"next: ur_energy identify {bag} --robot {plan.trajectory.robot} -o model.yaml")
    return 0


def describe(summary: MotionSummary) -> None:
    """Say on stderr what will move, how far and how fast."""
    travel, speed = np.rad2deg(summary.travel), np.rad2deg(summary.joint_speed)
    way = np.rad2deg(np.abs(summary.start - summary.here).max())
    serial = "" if summary.serial is None else f", serial {summary.serial}"
    note(f"The {summary.robot} at {summary.host}{serial} is going to move:")
    if summary.program_running:
        note("  the program that runs on it is replaced")
    note(f"  first slowly to the start, a joint by up to {way:.0f} degrees")
    if summary.warm_up > 0:
        note(
            f"  then along the trajectory for {summary.warm_up / 60:.3g} min to warm up, unrecorded"
        )
    note(
        f"  then for {summary.duration:.0f} s: joints by "
        f"{', '.join(f'{value:.0f}' for value in travel)} degrees at up to "
        f"{', '.join(f'{value:.0f}' for value in speed)} degrees/s"
    )
    note(
        f"  tool and elbow at up to {summary.tool_speed:.2f} m/s, clear of itself and of table "
        f"and walls as described by {1000 * summary.clearance:.0f} mm"
    )


def _asked() -> bool:
    """Whether the person at the terminal says yes.

    Raises:
        MotionRefusedError: there is nobody to ask.
    """
    if not sys.stdin.isatty():
        raise MotionRefusedError(
            "nobody is there to confirm the motion; add --yes where a script may move the robot"
        )
    print("Is the space around the robot free? Type yes to move it: ", end="", file=sys.stderr)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
