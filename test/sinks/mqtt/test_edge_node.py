# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sparkplug messages of an edge node, compared with recorded ones, and the store of readings."""

from __future__ import annotations

import json
import math
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from sys import getsizeof

import numpy as np
import pytest

from test.sinks.mqtt.received import Received, command, received
from test.sinks.peers import NODE_PACKAGES, needs_node_package
from test.sinks.readings import START, made_up_reading, without_bus
from ur_energy_model.errors import InputError
from ur_energy_model.sinks.mqtt.edge_node import (
    BirthNumbers,
    EdgeNode,
    ReadingStore,
    json_messages,
)
from ur_energy_model.sinks.mqtt.payload import DataType

NAME = "energy/total/energy"
NOW = START // 1_000_000 + 5_000
COMMANDS = "spBv1.0/plant/NCMD/cell"
HOST = "spBv1.0/STATE/scada"


def store_of(*numbers: int, most: int = 100) -> ReadingStore:
    store = ReadingStore(most)
    for number in numbers:
        store.add(made_up_reading(number))
    return store


def stamps_of(numbers: range) -> list[int]:
    return [made_up_reading(number).stamp // 1_000_000 for number in numbers]


def test_readings_stay_until_they_are_confirmed_or_the_store_is_full() -> None:
    store = store_of(*range(5))
    readings, newest = store.oldest(3)
    assert [reading.stamp for reading in readings] == stamps_of(range(3))
    assert [newest["arm-1"].stamp] == stamps_of(range(4, 5))
    assert store.oldest(3)[0] == readings
    store.confirm(readings)
    assert [reading.stamp for reading in store.oldest(9)[0]] == stamps_of(range(3, 5))
    assert (store.delivered, store.dropped, len(store)) == (3, 0, 2)
    first, second, ended, later = store_of(1, 2, 10, 11).oldest(9)[0]
    assert first.names is second.names  # which keeps them small
    assert getsizeof(first) + getsizeof(first.values) < 400
    assert ended.cycle is later.cycle
    store = store_of(*range(4), most=4)
    readings, _ = store.oldest(2)
    for number in range(4, 7):
        store.add(made_up_reading(number))
    store.confirm(readings)  # both were dropped meanwhile
    assert [reading.stamp for reading in store.oldest(9)[0]] == stamps_of(range(3, 7))
    assert (store.delivered, store.dropped) == (0, 3)


def will_numbers(path: Path | None, count: int) -> list[int]:
    """The bdSeq of the connections of one start."""
    node = EdgeNode("plant", "cell", BirthNumbers(path))
    wills = [received(node.will(NOW).payload) for _ in range(count)]
    return [will["bdSeq"].value for will in wills]


@pytest.mark.parametrize("content", [None, "", "no number", "1" * 400, "-3"])
def test_numbers_of_births_go_on_over_restarts(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "numbers"
    if content is not None:
        path.write_text(content)
    first = will_numbers(path, 254)
    assert (np.diff(first) % 256 == 1).all()
    again = [*will_numbers(path, 3), *will_numbers(path, 1)]
    assert [(number - first[-1]) % 256 for number in again] == [1, 2, 3, 4]
    assert will_numbers(None, 2) == [0, 1]
    assert will_numbers(tmp_path / "none" / "numbers", 2) == [0, 1]  # its folder is made
    # a folder cannot be written: nothing is kept
    assert will_numbers(tmp_path, 2) == [0, 1]


@pytest.fixture
def node() -> EdgeNode:
    made = EdgeNode("plant", "cell")
    made.will(NOW)
    made.birth(NOW, {})
    return made


def test_golden_certificates() -> None:
    """Bytes recorded once, and read with the Sparkplug protobuf definition."""
    node = EdgeNode("plant", "cell")
    death = node.will(NOW)
    assert (death.topic, death.qos) == ("spBv1.0/plant/NDEATH/cell", 1)
    # varint of NOW; name bdSeq
    now = "88df83a1f732"
    metric = "0a056264536571"
    sequence = f"1212{metric}18{now}20045800"  # timestamp, datatype Int64, long_value 0
    assert death.payload.hex() == f"08{now}{sequence}"
    (birth,) = node.birth(NOW, {})
    assert (birth.topic, birth.qos) == ("spBv1.0/plant/NBIRTH/cell", 0)
    name = b"Node Control/Rebirth".hex()
    rebirth = f"12210a14{name}18{now}200b7000"  # datatype Boolean, boolean_value false
    assert birth.payload.hex() == f"08{now}{sequence}{rebirth}1800"  # seq 0
    for number in (*range(1, 256), 0):  # a will and its birth have the same number
        death_again = received(node.will(NOW).payload)
        again = received(node.birth(NOW, {})[0].payload)
        assert death_again["bdSeq"].value == again["bdSeq"].value == number


def test_a_birth_with_all_topics_then_changes_then_rebirth_and_death(
    node: EdgeNode,
) -> None:
    (message,) = node.data(*store_of(1).oldest(50), NOW)
    assert (message.topic, message.qos) == ("spBv1.0/plant/DBIRTH/cell/arm-1", 0)
    birth = received(message.payload)
    assert (birth.seq, birth.timestamp) == (1, NOW)
    for name, value in made_up_reading(1).numbers().items():
        found = birth[name]
        assert (found.value, found.datatype) == (value, DataType.DOUBLE)
        assert [found.timestamp] == stamps_of(range(1, 2))
        assert "[" in found.description
    assert "of the whole arm" in birth["energy/total/power"].description
    assert "of the joint" in birth["energy/elbow_joint/power"].description
    assert (birth["state"].value, birth["samples_lost"].value) == ("moving", 3)
    assert birth["energy/cycle/number"].is_null
    (message,) = node.data(*store_of(2).oldest(50), NOW)
    assert (message.topic, message.qos) == ("spBv1.0/plant/DDATA/cell/arm-1", 0)
    data = received(message.payload)
    assert data.seq == 2
    assert {metric.datatype for metric in data.metrics} == {None}
    changed = {metric.name for metric in data.metrics if not metric.is_historical}
    assert "energy/shoulder_joint/energy" in changed
    assert "energy/shoulder_joint/power" not in changed
    assert node.data(*store_of(2).oldest(50), NOW) == []  # nothing new
    newest = store_of(10).newest
    births = node.birth(NOW, newest)
    assert [message.topic.split("/")[2] for message in births] == ["NBIRTH", "DBIRTH"]
    birth = received(births[1].payload)
    assert birth.seq == 1
    assert birth["energy/cycle/peak_power"].value == 77.0
    (death,) = node.device_death("arm-1", NOW)
    assert received(death.payload) == Received(NOW, 2, ())
    assert node.device_death("arm-1", NOW) == []
    assert len(node.birth(NOW, newest)) == 1


def test_new_metrics_need_a_new_birth_and_unknown_numbers_are_null(
    node: EdgeNode,
) -> None:
    store = ReadingStore()
    reading = made_up_reading(1)
    power = reading.snapshot.power.copy()
    power[reading.snapshot.channels.arm["standby"]] = math.nan
    snapshot = replace(reading.snapshot, power=power)
    store.add(without_bus(replace(reading, snapshot=snapshot)))
    (birth,) = node.data(*store.oldest(1), NOW)
    assert b"energy/bus" not in birth.payload
    assert received(birth.payload)["energy/standby/power"].is_null
    (again,) = node.data(*store_of(2).oldest(1), NOW)
    assert "DBIRTH" in again.topic
    assert b"energy/bus/energy" in again.payload


def test_commands_are_answered_and_nothing_else(node: EdgeNode) -> None:
    for name in ("", "a/b", "a+", "#"):
        with pytest.raises(InputError):
            EdgeNode("plant", name)
    assert COMMANDS in node.topics
    for name, value in (("Rebirth", True), ("Rebirth", False), ("x", True)):
        for typed in (True, False):  # data types may be left out
            payload = command(f"Node Control/{name}", value=value, typed=typed)
            answered = node.needs_birth(COMMANDS, payload, retained=False)
            assert answered == (name == "Rebirth" and value)
    recorded = "0800121a0a144e6f646520436f6e74726f6c2f52656269727468200b7001"
    assert node.needs_birth(COMMANDS, bytes.fromhex(recorded), retained=False)
    not_utf8 = b"\x12\x04\x0a\x02\xff\xfe"
    for payload in (
        b"", b"\xff\x00 no protobuf", not_utf8, b"[]", b'{"online": true}',
        b'{"online": true, "timestamp": 1e999}', b"[" * 100_000, b'{"online": true' + b" " * 2000,
    ):  # fmt: skip
        for topic in (COMMANDS, HOST):
            assert not node.needs_birth(topic, payload, retained=False)

    def came(online: bool, stamp: int, host: str = HOST, retained: bool = False) -> bool:
        payload = json.dumps({"online": online, "timestamp": stamp}).encode()
        return node.needs_birth(host, payload, retained=retained)

    # A host that comes online needs the births, not if it was there before the
    # connection.
    assert not came(True, 5, retained=True)
    asked = [came(True, 5), came(False, 5), came(True, 9), came(True, 9)]
    assert asked == [False, False, True, False]
    births = sum(came(True, 9, f"{HOST}_{number}") for number in range(2, 200))
    assert 1 <= births < 100  # bounded


def test_readings_that_waited_are_historical_and_sent_once(node: EdgeNode) -> None:
    store = store_of(*range(1, 8))
    message, *first = node.data(*store.oldest(5), NOW)
    birth = received(message.payload)
    assert {metric.timestamp for metric in birth.metrics} == set(stamps_of(range(7, 8)))
    store.confirm(store.oldest(5)[0])
    found = {}
    for message in (*first, *node.data(*store.oldest(5), NOW)):
        for metric in received(message.payload).metrics:
            assert metric.is_historical
            if metric.name == NAME:
                found[metric.timestamp] = metric.value
    values = [made_up_reading(k).numbers()[NAME] for k in range(1, 7)]
    assert found == dict(zip(stamps_of(range(1, 7)), values, strict=True))


def test_plain_json_has_all_metrics_in_each_message(node: EdgeNode) -> None:
    """Those of the last cycle too: a client that comes later needs no earlier message."""
    batch = store_of(9, 10, 11).oldest(50)
    (birth, *_) = node.data(*batch, NOW)
    messages = json_messages("plant", "cell", *batch)
    assert {message.topic for message in messages} == {"plant/cell/arm-1/energy"}
    contents = [json.loads(message.payload) for message in messages]
    assert [content["historical"] for content in contents] == [True, True, False]
    metrics = {metric.name: metric.value for metric in received(birth.payload).metrics}
    assert contents[-1].items() >= metrics.items()
    assert [content["energy/cycle/number"] for content in contents] == [None, 1, 1]


@needs_node_package("sparkplug-payload")
def test_a_library_of_another_project_reads_every_message(node: EdgeNode) -> None:
    """And its command for a rebirth is understood."""
    messages = [
        node.will(NOW),
        *node.birth(NOW, {}),
        *node.data(*store_of(1, 9, 10).oldest(50), NOW),
        *node.data(*store_of(11).oldest(50), NOW),
        *node.device_death("arm-1", NOW),
    ]
    script = Path(__file__).with_name("read_payloads.cjs")
    done = subprocess.run(
        ["node", str(script)],
        input="".join(f"{message.payload.hex()}\n" for message in messages),
        env={"NODE_PATH": str(NODE_PACKAGES), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    *lines, rebirth = done.stdout.splitlines()
    for message, line in zip(messages, lines, strict=True):
        mine = received(message.payload)
        theirs = json.loads(line)
        assert (theirs["timestamp"], theirs.get("seq")) == (mine.timestamp, mine.seq)
        assert len(theirs["metrics"]) == len(mine.metrics)
        for metric, other in zip(mine.metrics, theirs["metrics"], strict=True):
            assert (other["name"], other["timestamp"]) == (metric.name, metric.timestamp)
            if metric.datatype is not None:  # which it needs for the value
                assert other["value"] == metric.value
            assert other.get("isHistorical", False) == metric.is_historical
    types = {each["name"]: each["type"] for each in json.loads(lines[2])["metrics"]}
    assert types["energy/total/power"] == "Double"
    assert types["samples_lost"] == "Int64"
    assert types["state"] == "String"
    assert node.needs_birth(COMMANDS, bytes.fromhex(rebirth), retained=False)
