"""Stretches of host time."""

from __future__ import annotations

import numpy as np

from ur_energy_model.plant.energy_parts import NOTHING, SECOND, TimeRanges


def test_overlapping_ranges_become_one() -> None:
    ranges = TimeRanges.of([(50, 60), (0, 10), (5, 20), (20, 21)])
    assert ranges.pairs() == [(0, 21), (50, 60)]
    times = np.array([-1, 0, 1, 21, 22, 50, 60, 61])
    assert ranges.holds(times).tolist() == [0, 0, 1, 1, 0, 0, 1, 0]
    assert not NOTHING.holds(times).any()
    assert not NOTHING
    assert ranges


def test_the_part_between_two_times() -> None:
    ranges = TimeRanges.of([(0, 10), (20, 30)])
    assert ranges.within(5, 22).pairs() == [(5, 10), (20, 22)]
    assert not ranges.within(10, 20)


def test_pauses_of_a_second_are_covered() -> None:
    first, pause = TimeRanges.of([(0, 10)]), TimeRanges.of([(10 + SECOND, 20 + SECOND)])
    assert first.joined(pause).pairs() == [(0, 20 + SECOND)]
    assert len(first.joined(TimeRanges.of([(11 + SECOND, 12 + SECOND)])).pairs()) == 2


def test_what_is_outside_other_ranges() -> None:
    ranges = TimeRanges.of([(0, 10), (20, 30), (40, 40)])
    others = TimeRanges.of([(-5, 2), (4, 6), (25, 35)])
    assert ranges.without(others).pairs() == [(2, 4), (6, 10), (20, 25), (40, 40)]
    assert ranges.without(NOTHING).pairs() == ranges.pairs()
    assert not ranges.without(TimeRanges.of([(-1, 50)])).within(0, 50)
    assert not NOTHING.without(others)
