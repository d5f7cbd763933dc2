"""Steps of the wall clock while `record` and the logger run."""

from __future__ import annotations

import sys
import time

import numpy as np

from test.torture.harness import PATIENCE, Case, Family, Verdict, Watched
from test.torture.subjects import (
    FIELDS,
    Recorded,
    check_counts,
    end_node,
    no_ros,
    readable_times,
    ros_client,
    start_node,
    summary,
)
from ur_energy_model.telemetry.bag.reader import read_bag, read_events

DURATION = 6.0
DRIFT = 0.5
"""Most difference between the span of the log times and that of the controller's clock [s]."""
STEPS = (3600.0, -3600.0, 1.0, -1.0, 86400.0 * 365, -86400.0 * 365, 0.02)


def run(case: Case) -> Verdict:
    """A step under `record`; every third case under the logger."""
    step, after = case.random.choice(STEPS), case.random.uniform(1.0, 6.0)
    subject = "logger" if case.number % 3 == 2 else "record"
    verdict = Verdict(f"{subject}: wall clock steps by {step:g} s after {after:.1f} s")
    if subject == "logger" and no_ros():
        verdict.skipped = no_ros()
        return verdict
    launch = [sys.executable, "-m", "test.torture.stepped_clock", str(step), str(after)]
    (_record if subject == "record" else _logger)(case, verdict, launch)
    return verdict


def _record(case: Case, verdict: Verdict, launch: list[str]) -> None:
    arguments = ["--host", case.around.host, "--robot", "ur5e", "--fields", FIELDS, "--json"]
    arguments += ["--duration", str(DURATION), "-o", "bag"]
    recording = Watched(
        [*launch, "ur_energy", "record", *arguments], case.folder, case.around.environment
    )
    recording.finish(PATIENCE)
    verdict.seconds = time.monotonic() - recording.began
    recording.judge(verdict, (0,))
    told = summary(recording.output)
    if told is not None:
        check_counts(verdict, Recorded.of(readable_times(case.folder / "bag"), told))
        _check_stamps(case, verdict, "bag")


def _logger(case: Case, verdict: Verdict, launch: list[str]) -> None:
    environment = case.around.ros_environment()
    logger = start_node(
        case, "logger", environment, [*launch, "logger_node"], robot_ip=case.around.host
    )
    with ros_client(environment) as client:
        end = time.monotonic() + 2.0 + DURATION
        while time.monotonic() < end and logger.running:
            client.call("/logger/mark")  # before the step and after it
            client.spin(1.0)
    verdict.expect(logger.running, "the logger ended by itself")
    end_node(case, logger, verdict)
    for bag in sorted((case.folder / "bags").glob("*")):
        _check_stamps(case, verdict, f"bags/{bag.name}")


def _check_stamps(case: Case, verdict: Verdict, name: str) -> None:
    """Log times follow the controller's clock, and marks are among them."""
    path = case.folder / name
    bag = read_bag(path)
    if bag.stamp is None or not verdict.expect(len(bag) > 1, "the bag holds no samples"):
        return
    stamps = 1e-9 * (bag.stamp - bag.stamp[0]).astype(float)
    strays = float(np.abs(stamps - (bag.time - bag.time[0])).max())
    verdict.expect(strays < DRIFT, f"log times stray by {strays:.1f} s from the controller's clock")
    verdict.expect(bool((np.diff(stamps) > 0.0).all()), "samples share a log time or go back")
    for event in read_events(path):
        inside = bag.stamp[0] - 1e9 <= event.stamp <= bag.stamp[-1] + 1e9
        verdict.expect(bool(inside), f"event {event.text!r} lies outside of the recording")


FAMILY = Family("clocks", 1.2, run, at_once=2)
