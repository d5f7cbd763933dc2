# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Disks that are full, read-only, deleted or renamed while something records or measures."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from test.torture.harness import PATIENCE, Case, Family, Verdict
from test.torture.subjects import RATE, Subject, ros_client

DURATION = 5.0
NO_MOUNT = "file systems cannot be mounted here (needs root): full and read-only disks"


def _quietly(*command: str) -> bool:
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


def _remount(disk: Path, mode: str) -> None:
    _quietly("mount", "-o", f"remount,{mode}", str(disk))


def _fill(disk: Path) -> None:
    """Use the last byte of a disk."""
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def _replace(disk: Path) -> None:
    for path in (disk / "parent" / "bag").glob("*.mcap"):
        path.with_suffix(".new").write_bytes(b"not a recording")
        path.with_suffix(".new").replace(path)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


Action = Callable[[Path], object]
OWN_DISK: dict[str, tuple[Action, Action | None]] = {
    "full for good": (_fill, None),
    "full for a while": (_fill, lambda disk: (disk / "filler").unlink(missing_ok=True)),
    "read-only for good": (lambda disk: _remount(disk, "ro"), None),
    "read-only for a while": (
        lambda disk: _remount(disk, "ro"),
        lambda disk: _remount(disk, "rw"),
    ),
}
"""What happens to a disk of its own, and how it recovers."""
FAULTS: dict[str, tuple[Action, Action | None]] = {
    **OWN_DISK,
    "bag deleted": (lambda disk: _remove(disk / "parent/bag"), None),
    "parent deleted": (lambda disk: _remove(disk / "parent"), None),
    "bag renamed": (
        lambda disk: (disk / "parent/bag").rename(disk / "parent/other"),
        None,
    ),
    "file replaced": (_replace, None),
}
SUBJECTS = ("record", "record", "logger", "estimator")


def run(case: Case) -> Verdict:
    """One fault of the disk under one program; they take turns."""
    fault = list(FAULTS)[case.number % len(FAULTS)]
    name = SUBJECTS[(case.number + case.number // len(FAULTS)) % len(SUBJECTS)]
    if name != "record" and fault not in OWN_DISK:
        fault = "full for a while" if case.number % 2 else "full for good"
    verdict = Verdict(f"{name}: {fault}")
    disk = case.folder / "disk"
    size = f"size={case.random.randint(1500, 4000)}k"
    disk.mkdir()
    own = fault in OWN_DISK
    if own and not _quietly("mount", "-t", "tmpfs", "-o", size, "torture", str(disk)):
        verdict.skipped = NO_MOUNT
        return verdict
    try:
        _run(case, verdict, name, fault, disk)
    finally:
        if own:
            _quietly("umount", "--lazy", str(disk))
    return verdict


def _run(case: Case, verdict: Verdict, name: str, fault: str, disk: Path) -> None:
    strike, recover = FAULTS[fault]
    folder = disk / "parent"
    random = case.random
    folder.mkdir()
    if name == "estimator" and "full" in fault and random.random() < 0.3:
        strike(disk)  # at the start already; a read-only disk is refused there
    paths = {
        "logger": {"bag_directory": str(folder)},
        "estimator": {"state_file": str(folder / "state.db")},
    }.get(name, {})
    subject = Subject(
        case,
        verdict,
        name,
        case.around.host,
        seconds=DURATION,
        output=folder / "bag",
        **paths,
    )
    process = subject.process
    if name == "estimator":
        process.wait(random.uniform(3.0, 5.0))
    else:
        end = time.monotonic() + PATIENCE
        while process.running and not any(folder.glob("*")) and time.monotonic() < end:
            time.sleep(0.05)
        process.wait(random.uniform(0.2, 3.0))
    with suppress(OSError):
        strike(disk)
    if name == "estimator":
        with ros_client(subject.environment) as client:
            client.answer("/estimator/reset_energy")  # writes the counters at once
    process.wait(
        random.uniform(0.5, 2.0) if name == "record" else random.uniform(2.0, 4.0)
    )
    if recover is not None:
        with suppress(OSError):
            recover(disk)
    before = _size(folder)
    process.wait({"record": PATIENCE, "logger": 8.0, "estimator": 3.0}[name])
    if name == "logger" and recover is not None:
        verdict.expect(
            _size(folder) > before, "recording did not resume on the recovered disk"
        )
    accounted = subject.conclude(
        whole=False,
        codes=(0, 1) if name == "logger" else None,
        before_reading=lambda: _remount(disk, "rw"),
    )
    if name == "record":
        whole = round(DURATION * RATE)
        code = process.finish()
        if verdict.expect(accounted is not None, "no summary was printed"):
            problem = (
                f"{accounted} of {whole} samples are accounted for, with exit code 0"
            )
            verdict.expect((accounted or 0) >= 0.8 * whole or code != 0, problem)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


FAMILY = Family("disks", 2.5, run, at_once=2)
