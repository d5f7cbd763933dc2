# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The simulated wall: its power, what its meter reads, and real clients of its interfaces."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import random

import numpy as np
import pytest
from pymodbus.client import ModbusTcpClient

from test.sinks.mosquitto import Mosquitto
from test.sinks.peers import free_port, needs_program, until
from ur_energy_model.cli.main import main
from ur_energy_model.errors import ControllerError, InputError
from ur_energy_model.simulation.simulated_controller import Simulation
from ur_energy_model.simulation.wall import (
    SimulatedMeter,
    SimulatedWall,
    draw_wall,
    listening_hosts,
    serve_meter,
)
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.meters import Meter

SLOW = "ur5"
"""Arm whose controller has the lowest rate, so that these tests run beside others."""
PERFECT = SimulatedWall((30.0, 40.0, 45.0), 1.1, 1e-4, delay=0.7, resolution=0.0)


@pytest.mark.parametrize(
    ("mode", "bus", "expected"),
    [
        (-1, 0.0, 30.0),
        (3, 0.0, 30.0),
        (4, 20.0, 62.04),
        (5, 20.0, 62.04),
        (7, 200.0, 269.0),
    ],
)
def test_power_of_modes(mode: int, bus: float, expected: float) -> None:
    assert PERFECT.power([mode], [bus]) == pytest.approx([expected])


def test_a_reading_is_a_delayed_mean() -> None:
    time = 100.0 + np.arange(0.0, 60.0, 0.002)
    # a ramp: its mean over 1 s is the value 0.5 s ago
    power = 100.0 + 10.0 * (time - 100.0)
    columns = PERFECT.readings(time, power)
    new = np.flatnonzero(np.diff(columns["wall_reading"], prepend=0.0))[4:]
    expected = power[new] - 10.0 * (0.7 + 0.5)
    np.testing.assert_allclose(columns["wall_power"][new], expected, atol=0.1)
    np.testing.assert_allclose(np.diff(time[new]), 1.0, atol=0.003)
    rises = np.diff(columns["wall_energy"][new])
    seconds = np.diff(time[new])
    np.testing.assert_allclose(rises / seconds, power[new][:-1], rtol=0.1)


def test_dropouts_are_gaps_and_the_mean_remains() -> None:
    wall = replace(draw_wall(3), silences_per_hour=20.0)
    time = np.arange(0.0, 3600.0, 0.02)
    power = 120.0 + 30.0 * np.sin(time)
    columns = wall.readings(time, power)
    silent = np.isnan(columns["wall_power"])
    assert 0.05 < silent.mean() < 0.4
    assert np.array_equal(silent, np.isnan(columns["wall_energy"]))
    assert np.nanmean(columns["wall_power"]) == pytest.approx(120.0, rel=0.01)
    assert (np.diff(columns["wall_reading"]) >= 0.0).all()
    again = wall.readings(time, power)["wall_power"]
    np.testing.assert_array_equal(columns["wall_power"], again)


def test_a_meter_without_readings_is_silent() -> None:
    time = np.arange(0.0, 20.0, 0.1)
    columns = replace(PERFECT, missed=1.0).readings(time, np.ones_like(time))
    assert np.isnan(columns["wall_power"]).all()
    assert not columns["wall_reading"].any()


def test_the_live_meter_shows_delayed_means_and_nothing_while_silent() -> None:
    meter = SimulatedMeter(replace(PERFECT, period=0.5))
    heard = list[tuple[float, float]]()
    meter.listeners.append(heard.append)
    errors = []
    for time in np.arange(0.0, 30.0, 0.002).tolist():
        meter.update(time, 100.0 * time + 5.0 * time**2)  # power 100 + 10 t
        if meter.shown is not None:
            errors.append(meter.shown[0] - (100.0 + 10.0 * (time - 0.7 - 0.5)))
    assert -5.1 < min(errors) < max(errors) < 0.1  # a reading is up to one period old
    assert len(heard) == pytest.approx(56, abs=1)
    silent = SimulatedMeter(
        replace(PERFECT, silences_per_hour=1e9, silence_seconds=(1e6, 1e6))
    )
    for time in np.arange(0.0, 5.0, 0.002).tolist():
        silent.update(time, time)
        assert silent.shown is None


def fetched(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url, timeout=240) as answer:
        found: dict[str, object] = json.load(answer)
        return found


@pytest.fixture
def meter() -> SimulatedMeter:
    made = SimulatedMeter(PERFECT)
    for time in np.arange(0.0, 3.0, 0.01).tolist():
        made.update(time, 120.0 * time)
    return made


def reads_it(reader: Meter) -> Callable[[], bool]:
    def found() -> bool:
        power, energy, _ = reader.latest(np.array([HOST_CLOCK.now()]))[:, 0]
        return bool(power == pytest.approx(120.0) and 0.0 < energy < 400.0)

    return found


def test_shelly_and_modbus_with_clients_of_others(meter: SimulatedMeter) -> None:
    ports = free_port(), free_port()
    with ExitStack() as servers:
        urls = [f"http://127.0.0.1:{ports[0]}", f"modbus://127.0.0.1:{ports[1]}"]
        http, modbus = serve_meter(meter, urls, servers)
        status = fetched(http)
        assert status["apower"] == pytest.approx(120.0)
        for method, power in (
            ("EM1", "act_power"),
            ("EM", "total_act_power"),
            ("PM1", "apower"),
        ):
            url = http.replace("Switch", method)
            assert fetched(url)[power] == pytest.approx(120.0)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetched(http.replace("GetStatus", "Set"))
        client = ModbusTcpClient("127.0.0.1", port=ports[1])
        for address in (12, 52):
            answer = client.read_input_registers(address, count=2, device_id=3)
            found = client.convert_from_registers(
                answer.registers, client.DATATYPE.FLOAT32
            )
            assert found == pytest.approx(120.0)
        assert client.write_register(52, 1, device_id=3).isError()
        for url in (http, modbus):
            with Meter(url) as reader:
                until(reads_it(reader))
        meter.shown = None  # silent
        assert client.read_input_registers(52, count=2, device_id=3).isError()
        with pytest.raises(OSError, match="without response"):
            fetched(http)
        client.close()
    for url in (http, modbus):
        with Meter(url) as reader, pytest.raises(InputError, match="correct --meter"):
            reader.require()


@needs_program("mosquitto")
def test_publishes_to_a_broker(meter: SimulatedMeter, tmp_path: Path) -> None:
    with Mosquitto(tmp_path, "allow_anonymous true") as broker, ExitStack() as servers:
        url = f"mqtt://127.0.0.1:{broker.port}/cell/meter"
        assert serve_meter(meter, [url], servers) == [url]
        with Meter(url) as reader:

            def published() -> bool:
                for listener in meter.listeners:
                    assert meter.shown is not None
                    listener(meter.shown)
                return reads_it(reader)()

            until(published)


def test_addresses_of_the_meter(fresh_host: Callable[[], str]) -> None:
    for url in (
        "127.0.0.1:8080",
        "http://127.0.0.1:99999",
        "http://[",
        "shelly://127.0.0.1",
    ):
        with pytest.raises(InputError, match=r"not the URL of a meter|not valid"):
            listening_hosts([url])
    for url in ("http://0.0.0.0:1", "modbus://192.0.2.1:1"):
        with pytest.raises(ControllerError, match="not a loopback address"):
            Simulation("ur5e", host=fresh_host(), wall=[url]).build()


def test_a_recording_has_every_sample_and_the_readings(
    tmp_path: Path, fresh_host: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    host = fresh_host()
    bag = tmp_path / "bag"
    truth = tmp_path / "truth.json"
    lines = list[str]()
    arm, controller = Simulation(
        SLOW, host=host, seed=3, truth=truth, wall=[f"http://{host}:{free_port()}"]
    ).build(report=lines.append)
    url = lines[0].rpartition(" ")[2]
    with controller:
        until(lambda: controller.box.arm.time > 64.0)  # the first readings
        code = main(
            [
                "record",
                "--host",
                host,
                "--duration",
                "3",
                "-o",
                str(bag),
                "--meter",
                url,
                "--json",
            ]
        )
    arm.close()
    assert code == 0
    assert json.loads(capsys.readouterr().out)["lost"] == 0
    samples = read_bag(bag)
    assert (len(samples), samples.lost) == (375, 0)
    assert samples.info.extra["meter"] == url
    # the first samples may be older than the first reading
    power = samples["wall_power"][125:]
    assert np.isfinite(power).all()
    assert (power == np.round(power)).all()
    assert samples["wall_reading"][-1] > samples["wall_reading"][0]
    assert (np.diff(samples["wall_energy"][125:]) >= 0.0).all()
    content = json.loads(truth.read_text())
    total = content["total"]
    seconds = content["duration"]
    wall = content["wall"]
    least = wall["box"][2] * seconds + wall["proportional"] * total["bus_energy"]
    assert least < total["wall_energy"] < 1.2 * least


class _Reversed(BaseHTTPRequestHandler):
    """A Shelly device whose clamp is reversed."""

    def do_GET(self) -> None:
        text = json.dumps({"id": 0, "apower": -100.0 - 10.0 * random()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


def test_record_and_inspect_name_a_meter_that_cannot_be_right(
    tmp_path: Path, fresh_host: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    host = fresh_host()
    bag = tmp_path / "bag"
    arm, controller = Simulation(SLOW, host=host, seed=3).build()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Reversed)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/rpc/Switch.GetStatus?id=0"
    arguments = [
        "record",
        "--host",
        host,
        "--duration",
        "8",
        "-o",
        str(bag),
        "--meter",
        url,
    ]
    with controller:
        assert main([*arguments, "--json"]) == 0
    arm.close()
    server.shutdown()
    server.server_close()
    recorded = capsys.readouterr()
    (line,) = [
        each
        for each in recorded.err.splitlines()
        if "reversed" in each or "clamp" in each
    ]
    assert url in line
    (contradiction,) = json.loads(recorded.out)["contradictions"]
    assert contradiction["subject"] == "wall_meter"
    assert main(["inspect", str(bag), "--json"]) == 0
    inspected = json.loads(capsys.readouterr().out)
    assert [each["subject"] for each in inspected["contradictions"]] == ["wall_meter"]
    assert any("clamp" in each for each in inspected["warnings"])
    assert not inspected["verdict"].startswith("not usable")
