"""History of recorded bags: samples per second and core, bytes of the store, memory.

The bag holds all fields that the logger records by default, of a simulated arm at 500 Hz. Figures
are processor time of one process, from the bag's files to the files of the store, hash included;
the parts that it is made of stand beside it. The bag is in the memory of the file system.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np

from ur_energy_model.energy.powers import FIELDS
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.add import BagWork, add_bags
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.metadata import bag_hash
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.named_motions import named_motion

MINUTES = 10
PROMISED = 150_000.0
"""Samples per second of processor time."""
START = 1_770_000_000_000_000_000
"""Host time of the first sample [ns]."""
RUNS = 3


def recorded_minute() -> Telemetry:
    """A minute of a simulated arm that picks and places."""
    robot = load_robot("ur5e")
    arm = SimulatedArm(robot, motion=named_motion("pick_and_place", robot), seed=3)
    return record_arm(arm, 60.0)


def long_bag(path: Path, minutes: int) -> int:
    """A bag of the same minute over and over; returns its number of samples."""
    minute = recorded_minute()
    info = replace(minute.info, serial="20265500001")
    with BagWriter(path, info, tuple(minute.columns)) as writer:
        for number in range(minutes):
            time = minute.time + 60.0 * number
            stamp = START + np.round((time - minute.time[0]) * 1e9).astype(np.int64)
            writer.write(Telemetry(time, minute.columns, info, (), stamp))
    return minutes * len(minute)


def least_time(action: Callable[[int], object]) -> float:
    """Least processor time of some runs [s]; each is called with its number."""
    times = []
    for number in range(RUNS):
        start = process_time()
        action(number)
        times.append(process_time() - start)
    return min(times)


def bytes_of(folder: Path) -> int:
    """Size of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Print the figures."""
    model = generic_model("ur5e")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bag = folder / "bag"
        samples = long_bag(bag, MINUTES)

        def read(number: int) -> None:
            assert sum(map(len, iterate_bag(bag, FIELDS))) == samples

        def add(number: int) -> None:
            work = BagWork(str(folder / f"store_{number}"), model, "generic")
            (record,) = add_bags(work, [bag]).records
            assert abs(record.energy / truth - 1.0) < 1e-6

        truth = estimate_energy(model, bag).supply
        parts = {
            "hash": least_time(lambda _: bag_hash(bag)),
            "reading": least_time(read),
            "estimate": least_time(lambda _: estimate_energy(model, bag)),
            "history add": least_time(add),
        }
        for what, seconds in parts.items():
            print(
                f"{what:12} {seconds:5.2f} s of processor time, {samples / seconds:9.0f} samples/s"
            )
        rate = samples / parts["history add"]
        print(f"history add: {rate / PROMISED:.2f} of the {PROMISED:.0f} samples/s promised")
        stored = bytes_of(folder / "store_0")
        day = 86_400 / (60.0 * MINUTES)
        print(
            f"bag {bytes_of(bag) / samples:.0f} bytes a sample, store {stored / samples:.2f}: "
            f"{stored * day / 1e6:.1f} MB per arm and day without pause"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
