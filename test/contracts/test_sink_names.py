# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Names in the sinks: `ur_energy live` plays a bag into all of them at once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader

from test.absent_rooms import needs_room
from test.contracts.broker import Broker
from test.contracts.golden import check, shape
from test.contracts.surface import FIXTURES, program

PATIENCE = 240.0  # longest wait [s]
QUIET = 2.0  # a server without anything to send has nothing more to advertise [s]
MOST_NODES = 5000
MOST_SESSIONS = 5


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for a condition; its value."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(OSError):
            if found := condition():
                return found
        time.sleep(0.1)
    raise TimeoutError(f"no {what} within {PATIENCE:g} s")


@dataclass
class Live:
    """A running `ur_energy live` with all sinks."""

    broker: Broker
    ports: dict[str, int]
    mcap: Path
    process: subprocess.Popen[bytes]

    def first_cycle(self) -> Any:
        """Wait for the end of a cycle, after which all names are there; the line that has it."""

        def line() -> Any:
            lines = self.mcap.with_name("lines").read_text().splitlines(keepends=True)
            found = [json.loads(each) for each in lines if each.endswith("\n")]
            return next((each for each in found if each.get("cycle")), None)

        return until(line, "cycle")

    def page(self) -> str:
        """The page of metrics."""
        url = f"http://127.0.0.1:{self.ports['prometheus']}/metrics"
        with urllib.request.urlopen(url, timeout=240) as answer:
            return str(answer.read().decode())


def free_ports(names: tuple[str, ...]) -> dict[str, int]:
    sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
    ports = {name: each.getsockname()[1] for name, each in sockets.items()}
    for each in sockets.values():
        each.close()
    return ports


@contextmanager
def playing(folder: Path) -> Iterator[Live]:
    """`ur_energy live` while it plays a recording of 36 s into all sinks."""
    folder.mkdir()
    ports = free_ports(("prometheus", "foxglove", "opcua"))
    with Broker() as broker:
        command = program(
            *(
                "ur_energy",
                "live",
                "--bag",
                FIXTURES / "work",
                "--model",
                FIXTURES / "model.yaml",
            ),
            *(
                "--json",
                "--mcap",
                folder / "live.mcap",
                "--mqtt-json",
                "--mqtt-group",
                "plant",
            ),
            *("--prometheus", f"127.0.0.1:{ports['prometheus']}", "--mqtt-node", "cell"),
            *("--foxglove", f"127.0.0.1:{ports['foxglove']}"),
            *("--mqtt", f"mqtt://127.0.0.1:{broker.port}"),
            *("--opcua", f"opc.tcp://127.0.0.1:{ports['opcua']}"),
        )
        with (folder / "lines").open("w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        yield Live(broker, ports, folder / "live.mcap", process)
        process.kill()  # an orderly end would look for what saves energy
        process.wait(PATIENCE)


def check_prometheus(live: Live) -> None:
    """Metrics with type, HELP, and labels with their values, but that of the arm."""
    from prometheus_client.parser import text_string_to_metric_families as parsed

    live.first_cycle()
    page = live.page()
    found = {}
    for family in parsed(page):
        labels: dict[str, set[str]] = {}
        for sample in family.samples:
            for key, value in sample.labels.items():
                labels.setdefault(key, set()).update(
                    [value] if key not in ("arm", "model") else []
                )
        names = sorted({sample.name for sample in family.samples})
        sets = {key: sorted(values) for key, values in labels.items()}
        found[family.name] = [family.type, family.documentation, names, sets]
    check("prometheus", found)


def check_mqtt(live: Live) -> None:
    """Topics; Sparkplug metrics of births with types; keys of the plain JSON topic."""
    from test.sinks.mqtt.received import received
    from ur_energy_model.sinks.mqtt.payload import DataType

    def messages(kind: str) -> list[tuple[str, bytes, bool]]:
        return [each for each in live.broker.published if f"/{kind}/" in each[0]]

    live.first_cycle()
    until(lambda: messages("DDATA"), "data")
    plain = [each for each in live.broker.published if not each[0].startswith("spBv1.0")]
    births: dict[str, Any] = {}
    for kind in ("NBIRTH", "DBIRTH", "DDATA"):
        topic, payload, retained = messages(kind)[0]
        births[kind] = {
            "topic": topic,
            "retained": retained,
            "metrics": {
                each.name: [
                    each.datatype and DataType(each.datatype).name,
                    each.has_alias,
                ]
                for each in received(payload).metrics
            },
        }
    data = births.pop("DDATA")
    assert data["metrics"].keys() <= births["DBIRTH"]["metrics"].keys()
    assert live.broker.will is not None
    check(
        "mqtt",
        births
        | {
            "data": data["topic"],
            "will": live.broker.will[0],
            "subscribed": sorted(set(live.broker.subscribed)),
            "json_topic": [plain[0][0], plain[0][2]],
            "json": shape(json.loads(plain[0][1])),
        },
    )


def check_foxglove(live: Live) -> None:
    """Channels with schemas that the server advertises, and the same in the MCAP file."""
    import websocket

    live.first_cycle()
    client = websocket.create_connection(
        f"ws://127.0.0.1:{live.ports['foxglove']}", timeout=PATIENCE,
        subprotocols=["foxglove.sdk.v1", "foxglove.websocket.v1"],
    )  # fmt: skip
    channels: dict[str, Any] = {}
    with suppress(websocket.WebSocketTimeoutException):
        while True:
            data = client.recv()
            message = json.loads(data) if isinstance(data, str) else {}
            for each in message.get("channels", []):
                schema = hashlib.sha256(each["schema"].encode()).hexdigest()[:16]
                channels[each["topic"]] = [
                    *(each[key] for key in ("encoding", "schemaName", "schemaEncoding")),
                    schema,
                ]
            client.settimeout(QUIET if channels else PATIENCE)
    client.close()
    check("foxglove", channels)


def check_mcap(live: Live) -> None:
    live.first_cycle()

    def topics() -> dict[str, list[str]]:
        with live.mcap.open("rb") as file:
            return {
                channel.topic: [channel.message_encoding, schema.name, schema.encoding]
                for schema, channel, _ in make_reader(file).iter_messages()
                if schema is not None
            }

    until(lambda: "/energy/cycle" in topics(), "messages in the file")
    check("mcap", topics())


def check_opcua(live: Live) -> None:
    """Browse names and node ids below Objects, and the namespaces."""
    from asyncua import Client
    from asyncua.ua import NodeClass

    live.first_cycle()

    async def browse() -> dict[str, Any]:
        nodes: dict[str, str] = {}
        below: dict[str, set[str]] = {}
        async with Client(f"opc.tcp://127.0.0.1:{live.ports['opcua']}") as client:
            namespaces = await client.get_namespace_array()
            # a node, and the variable that it is below of
            todo = [(client.nodes.objects, "")]
            while todo and len(nodes) < MOST_NODES:
                node, variable = todo.pop()
                for each in await node.get_children_descriptions():
                    name = f"{each.BrowseName.NamespaceIndex}:{each.BrowseName.Name}"
                    if node == client.nodes.objects and name in ("0:Server", "0:Aliases"):
                        continue
                    if variable:  # the same below each variable of this name
                        last = each.NodeId.to_string().rpartition("/")[2]
                        below.setdefault(variable, set()).add(f"{name} {last}")
                    else:
                        kind = f"{each.NodeId.to_string()} {each.NodeClass.name}"
                        nodes[f"{node.nodeid.to_string()} {name}"] = kind
                    inner = variable or (
                        name if each.NodeClass == NodeClass.Variable else ""
                    )
                    todo.append((client.get_node(each.NodeId), inner))
        return {
            "namespaces": [
                each.replace(socket.gethostname(), "HOST") for each in namespaces
            ],
            "nodes": nodes,
            "below": {name: sorted(names) for name, names in below.items()},
        }

    port = live.ports["opcua"]
    until(lambda: socket.create_connection(("127.0.0.1", port)), "OPC UA server").close()
    check("opcua", asyncio.run(browse()))


def check_lines(live: Live) -> None:
    """Keys of a JSON line of the command."""
    check("keys/live", shape(live.first_cycle()))


def check_all(live: Live) -> None:
    """All sinks of one session, since the first cycle takes long."""
    check_prometheus(live)
    check_mqtt(live)
    check_foxglove(live)
    check_mcap(live)
    check_opcua(live)
    check_lines(live)


def test_sinks(tmp_path: Path) -> None:
    """On a machine so busy that the recording ends before all is read, it is played again."""
    for kind in ("foxglove", "mqtt", "opcua", "prometheus"):
        needs_room(f"sinks/{kind}")
    for package in (
        "asyncua",
        "foxglove",
        "paho.mqtt.client",
        "prometheus_client",
        "google.protobuf",
    ):
        pytest.importorskip(package)
    for number in range(MOST_SESSIONS):
        with playing(tmp_path / str(number)) as live:
            try:
                check_all(live)
            except Exception:  # the connections end in various ways
                over = live.process.poll() is not None
                if not over or number == MOST_SESSIONS - 1:
                    raise
            else:
                return
