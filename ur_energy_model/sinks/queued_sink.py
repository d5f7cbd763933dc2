"""QueuedSink: delivers readings in a thread of its own, and tries again after problems."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Protocol

from ur_energy_model.sinks.sink import NOT_OPEN, ArmReading, SinkStatus, problem_words

MOST_WAITING = 50
"""Readings that wait; the oldest is dropped for a new one."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Pause before a failed sink is opened again, doubled with every failure [s]."""
LAST_CHANCE = 1.0
"""Longest time for readings that wait when the sink is closed [s]."""


class Delivery(Protocol):
    """What a sink does with readings, in the sink's thread.

    Any exception means: close, and open again after a pause. `name` and `clients` may be read from
    other threads.
    """

    @property
    def name(self) -> str:
        """Kind and address, for users."""
        ...

    @property
    def clients(self) -> int | None:
        """Number of connected clients, None if unknown."""
        ...

    def open(self) -> None:
        """Connect, or begin to listen."""
        ...

    def deliver(self, reading: ArmReading) -> None:
        """Send or show one reading."""
        ...

    def close(self) -> None:
        """Release everything; also called after a failed `open`."""
        ...


class QueuedSink:
    """A Sink that owns a thread, a bounded queue and a Delivery.

    Args:
        delivery: what is done with each reading.
        most_waiting: length of the queue.
    """

    def __init__(self, delivery: Delivery, *, most_waiting: int = MOST_WAITING) -> None:
        self._delivery = delivery
        self._waiting: deque[ArmReading] = deque()
        self._most = most_waiting
        self._changed = threading.Condition()
        self._closing = False
        self._deadline = float("inf")
        self._delivered = self._dropped = 0
        self._problem: str | None = NOT_OPEN
        self._thread = threading.Thread(target=self._run, name=delivery.name, daemon=True)
        self._thread.start()

    @property
    def status(self) -> SinkStatus:
        """State, at any time."""
        delivery = self._delivery
        clients = None if self._problem is not None else delivery.clients
        return SinkStatus(
            delivery.name,
            self._problem,
            self._delivered,
            self._dropped,
            len(self._waiting),
            clients,
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
        """Deliver what waits, for LAST_CHANCE at most, and release everything.

        A delivery that hangs is left behind: its thread ends with the process.
        """
        with self._changed:
            self._closing = True
            self._deadline = time.monotonic() + LAST_CHANCE
            self._changed.notify()
        self._thread.join(LAST_CHANCE + 1.0)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            delivered = self._delivered
            try:
                self._delivery.open()
                self._problem = None
                self._deliver_all()
            except Exception as error:  # a library of another project may raise anything
                self._problem = problem_words(error)
            finally:
                self._release()
            pause = FIRST_PAUSE if self._delivered > delivered else pause
            with self._changed:
                if self._changed.wait_for(lambda: self._closing, pause):
                    self._dropped += len(self._waiting)
                    self._waiting.clear()
                    return
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def _deliver_all(self) -> None:
        """Deliver until the sink is closed and nothing waits, or its time is over."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting or time.monotonic() > self._deadline:
                    return
                reading = self._waiting.popleft()
            try:
                self._delivery.deliver(reading)
            except Exception:
                self._dropped += 1
                raise
            self._delivered += 1

    def _release(self) -> None:
        try:
            self._delivery.close()
        except Exception as error:
            self._problem = self._problem or problem_words(error)
