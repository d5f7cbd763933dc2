# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy counters of one arm as a record in the state file, and the checks of this record.

The state holds a `Counters` as JSON. The journal holds, in binary form, only what changes
with every publication; such an entry names the counters that it continues by their number.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import numpy as np

from ur_energy_model.codec import built, plain
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import Channels
from ur_energy_model.energy.telemetry_checks import MOST_POWER
from ur_energy_model.typing import Array

SCHEMA = 1
LARGEST_NUMBER = 1 << 63
MOST_CYCLES = 10**12
LONGEST_TIME = 1.0e10
"""Time that no counter reaches [s]: three centuries."""
ALLOWANCE = 60.0
"""Accounted time that counts in addition, for corrections [s]."""
_HEAD = 8  # bytes of the number with which a journal entry begins


@dataclass(frozen=True)
class Counters:
    """Lifetime energy of one arm, and its values at which the other counters began.

    Attributes:
        ever: energy since the counters were created, J [channels].
        reset: value of `ever` at the last reset.
        interval: value of `ever` at the last interval reading.
        reset_time: time of the last reset, UTC, ISO 8601.
        reset_reason: why there was one, in words.
        names: names of the channels.
        robot: description name of the arm; None where it was not stated.
        highest: highest lifetime net energy of each channel at any publication [channels],
            J.
        number: random, identifies these counters; journal entries carry it.
        clock: controller time of the last sample [s]; None before the first one.
        serial: number of the arm; None where unknown.
        cycles: number of the last work cycle; 0 before the first.
    """

    ever: MeterReading
    reset: MeterReading
    interval: MeterReading
    reset_time: str
    reset_reason: str
    names: tuple[str, ...]
    highest: Array
    number: int
    robot: str | None = None
    clock: float | None = None
    serial: str | None = None
    cycles: int = 0

    @classmethod
    def zero(
        cls, names: tuple[str, ...], robot: str | None, serial: str | None, reason: str
    ) -> Counters:
        """Counters at zero that begin now.

        Args:
            names: names of the channels.
            robot: description name of the arm, None where unknown.
            serial: number of the arm, None where unknown.
            reason: why they begin, in words.
        """
        zero = MeterReading.zero(len(names))
        return cls(
            ever=zero,
            reset=zero,
            interval=zero,
            reset_time=utc_now(),
            reset_reason=reason,
            names=names,
            highest=zero.net,
            number=secrets.randbelow(LARGEST_NUMBER),
            robot=robot,
            serial=serial,
        )

    @property
    def joints(self) -> set[str]:
        """Names of the joints that have channels."""
        owners = {name.partition("/")[0] for name in self.names if "/" in name}
        return owners - {"total", "model"}

    # The state: JSON.

    def content(self) -> bytes:
        """The counters as JSON, all digits kept."""
        content = {"schema": SCHEMA, **plain(self, arrays=True)}
        return json.dumps(content, allow_nan=False, default=np.ndarray.tolist).encode()

    @classmethod
    def from_content(cls, content: bytes) -> Counters:
        """Counters from JSON.

        Raises:
            ValueError: they are damaged, or no arm can have them.
        """
        try:
            values = json.loads(content)
            if values["schema"] != SCHEMA:
                raise ValueError(f"schema {values['schema']}")
            stated = {key: each for key, each in values.items() if each is not None}
            counters = built(cls, stated)
            counters.check()
        except (
            AttributeError, KeyError, TypeError, ArithmeticError, RecursionError
        ) as error:  # fmt: skip
            raise ValueError(str(error)) from error
        return counters

    def check(self) -> None:
        """Refuse counters that no arm can have.

        The bound of the energies is MOST_POWER over the accounted time, so that a flipped
        bit of an exponent is found.

        Raises:
            ValueError: a counter is impossible; the text is the reason.
        """
        if not 0 <= self.number < LARGEST_NUMBER:
            raise ValueError("impossible number")
        if not 0 <= self.cycles <= MOST_CYCLES:
            raise ValueError("impossible number of cycles")
        energies = list(self._energies())
        if any(values.shape != (len(self.names),) for values in energies):
            raise ValueError("wrong number of counters")
        if not all(0.0 <= time <= LONGEST_TIME for time in self._times()):
            raise ValueError("impossible times")
        if self.clock is not None and not abs(self.clock) <= LONGEST_TIME:
            raise ValueError("impossible times")
        # The integral of the squared power [W^2 s] may be larger by one more power.
        unit = np.where(np.array(self.names) == "total_square", MOST_POWER, 1.0)
        largest = float(np.abs(energies / unit).max(initial=0.0))
        if not largest <= MOST_POWER * (self.ever.accounted + ALLOWANCE):
            raise ValueError(
                f"{largest:.3g} J in so short a time, more than any arm takes"
            )

    def _energies(self) -> Iterator[Array]:
        for reading in (self.ever, self.reset, self.interval):
            yield reading.net
            yield reading.consumed
        yield self.highest

    def _times(self) -> Iterator[float]:
        for reading in (self.ever, self.reset, self.interval):
            yield reading.accounted
            yield reading.unaccounted

    def converted(self, channels: Channels) -> Counters:
        """The same counters for other channels of the same joints; new ones are zero.

        Another model may have more or fewer parameter errors, which have channels.
        """
        return replace(
            self,
            ever=channels.convert(self.ever, self.names),
            reset=channels.convert(self.reset, self.names),
            interval=channels.convert(self.interval, self.names),
            highest=channels.convert_values(self.highest, self.names),
            names=channels.names,
        )

    # The journal: number of the counters (8 bytes, little-endian), then float64 values
    # (little-endian): net energies [channels], consumed energies [channels], accounted
    # time, unaccounted time, clock (NaN for none), highest energies [channels], cycles.

    def journal_entry(self) -> bytes:
        """What changes with every publication, in binary form."""
        clock = np.nan if self.clock is None else self.clock
        times = (self.ever.accounted, self.ever.unaccounted, clock)
        cycles = (float(self.cycles),)
        numbers = np.concatenate(
            (self.ever.net, self.ever.consumed, times, self.highest, cycles)
        )
        head = self.number.to_bytes(_HEAD, "little")
        return head + numbers.astype("<f8", copy=False).tobytes()

    def continued(self, entry: bytes) -> Counters:
        """These counters with the values of a journal entry.

        They stay as they are if the entry is of other counters, older, damaged or
        impossible.
        """
        n = len(self.names)
        if len(entry) != _HEAD + 8 * (3 * n + 4):
            return self
        if int.from_bytes(entry[:_HEAD], "little") != self.number:
            return self
        values = np.frombuffer(entry, "<f8", offset=_HEAD)
        net, consumed, times, highest, cycles = np.split(
            values, (n, 2 * n, 2 * n + 3, 3 * n + 3)
        )
        accounted, unaccounted, clock = times.tolist()
        last_cycle = cycles.item()
        if not 0.0 <= last_cycle <= MOST_CYCLES:
            return self
        newest = replace(
            self,
            ever=MeterReading(net, consumed, accounted, unaccounted),
            clock=None if np.isnan(clock) else clock,
            highest=highest,
            cycles=max(int(last_cycle), self.cycles),
        )
        try:
            newest.check()
        except ValueError:
            return self
        passed = accounted + unaccounted - self.ever.accounted - self.ever.unaccounted
        return newest if passed >= 0.0 else self


def utc_now() -> str:
    """Current time in UTC, ISO 8601, to a millisecond."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
