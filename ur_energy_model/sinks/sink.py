# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a sink is, the readings that it gets, and the thread that delivers them."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from ur_energy_model.energy.cycle_energies import (
    MEASURED_SHARE,
    TOTAL_SOURCE,
    UNACCOUNTED,
    Cycle,
)
from ur_energy_model.energy.live import Snapshot
from ur_energy_model.energy.topics import numbers
from ur_energy_model.errors import problem_words
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.source import LinkStatus


@dataclass(frozen=True)
class ArmReading:
    """State of one arm at one moment."""

    arm: str  # name of the arm, the label of everything a sink publishes
    stamp: int  # host time of the last sample [ns since 1970, UTC]
    joints: tuple[str, ...]  # names of the joints, prefix included, n
    # powers, energies and states; powers are means since the previous reading
    snapshot: Snapshot
    link: LinkStatus  # state of the connection, with lost samples
    cycles: tuple[Cycle, ...] = ()  # completed since the previous reading
    model: str = ""  # the model in use, in words
    # description of the arm; None where a source of readings does not give it
    robot: RobotDescription | None = None

    def numbers(self) -> dict[str, float]:
        """Values of the energy topics by name, the same as the ROS topics'; W and J."""
        return numbers(self.snapshot, self.joints)

    @property
    def state(self) -> str:
        """State of the arm, such as "moving"."""
        return self.snapshot.state.name.lower()

    @property
    def is_live(self) -> bool:
        """Whether samples of the arm arrive."""
        return self.link.connected and self.link.problem is None

    def energy_of(self, cycle: Cycle) -> float:
        """Energy of the whole arm in a cycle [J]."""
        return float(cycle.reading.net[self.snapshot.channels.arm["total"]])

    def figures_of(self, cycle: Cycle) -> dict[str, float | str | None]:
        """Number, energies [J], times [s], largest total power [W] and program of a cycle."""
        channels = self.snapshot.channels
        net = cycle.reading.net
        source = cycle.total_source(channels)
        return {
            "number": cycle.number,
            "energy": self.energy_of(cycle),
            "duration": cycle.duration,
            UNACCOUNTED: cycle.unaccounted,
            "peak_power": cycle.peak_power,
            "program": cycle.program,
            "model_energy": float(net[channels.arm["model"]]),
            "unexplained_energy": float(net[channels.arm["unexplained"]]),
            TOTAL_SOURCE: source.name,
            MEASURED_SHARE: source.share,
        }


@dataclass(frozen=True)
class ArmActions:
    """Actions on one arm; called from threads of sinks, so each must take the estimator's lock."""

    # sets the counters since reset to zero; its argument is the reason
    reset: Callable[[str], None]
    # energies since the last call, as ~/read_interval returns them
    read_interval: Callable[[], Mapping[str, object]]


NOT_OPEN = "not open yet"  # problem of a sink that was made a moment ago
MOST_WAITING = 50  # readings that wait; the oldest is dropped for a new one
FIRST_PAUSE = 0.5  # pause after the first failure of a sink [s]
LAST_CHANCE = 1.0  # longest time for readings that wait when the sink is closed [s]


@dataclass(frozen=True)
class SinkStatus:
    """State of a sink."""

    name: str  # such as "foxglove 127.0.0.1:8765"
    problem: str | None = None  # why readings do not arrive now, None while they do
    # numbers of readings; dropped ones were left out because the sink was too slow or
    # away
    delivered: int = 0
    dropped: int = 0
    waiting: int = 0
    # number of connected clients, None where a sink cannot count them
    clients: int | None = None


class Sink:
    """Takes readings, and delivers them in a thread that tries again after every failure.

    Making one checks what the user stated (address, files) and raises UrEnergyError; a
    server that cannot be reached or a port in use later is a `problem` of its status.
    `offer` never blocks and never raises; readings that it leaves out are counted. A
    subclass has `_serve`, which delivers until the sink is closed and nothing is left;
    any exception ends it until the next attempt.
    """

    longest_pause = 30.0
    """Pause before a failed sink is opened again, doubled with every failure [s]."""

    def __init__(self, name: str) -> None:
        self._changed = threading.Condition()
        self._closing = False
        self._deadline = float("inf")
        self._problem: str | None = NOT_OPEN
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def status(self) -> SinkStatus:
        """State, at any time."""
        raise NotImplementedError

    def offer(self, reading: ArmReading) -> None:
        """Take a reading."""
        raise NotImplementedError

    def _serve(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Deliver what is left, for LAST_CHANCE at most; a delivery that hangs is left behind."""
        with self._changed:
            self._closing = True
            self._deadline = time.monotonic() + LAST_CHANCE
            self._changed.notify()
        self._thread.join(LAST_CHANCE + 1.0)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        closing = False
        while not closing:
            delivered = self.status.delivered
            try:
                self._serve()
            except Exception as error:  # a library of another project may raise anything
                self._problem = problem_words(error)
            pause = FIRST_PAUSE if self.status.delivered > delivered else pause
            with self._changed:
                # Many arms whose server was restarted do not come back in step.
                shortened = random.uniform(0.5, 1.0) * pause
                closing = self._changed.wait_for(lambda: self._closing, shortened)
            pause = min(2.0 * pause, self.longest_pause)


class Delivery(Protocol):
    """What a QueuedSink does with readings, in its thread.

    Any exception means: close, and open again after a pause; `close` is also called after
    a failed `open`. `name` (kind and address) and `clients` (number of connections, None
    if unknown) may be read from other threads.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def clients(self) -> int | None: ...  # noqa: D102
    def open(self) -> None: ...  # noqa: D102
    def deliver(self, reading: ArmReading) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class QueuedSink(Sink):
    """A Sink with a queue of at most `most_waiting` readings, and a Delivery."""

    def __init__(self, delivery: Delivery, *, most_waiting: int = MOST_WAITING) -> None:
        self._delivery = delivery
        self._most = most_waiting
        self._waiting: deque[ArmReading] = deque()
        self._delivered = self._dropped = 0
        super().__init__(delivery.name)

    @property
    def status(self) -> SinkStatus:
        """State, at any time."""
        problem = self._problem
        counts = (self._delivered, self._dropped, len(self._waiting))
        clients = None if problem is not None else self._delivery.clients
        return SinkStatus(self._delivery.name, problem, *counts, clients)

    def offer(self, reading: ArmReading) -> None:
        """Take a reading; the oldest that waits is dropped if the queue is full."""
        with self._changed:
            if self._closing:
                return
            if len(self._waiting) >= self._most:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(reading)
            self._changed.notify()

    def close(self) -> None:
        """Deliver what waits, and release everything."""
        super().close()
        with self._changed:
            self._dropped += len(self._waiting)
            self._waiting.clear()

    def _serve(self) -> None:
        try:
            self._delivery.open()
            self._problem = None
            while (reading := self._next()) is not None:
                try:
                    self._delivery.deliver(reading)
                except Exception as error:
                    self._problem = problem_words(error)
                    self._dropped += 1
                    raise
                self._delivered += 1
        except Exception:
            with suppress(Exception):  # the first failure is reported
                self._delivery.close()
            raise
        self._delivery.close()

    def _next(self) -> ArmReading | None:
        """The oldest reading, once there is one; None when the sink is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            in_time = time.monotonic() <= self._deadline
            return self._waiting.popleft() if self._waiting and in_time else None
