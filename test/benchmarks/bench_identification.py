"""Time to identify ten minutes at 500 Hz, bag reading included.

The base regressor beside figaroh is in bench_base_parameters.
"""

from __future__ import annotations

import resource
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time

from test.identification.exact_arm import ExactArm
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.telemetry.bag.writer import BagWriter

MINUTES = 10
RATE = 500.0


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


def whole_pipeline() -> None:
    """Identification of a long bag, bag reading included."""
    with tempfile.TemporaryDirectory() as name:
        for minutes in (1, MINUTES):
            bag = long_bag(Path(name), minutes)
            start, cpu = perf_counter(), process_time()
            identify([bag], "ur5e")
            wall, cpu = perf_counter() - start, process_time() - cpu
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"identify {minutes:2d} min at {RATE:.0f} Hz: {wall:5.2f} s ({cpu:5.2f} s of "
                f"processor time), peak memory {peak:.0f} MB"
            )


def main() -> None:
    """Print the figures."""
    whole_pipeline()


if __name__ == "__main__":
    main()
