# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power meters at the mains: their readings become columns of a robot's samples.

A thread reads the meter (`meter_protocols`). A meter that is silent is a gap (NaN), never
a number, and never delays a sample of the robot. What it shows is recorded as it is;
whether that can be the power of this robot is judged where it is used
(`consistency.wall_meter`).
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import InputError, problem_words
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import METER_FIELDS
from ur_energy_model.telemetry.meter_protocols import ANSWER_SECONDS, Item, items_of
from ur_energy_model.telemetry.meter_values import Reading, Silence
from ur_energy_model.telemetry.samples import WARNING, Event, RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource
from ur_energy_model.typing import Array, ClosedOnExit, Self

BOOT_SECONDS = 20.0
"""Time for which a first answer without power is waited for: the device may have been switched on
just now [s]."""
SILENT_PERIODS = 5.0
SILENT_SECONDS = 10.0
"""A reading is held for so many periods of the messages, and so many seconds at least."""
FIRST_PAUSE = 0.5  # pause before a meter is connected again for the first time [s]
LONGEST_PAUSE = 10.0  # longest such pause; each is twice the one before [s]
MOST_READINGS = 64  # readings kept; a batch of samples spans one or two
_NUMBER_ROW = 2  # row of their numbers, behind the rows of power and energy


class _Readings(NamedTuple):
    """The last readings of a meter, in order.

    Attributes:
        arrived: host times of their arrival [k], ns.
        values: power [W], energy [J] and number of each reading [3, k].
    """

    arrived: NDArray[np.int64]
    values: Array

    def followed_by(self, now: int, new: Reading, number: int) -> _Readings:
        """These readings and the next one; the oldest beyond MOST_READINGS are left out.

        Args:
            now: host time of its arrival [ns].
            new: the next reading.
            number: number of the next reading.
        """
        column = np.array([[new.power], [new.energy], [number]])
        arrived = np.append(self.arrived, now)
        values = np.append(self.values, column, axis=1)
        return _Readings(arrived[-MOST_READINGS:], values[:, -MOST_READINGS:])


_NO_READING = _Readings(np.zeros(1, np.int64), np.array([[np.nan], [np.nan], [0.0]]))
"""A reading of number 0 in front of all others, without power and energy."""


class Meter:
    """Reads a meter in a thread, and again after every failure; a context manager.

    Args:
        url: one of `meter_protocols.FORMS`.

    Raises:
        InputError: not such a URL, or a profile that cannot be used.
        MissingPackageError: the package for this kind of meter is not installed.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._items = items_of(url)
        self._failure: Silence | None = None  # why the last message was no reading
        self._count = 0  # number of readings
        self._heard = HOST_CLOCK.now()  # when the last reading was shown [ns]
        self._held_ns = 1e9 * SILENT_SECONDS  # how long it holds from then on
        self._intervals: deque[int] = deque(maxlen=MOST_READINGS)  # message periods [ns]
        self._kept = _NO_READING  # replaced as a whole
        self._news = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="power meter", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join(1.0)  # a request that hangs is left behind

    def require(self) -> None:
        """Wait for the first reading.

        A device that answers without a power is waited for, one that is silent is not:
        its first message may come later.

        Raises:
            InputError: the meter cannot be read.
        """
        began = time.monotonic()
        self._news.wait(2.0 * ANSWER_SECONDS)
        while (failure := self._failure) is not None:
            if not failure.may_pass or time.monotonic() - began > BOOT_SECONDS:
                raise InputError(
                    self.url, failure.words, "correct --meter, or record without it"
                )
            self._news.clear()
            self._news.wait(0.1)

    @property
    def problem(self) -> str | None:
        """Why there is no reading now, None while there is."""
        failure = self._failure
        if HOST_CLOCK.now() - self._heard > self._held_ns:
            return "sends no readings" if failure is None else failure.words
        return None if failure is None or self._count else failure.words

    def latest(self, stamp: NDArray[np.int64]) -> Array:
        """Power, energy and number [3, n] of the last readings at host times [n], ns.

        Power and energy are NaN before the first reading, and where the meter is silent.
        """
        arrived, values = self._kept
        last = np.searchsorted(arrived, stamp, "right") - 1
        found = values[:, np.maximum(last, 0)]
        is_silent = stamp - self._heard > self._held_ns
        found[:_NUMBER_ROW, is_silent] = np.nan
        return found

    def _run(self) -> None:
        """The reading thread."""
        pause = FIRST_PAUSE
        while not self._closed.is_set():
            try:
                with closing(self._items(self._closed)) as items:  # type: ignore[type-var]
                    for item in items:
                        self._hear(item)
                        pause = FIRST_PAUSE
            except Exception as error:  # a library of another project may raise anything
                self._hear(Silence(problem_words(error)))
            self._closed.wait(random.uniform(0.5, 1.0) * pause)
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def _hear(self, item: Item) -> None:
        """Keep a reading, or why there is none; None prolongs the last one."""
        now = HOST_CLOCK.now()
        self._failure = item if isinstance(item, Silence) else None
        self._news.set()
        if isinstance(item, Silence):
            return
        if self._count:
            self._intervals.append(now - self._heard)
            period = 1e-9 * float(np.median(self._intervals))
            self._held_ns = 1e9 * max(SILENT_PERIODS * period, SILENT_SECONDS)
        self._heard = now
        if item is not None:
            self._count += 1
            self._kept = self._kept.followed_by(now, item, self._count)


class MeteredSource(ClosedOnExit):
    """A source whose batches have the readings of a meter as further columns.

    Args:
        source: source of samples with host times, such as a controller.
        meter: being read; it stays open when the source is closed.
    """

    def __init__(self, source: TelemetrySource, meter: Meter) -> None:
        self._source = source
        self._meter = meter
        self._reported: str | None = None

    @property
    def info(self) -> RecordingInfo:
        """Robot and recording, with the address of the meter."""
        info = self._source.info
        return replace(info, extra={**info.extra, "meter": self._meter.url})

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the columns."""
        return (*self._source.fields, *METER_FIELDS)

    @property
    def status(self) -> LinkStatus:
        """State of the robot's connection; `Meter.problem` has the state of the meter's."""
        return self._source.status

    def take_events(self) -> list[Event]:
        """Events of the source, and of the meter: when its readings end, and come again."""
        events = self._source.take_events()
        problem = self._meter.problem
        if (problem is None) != (self._reported is None):
            self._reported = problem
            text = f"power meter: {problem or 'sends readings'}"
            events.append(Event(HOST_CLOCK.now(), "meter", text, WARNING))
        return events

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch of the source, with the meter's power added; see `TelemetrySource.read`."""
        batch = self._source.read(timeout)
        if batch is None:
            return None
        now = np.full(len(batch), HOST_CLOCK.now())
        found = self._meter.latest(now if batch.stamp is None else batch.stamp)
        readings = dict(zip(METER_FIELDS, found, strict=True))
        return replace(batch, columns={**batch.columns, **readings})

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    def __enter__(self) -> Self:
        self._source.__enter__()
        return self
