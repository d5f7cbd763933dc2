"""Time and memory of identification, bag reading included, and how both grow with the length.

    python -m test.benchmarks.bench_identification [MINUTES ...]

The base regressor beside figaroh is in bench_base_parameters.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time

from test.identification.exact_arm import ExactArm
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.bag.writer import BagWriter

MINUTES = (1, 10, 30)
RATE = 500.0
ROUNDS = 3


def long_bag(folder: Path, minutes: int) -> Path:
    """A bag of many minutes, written minute by minute."""
    arm, path = ExactArm(), folder / f"{minutes}min"
    first = arm.record(60.0, rate=RATE, seed=0)
    writer = BagWriter(path, first.info, tuple(first.columns))
    for minute in range(minutes):
        part = arm.record(60.0, rate=RATE, seed=minute)
        writer.write(replace(part, time=part.time + 60.0 * minute))
    writer.close()
    return path


def measure(bag: Path) -> None:
    """Reading and identification of a bag in this process, file cache and imports warm."""
    reading, identifying, wall = [], [], []
    for _ in range(ROUNDS):
        cpu = process_time()
        samples = sum(map(len, iterate_bag(bag)))
        reading.append(process_time() - cpu)
        cpu, start = process_time(), perf_counter()
        identify([bag], "ur5e")
        identifying.append(process_time() - cpu)
        wall.append(perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"  all fields read {samples / min(reading):.0f} samples/s; identify "
        f"{min(identifying):.2f} s of processor time, {min(wall):.2f} s; peak {peak:.0f} MB"
    )


def command(bag: Path) -> None:
    """The whole command, with the start of the process and its imports."""
    start = perf_counter()
    arguments = ["identify", str(bag), "--robot", "ur5e", "-o", str(bag.parent / "model.yaml")]
    program = "import sys; from ur_energy_model.cli.main import main; sys.exit(main())"
    run = [sys.executable, "-c", program, *arguments, "--json"]
    subprocess.run(run, check=True, capture_output=True)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"  ur_energy identify as a command: {perf_counter() - start:.2f} s, most memory of a "
        f"child so far {children.ru_maxrss / 1024:.0f} MB"
    )


def main(minutes: Sequence[int] = MINUTES) -> None:
    """Print the figures; each length in a process of its own, for its peak memory."""
    if len(minutes) == 1:
        with tempfile.TemporaryDirectory() as folder:
            bag = long_bag(Path(folder), minutes[0])
            print(f"{minutes[0]} min at {RATE:.0f} Hz:", flush=True)
            measure(bag)
            command(bag)
        return
    for length in minutes:
        subprocess.run(
            [sys.executable, "-m", "test.benchmarks.bench_identification", str(length)], check=True
        )


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or MINUTES)
