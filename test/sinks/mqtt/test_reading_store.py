"""ReadingStore: bounded, and empty only of what the broker has."""

from __future__ import annotations

from dataclasses import replace
from sys import getsizeof

from test.sinks.made_up_reading import made_up_reading
from ur_energy_model.sinks.sparkplug import ReadingCompressor, ReadingStore, StoredReading

COMPRESS = ReadingCompressor()
FIRST = COMPRESS(made_up_reading(1))


def stored(stamp: int) -> StoredReading:
    return replace(FIRST, stamp=stamp)


def test_readings_stay_until_they_are_confirmed() -> None:
    store = ReadingStore()
    for stamp in range(5):
        store.add(stored(stamp))
    batch = store.oldest(3)
    assert [reading.stamp for reading in batch.readings] == [0, 1, 2]
    assert batch.newest["arm-1"].stamp == 4
    assert store.oldest(3).readings == batch.readings
    store.confirm(batch)
    assert [reading.stamp for reading in store.oldest(9).readings] == [3, 4]
    assert (store.delivered, store.dropped, len(store)) == (3, 0, 2)


def test_a_full_store_drops_the_oldest_also_while_they_are_on_the_way() -> None:
    store = ReadingStore(4)
    for stamp in range(4):
        store.add(stored(stamp))
    batch = store.oldest(2)
    for stamp in range(4, 7):
        store.add(stored(stamp))
    store.confirm(batch)  # both were dropped meanwhile
    assert [reading.stamp for reading in store.oldest(9).readings] == [3, 4, 5, 6]
    assert (store.delivered, store.dropped) == (0, 3)


def test_readings_are_small() -> None:
    first, second = COMPRESS(made_up_reading(1)), COMPRESS(made_up_reading(2))
    assert first.names is second.names
    assert dict(zip(first.names, first.values, strict=True)) == made_up_reading(1).numbers()
    assert getsizeof(first) + getsizeof(first.values) < 400
    ended, later = COMPRESS(made_up_reading(10)), COMPRESS(made_up_reading(11))
    assert ended.cycle is later.cycle
    assert ended.cycle is not None
    assert (ended.cycle.number, ended.cycle.duration, ended.cycle.peak_power) == (1, 1.0, 77.0)
