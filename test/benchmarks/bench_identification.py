# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Time and memory of identification, bag reading included, and how both grow with the length.

python -m test.benchmarks.bench_identification [MINUTES ...]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from test.benchmarks.meters import UR_ENERGY, least_cpu
from test.identification.exact_arm import ExactArm
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.bag.writer import BagWriter

MINUTES = (1, 10, 30)
RATE = 500.0


def peak(whose: int = resource.RUSAGE_SELF) -> float:
    """Most memory of this process, or of any of its ended children, so far [MB]."""
    return resource.getrusage(whose).ru_maxrss / 1024


def long_bag(folder: Path, minutes: int) -> Path:
    """A bag of many minutes, written minute by minute."""
    arm = ExactArm()
    path = folder / f"{minutes}min"
    first = arm.record(60.0, rate=RATE, seed=0)
    writer = BagWriter(path, first.info, tuple(first.columns))
    for minute in range(minutes):
        part = arm.record(60.0, rate=RATE, seed=minute)
        writer.write(replace(part, time=part.time + 60.0 * minute))
    writer.close()
    return path


def main(minutes: Sequence[int] = MINUTES) -> None:
    """Print the figures; each length in a process of its own, for its peak memory."""
    if len(minutes) > 1:
        for length in minutes:
            program = [
                sys.executable,
                "-m",
                "test.benchmarks.bench_identification",
                str(length),
            ]
            subprocess.run(program, check=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        bag = long_bag(Path(folder), minutes[0])
        samples = sum(map(len, iterate_bag(bag)))
        reading = least_cpu(lambda: sum(map(len, iterate_bag(bag))))
        identifying = least_cpu(lambda: identify([bag], "ur5e"))
        print(
            f"{minutes[0]} min at {RATE:.0f} Hz:\n  all fields read {samples / reading:.0f} "
            f"samples/s; identify {identifying:.2f} s of processor time, "
            f"{identifying / reading:.1f} times that of reading; peak {peak():.0f} MB"
        )
        start = perf_counter()
        out = str(bag.parent / "model.yaml")
        command = [
            *UR_ENERGY,
            "identify",
            str(bag),
            "--robot",
            "ur5e",
            "-o",
            out,
            "--json",
        ]
        subprocess.run(command, check=True, capture_output=True)
        print(
            f"  ur_energy identify as a command: {perf_counter() - start:.2f} s, most memory of a "
            f"child so far {peak(resource.RUSAGE_CHILDREN):.0f} MB"
        )


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or MINUTES)
