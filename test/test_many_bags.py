"""Work on many bags, one after the other."""

from __future__ import annotations

from pathlib import Path

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.many_bags import BagResult, in_this_process


def test_a_bag_that_fails_does_not_end_the_others() -> None:
    def work(bag: Path) -> int:
        if bag.name == "b":
            raise UrEnergyError("b: is damaged")
        return len(bag.name)

    seen: list[float] = []
    bags = [Path("a"), Path("b"), Path("ccc")]
    results = list(in_this_process(work, bags, lambda fraction, text: seen.append(fraction)))
    assert results == [
        BagResult(bags[0], 1),
        BagResult(bags[1], None, "b: is damaged"),
        BagResult(bags[2], 3),
    ]
    assert seen == sorted(seen)
