"""EdgeNode: messages as Sparkplug 3.0.0 asks for them, compared with recorded ones."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

pytest.importorskip("pysparkplug")

from pysparkplug import DataType, DBirth, DData, DDeath, Metric, NBirth, NCmd, NDeath

from test.sinks.made_up_reading import START, made_up_reading, without_bus
from ur_energy_model.errors import InputError
from ur_energy_model.sinks.sparkplug import EdgeNode, ReadingCompressor, ReadingStore, json_messages

NOW = START // 1_000_000 + 5_000
DATA = "spBv1.0/plant/DDATA/cell/arm-1"


def store_of(*numbers: int) -> ReadingStore:
    store, compress = ReadingStore(), ReadingCompressor()
    for number in numbers:
        store.add(compress(made_up_reading(number)))
    return store


def connected(node: EdgeNode) -> None:
    node.will(NOW)
    node.birth(NOW, {})


def test_golden_certificates() -> None:
    """Bytes recorded once, and read with the Sparkplug protobuf definition."""
    node = EdgeNode("plant", "cell")
    death = node.will(NOW)
    assert (death.topic, death.qos) == ("spBv1.0/plant/NDEATH/cell", 1)
    now, metric = "88df83a1f732", "0a056264536571"  # varint of NOW; name bdSeq
    sequence = f"1212{metric}18{now}20045800"  # timestamp, datatype Int64, long_value 0
    assert death.payload.hex() == f"08{now}{sequence}"
    (birth,) = node.birth(NOW, {})
    assert (birth.topic, birth.qos) == ("spBv1.0/plant/NBIRTH/cell", 0)
    name = b"Node Control/Rebirth".hex()
    rebirth = f"12210a14{name}18{now}200b7000"  # datatype Boolean, boolean_value false
    assert birth.payload.hex() == f"08{now}{sequence}{rebirth}1800"  # seq 0


def test_a_will_and_its_birth_have_the_same_number() -> None:
    node = EdgeNode("plant", "cell")
    for number in (*range(256), 0, 1):
        death = NDeath.decode(node.will(NOW).payload)
        birth = NBirth.decode(node.birth(NOW, {})[0].payload)
        assert birth.seq == 0
        assert death.bd_seq_metric.value == number
        assert {m.name: m.value for m in birth.metrics} == {
            "bdSeq": number,
            "Node Control/Rebirth": False,
        }


def test_first_data_are_a_birth_with_all_topics() -> None:
    node = EdgeNode("plant", "cell")
    connected(node)
    (message,) = node.data(store_of(1).oldest(50), NOW)
    assert (message.topic, message.qos) == ("spBv1.0/plant/DBIRTH/cell/arm-1", 0)
    birth = DBirth.decode(message.payload)
    assert (birth.seq, birth.timestamp) == (1, NOW)
    reading = made_up_reading(1)
    values = {metric.name: metric for metric in birth.metrics}
    for name, value in reading.numbers().items():
        assert values[name].value == value
        assert values[name].datatype == DataType.DOUBLE
        assert values[name].timestamp == reading.stamp // 1_000_000
        metadata = values[name].metadata
        assert metadata is not None
        assert "[" in str(metadata.description)
    assert values["state"].value == "moving"
    assert values["samples_lost"].value == 3
    assert values["energy/cycle/number"].is_null


def test_only_changes_follow() -> None:
    node = EdgeNode("plant", "cell")
    connected(node)
    birth = DBirth.decode(node.data(store_of(1).oldest(50), NOW)[0].payload)
    (message,) = node.data(store_of(2).oldest(50), NOW)
    assert (message.topic, message.qos) == (DATA, 0)
    data = DData.decode(message.payload, birth=birth)
    assert data.seq == 2
    changed = {metric.name for metric in data.metrics}
    assert "energy/shoulder_joint/energy" in changed
    assert "energy/shoulder_joint/power" not in changed
    assert not any(metric.is_historical for metric in data.metrics)
    assert node.data(store_of(2).oldest(50), NOW) == []  # nothing new, nothing said


def test_readings_that_waited_are_historical_and_sent_once() -> None:
    node = EdgeNode("plant", "cell")
    connected(node)
    store = store_of(*range(1, 8))
    birth, message = node.data(store.oldest(5), NOW)
    assert {m.timestamp for m in DBirth.decode(birth.payload).metrics} == {
        made_up_reading(7).stamp // 1_000_000
    }
    store.confirm(store.oldest(5))
    (last,) = node.data(store.oldest(5), NOW)
    found = {}
    for payload in (message.payload, last.payload):
        for metric in DData.decode(payload, birth=DBirth.decode(birth.payload)).metrics:
            assert metric.is_historical
            if metric.name == "energy/total/energy":
                found[metric.timestamp] = metric.value
    assert found == {
        made_up_reading(k).stamp // 1_000_000: made_up_reading(k).numbers()["energy/total/energy"]
        for k in range(1, 7)
    }


def test_new_metrics_need_a_new_birth() -> None:
    node, store = EdgeNode("plant", "cell"), ReadingStore()
    connected(node)
    compress = ReadingCompressor()
    store.add(compress(without_bus(made_up_reading(1))))
    (birth,) = node.data(store.oldest(1), NOW)
    assert b"energy/bus" not in birth.payload
    store.confirm(store.oldest(1))
    store.add(compress(made_up_reading(2)))
    (again,) = node.data(store.oldest(1), NOW)
    assert "DBIRTH" in again.topic
    assert b"energy/bus/energy" in again.payload


def test_rebirth_repeats_the_births_of_living_arms() -> None:
    node, store = EdgeNode("plant", "cell"), store_of(10)
    connected(node)
    node.data(store.oldest(50), NOW)
    births = node.birth(NOW, store.newest)
    assert [m.topic.split("/")[2] for m in births] == ["NBIRTH", "DBIRTH"]
    metrics = {m.name: m.value for m in DBirth.decode(births[1].payload).metrics}
    assert metrics["energy/cycle/peak_power"] == 77.0
    assert DBirth.decode(births[1].payload).seq == 1
    (death,) = node.device_death("arm-1", NOW)
    assert DDeath.decode(death.payload).seq == 2
    assert node.device_death("arm-1", NOW) == []
    assert len(node.birth(NOW, store.newest)) == 1


def test_seq_counts_to_255_and_around() -> None:
    node = EdgeNode("plant", "cell")
    connected(node)
    birth = DBirth.decode(node.data(store_of(0).oldest(1), NOW)[0].payload)
    for number in range(1, 300):
        (message,) = node.data(store_of(number).oldest(1), NOW)
        assert DData.decode(message.payload, birth=birth).seq == (number + 1) % 256


COMMANDS, HOST = "spBv1.0/plant/NCMD/cell", "spBv1.0/STATE/scada"


def command(*metrics: tuple[str, bool], types: bool) -> bytes:
    made = tuple(Metric(NOW, name, DataType.BOOLEAN, value=value) for name, value in metrics)
    return NCmd(NOW, made).encode(include_dtypes=types)


@pytest.mark.parametrize("types", [True, False])
@pytest.mark.parametrize(
    ("metrics", "answered"),
    [
        ([("Node Control/Rebirth", True)], True),
        ([("Node Control/Reboot", True), ("Node Control/Rebirth", True)], True),
        ([("Node Control/Rebirth", False)], False),
        ([("Node Control/Reboot", True)], False),
        ([], False),
    ],
)
def test_commands(metrics: list[tuple[str, bool]], answered: bool, types: bool) -> None:
    """The datatype of a command's metric may be left out."""
    node = EdgeNode("plant", "cell")
    assert COMMANDS in node.topics
    payload = command(*metrics, types=types)
    assert node.needs_birth(COMMANDS, payload, retained=False) == answered


@pytest.mark.parametrize("topic", [COMMANDS, HOST])
@pytest.mark.parametrize(
    "payload",
    [b"", b"\xff\x00 no protobuf", b"null", b"[]", b'{"online": true}', b'{"timestamp": 1}',
     b'{"online": "true", "timestamp": 1}', b'{"online": true, "timestamp": "x"}',
     b'{"online": true, "timestamp": 1e999}', b"[" * 100_000, b'{"online": true' + b" " * 2000],
)  # fmt: skip
def test_what_is_no_command_and_no_state_is_ignored(topic: str, payload: bytes) -> None:
    assert not EdgeNode("plant", "cell").needs_birth(topic, payload, retained=False)


def test_a_host_that_comes_online_needs_the_births() -> None:
    """Once for each time that it comes; not if it was there before the connection."""
    node = EdgeNode("plant", "cell")

    def came(online: bool, stamp: int, retained: bool = False, host: str = HOST) -> bool:
        payload = json.dumps({"online": online, "timestamp": stamp}).encode()
        return node.needs_birth(host, payload, retained=retained)

    assert not came(True, 5, retained=True)
    assert not came(True, 5)
    assert not came(False, 5)
    assert came(True, 9)
    assert not came(True, 9)
    assert came(True, 9, host=f"{HOST}_2")
    hosts = [f"{HOST}_{number}" for number in range(3, 200)]
    assert sum(came(True, 1, host=host) for host in hosts) < 100  # bounded


def test_numbers_that_are_unknown_are_null() -> None:
    node, store = EdgeNode("plant", "cell"), ReadingStore()
    connected(node)
    reading = made_up_reading(1)
    power = reading.snapshot.power.copy()
    power[reading.snapshot.channels.arm["standby"]] = math.nan
    snapshot = replace(reading.snapshot, power=power)
    store.add(ReadingCompressor()(replace(reading, snapshot=snapshot)))
    (birth,) = node.data(store.oldest(1), NOW)
    metrics = {m.name: m for m in DBirth.decode(birth.payload).metrics}
    assert metrics["energy/standby/power"].is_null


def test_plain_json_has_all_metrics_in_each_message() -> None:
    """Those of the last cycle too: a client that comes later needs no earlier message."""
    node, batch = EdgeNode("plant", "cell"), store_of(9, 10, 11).oldest(50)
    connected(node)
    (birth, *_) = node.data(batch, NOW)
    messages = json_messages("plant", "cell", batch)
    assert {message.topic for message in messages} == {"plant/cell/arm-1/energy"}
    contents = [json.loads(message.payload) for message in messages]
    assert [content["historical"] for content in contents] == [True, True, False]
    metrics = {m.name: m.value for m in DBirth.decode(birth.payload).metrics}
    assert contents[-1].items() >= metrics.items()
    for name, first, then in (("number", None, 1), ("peak_power", None, 77.0)):
        assert [each[f"energy/cycle/{name}"] for each in contents] == [first, then, then]


@pytest.mark.parametrize("name", ["", "a/b", "a+", "#"])
def test_names_that_are_no_part_of_a_topic_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="mqtt_group"):
        EdgeNode(name, "cell")
    with pytest.raises(InputError, match="mqtt_node"):
        EdgeNode("plant", name)
