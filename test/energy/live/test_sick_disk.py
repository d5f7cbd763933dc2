"""Counting continues whatever the disk does, and the counters are written when they can be."""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from test.energy.known_arm import ROBOT, known_model, motion, packets
from test.small_disk import SmallDisk, small_disk
from ur_energy_model.energy import counters as state_file
from ur_energy_model.energy.live import LiveEstimator, LiveOptions, Snapshot

Fault = Callable[[bool], None]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as disk_:
        yield disk_


def measured(estimator: LiveEstimator, seconds: float, start: float = 100.0) -> Snapshot:
    """Snapshot after so much motion."""
    for batch in packets(motion(seconds, start=start), 50):
        estimator.update(batch)
    snapshot = estimator.snapshot()
    assert snapshot is not None
    return snapshot


def use_everything(estimator: LiveEstimator) -> None:
    """Everything that writes to the disk."""
    estimator.reset("service call")
    estimator.read_interval()
    estimator.start_cycle()
    estimator.save()


def options(folder: Path) -> LiveOptions:
    return LiveOptions(state_file=folder / "state.json", cycle_log=folder / "cycles.csv")


def test_a_disk_that_becomes_full_and_recovers(disk: SmallDisk) -> None:
    estimator = LiveEstimator(known_model(), ROBOT, options(disk.path))
    before = measured(estimator, 1.0)
    assert estimator.disk_problem is None
    disk.fill()
    use_everything(estimator)
    during = measured(estimator, 1.0, 101.002)
    use_everything(estimator)
    during = measured(estimator, 1.0, 102.004)
    assert during.lifetime.accounted > before.lifetime.accounted + 1.9
    assert "state.json: cannot be written" in str(estimator.disk_problem)
    disk.empty()
    estimator.snapshot()
    estimator.save()
    assert (estimator.disk_problem, estimator.log_problem) == (None, None)
    estimator.close()
    with (disk.path / "cycles.csv").open(newline="") as file:
        assert [row["cycle"] for row in csv.DictReader(file)] == ["1"]
    again = LiveEstimator(known_model(), ROBOT, options(disk.path))
    assert again.snapshot() is None
    after = measured(again, 0.1, 103.006)
    assert (after.lifetime.consumed >= during.lifetime.consumed).all()
    assert after.reset_reason == "service call"
    again.close()


@pytest.mark.parametrize("kind", ["full", "read-only"])
@pytest.mark.parametrize("known", [False, True])
def test_a_disk_that_is_sick_at_the_start(disk: SmallDisk, kind: str, known: bool) -> None:
    counted = 0.0
    if known:
        first = LiveEstimator(known_model(), ROBOT, options(disk.path))
        counted = float(measured(first, 1.0).lifetime.accounted)
        first.close()
    disk.fill()
    if kind == "read-only":
        disk.set_writable(False)
    estimator = LiveEstimator(known_model(), ROBOT, options(disk.path))
    assert estimator.disk_problem is not None
    shown = measured(estimator, 1.0, 101.002)
    assert shown.lifetime.accounted == pytest.approx(counted + 1.0, abs=0.01)
    use_everything(estimator)
    if kind == "read-only":
        disk.set_writable(True)
    disk.empty()
    estimator.snapshot()
    estimator.save()
    assert estimator.disk_problem is None
    estimator.close()
    again = LiveEstimator(known_model(), ROBOT, options(disk.path))
    assert measured(again, 0.1, 102.004).lifetime.accounted > shown.lifetime.accounted
    again.close()


def test_closing_on_a_full_disk_keeps_the_counters_in_the_journal(disk: SmallDisk) -> None:
    estimator = LiveEstimator(known_model(), ROBOT, options(disk.path))
    measured(estimator, 1.0)
    disk.fill()
    shown = measured(estimator, 1.0, 101.002)
    estimator.close()
    assert "No space left" in str(estimator.disk_problem)
    again = LiveEstimator(known_model(), ROBOT, options(disk.path))
    assert measured(again, 0.1, 102.004).lifetime.accounted > shown.lifetime.accounted
    again.close()


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT])
def test_any_error_of_any_write_is_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    estimator = LiveEstimator(known_model(), ROBOT, options(tmp_path))
    before = measured(estimator, 0.5)
    with monkeypatch.context() as patch:
        patch.setattr(state_file, "new_file", failing(number))
        patch.setattr(os, "pwrite", failing(number))
        use_everything(estimator)
        during = measured(estimator, 0.5, 100.502)
        assert os.strerror(number) in str(estimator.disk_problem)
    estimator.snapshot()
    estimator.save()
    assert estimator.disk_problem is None
    assert during.lifetime.accounted > before.lifetime.accounted
    estimator.close()


def test_a_state_that_cannot_be_read_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = LiveEstimator(known_model(), ROBOT, options(tmp_path))
    measured(first, 1.0)
    first.close()
    content = (tmp_path / "state.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(state_file, "read_state", failing(errno.EIO))
        second = LiveEstimator(known_model(), ROBOT, options(tmp_path))
    measured(second, 0.1)
    second.close()
    assert (tmp_path / "state.json.unreadable1").read_bytes() == content


def test_a_journal_that_is_deleted_is_made_again(tmp_path: Path) -> None:
    estimator = LiveEstimator(known_model(), ROBOT, options(tmp_path))
    (tmp_path / "state.json.journal").unlink()
    estimator.save()
    shown = measured(estimator, 1.0)
    assert (tmp_path / "state.json.journal").stat().st_size > 0
    with pytest.raises(Exception, match="in use"):
        LiveEstimator(known_model(), ROBOT, options(tmp_path))
    estimator.close()
    again = LiveEstimator(known_model(), ROBOT, options(tmp_path))
    assert measured(again, 0.1, 101.002).lifetime.accounted > shown.lifetime.accounted
    again.close()
