"""Adding bags on the workers of a Dask cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from test.plant.made_up_bags import HOUR, NOON, Session, add, estimated, rows, work_for
from ur_energy_model.plant.add import add_bags
from ur_energy_model.plant.cluster import bag_work


def test_two_workers_make_the_store_that_one_process_makes(tmp_path: Path) -> None:
    """Overlapping bags, one that fails and one that is there already included."""
    pytest.importorskip("distributed")
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
