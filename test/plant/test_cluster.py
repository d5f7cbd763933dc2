"""Work on many bags: where it is done, and by the workers of a Dask cluster."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from test.plant import clusters as works
from test.plant.clusters import Cluster, cluster, wait_for
from test.plant.made_up_bags import HOUR, NOON, Session, add, estimated, rows, work_for
from ur_energy_model.errors import InputError
from ur_energy_model.many_bags import BagResult, in_this_process
from ur_energy_model.plant import cluster as clusters
from ur_energy_model.plant.add import add_bags
from ur_energy_model.plant.cluster import (
    ClusterError,
    bag_task,
    bag_work,
    local_workers,
    run_task,
    running_cluster,
)

pytest.importorskip("distributed")
BAGS = [Path(name) for name in ("a", "bb", "bad", "cccc", "ddddd")]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def test_results_are_those_of_one_process(running: Cluster) -> None:
    seen: list[float] = []
    with running_cluster(running.address) as each:
        results = list(each(works.size, BAGS, lambda fraction, text: seen.append(fraction)))
        numbers = [each.value for each in each(works.added, BAGS, given=[10, 20, 30, 40, 50])]
    assert results == list(in_this_process(works.size, BAGS))
    assert results[2] == BagResult(Path("bad"), None, "bad: is damaged")
    assert numbers == [11, 22, 33, 44, 55]
    assert all(0 <= fraction <= 1 for fraction in seen)


def test_both_workers_work(running: Cluster, tmp_path: Path) -> None:
    bags = [tmp_path / name for name in ("a", "b")]
    for bag in bags:
        bag.mkdir()
    with running_cluster(running.address) as each:
        found = {result.value for result in each(works.meets_the_others, bags)}
    assert found == {worker.pid for worker in running.workers}


def test_a_worker_that_is_killed_is_survived(tmp_path: Path) -> None:
    bags = [tmp_path / name for name in ("slow", "b", "c", "d")]
    for bag in bags:
        bag.mkdir()
    results: list[BagResult[str]] = []
    with cluster(tmp_path) as started, running_cluster(started.address) as each:
        thread = threading.Thread(
            target=lambda: results.extend(each(works.first_try_waits, bags)), daemon=True
        )
        thread.start()
        wait_for(bags[0] / "pid")
        (victim,) = (w for w in started.workers if w.pid == int((bags[0] / "pid").read_text()))
        victim.kill()
        thread.join(works.PATIENCE)
    assert results == [BagResult(bag, bag.name) for bag in bags]


def test_a_scheduler_that_dies_is_said(tmp_path: Path) -> None:
    bag = tmp_path / "slow"
    bag.mkdir()
    ends: list[Exception] = []
    with cluster(tmp_path, workers=1) as started, running_cluster(started.address) as each:

        def work() -> None:
            try:
                list(each(works.first_try_waits, [bag]))
            except ClusterError as error:
                ends.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        wait_for(bag / "pid")
        started.scheduler.kill()
        thread.join(works.PATIENCE)
    (end,) = ends
    assert str(end).startswith(f"{started.address}: the scheduler does not answer any more")


def test_a_cluster_without_workers_is_said(tmp_path: Path) -> None:
    with cluster(tmp_path, workers=0) as started, running_cluster(started.address) as each:
        each._patience = 0.1
        with pytest.raises(ClusterError, match=r"has had no worker .* dask worker tcp://"):
            list(each(works.size, BAGS))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("{free}", "no scheduler answers"),
        *(
            (each, "not the address")
            for each in ("", "here", "tcp://here", "tcp://a:b", "ftp://a:1")
        ),
        ("tls://127.0.0.1:8786", "needs certificates"),
    ],
)
def test_addresses_that_cannot_be_used(
    address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "CONNECT", 0.3)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = address.format(free=f"tcp://127.0.0.1:{held.getsockname()[1]}")
        with pytest.raises(ClusterError, match=words) as caught:
            running_cluster(address).__enter__()
    assert caught.value.source == address
    assert "\n" not in str(caught.value)


def test_workers_of_this_machine_survive_a_deadly_bag() -> None:
    with local_workers(2) as each:
        results = list(each(works.deadly, BAGS))
        environments = {r.value[1] for r in each(works.process, BAGS) if r.value is not None}
    assert [result.value for result in results] == ["a", "bb", None, "cccc", "ddddd"]
    assert "every worker that tried it died" in (results[2].reason or "")
    assert environments == {"1"}


def test_workers_of_this_machine_are_reached_from_here_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    psutil = pytest.importorskip("psutil")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def family() -> list[int]:
        return [os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))]

    def listening() -> set[tuple[str, int]]:
        return {
            (entry.laddr.ip, entry.laddr.port)
            for pid in family()
            for entry in psutil.Process(pid).net_connections(kind="inet")
            if entry.status == psutil.CONN_LISTEN
        }

    before, others = listening(), set(family())
    with local_workers(2) as each:
        pids = {r.value[0] for r in each(works.process, BAGS * 4) if r.value is not None}
        opened = listening() - before
        assert pids <= set(family())
    assert opened
    assert {host for host, _ in opened} == {"127.0.0.1"}
    assert not pids & set(family()) - others
    assert not list(tmp_path.iterdir())


def test_an_error_ends_workers_of_this_machine_at_once(tmp_path: Path) -> None:
    bag = tmp_path / "slow"
    bag.mkdir()
    with pytest.raises(KeyboardInterrupt), local_workers(1) as each:
        list(each(works.first_try_waits, [bag], lambda *_: interrupt(bag)))
    with pytest.raises(ProcessLookupError):
        os.kill(int((bag / "pid").read_text()), 0)


def interrupt(bag: Path) -> None:
    """Ctrl-C once the bag is worked on."""
    if (bag / "pid").exists() and (bag / "pid").stat().st_size:
        signal.raise_signal(signal.SIGINT)


def test_what_a_worker_cannot_do() -> None:
    task = bag_task(works.size, Path("/nowhere/bag"), ())
    reason = run_task(replace(task, exists=True)).reason or ""
    assert reason.startswith("/nowhere/bag: is not on ")
    assert socket.gethostname() in reason
    assert "install the same" in (run_task(replace(task, version="0.0.1")).reason or "")
    result = run_task(bag_task(works.size, Path("bad"), ()))  # named as given
    assert result == BagResult(Path("bad"), None, "bad: is damaged")


# Where many bags are worked on


def large(folder: Path, count: int, size: int) -> list[Path]:
    """Bags of files that hold nothing but their size."""
    bags = [folder / str(number) for number in range(count)]
    for bag in bags:
        bag.mkdir()
        with (bag / "data.mcap").open("wb") as file:
            file.truncate(size)
    return bags


@pytest.mark.parametrize(
    ("count", "size", "workers"), [(5, 1000, None), (2, 1000, 1), (1, 10**9, 4)]
)
def test_little_work_needs_no_processes(
    tmp_path: Path, count: int, size: int, workers: int | None
) -> None:
    with bag_work(large(tmp_path, count, size), workers=workers) as each:
        assert each is in_this_process


def test_large_bags_take_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    bags = [*large(tmp_path, 4, 10**9), tmp_path / "missing"]
    assert clusters._suggested(bags) == 8
    assert clusters._suggested(bags[:1]) == 1
    with pytest.raises(InputError, match="leave one out"):
        bag_work(bags, "tcp://127.0.0.1:8786", 2).__enter__()


def test_two_workers_make_the_store_that_one_process_makes(tmp_path: Path) -> None:
    """Overlapping bags, one that fails and one that is there already included."""
    at = (0, HOUR, HOUR + 4 * 10**9, 2 * HOUR)
    bags = [
        Session(at=NOON + begin, shift=k).bag(tmp_path / f"bag_{k}") for k, begin in enumerate(at)
    ]
    bags.insert(2, tmp_path / "none")
    add(tmp_path / "one", *bags)
    add(tmp_path / "two", bags[0])
    with bag_work(bags, workers=2) as for_each:
        added = add_bags(work_for(tmp_path / "two"), bags, for_each)
    assert len(added.records) == 3
    assert added.skipped == bags[:1]
    assert [result.bag for result in added.failed] == [tmp_path / "none"]
    assert rows(tmp_path / "one") == rows(tmp_path / "two")
    assert added.sum("energy") < sum(estimated(bags[k]).supply for k in (1, 3, 4))
