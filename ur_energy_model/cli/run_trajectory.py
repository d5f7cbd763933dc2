"""Running a trajectory on a robot: confirmation, recording and the printed result."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.cli.output import ask, note, print_json, print_table, progress
from ur_energy_model.cli.record import recording_json
from ur_energy_model.errors import MotionRefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from ur_energy_model.experiment.execution_plan import (
        ExecutionPlan,
        ExecutionResult,
        MotionSummary,
    )


def run_recorded(plan: ExecutionPlan, host: str, bag: Path, *, assume_yes: bool) -> ExecutionResult:
    """Run a trajectory and record it, with confirmation and progress.

    Raises:
        MotionRefusedError: it was not confirmed or stopped before its end; the bag is kept.
    """
    from ur_energy_model.experiment.execution import execute

    def approve(summary: MotionSummary) -> bool:
        describe(summary)
        return assume_yes or _confirmed(summary)

    with progress(f"running on {host}") as bar:
        result = execute(plan, host, bag, approve=approve, progress=bar)
    if not result.completed:
        raise MotionRefusedError(
            f"stopped: {result.reason}; {result.status.samples} samples are kept in {bag}"
        )
    return result


def run_and_report(
    plan: ExecutionPlan, host: str, bag: Path, *, assume_yes: bool, as_json: bool
) -> None:
    """Run, record and print what was recorded."""
    result = run_recorded(plan, host, bag, assume_yes=assume_yes)
    status = result.status
    if as_json:
        print_json(
            {
                **recording_json(bag, status),
                "completed": result.completed,
                "max_following_error": result.following_error,
                "joint_temperatures": result.temperatures,
            }
        )
        return
    hottest = " ".join(f"{value:.1f}" for value in result.temperatures.max(axis=1))
    print_table(
        f"Recorded {bag}",
        ["figure", "value"],
        [
            ["samples", status.samples],
            ["lost", status.lost],
            ["maximum following error, rad", result.following_error],
            ["hottest joint before and after, degC", hottest],
        ],
    )
    note(f"next: ur_energy identify {bag} -o model.yaml")


def describe(summary: MotionSummary) -> None:
    """Describe on stderr what will move, how far and how fast."""
    travel, speed = np.rad2deg(summary.travel), np.rad2deg(summary.joint_speed)
    approach = np.rad2deg(np.abs(summary.start - summary.here).max())
    serial = "" if summary.serial is None else f", serial {summary.serial}"
    note(f"The {summary.robot} at {summary.host}{serial} is going to move:")
    for remark in summary.remarks:
        note(f"  {remark}")
    if summary.other_arm:
        note(f"  ANOTHER ARM: {summary.other_arm}")
    if summary.program_running:
        note("  the program now running on it is replaced")
    note(f"  first slowly to the start, by up to {approach:.0f} degrees per joint")
    if summary.warm_up > 0:
        note(
            f"  then along the trajectory for {summary.warm_up / 60:.3g} min to warm up, "
            "without recording"
        )
    note(
        f"  then for {summary.duration:.0f} s: joints by "
        f"{', '.join(f'{value:.0f}' for value in travel)} degrees at up to "
        f"{', '.join(f'{value:.0f}' for value in speed)} degrees/s"
    )
    note(
        f"  tool and elbow at up to {summary.tool_speed:.2f} m/s, at least "
        f"{1000 * summary.clearance:.0f} mm from itself and from the table and walls described"
    )


def _confirmed(summary: MotionSummary) -> bool:
    """Whether the user at the terminal confirms the motion.

    Raises:
        MotionRefusedError: there is no terminal to ask at.
    """
    if not sys.stdin.isatty():
        raise MotionRefusedError(
            "the motion cannot be confirmed without a terminal; add --yes if a script may move "
            "the robot"
        )
    question = "Is the space around the robot free?"
    if summary.other_arm:
        question += " Is this other arm meant?"
    answer = ask(f"{question} Type yes to move it: ")
    return answer.lower() in {"y", "yes"}
