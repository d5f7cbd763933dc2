"""Metrics of an arm by name: those of the ROS topics, and a few about state and cycles."""

from __future__ import annotations

import math
from functools import lru_cache

from ur_energy_model.energy_topics.numbers import number_topics
from ur_energy_model.sinks.mqtt.stored_reading import StoredReading

Value = float | int | str | None
"""None where a number is unknown."""

OTHERS: dict[str, str] = {
    "state": "state of the arm: off, braked, standstill, moving, protective_stop",
    "samples_lost": "samples lost so far on the way from the controller",
    "energy/cycle/number": "number of the cycle that ended last",
    "energy/cycle/energy": "energy of the whole arm in that cycle [J]",
    "energy/cycle/duration": "its duration [s]",
    "energy/cycle/peak_power": "largest power of the whole arm in it [W]",
    "energy/cycle/program": "name of the program that was loaded",
}
"""Descriptions of the metrics that are no ROS topics of numbers."""
INTEGERS = ("samples_lost", "energy/cycle/number")
TEXTS = ("state", "energy/cycle/program")
"""Metrics that are not floating-point numbers."""
NO_CYCLE: dict[str, Value] = {name: None for name in OTHERS if name.startswith("energy/cycle/")}


def values_of(reading: StoredReading) -> dict[str, Value]:
    """All metrics of a reading."""
    values: dict[str, Value] = {
        name: value if math.isfinite(value) else None
        for name, value in zip(reading.names, reading.values, strict=True)
    }
    values["state"] = reading.state
    values["samples_lost"] = reading.lost
    values |= NO_CYCLE
    if (cycle := reading.cycle) is not None:
        ended = (cycle.number, cycle.energy, cycle.duration, cycle.peak_power, cycle.program)
        values.update(zip(NO_CYCLE, ended, strict=True))
    return values


@lru_cache(maxsize=256)
def description_of(name: str) -> str:
    """What a metric is, with its unit."""
    if name in OTHERS:
        return OTHERS[name]
    joint = name.removeprefix("energy/").rpartition("/")[0]
    return next(topic.description for topic in number_topics([joint]) if topic.name == name)
