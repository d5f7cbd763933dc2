# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sinks: the readings that they get, the threads that deliver, and their factories."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ur_energy_model.energy.cycle_energies import (
    MEASURED_SHARE,
    TOTAL_SOURCE,
    UNACCOUNTED,
    Cycle,
)
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.energy.topics import numbers
from ur_energy_model.errors import problem_words
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.rooms import Given, extensions, loaded
from ur_energy_model.sinks.options import SUBJECT, SinkKind
from ur_energy_model.telemetry.source import LinkStatus


@dataclass(frozen=True)
class ArmReading:
    """State of one arm at one moment.

    Attributes:
        arm: name of the arm, with which a sink labels all that it publishes.
        stamp: host time of the last sample [ns since 1970, UTC].
        joints: names of the joints, prefix included, n.
        snapshot: powers, energies and states; powers are means since the previous
            reading.
        link: state of the connection, with lost samples.
        cycles: cycles completed since the previous reading.
        model: the model in use, in words.
        robot: description of the arm; None where the source of readings has none.
    """

    arm: str
    stamp: int
    joints: tuple[str, ...]
    snapshot: Snapshot
    link: LinkStatus
    cycles: tuple[Cycle, ...] = ()
    model: str = ""
    robot: RobotDescription | None = None

    def numbers(self) -> dict[str, float]:
        """Values of the energy topics by name, as on the ROS topics; W and J."""
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
        """Number, energies [J], times [s], peak total power [W] and program of a cycle."""
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
    """Actions on an arm that clients of a sink may request.

    Sinks call the actions in threads of their own, so each must take the estimator's
    lock.

    Attributes:
        reset: sets the counters since reset to zero; its argument is the reason.
        read_interval: energies since the last call, as the service ~/read_interval
            returns them.
    """

    reset: Callable[[str], None]
    read_interval: Callable[[], Mapping[str, object]]


NOT_OPEN = "not open yet"
"""Problem of a sink that was made a moment ago."""
MOST_WAITING = 50
"""Readings that wait for a slow sink; the oldest is dropped for a new one."""
FIRST_PAUSE = 0.5
"""Pause after the first failure of a sink [s]."""
LAST_CHANCE = 1.0
"""Longest time for delivering readings that still wait when a sink is closed [s]."""


@dataclass(frozen=True)
class SinkStatus:
    """State of a sink.

    Attributes:
        name: kind and address, for users.
        problem: why readings do not arrive now; None while they do.
        delivered: number of readings that have arrived.
        dropped: number of readings that were left out, because the sink was too slow or
            away, or could not use them.
        waiting: number of readings that are still to be delivered.
        clients: number of connected clients; None where a sink cannot count them.
    """

    name: str
    problem: str | None = None
    delivered: int = 0
    dropped: int = 0
    waiting: int = 0
    clients: int | None = None


class Sink:
    """Takes readings, and delivers them in a thread that tries again after every failure.

    What the user stated (address, files) is checked before a sink is made. A server that
    cannot be reached, or a port in use, is a `problem` of the status: the sink tries
    again, after FIRST_PAUSE, then after pauses that double up to `longest_pause`.

    A subclass has `_serve`, which delivers until the sink is closed and nothing is left;
    any exception ends it until the next attempt.
    """

    longest_pause = 30.0
    """Pause before a failed sink is opened again, doubled with every failure [s]."""

    def __init__(self, name: str) -> None:
        """Start the thread; a subclass makes what `_serve` needs before.

        Args:
            name: name of the thread.
        """
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
        """Take a reading, or count it as dropped; never blocks, never raises."""
        raise NotImplementedError

    def _serve(self) -> None:
        """Deliver readings until the sink is closed and nothing is left."""
        raise NotImplementedError

    def close(self) -> None:
        """Flush the queue, for LAST_CHANCE at most, and end the thread.

        A delivery that hangs is left behind: its thread does not keep the program alive.
        """
        with self._changed:
            self._closing = True
            self._deadline = time.monotonic() + LAST_CHANCE
            self._changed.notify()
        self._thread.join(LAST_CHANCE + 1.0)

    def _run(self) -> None:
        """Serve, and after each failure serve again."""
        pause = FIRST_PAUSE
        closing = False
        while not closing:
            delivered = self.status.delivered
            try:
                self._serve()
            except Exception as error:  # a library of another project may raise anything
                self._problem = problem_words(error)
            if self.status.delivered > delivered:
                pause = FIRST_PAUSE
            with self._changed:
                # Many arms whose server was restarted do not come back in step.
                shortened = random.uniform(0.5, 1.0) * pause
                closing = self._changed.wait_for(lambda: self._closing, shortened)
            pause = min(2.0 * pause, self.longest_pause)


class Delivery(Protocol):
    """Delivery of the readings of a QueuedSink.

    The thread of the sink calls the methods; any exception means: close, and open again
    after a pause. The properties are read from other threads.
    """

    @property
    def name(self) -> str:
        """Kind and address, for users."""

    @property
    def clients(self) -> int | None:
        """Number of connections; None where it is not known."""

    def open(self) -> None:
        """Connect, listen or create the file."""

    def deliver(self, reading: ArmReading) -> None:
        """Publish one reading."""

    def close(self) -> None:
        """Release everything; also called after an `open` that failed."""


class QueuedSink(Sink):
    """A Sink with a queue of readings, and a Delivery that publishes them one by one."""

    def __init__(self, delivery: Delivery, *, most_waiting: int = MOST_WAITING) -> None:
        """Start to deliver.

        Args:
            delivery: publishes the readings.
            most_waiting: length of the queue.
        """
        self._delivery = delivery
        self._most = most_waiting
        self._waiting: deque[ArmReading] = deque()
        self._delivered = 0
        self._dropped = 0
        super().__init__(delivery.name)

    @property
    def status(self) -> SinkStatus:
        """State, at any time."""
        problem = self._problem
        return SinkStatus(
            self._delivery.name,
            problem,
            delivered=self._delivered,
            dropped=self._dropped,
            waiting=len(self._waiting),
            clients=self._delivery.clients if problem is None else None,
        )

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
        """Flush the queue, and count what could not be delivered in time as dropped."""
        super().close()
        with self._changed:
            self._dropped += len(self._waiting)
            self._waiting.clear()

    def _serve(self) -> None:
        """Open the delivery, deliver until the sink is closed, and close the delivery.

        Raises:
            Exception: whatever a library raises; the delivery is closed before.
        """
        try:
            self._delivery.open()
            self._problem = None
            reading = self._next()
            while reading is not None:
                try:
                    self._delivery.deliver(reading)
                except Exception as error:
                    self._problem = problem_words(error)
                    self._dropped += 1
                    raise
                self._delivered += 1
                reading = self._next()
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
            if self._waiting and in_time:
                return self._waiting.popleft()
            return None


class SinkFactory(Protocol):
    """Makes a sink; a room's chapter `sink` has one for each of its kinds."""

    def __call__(
        self,
        place: str,
        given: Given,
        actions: ArmActions | None,
        state_file: Path | None,
        /,
    ) -> Sink:
        """The sink.

        Args:
            place: address, URL or file, as stated by the user.
            given: holds the options of the kind and the common `SinkOptions`.
            actions: what clients of the sink may request of the arm; None for nothing.
            state_file: file of the energy counters, beside which the sink keeps what it
                needs after a restart; None to keep nothing.

        Raises:
            InputError: the place or an option cannot be used.
        """
        ...


def open_sinks(
    given: Given,
    actions: ArmActions | None = None,
    state_file: Path | None = None,
) -> tuple[Sink, ...]:
    """Make all sinks that the user has stated.

    Args:
        given: holds the options of every kind, and the common ones.
        actions: what clients of the sinks may request of the arm; None for nothing.
        state_file: file of the energy counters, beside which sinks keep what they need
            after a restart; None to keep nothing.

    Raises:
        InputError: an address, a URL or a file cannot be used; the sinks that were made
            before are closed.
        MissingPackageError: the package of a kind is not installed.
    """
    sinks: list[Sink] = []
    with ExitStack() as opened:
        for extension in extensions(SUBJECT):
            kind: SinkKind = extension.load()
            for place in kind.places(given):
                make: SinkFactory = loaded(kind.factory)
                sink = make(place, given, actions, state_file)
                sinks.append(opened.enter_context(closing(sink)))
        opened.pop_all()
    return tuple(sinks)
