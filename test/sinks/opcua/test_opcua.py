# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The OPC UA server, asked by the client of asyncua and by that of another project."""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
import stat
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asyncua import Client, Node, ua
from asyncua.crypto.cert_gen import setup_self_signed_certificate
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
from cryptography.x509.oid import ExtendedKeyUsageOID

from test.sinks.peers import NODE_PACKAGES, free_port, needs_node_package, until
from test.sinks.readings import CHANNELS, LOST, POWER, START, made_up_reading, without_bus
from ur_energy_model.errors import InputError
from ur_energy_model.rooms import Given
from ur_energy_model.sinks.opcua import companion_types
from ur_energy_model.sinks.opcua import sink as opcua_delivery
from ur_energy_model.sinks.opcua.credentials import (
    PASSWORD,
    USERNAME,
    OpcuaCredentials,
    read_credentials,
)
from ur_energy_model.sinks.opcua.metering_points import Measurement, metering_points
from ur_energy_model.sinks.opcua.sink import opcua_sink, server_certificate
from ur_energy_model.sinks.options import Address, SinkOptions
from ur_energy_model.sinks.sink import ArmActions, ArmReading, Sink

INTERVAL = {
    "accounted_s": 2.0,
    "unaccounted_s": 0.0,
    "total_J": 5.0,
    "bus_J": None,
    "joints": {},
}


class OpcuaServer:
    """A running server with the user plc; `resets` has the reasons of resets by clients."""

    def __init__(self, credentials: Path, *, allow_network: bool = False) -> None:
        credentials.write_text("opcua: {users: {plc: secret}}")
        self.url = f"opc.tcp://127.0.0.1:{free_port()}"
        self.resets: list[str] = []
        options = SinkOptions(credentials=credentials, allow_network=allow_network)
        actions = ArmActions(self.resets.append, lambda: INTERVAL)
        self.sink: Sink = opcua_sink(self.url, Given(options), actions)
        until(lambda: self.sink.status.problem is None, 60)

    def offer(self, reading: ArmReading) -> None:
        """Offer a reading and wait until clients see it."""
        delivered = self.sink.status.delivered
        self.sink.offer(reading)
        until(lambda: self.sink.status.delivered > delivered)

    def ask(
        self,
        question: Callable[[Client], Awaitable[Any]],
        user: str = "",
        password: str = "",
        before: Callable[[Client], Awaitable[None]] | None = None,
    ) -> Any:
        async def run() -> Any:
            client = Client(self.url)
            if before is not None:
                await before(client)
            if user:
                client.set_user(user)
                client.set_password(password)
            async with client:
                return await question(client)

        return asyncio.run(run())


HOUR = 36_000  # number of the reading after one hour
TOTAL = "energy/total/energy"


def test_golden_points_after_an_hour() -> None:
    """Powers were constant, so that energies in Wh are powers in W; a tenth was fed back."""
    points = metering_points(made_up_reading(HOUR))
    joints = {"shoulder_joint": 1.0, "elbow_joint": 2.0}
    parts = {"Standby": "standby", "Drivers": "driver", "Regeneration": "regeneration"}
    channels = {"Main": "total", **parts, "Unexplained": "unexplained", "Model": "model"}
    channels["Bus"] = "bus"
    expected = {
        name: POWER[CHANNELS.arm[channel]] for name, channel in channels.items()
    } | joints
    assert list(points) == list(expected)
    numbers = {
        "DcActivePower": 1032, "DcEnergyTotalImportHp": 1023, "DcEnergyTotalExportHp": 1026,
        "DcEnergyTotalSumHp": 1029,
    }  # fmt: skip
    for point, power in expected.items():
        assert {each.name: each.number for each in points[point]} == numbers
        values = [found.value for found in points[point].values()]
        assert values == pytest.approx([power, 1.1 * power, 0.1 * power, power])
    of_joints = CHANNELS.deviations_of_joints(POWER)
    deviations = {
        "Main": CHANNELS.deviations_of_total,
        "Model": CHANNELS.deviations_of_model,
        "Unexplained": CHANNELS.deviations_of_unexplained,
    }
    hour = 3600.0
    energy = POWER * hour
    seconds = made_up_reading(HOUR).snapshot.seconds
    for quantity in points["Main"]:
        for name, deviation in deviations.items():
            std = deviation(energy) / hour
            if quantity.name == "DcActivePower":
                std = deviation(POWER, seconds)
            assert points[name][quantity].uncertainty == pytest.approx(1.96 * float(std))
        assert points["elbow_joint"][quantity].uncertainty == pytest.approx(
            1.96 * of_joints[1]
        )
        assert math.isnan(points["Bus"][quantity].uncertainty)
    assert "Bus" not in metering_points(without_bus(made_up_reading(1)))
    for value, uncertainty, number in (
        (100.0, 0.001, 1), (-100.0, 0.9, 7), (100.0, 20.0, 14), (0.0, 1.0, 15), (100.0, math.nan, 0)
    ):  # fmt: skip
        assert Measurement(value, uncertainty).accuracy_class == number


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpcuaServer]:
    folder = tmp_path_factory.mktemp("opcua")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        running = OpcuaServer(folder / "credentials.yaml")
        yield running
        running.sink.close()


async def machine_of(client: Client) -> Node:
    """The arm, found as any client of OPC 40001 finds machines."""
    space = await client.get_namespace_index(companion_types.MACHINERY)
    machines = client.get_node(ua.NodeId(companion_types.MACHINES[1], space))
    found = {
        (await node.read_browse_name()).Name: node
        for node in await machines.get_children()
    }
    return found["arm-1"]


async def own_node(client: Client, key: str) -> Node:
    space = await client.get_namespace_index(companion_types.OWN)
    return client.get_node(ua.NodeId(f"arm-1/{key}", space))


async def plain(client: Client, name: str) -> ua.DataValue:
    return await (await own_node(client, name)).read_data_value(raise_on_bad_status=False)


def test_anonymous_clients_read_topics_and_metering_points(server: OpcuaServer) -> None:
    server.offer(made_up_reading(1))
    server.offer(reading := made_up_reading(HOUR))

    async def question(client: Client) -> dict[str, ua.DataValue]:
        machine = await machine_of(client)
        di, _, machinery, ecm, energy, _ = [
            await client.get_namespace_index(uri) for uri in companion_types.SPACES
        ]
        folder = await machine.get_child(
            [
                f"{machinery}:Monitoring",
                f"{machinery}:Consumption",
                f"{energy}:Electricity",
            ]
        )
        main = await folder.get_child(f"{energy}:Main")
        assert await main.read_type_definition() == ua.NodeId(
            companion_types.MEASUREMENT_TYPE[1], ecm
        )
        value = await main.get_child(f"{ecm}:DcEnergyTotalSumHp")
        assert await value.read_type_definition() == ua.NodeId(
            companion_types.VALUE_TYPE[1], ecm
        )
        assert await value.read_value() == pytest.approx(9.0)

        async def below(name: str, node: Node = value) -> Any:
            return await (await node.get_child(name)).read_value()

        assert await below(f"{ecm}:MeasurementID") == 1029
        unit = await below("0:EngineeringUnits")
        assert (unit.UnitId, unit.DisplayName.Text) == (5720146, "W·h")
        contains = ua.NodeId(companion_types.CONTAINS[1], energy)
        parts = await main.get_referenced_nodes(contains, ua.BrowseDirection.Forward)
        names = [(await node.read_browse_name()).Name for node in parts]
        others = ["Standby", "Drivers", "Regeneration", "Unexplained"]
        assert names == [*others, "shoulder_joint", "elbow_joint"]
        identification = await machine.get_child(f"{di}:Identification")
        assert await below(f"{di}:SerialNumber", identification) == "arm-1"
        return {name: await plain(client, name) for name in reading.numbers()}

    found = server.ask(question)
    for name, value in reading.numbers().items():
        assert found[name].Value.Value == value
        assert found[name].StatusCode.is_good()
        if name.endswith("/energy"):  # powers have not changed since the first reading
            moment = found[name].SourceTimestamp.timestamp()
            assert moment == pytest.approx(START * 1e-9 + 3600.0, abs=1e-3)


def test_users_reset_and_read_intervals_and_others_change_nothing(
    server: OpcuaServer,
) -> None:
    server.offer(made_up_reading(1))
    server.resets.clear()

    async def reset(client: Client) -> None:
        own = await client.get_namespace_index(companion_types.OWN)
        await (await machine_of(client)).call_method(f"{own}:ResetEnergy", "new shift")

    async def write(client: Client) -> None:
        await (await own_node(client, "Main/ApplicationTag")).write_value("mine")

    async def reset_statistics(client: Client) -> list[Any]:
        own, ia = [
            await client.get_namespace_index(uri)
            for uri in (companion_types.OWN, companion_types.IA)
        ]
        await (await own_node(client, "Main")).call_method(f"{ia}:ResetStatistics")
        return list(await (await machine_of(client)).call_method(f"{own}:ReadInterval"))

    for question in (reset, write, reset_statistics):
        with pytest.raises(ua.UaStatusCodeError):
            server.ask(question)
    for user in (("plc", "wrong"), ("nobody", "secret")):
        with pytest.raises(ua.UaStatusCodeError):
            server.ask(machine_of, *user)
    assert server.resets == []
    for question in (write, reset):
        server.ask(question, "plc", "secret")
    accounted, lost, total, bus, text = server.ask(reset_statistics, "plc", "secret")
    assert server.resets == ["new shift", "OPC UA client"]
    assert (accounted, lost, total) == (2.0, 0.0, 5.0)
    assert math.isnan(bus)
    assert json.loads(text) == INTERVAL
    # The certificate is made once, and its key is private.
    key = Path(os.environ["XDG_STATE_HOME"]) / "ur_energy" / "opcua" / "key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    assert server_certificate(OpcuaCredentials())[1].read_bytes() == before


def test_other_machines_need_a_user_and_encryption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the address could be reached from other machines."""
    with pytest.raises(InputError, match="there are no users"):
        opcua_sink("opc.tcp://0.0.0.0:4840", Given(SinkOptions(allow_network=True)))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(Address, "is_loopback", property(lambda _: False))
    server = OpcuaServer(tmp_path / "credentials.yaml", allow_network=True)
    server.offer(made_up_reading(2))

    async def encrypted(client: Client) -> None:
        key = tmp_path / "key.pem"
        certificate = tmp_path / "certificate.der"
        host = socket.gethostname()
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        await setup_self_signed_certificate(
            key, certificate, client.application_uri, host, uses, {}
        )
        await client.set_security(SecurityPolicyBasic256Sha256, certificate, key)

    def read(
        user: str, word: str, before: Callable[[Client], Awaitable[None]] | None
    ) -> Any:
        return server.ask(
            lambda client: plain(client, TOTAL), user, word, before
        ).Value.Value

    for user in (("", ""), ("plc", "secret")):
        with pytest.raises(ua.UaError):
            read(*user, None)
    for user in (("", ""), ("plc", "wrong")):
        with pytest.raises(ua.UaStatusCodeError):
            read(*user, encrypted)
    value = read("plc", "secret", encrypted)
    assert value == made_up_reading(2).numbers()[TOTAL]
    server.sink.close()


def test_values_of_a_lost_arm_are_marked(
    server: OpcuaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def status() -> ua.StatusCode:
        return server.ask(lambda client: plain(client, TOTAL)).StatusCode

    server.offer(made_up_reading(3))
    assert status().is_good()
    server.offer(made_up_reading(3, link=LOST))
    assert status().name == "UncertainLastUsableValue"
    server.offer(made_up_reading(4))
    assert status().is_good()
    monkeypatch.setattr(opcua_delivery, "SILENCE", 0.1)
    until(lambda: status().name == "UncertainLastUsableValue")


@needs_node_package("node-opcua-client")
def test_node_opcua_reads_follows_and_calls(server: OpcuaServer, tmp_path: Path) -> None:
    server.offer(made_up_reading(1))
    server.resets.clear()
    done = threading.Event()

    def feed() -> None:
        number = 1
        while not done.wait(0.02):
            number += 1
            server.sink.offer(made_up_reading(number))

    feeder = threading.Thread(target=feed)
    feeder.start()
    # The client keeps its certificate in the user's folders.
    home = dict.fromkeys(("HOME", "XDG_CONFIG_HOME"), str(tmp_path))
    environment = {**os.environ, **home, "NODE_PATH": str(NODE_PACKAGES)}
    script = Path(__file__).with_name("ask_server.js")
    command = ["node", str(script), server.url, "plc", "secret"]
    try:
        found = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=240
        )
    finally:
        done.set()
        feeder.join()
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout.splitlines()[-1])
    assert answer["machines"] == ["arm-1"]
    per_reading = made_up_reading(1).numbers()[TOTAL]
    for energy in (*answer["seen"], 3600.0 * answer["energy"]):
        assert energy / per_reading == pytest.approx(round(energy / per_reading))
    assert answer["seen"] == sorted(answer["seen"])
    assert "BadUserAccessDenied" in answer["denied"]
    assert (answer["reset"], server.resets) == ("Good", ["node-opcua"])
    assert answer["interval"][:3] == [2.0, 0.0, 5.0]
    assert json.loads(answer["interval"][4]) == INTERVAL


def test_the_file_and_the_environment_have_users(tmp_path: Path) -> None:
    file = tmp_path / "credentials.yaml"
    file.write_text("opcua: {users: {plc: other secret}}")
    variables = {USERNAME: "mes", PASSWORD: "third"}
    found = read_credentials(file, variables)
    assert found.users == {"plc": "other secret", "mes": "third"}
    assert "secret" not in repr(found)
    assert read_credentials(None, {}) == OpcuaCredentials()
    assert read_credentials(None, {USERNAME: "mes"}) == OpcuaCredentials()
    file.write_text("opcua: {certificate: credentials.yaml}")
    with pytest.raises(InputError, match="belong together"):
        read_credentials(file, {})
