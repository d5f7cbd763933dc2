"""MqttSink: an edge node on one broker, which keeps readings while the broker is away."""

from __future__ import annotations

import random
import threading
import time

from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.credentials import MqttCredentials, read_credentials
from ur_energy_model.sinks.mqtt.broker import Broker, broker_of
from ur_energy_model.sinks.mqtt.connection import Connection
from ur_energy_model.sinks.mqtt.edge_node import EdgeNode
from ur_energy_model.sinks.mqtt.json_messages import json_messages
from ur_energy_model.sinks.mqtt.reading_store import Batch, ReadingStore
from ur_energy_model.sinks.mqtt.stored_reading import ReadingCompressor
from ur_energy_model.sinks.options import SinkOptions
from ur_energy_model.sinks.queued_sink import FIRST_PAUSE, LAST_CHANCE
from ur_energy_model.sinks.sink import NOT_OPEN, SinkStatus, problem_words

OPTION = "--mqtt"
BATCH = 50
"""Most readings that are on the way at once."""
POLL = 0.05
"""Longest time between polls for new readings [s]."""
LONGEST_PAUSE = 5.0
"""Longest pause before the next attempt to connect [s], doubled with every failure."""
BIRTH_PAUSE = 1.0
"""Shortest time between two births of the node, however many commands ask for them [s]."""
SILENCE = 5.0
"""Time without readings after which an arm is dead to hosts [s]."""


def mqtt_sink(url: str, options: SinkOptions) -> MqttSink:
    """The sink of a broker.

    Raises:
        InputError: the URL, the credentials or the names of group and node cannot be used.
        MissingPackageError: paho-mqtt or pysparkplug is not installed.
    """
    return MqttSink(
        broker_of(OPTION, url, allow_network=options.allow_network),
        EdgeNode(options.mqtt_group, options.mqtt_node),
        read_credentials(options.credentials).mqtt,
        with_json=options.mqtt_json,
    )


class MqttSink:
    """A Sink whose readings wait in a bounded store until the broker has them.

    A reading leaves the store when the broker has answered a packet that was sent after it.
    Energies are counters, so a reading that reaches the broker twice, because an answer was lost
    with the connection, adds nothing.

    Args:
        broker: where readings go.
        node: makes the Sparkplug messages.
        credentials: of the connection.
        with_json: also publish plain JSON.
        store: of readings that wait.
    """

    def __init__(
        self,
        broker: Broker,
        node: EdgeNode,
        credentials: MqttCredentials,
        *,
        with_json: bool = False,
        store: ReadingStore | None = None,
    ) -> None:
        self._broker, self._node, self._credentials = broker, node, credentials
        self._with_json = with_json
        self._store = ReadingStore() if store is None else store
        self._compress = ReadingCompressor()
        self._seen: dict[str, float] = {}
        self._rebirth, self._born = False, float("-inf")
        self._problem: str | None = NOT_OPEN
        self._closing = threading.Event()
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._run, name=str(broker), daemon=True)
        self._thread.start()

    @property
    def status(self) -> SinkStatus:
        """State, at any time."""
        store = self._store
        return SinkStatus(
            str(self._broker), self._problem, store.delivered, store.dropped, len(store)
        )

    def offer(self, reading: ArmReading) -> None:
        """Store a reading, or note that the arm cannot be reached."""
        if self._closing.is_set():
            return
        if not (reading.link.connected and reading.link.problem is None):
            self._seen[reading.arm] = float("-inf")
            return
        try:
            self._store.add(self._compress(reading))
        except Exception as error:  # the estimator's thread must never see it
            self._store.dropped += 1
            self._problem = f"a reading cannot be used: {error!r}"
        else:
            self._seen[reading.arm] = time.monotonic()

    def close(self) -> None:
        """Flush the queue, for LAST_CHANCE at most, and disconnect."""
        self._deadline = time.monotonic() + LAST_CHANCE
        self._closing.set()
        self._thread.join(LAST_CHANCE + 1.0)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._closing.is_set():
            delivered = self._store.delivered
            try:
                self._serve()
            except Exception as error:  # paho and ssl may raise anything
                self._problem = problem_words(error)
            pause = FIRST_PAUSE if self._store.delivered > delivered else pause
            # Many arms whose broker was restarted do not come back in step.
            self._closing.wait(random.uniform(0.5, 1.0) * pause)
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def _serve(self) -> None:
        """One connection, until it is lost or the sink is closed."""
        node = self._node
        will = node.will(_now())
        connection = Connection(self._broker, self._credentials, will, node.topics, self._receive)
        try:
            self._bear(connection)
            self._problem = None
            sent: Batch | None = None
            while not self._is_done():
                connection.work(POLL)
                self._tell_of_arms(connection)
                if connection.is_answered:
                    if sent is not None:
                        self._store.confirm(sent)
                    sent = self._send(connection)
            connection.publish([node.death(_now())])
            connection.close()
        finally:
            connection.abandon()

    def _bear(self, connection: Connection) -> None:
        """Publish all births."""
        self._rebirth, self._born = False, time.monotonic()
        connection.publish(self._node.birth(_now(), self._store.newest))

    def _is_done(self) -> bool:
        if not self._closing.is_set():
            return False
        return not len(self._store) or time.monotonic() > self._deadline

    def _tell_of_arms(self, connection: Connection) -> None:
        """Births that hosts need, and deaths of arms."""
        if self._rebirth and time.monotonic() - self._born >= BIRTH_PAUSE:
            self._bear(connection)
        limit = time.monotonic() - SILENCE
        for arm, seen in tuple(self._seen.items()):
            if seen < limit:
                connection.publish(self._node.device_death(arm, _now()))

    def _send(self, connection: Connection) -> Batch | None:
        """Send the oldest readings; returns them, None if there are none."""
        batch = self._store.oldest(BATCH)
        if not batch.readings:
            return None
        connection.publish(self._node.data(batch, _now()))
        if self._with_json:
            connection.publish(json_messages(self._node.group, self._node.node, batch))
        connection.ask()
        return batch

    def _receive(self, topic: str, payload: bytes, retained: bool) -> None:
        self._rebirth |= self._node.needs_birth(topic, payload, retained=retained)


def _now() -> int:
    """Time [ms since 1970, UTC]."""
    return time.time_ns() // 1_000_000
