"""The content of a state file: energy counters and the arm that they count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.counters_check import check_highest, check_reading, check_time
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.files import open_regular
from ur_energy_model.typing import Array

SCHEMA = 1
READINGS = ("ever", "reset", "interval")
"""Keys of the lifetime counters and of their values at the last reset and interval reading."""
LARGEST_FILE = 4 << 20
"""Largest state file [bytes]; counters take some ten thousand."""
LARGEST_NUMBER = 1 << 63


@dataclass(frozen=True)
class Counters:
    """Lifetime energy, and its values at which the other counters began.

    Attributes:
        lifetime: since the state file was created.
        reset: value of `lifetime` at the last reset.
        interval: value of `lifetime` at the last interval reading.
        clock: controller time of the last sample [s], None where there was none.
        reset_time: of the last reset, ISO 8601.
        reset_reason: of the last reset.
        serial: number of the arm, None where unknown.
        highest: highest lifetime net energy of each channel so far [channels], J; None for that of
            `lifetime`, as in files of earlier versions.
    """

    lifetime: MeterReading
    reset: MeterReading
    interval: MeterReading
    clock: float | None
    reset_time: str
    reset_reason: str
    serial: str | None = None
    highest: Array | None = None

    @classmethod
    def new(cls, channels: int, now: str, reason: str = "first start") -> Counters:
        """Counters at zero."""
        zero = MeterReading.zero(channels)
        return cls(zero, zero, zero, None, now, reason)

    def at(self, lifetime: MeterReading, clock: float | None, highest: Array | None) -> Counters:
        """The counters at a later moment; without `highest` the known one remains."""
        highest = self.highest if highest is None else highest
        return replace(self, lifetime=lifetime, clock=clock, highest=highest)

    def converted(self, channels: Channels, names: Sequence[str]) -> Counters:
        """The same counters, of channels `names`, for other channels."""
        highest = self.highest
        if highest is not None:
            highest = channels.convert_values(highest, names)
        lifetime, reset, interval = (
            channels.convert(reading, names)
            for reading in (self.lifetime, self.reset, self.interval)
        )
        return replace(self, lifetime=lifetime, reset=reset, interval=interval, highest=highest)


@dataclass(frozen=True)
class SavedState:
    """The content of a state file.

    Attributes:
        counters: of the channels `names`.
        names: of the channels.
        sequence: number of the saving; newer journal entries have larger ones.
        number: of the state file, which its journal entries carry; None in files of earlier
            versions.
        robot: description name of the arm, None in files of earlier versions.
    """

    counters: Counters
    names: tuple[str, ...]
    sequence: int
    number: int | None
    robot: str | None

    def as_json(self) -> dict[str, Any]:
        """The content as it is written."""
        counters = self.counters
        readings = (counters.lifetime, counters.reset, counters.interval)
        return {
            "schema": SCHEMA,
            "number": self.number,
            "robot": self.robot,
            "serial": counters.serial,
            "sequence": self.sequence,
            "reset_time": counters.reset_time,
            "reset_reason": counters.reset_reason,
            "clock": counters.clock,
            "names": self.names,
            "highest": None if counters.highest is None else counters.highest.tolist(),
            **{key: _plain(reading) for key, reading in zip(READINGS, readings, strict=True)},
        }


def read_state(path: Path) -> SavedState:
    """The content of a state file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no state file, or holds counters that no arm can have.
    """
    with open_regular(path) as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise ValueError(f"more than {LARGEST_FILE} bytes")
    try:
        return _parse(json.loads(data.decode("utf-8")))
    except (KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _parse(content: Any) -> SavedState:
    if content["schema"] != SCHEMA:
        raise ValueError(f"schema {content['schema']}")
    names = tuple(content["names"])
    if not all(isinstance(name, str) for name in names):
        raise ValueError("names that are no text")
    sequence, number = int(content["sequence"]), content.get("number")
    if not 0 <= sequence < LARGEST_NUMBER:
        raise ValueError("impossible sequence")
    if number is not None and not (isinstance(number, int) and 0 <= number < LARGEST_NUMBER):
        raise ValueError("impossible number")
    clock, robot, serial = (content.get(key) for key in ("clock", "robot", "serial"))
    lifetime, reset, interval = (_reading(content[key], len(names)) for key in READINGS)
    highest = content.get("highest")
    counters = Counters(
        lifetime,
        reset,
        interval,
        clock=None if clock is None else check_time(float(clock)),
        reset_time=str(content["reset_time"]),
        reset_reason=str(content["reset_reason"]),
        serial=None if serial is None else str(serial),
        highest=None if highest is None else check_highest(np.array(highest, float), lifetime),
    )
    return SavedState(counters, names, sequence, number, None if robot is None else str(robot))


def _plain(reading: MeterReading) -> dict[str, Any]:
    return {
        key: value.tolist() if isinstance(value, np.ndarray) else value
        for key, value in asdict(reading).items()
    }


def _reading(content: dict[str, Any], channels: int) -> MeterReading:
    net, consumed = (np.array(content[key], dtype=float) for key in ("net", "consumed"))
    reading = MeterReading(
        net, consumed, float(content["accounted"]), float(content["unaccounted"])
    )
    if net.shape != (channels,) or consumed.shape != (channels,):
        raise ValueError("wrong number of counters")
    check_reading(reading)
    return reading
