"""Our bag writer and reader beside the `mcap` and `rosbags` libraries, on the same messages.

Writing: a minute of 500 Hz telemetry with all fields of the logger; the libraries get encoded
messages, as they have no encoder for arrays. Reading: columns of all samples, and the messages as
bytes. Failures: what each reader finds in a file whose writer was killed, in a truncated file, and
after one write that the disk refused.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mcap.exceptions import McapError
from rosbags.rosbag2 import ReaderError

from test.benchmarks.bag_libraries import (
    BATCH,
    fail_mcap,
    fail_ours,
    messages_of,
    read_mcap,
    read_mcap_bytes,
    read_mcap_with_ours,
    read_ours,
    read_rosbags,
    read_rosbags_bytes,
    recover_ours,
    stream_mcap,
    telemetry,
    typestore,
    write_mcap,
    write_ours,
    write_rosbags,
)
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC, TelemetryLayout
from ur_energy_model.telemetry.bag.message_encoder import DYNAMIC_JOINT_STATE, TOPICS
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.samples import Telemetry

CUT = 0.6
"""Part of a file that is left after truncation."""


def cpu_seconds(action: Callable[[], object], *, repeats: int = 3) -> float:
    """Least processor time of an action [s]."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def report(name: str, seconds: float, ours: float, remark: str = "") -> None:
    """One line: processor time and its ratio to ours."""
    print(f"  {name:44} {seconds:7.2f} s  {seconds / ours:6.1f} x  {remark}")


def found(read: Callable[[Path], int], path: Path) -> str:
    """Number of samples that a reader finds, or why it finds none."""
    try:
        return str(read(path))
    except (UrEnergyError, McapError, ReaderError, EOFError, ValueError, OSError) as error:
        return f"refused ({type(error).__name__})"


def main() -> None:
    """Print processor times, sizes and what survives a crash."""
    samples = telemetry()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _compare_writing(folder, samples)
        _compare_reading(folder)
        _compare_crashes(folder, samples)
        _compare_failures(folder, samples)


def _compare_writing(folder: Path, samples: Telemetry) -> None:
    print(f"writing {len(samples)} samples and {len(samples) // 10} joint states:")
    number = iter(range(100))

    def fresh() -> Path:
        return folder / f"run{next(number)}"

    ours = cpu_seconds(lambda: write_ours(fresh(), samples))
    write_ours(folder / "ours", samples)
    messages = messages_of(folder / "ours")
    write_mcap(folder / "mcap", messages)
    shutil.copy(folder / "ours" / "metadata.yaml", folder / "mcap")
    write_rosbags(folder / "rosbags", messages)
    size = {each: _megabytes(folder / each) for each in ("ours", "mcap", "rosbags")}
    report("ours, encoding included", ours, ours, f"{size['ours']:.1f} MB")
    seconds = cpu_seconds(lambda: write_mcap(fresh(), messages))
    report("mcap Writer, messages encoded already", seconds, ours, f"{size['mcap']:.1f} MB")
    seconds = cpu_seconds(lambda: write_rosbags(fresh(), messages))
    report("rosbags Writer, messages encoded already", seconds, ours, f"{size['rosbags']:.1f} MB")
    layout = TelemetryLayout.of_fields(ENERGY_FIELDS)
    batches = [samples.cut(slice(i, i + BATCH)) for i in range(0, len(samples), BATCH)]
    seconds = cpu_seconds(lambda: [layout.encode(b.stamp, b.columns) for b in batches])  # type: ignore[arg-type]
    report("ours, encoding the samples alone", seconds, ours)
    store, kind = typestore(), DYNAMIC_JOINT_STATE.name
    encoded = [m.data for m in messages if TOPICS[m.channel].name == TELEMETRY_TOPIC]
    objects = [store.deserialize_cdr(data, kind) for data in encoded]
    seconds = cpu_seconds(lambda: [store.serialize_cdr(each, kind) for each in objects])
    report("rosbags, encoding the samples alone", seconds, ours)


def _compare_reading(folder: Path) -> None:
    path = folder / "ours"
    print("reading all samples as columns:")
    ours = cpu_seconds(lambda: read_ours(path))
    report("ours", ours, ours)
    seconds = cpu_seconds(lambda: read_mcap_with_ours(path))
    report("mcap with our decoder", seconds, ours)
    report("mcap with mcap_ros2", cpu_seconds(lambda: read_mcap(path), repeats=1), ours)
    report("rosbags", cpu_seconds(lambda: read_rosbags(path), repeats=1), ours)
    report("mcap, bytes only", cpu_seconds(lambda: read_mcap_bytes(path)), ours)
    report("rosbags, bytes only", cpu_seconds(lambda: read_rosbags_bytes(path)), ours)


def _compare_crashes(folder: Path, samples: Telemetry) -> None:
    half = len(samples) // 2
    write_ours(folder / "killed_ours", samples, crash_after=half)
    messages = [m for m in messages_of(folder / "ours") if m.time < int(samples.stamp[half])]  # type: ignore[index]
    write_mcap(folder / "killed_mcap", messages, crash=True)
    shutil.copy(folder / "killed_ours" / "metadata.yaml", folder / "killed_mcap")
    cases = {"killed_ours": half, "killed_mcap": half}
    for writer in ("ours", "mcap"):
        path = shutil.copytree(folder / writer, folder / f"cut_{writer}")
        file = next(path.glob("*.mcap"))
        with file.open("r+b") as stream:
            stream.truncate(round(CUT * file.stat().st_size))
        cases[path.name] = round(CUT * len(samples))
    readers: dict[str, Callable[[Path], int]] = {
        "ours": read_ours,
        "ours after recovery": recover_ours,
        "mcap": read_mcap_bytes,
        "mcap StreamReader": stream_mcap,
        "rosbags": read_rosbags_bytes,
    }
    for case, expected in cases.items():
        print(f"samples in {case.replace('_', ' file of ')} (about {expected}):")
        for name, read in readers.items():
            path = folder / f"{case} {name}"
            shutil.copytree(folder / case, path)
            print(f"  {name:44} {found(read, path)}")


def _compare_failures(folder: Path, samples: Telemetry) -> None:
    print(f"samples after one refused write (of {len(samples)}):")
    print(f"  {'ours':44} {fail_ours(folder / 'refused_ours', samples)}")
    print(f"  {'mcap':44} {fail_mcap(folder / 'refused_mcap', messages_of(folder / 'ours'))}")


def _megabytes(path: Path) -> float:
    return sum(file.stat().st_size for file in path.iterdir()) / 1e6


if __name__ == "__main__":
    main()
