"""Disks that are full, read-only, deleted or renamed while something records or measures."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from test.torture.harness import PATIENCE, Case, Family, Verdict
from test.torture.subjects import (
    Recorded,
    check_counts,
    check_recording,
    end_node,
    no_ros,
    readable_times,
    ros_client,
    start_node,
    start_recording,
    stop_recording,
    summary,
)

DURATION = 5.0
NO_MOUNT = "file systems cannot be mounted here (needs root): full and read-only disks"


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path | None]:
    """A file system of this size, None where it cannot be mounted."""
    path = folder / "disk"
    path.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={kilobytes}k", "torture", str(path)]
    mounted = _quietly("mount", *options)
    try:
        yield path if mounted else None
    finally:
        if mounted:
            _quietly("umount", "--lazy", str(path))


def _quietly(*command: str) -> bool:
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


def _fill(disk: Path) -> None:
    """Use the last byte of a disk."""
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def _free(disk: Path) -> None:
    with suppress(OSError):
        (disk / "filler").unlink()


def _remount(mode: str) -> Callable[[Path], None]:
    def remount(disk: Path) -> None:
        _quietly("mount", "-o", f"remount,{mode}", str(disk))

    return remount


def _delete(disk: Path) -> None:
    shutil.rmtree(disk / "parent" / "bag", ignore_errors=True)


def _delete_parent(disk: Path) -> None:
    shutil.rmtree(disk / "parent", ignore_errors=True)


def _rename(disk: Path) -> None:
    with suppress(OSError):
        (disk / "parent" / "bag").rename(disk / "parent" / "other")


def _replace(disk: Path) -> None:
    for path in (disk / "parent" / "bag").glob("*.mcap"):
        path.with_suffix(".new").write_bytes(b"not a recording")
        path.with_suffix(".new").replace(path)


def _nothing(disk: Path) -> None:
    """The disk recovers by nothing."""


FAULTS: dict[str, tuple[Callable[[Path], None], Callable[[Path], None], bool]] = {
    "full for good": (_fill, _nothing, True),
    "full for a while": (_fill, _free, True),
    "read-only for good": (_remount("ro"), _nothing, True),
    "read-only for a while": (_remount("ro"), _remount("rw"), True),
    "bag deleted": (_delete, _nothing, False),
    "parent deleted": (_delete_parent, _nothing, False),
    "bag renamed": (_rename, _nothing, False),
    "file replaced": (_replace, _nothing, False),
}
"""What happens to a disk, how it recovers, and whether that needs a disk of its own."""
SUBJECTS = ("record", "record", "logger", "estimator")


def run(case: Case) -> Verdict:
    """One fault of the disk under one program; they take turns."""
    name = list(FAULTS)[case.number % len(FAULTS)]
    subject = SUBJECTS[(case.number + case.number // len(FAULTS)) % len(SUBJECTS)]
    if subject != "record" and not FAULTS[name][2]:
        name = "full for a while" if case.number % 2 else "full for good"
    _, _, own = FAULTS[name]
    verdict = Verdict(f"{subject}: {name}")
    if subject != "record" and no_ros():
        verdict.skipped = no_ros()
        return verdict
    if not own:
        (case.folder / "disk").mkdir()
        _run(case, verdict, subject, name, case.folder / "disk")
        return verdict
    with small_disk(case.folder, case.random.randint(1500, 4000)) as disk:
        if disk is None:
            verdict.skipped = NO_MOUNT
        else:
            _run(case, verdict, subject, name, disk)
    return verdict


def _run(case: Case, verdict: Verdict, subject: str, name: str, disk: Path) -> None:
    check = {"record": _record, "logger": _logger, "estimator": _estimator}[subject]
    (disk / "parent").mkdir()
    check(case, verdict, name, disk)


def _record(case: Case, verdict: Verdict, name: str, disk: Path) -> None:
    fault, recovery, _ = FAULTS[name]
    bag = disk / "parent" / "bag"
    recording = start_recording(
        case.around, case.around.host, case.folder, "--duration", str(DURATION), "-o", str(bag)
    )
    _wait_until(lambda: bag.is_dir() or not recording.running)
    recording.wait(case.random.uniform(0.2, 3.0))
    fault(disk)
    recording.wait(case.random.uniform(0.5, 2.0))
    recovery(disk)
    recording.finish(PATIENCE)
    verdict.seconds = time.monotonic() - recording.began
    recording.judge(verdict, (0, 1, 3))
    told = summary(recording.output)
    if not verdict.expect(told is not None, "no summary was printed") or told is None:
        return
    _remount("rw")(disk)
    parts = [readable_times(path) for path in (bag, bag.with_name("other")) if path.is_dir()]
    largest = max(parts, key=len, default=np.zeros(0))
    check_counts(verdict, Recorded.of(largest, told))
    whole = round(DURATION * 500.0)
    accounted = int(told["samples"]) + int(told["lost"])
    verdict.expect(
        accounted >= 0.8 * whole or recording.finish(0.0) != 0,
        f"{accounted} of {whole} samples are accounted for, with exit code 0",
    )


def _logger(case: Case, verdict: Verdict, name: str, disk: Path) -> None:
    fault, recovery, _ = FAULTS[name]
    folder = disk / "parent"
    environment = case.around.ros_environment()
    logger = start_node(
        case,
        "logger",
        environment,
        robot_ip=case.around.host,
        bag_directory=str(folder),
        record=True,
    )
    _wait_until(lambda: any(folder.glob("*")) or not logger.running)
    logger.wait(case.random.uniform(0.5, 2.0))
    fault(disk)
    logger.wait(case.random.uniform(2.0, 4.0))
    recovery(disk)
    before = _size(folder)
    logger.wait(8.0)
    verdict.expect(logger.running, "the logger ended by itself")
    if recovery is not _nothing:
        verdict.expect(_size(folder) > before, "recording did not resume on the recovered disk")
    told = stop_recording(environment)
    _remount("rw")(disk)
    check_recording(case, verdict, told)
    end_node(case, logger, verdict, (0, 1))


def _estimator(case: Case, verdict: Verdict, name: str, disk: Path) -> None:
    fault, recovery, _ = FAULTS[name]
    state = disk / "parent" / "state.json"
    if case.random.random() < 0.3:
        fault(disk)  # at the start already
    environment = case.around.ros_environment()
    estimator = start_node(
        case, "estimator", environment, robot_ip=case.around.host, state_file=str(state)
    )
    estimator.wait(case.random.uniform(3.0, 5.0))
    fault(disk)
    with ros_client(environment) as client:
        client.call("/estimator/reset_energy")  # writes the counters at once
    estimator.wait(case.random.uniform(1.0, 4.0))
    recovery(disk)
    estimator.wait(3.0)
    verdict.expect(estimator.running, "the estimator ended by itself")
    end_node(case, estimator, verdict)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


FAMILY = Family("disks", 2.5, run, at_once=2)
