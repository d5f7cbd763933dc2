# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""MQTT: a sink that publishes readings on one broker, and keeps them while it is away."""

from __future__ import annotations

import time
import zlib
from pathlib import Path

from ur_energy_model.rooms import Given
from ur_energy_model.sinks.mqtt.connection import Broker, BrokerConnection, broker_of
from ur_energy_model.sinks.mqtt.credentials import MqttCredentials, read_credentials
from ur_energy_model.sinks.mqtt.edge_node import (
    BirthNumbers,
    EdgeNode,
    ReadingStore,
    json_messages,
)
from ur_energy_model.sinks.mqtt.room import MqttOptions
from ur_energy_model.sinks.options import common_options
from ur_energy_model.sinks.sink import ArmActions, ArmReading, Sink, SinkStatus

BATCH = 50
"""Most readings that are on the way at once."""
POLL = 0.05
"""Longest time between polls for new readings [s]."""
BIRTH_PAUSE = 1.0
"""Shortest time between two births of the node that commands request [s]."""
SILENCE = 5.0
"""Time without readings after which an arm is dead to hosts [s]."""


def mqtt_sink(
    place: str,
    given: Given,
    actions: ArmActions | None = None,
    state_file: Path | None = None,
) -> MqttSink:
    """The sink of a broker, see `SinkFactory`.

    Args:
        place: URL of the broker.
        given: holds MqttOptions and the common options.
        actions: not used: of all commands, only that for a rebirth is implemented.
        state_file: file beside which the sink keeps the number of its births; None to begin
            with 0 at each start.

    Raises:
        InputError: the URL, the credentials or the names of group and node cannot be
            used.
    """
    options = given.of(MqttOptions)
    common = common_options(given)
    broker = broker_of(place, allow_network=common.allow_network)
    births = None
    if state_file is not None:
        # Several sinks may have the same state file: one file for each broker and edge
        # node.
        identity = f"{broker} {options.mqtt_group} {options.mqtt_node}"
        name = f"{state_file.name}.sparkplug_{zlib.crc32(identity.encode()):08x}"
        births = state_file.with_name(name)
    node = EdgeNode(options.mqtt_group, options.mqtt_node, BirthNumbers(births))
    credentials = read_credentials(common.credentials)
    return MqttSink(broker, node, credentials, with_json=options.mqtt_json)


class MqttSink(Sink):
    """A Sink whose readings wait in a bounded store until the broker has them.

    A reading leaves the store when the broker has answered a packet that was sent after
    it. Energies are counters, so a reading that reaches the broker twice, because an
    answer was lost with the connection, adds nothing.
    """

    longest_pause = 5.0

    def __init__(
        self,
        broker: Broker,
        node: EdgeNode,
        credentials: MqttCredentials,
        *,
        with_json: bool,
    ) -> None:
        """Begin to connect, in a thread of its own.

        Args:
            broker: whom to connect to.
            node: makes the messages.
            credentials: user name, password and certificates.
            with_json: whether each reading is also published as JSON.
        """
        self._broker = broker
        self._node = node
        self._credentials = credentials
        self._with_json = with_json
        self._store = ReadingStore()
        self._seen: dict[str, float] = {}  # time of the last reading of each arm
        self._rebirth = False  # whether births are requested
        self._born = float("-inf")  # time of the last births
        self._unusable: str | None = None  # why the last reading cannot be used
        super().__init__(str(broker))

    @property
    def status(self) -> SinkStatus:
        """State, at any time."""
        store = self._store
        return SinkStatus(
            str(self._broker),
            self._problem or self._unusable,
            delivered=store.delivered,
            dropped=store.dropped,
            waiting=len(store),
        )

    def offer(self, reading: ArmReading) -> None:
        """Store a reading, or note that the arm cannot be reached."""
        if self._closing:
            return
        if not reading.is_live:
            self._seen[reading.arm] = float("-inf")
            return
        try:
            self._store.add(reading)
        except Exception as error:  # the estimator's thread must never see it
            self._store.dropped += 1
            self._unusable = f"a reading cannot be used: {error!r}"
        else:
            self._unusable = None
            self._seen[reading.arm] = time.monotonic()

    def _serve(self) -> None:
        """One connection, until it is lost or the sink is closed and nothing waits."""
        node = self._node

        def on_message(topic: str, payload: bytes, retained: bool) -> None:
            self._rebirth |= node.needs_birth(topic, payload, retained=retained)

        will = node.will(_now())
        connection = BrokerConnection(
            self._broker, self._credentials, will, node.topics, on_message
        )
        try:
            self._publish_births(connection)
            self._problem = None
            self._publish_readings(connection)
            connection.publish([node.death(_now())])
            connection.close()
        finally:
            connection.abandon()

    def _publish_readings(self, connection: BrokerConnection) -> None:
        """Publish what is stored, until the sink is closed and nothing waits."""
        node = self._node
        store = self._store
        sent, newest = store.oldest(0)
        while not self._closing or (len(store) and time.monotonic() < self._deadline):
            connection.work(POLL)
            if self._rebirth and time.monotonic() - self._born >= BIRTH_PAUSE:
                self._publish_births(connection)
            for arm in self._silent_arms():
                connection.publish(node.device_death(arm, _now()))
            if not connection.is_answered:
                continue
            store.confirm(sent)
            sent, newest = store.oldest(BATCH)
            if sent:
                connection.publish(node.data(sent, newest, _now()))
                if self._with_json:
                    messages = json_messages(node.group, node.node, sent, newest)
                    connection.publish(messages)
                connection.request_answer()

    def _publish_births(self, connection: BrokerConnection) -> None:
        """Publish the births of the node and of all arms that are alive."""
        self._rebirth = False
        self._born = time.monotonic()
        connection.publish(self._node.birth(_now(), self._store.newest))

    def _silent_arms(self) -> list[str]:
        """Arms that cannot be reached, or whose last reading is too long ago."""
        limit = time.monotonic() - SILENCE
        seen = self._seen.copy()  # which the estimator's thread may change
        return [arm for arm, moment in seen.items() if moment < limit]


def _now() -> int:
    """Time [ms since 1970, UTC]."""
    return time.time_ns() // 1_000_000
