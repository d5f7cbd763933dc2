# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Steps of the wall clock while `record` and the logger run.

`python -m test.torture.clocks SECONDS AFTER SCRIPT ARGUMENT...` runs a console script of
the package while the wall clock that Python code reads jumps by SECONDS, AFTER seconds
after the start. The monotonic clock does not.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from test.telemetry.recorded_events import read_events
from test.torture.harness import Case, Family, Verdict
from test.torture.subjects import Subject, ros_client
from ur_energy_model.telemetry.bag.reader import read_bag

DURATION = 6.0
DRIFT = 0.5
"""Most difference between the span of the log times and that of the controller's clock [s]."""
STEPS = (3600.0, -3600.0, 1.0, -1.0, 86400.0 * 365, -86400.0 * 365, 0.02)


def run(case: Case) -> Verdict:
    """A step under `record`; every third case under the logger."""
    step = case.random.choice(STEPS)
    after = case.random.uniform(1.0, 6.0)
    name = "logger" if case.number % 3 == 2 else "record"
    verdict = Verdict(f"{name}: wall clock steps by {step:g} s after {after:.1f} s")
    launch = [sys.executable, "-m", "test.torture.clocks", str(step), str(after)]
    launch += ["logger_node"] if name == "logger" else []
    subject = Subject(
        case, verdict, name, case.around.host, launch=launch, seconds=DURATION
    )
    if name == "record":
        subject.conclude(whole=False, codes=(0,))
    else:
        with ros_client(subject.environment) as client:
            end = time.monotonic() + 2.0 + DURATION
            while time.monotonic() < end and subject.process.running:
                client.answer("/logger/mark")  # before the step and after it
                client.spin(1.0)
        verdict.expect(subject.process.running, "the logger ended by itself")
        subject.end()
    for path in subject.bags:
        bag = read_bag(path)
        if bag.stamp is None or not verdict.expect(
            len(bag) > 1, "the bag holds no samples"
        ):
            continue
        stamps = 1e-9 * (bag.stamp - bag.stamp[0]).astype(float)
        strays = float(np.abs(stamps - (bag.time - bag.time[0])).max())
        verdict.expect(
            strays < DRIFT, f"log times stray by {strays:.1f} s from the clock"
        )
        verdict.expect(
            bool((np.diff(stamps) > 0.0).all()), "samples share a log time or go back"
        )
        for event in read_events(path):
            inside = bag.stamp[0] - 1e9 <= event.stamp <= bag.stamp[-1] + 1e9
            verdict.expect(
                bool(inside), f"event {event.text!r} lies outside of the recording"
            )
    return verdict


FAMILY = Family("clocks", 1.2, run, at_once=2)


def main() -> None:
    """Let time.time and time.time_ns jump once, and run the script."""
    seconds, after = map(float, sys.argv[1:3])
    true_ns = time.time_ns
    monotonic = time.monotonic
    began = time.monotonic()

    def stepped_ns() -> int:
        return true_ns() + (round(1e9 * seconds) if monotonic() - began > after else 0)

    time.time_ns = stepped_ns
    time.time = lambda: stepped_ns() / 1e9
    name = sys.argv[3]
    sys.argv = sys.argv[3:]
    from ur_energy_model import scripts

    sys.exit(getattr(scripts, name)())


if __name__ == "__main__":
    main()
