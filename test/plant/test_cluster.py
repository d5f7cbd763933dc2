# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Work on many bags: where it is done, and by the workers of a Dask cluster."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from test.plant import clusters as works
from test.plant.clusters import cluster, wait_for
from test.plant.made_up_bags import HOUR, NOON, Session, add, rows, work_for
from ur_energy_model import __version__
from ur_energy_model.cli.arguments import CommandBags
from ur_energy_model.cli.listing import chosen_command
from ur_energy_model.cli.parser import call_of
from ur_energy_model.errors import InputError
from ur_energy_model.many_bags import (
    BagResult,
    in_this_process,
    local_executor,
    suggested_workers,
)
from ur_energy_model.plant import cluster as clusters
from ur_energy_model.plant.add import add_bags
from ur_energy_model.plant.cluster import (
    ClusterError,
    run_task,
    running_cluster,
)

psutil = pytest.importorskip("psutil")
if find_spec("distributed") is None:
    pytest.skip("distributed is not installed", allow_module_level=True)
BAGS = [Path(name) for name in ("a", "bb", "bad", "cccc", "ddddd")]


def test_a_cluster_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are those of one process; workers die, one after the other, then the scheduler."""
    bags = [tmp_path / "bags" / name for name in ("slow", "b", "c")]
    both = [tmp_path / "both" / name for name in ("a", "b")]
    for bag in (*bags, *both):
        bag.mkdir(parents=True)
    with cluster(tmp_path) as started, running_cluster(started.address) as each:
        seen: list[float] = []
        results = list(
            each(works.size, BAGS, lambda fraction, text: seen.append(fraction))
        )
        numbers = [
            each.value for each in each(works.added, BAGS, given=[10, 20, 30, 40, 50])
        ]
        assert results == list(in_this_process(works.size, BAGS))
        assert results[2] == BagResult(Path("bad"), None, "bad: is damaged")
        assert numbers == [11, 22, 33, 44, 55]
        assert all(0 <= fraction <= 1 for fraction in seen)
        found = {result.value for result in each(works.meets_the_others, both)}
        assert found == {worker.pid for worker in started.workers}

        survived: list[BagResult[str]] = []
        thread = threading.Thread(
            target=lambda: survived.extend(each(works.first_try_waits, bags)), daemon=True
        )
        thread.start()
        wait_for(bags[0] / "pid")
        victim = int((bags[0] / "pid").read_text())
        next(worker for worker in started.workers if worker.pid == victim).kill()
        thread.join(works.PATIENCE)
        assert survived == [BagResult(bag, bag.name) for bag in bags]

        for worker in started.workers:
            worker.kill()
        monkeypatch.setattr(clusters, "PATIENCE", 0.1)
        with pytest.raises(
            ClusterError, match=r"has had no worker .* dask worker tcp://"
        ):
            list(each(works.size, BAGS))
        monkeypatch.undo()
        started.scheduler.kill()
        with pytest.raises(ClusterError, match="the scheduler does not answer any more"):
            list(each(works.size, BAGS))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://127.0.0.1:{}", "no scheduler answers"),
        ("tcp://a:b", "not the address"),
        ("tls://127.0.0.1:8786", "needs certificates"),
    ],
)
def test_addresses_that_cannot_be_used(
    address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "CONNECT", 0.3)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(ClusterError, match=words):
            running_cluster(address.format(held.getsockname()[1])).__enter__()


def test_workers_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two make the store of one process, survive a deadly bag, and leave and open nothing.

    An error, here Ctrl-C, ends them at once.
    """
    slow = tmp_path / "slow"
    slow.mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    at = (0, HOUR, HOUR + 4 * 10**9, 2 * HOUR)
    bags = [
        Session(at=NOON + begin, shift=k).bag(tmp_path / f"bag_{k}")
        for k, begin in enumerate(at)
    ]
    bags.insert(2, tmp_path / "none")
    add(tmp_path / "one", *bags)
    add(tmp_path / "two", bags[0])

    def family() -> set[int]:
        return {
            os.getpid(),
            *(each.pid for each in psutil.Process().children(recursive=True)),
        }

    def listening() -> set[tuple[str, int]]:
        return {
            (entry.laddr.ip, entry.laddr.port)
            for pid in family()
            for entry in psutil.Process(pid).net_connections(kind="inet")
            if entry.status == psutil.CONN_LISTEN
        }

    def interrupt(*_: object) -> None:
        """Ctrl-C once the bag is worked on."""
        if (slow / "pid").exists() and (slow / "pid").stat().st_size:
            signal.raise_signal(signal.SIGINT)

    before = listening()
    others = family()
    with suppress(KeyboardInterrupt), local_executor(bags, workers=2) as each:
        added = add_bags(work_for(tmp_path / "two"), bags, each)
        found = [r.value for r in each(works.process, BAGS * 4) if r.value is not None]
        pids = {pid for pid, _ in found}
        opened = listening() - before
        assert pids <= family()
        deadly = list(each(works.deadly, BAGS))
        list(each(works.first_try_waits, [slow], interrupt))
    with pytest.raises(ProcessLookupError):
        os.kill(int((slow / "pid").read_text()), 0)
    assert {threads for _, threads in found} == {"1"}
    assert [result.value for result in deadly] == ["a", "bb", None, "cccc", "ddddd"]
    assert "every worker that tried it died" in (deadly[2].reason or "")
    assert not opened
    assert not pids & (family() - others)
    assert not list((tmp_path / "temporary").iterdir())
    assert (len(added.records), added.skipped) == (3, bags[:1])
    assert [result.bag for result in added.failed] == [tmp_path / "none"]
    assert rows(tmp_path / "one") == rows(tmp_path / "two")


def test_what_a_worker_cannot_do_and_how_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path("/nowhere/bag")
    missing = run_task(works.size, path, (), (path, True, __version__)).reason or ""
    assert missing.startswith(f"{path}: is not on ")
    assert socket.gethostname() in missing
    assert "install the same" in (
        run_task(works.size, path, (), (path, False, "0")).reason or ""
    )

    def bags(count: int, size: int) -> list[Path]:
        made = [tmp_path / str(size) / str(number) for number in range(count)]
        for bag in made:
            bag.mkdir(parents=True, exist_ok=True)
            (bag / "data.mcap").touch()
            os.truncate(bag / "data.mcap", size)
        return made

    for count, size, workers in ((5, 1000, None), (2, 1000, 1), (1, 10**9, 4)):
        with local_executor(bags(count, size), workers=workers) as each:
            assert each is in_this_process
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert suggested_workers([*bags(4, 10**9), tmp_path / "missing"]) == 8
    words = ["--scheduler", "tcp://127.0.0.1:8786", "--workers", "2"]
    call = call_of(*chosen_command(["estimate", "bag", *words]))
    with pytest.raises(InputError, match="leave one out"):
        CommandBags(call.given, BAGS, 2).executor()
