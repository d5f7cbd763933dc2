# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Every command and node that runs long, ended at any moment by any signal, and its next run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from test.interrupting import COMPLAINTS, End, ended, temporary_files
from test.running import fresh_host
from test.torture.harness import Case, Family, Surroundings, Verdict

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
ROWS = 60_000  # of the CSV file that is imported
# bags that are worked on, and their length [s]
RECORDINGS = 2
SECONDS = 12


_making = threading.Lock()  # what all cases share


class Long(NamedTuple):
    """A program that runs long."""

    words: Callable[[Surroundings], list[str]]
    longest: float  # time until the signal [s], from the start of the program
    script: str = "ur_energy"
    finishes: bool = False  # a signal is a request to finish the work, with exit code 0


def bags(around: Surroundings) -> list[str]:
    """Recordings that all cases share."""
    with _making:
        return _bags(around)


def _bags(around: Surroundings) -> list[str]:
    if "bags" not in around.kept:
        folder = around.folder / "recordings"
        folder.mkdir()
        made = [folder / str(number) for number in range(RECORDINGS)]
        for bag in made:
            words = [
                "record",
                "--host",
                around.host,
                "--duration",
                str(SECONDS),
                "-o",
                str(bag),
            ]
            end = ended("ur_energy", words, signal.SIGTERM, 10.0 * SECONDS, around.folder)
            if end.code:
                raise RuntimeError(end.output)
        around.kept["bags"] = [str(bag) for bag in made]
    return list(around.kept["bags"])


def table(around: Surroundings) -> str:
    """A CSV file of a joint that swings, long enough for its import to be interrupted."""
    path = around.folder / "motion.csv"
    with _making:
        if not path.exists():
            _write_table(path)
    return str(path)


def _write_table(path: Path) -> None:
    names = [
        f"{name}_{joint}" for name in ("actual_q", "actual_qd") for joint in range(6)
    ]
    time = 0.002 * np.arange(ROWS)
    swing = np.repeat(np.sin(time)[:, None], 6, axis=1)
    speed = np.repeat(np.cos(time)[:, None], 6, axis=1)
    values = np.column_stack([time, swing, speed])
    header = ",".join(["timestamp", *names])
    np.savetxt(path, values, fmt="%.4f", delimiter=",", header=header, comments="")


def environment(around: Surroundings) -> dict[str, str]:
    """Variables of all cases: one ROS domain."""
    with _making:
        if "environment" not in around.kept:
            around.kept["environment"] = around.ros_environment()
    return dict(around.kept["environment"])


def parameters(**values: str) -> list[str]:
    """Arguments of a node."""
    return [
        "--ros-args",
        *(word for each in values.items() for word in ("-p", ":=".join(each))),
    ]


PROGRAMS = {
    "record": Long(
        lambda around: ["record", "--host", around.host, "-o", "bag"], 5.0, finishes=True
    ),
    "record, waiting": Long(
        lambda around: ["record", "--host", fresh_host(), "--wait", "90", "-o", "bag"],
        3.0,
    ),
    "live": Long(
        lambda around: ["live", "--host", around.host, "--state-file", "state.db"],
        6.0,
        finishes=True,
    ),
    "simulate": Long(
        lambda around: ["simulate", "--robot", "ur5e", "--host", fresh_host()],
        6.0,
        finishes=True,
    ),
    "import": Long(
        lambda around: ["import", table(around), "--robot", "ur5e", "-o", "imported"], 4.0
    ),
    "estimate": Long(lambda around: ["estimate", *bags(around), "--workers", "2"], 6.0),
    "estimate into a bag": Long(
        lambda around: ["estimate", *bags(around)[:1], "--bag", "energy"], 4.0
    ),
    "identify": Long(
        lambda around: ["identify", *bags(around), "--workers", "2", "-o", "m.yaml"], 8.0
    ),
    "optimize": Long(
        lambda around: [
            "optimize",
            str(around.model),
            *bags(around)[:1],
            "-o",
            "cheaper",
        ],
        8.0,
    ),
    "history add": Long(
        lambda around: ["history", "add", "plant", *bags(around), "--workers", "2"], 8.0
    ),
    "history watch": Long(
        lambda around: ["history", "watch", "plant", str(Path(bags(around)[0]).parent)],
        8.0,
        finishes=True,
    ),
    "excite": Long(
        lambda around: ["excite", "--robot", "ur5e", "-o", "t.yaml"], 8.0, finishes=True
    ),
    "protocol": Long(lambda around: ["protocol", "s1", "--simulated", "-o", "s1"], 12.0),
    "protocol all": Long(
        lambda around: ["protocol", "all", "--simulated", "-o", "papers"], 12.0
    ),
    "demo": Long(lambda around: ["demo", "--host", fresh_host(), "-o", "demo"], 25.0),
    **{
        node: Long(
            lambda around, values=values: parameters(robot_ip=around.host, **values),  # type: ignore[misc]
            8.0,
            node,
            finishes=True,
        )
        for node, values in {
            "logger_node": {"bag_directory": "bags"},
            "estimator_node": {"state_file": "state.db"},
            "cell_node": {"bag_directory": "bags", "state_file": "state.db"},
        }.items()
    },
    "simulated_robot_node": Long(
        lambda around: parameters(robot_model="ur5e", host=fresh_host()),
        8.0,
        "simulated_robot_node",
        finishes=True,
    ),
}


def run(case: Case) -> Verdict:
    """One program and one signal; programs and signals take turns."""
    name = sorted(PROGRAMS)[case.number % len(PROGRAMS)]
    number = SIGNALS[(case.number + case.number // len(PROGRAMS)) % len(SIGNALS)]
    program = PROGRAMS[name]
    delay = case.random.uniform(0.0, program.longest)
    verdict = Verdict(f"{number.name} on {name} after {delay:.1f} s")
    is_node = program.script != "ur_energy"
    end = ended(
        program.script,
        program.words(case.around),
        number,
        delay,
        case.folder,
        code=0 if is_node else None,
        environment=environment(case.around),
    )
    _judge(end, number, verdict, finishes=program.finishes)
    if number == signal.SIGKILL and end.files:
        _run_again(case, program, verdict)
    return verdict


def _judge(end: End, number: int, verdict: Verdict, *, finishes: bool) -> None:
    """Exit code, words, processes and files of an end; it may have ended before the signal."""
    after = -number if number == signal.SIGKILL else 128 + number
    last = (end.output.strip().splitlines() or ["no output"])[-1]
    verdict.expect(end.code in (0, after), f"exit code {end.code}: {last[:200]}")
    for complaint in COMPLAINTS:
        verdict.expect(complaint not in end.output, f"{complaint!r} in its output")
    for left in end.left:
        verdict.problems.append(f"left running: {left[:200]}")
    if number != signal.SIGKILL:
        verdict.expect(not end.files, f"left behind: {end.files}")
    if end.code == 128 + number and not finishes and end.output:
        verdict.expect(last.endswith(": stopped"), f"it ends with: {last[:200]}")


def _run_again(case: Case, program: Long, verdict: Verdict) -> None:
    """The next run removes what the killed one left."""
    words = [word.replace("imported", "other") for word in program.words(case.around)]
    ended(program.script, words, signal.SIGTERM, program.longest, case.folder)
    left = temporary_files(case.folder)
    verdict.expect(not left, f"the next run leaves {left}")


FAMILY = Family("ends", 3.0, run, at_once=2)
