# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The metrics page: values, counters, silence, slow clients; and the real Prometheus."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from test.sinks.peers import (
    Series,
    fetched,
    free_port,
    needs_program,
    program,
    series,
    until,
)
from test.sinks.readings import live_readings
from ur_energy_model.files import config_file
from ur_energy_model.sinks.options import Address
from ur_energy_model.sinks.prometheus import sink as prometheus_sink
from ur_energy_model.sinks.prometheus.sink import MetricsPage
from ur_energy_model.sinks.sink import ArmReading

READINGS = list(live_readings(3.0))
LAST = READINGS[-1]


@pytest.fixture
def page() -> Iterator[MetricsPage]:
    page = MetricsPage(Address("127.0.0.1", 0))
    page.open()
    yield page
    page.close()


def shown(page: MetricsPage, *readings: ArmReading) -> Series:
    for reading in readings:
        page.deliver(reading)
    return series(fetched(page.address))


def value(found: Series, name: str, **labels: str) -> float:
    return found[f"ur_energy_{name}", frozenset({"arm": "arm-1", **labels}.items())]


def test_values_are_those_of_the_topics(page: MetricsPage) -> None:
    found = shown(page, LAST)
    numbers = LAST.numbers()
    for joint in LAST.joints:
        power = value(found, "joint_power_watts", joint=joint)
        assert power == pytest.approx(numbers[f"energy/{joint}/power"])
    energy = value(found, "total_energy_joules_total")
    assert energy == pytest.approx(numbers["energy/total/energy"])
    unmeasured = replace(LAST, snapshot=replace(LAST.snapshot, bus_measured=False))
    names = {name for name, _ in shown(page, unmeasured)}
    assert not [name for name in names if "bus" in name]


def test_counters_never_decrease_and_gauges_go_in_silence(
    page: MetricsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although joints give energy back."""
    before: Series = {}
    dips = 0
    energies = dict[str, float]()
    for reading in READINGS:
        now = shown(page, reading)
        falling = [
            key
            for key, old in before.items()
            if key[0].endswith("_total") > (now[key] >= old)
        ]
        assert not falling
        before = now
        for joint in reading.joints:
            energy = reading.numbers()[f"energy/{joint}/energy"]
            dips += energy < energies.get(joint, energy)
            energies[joint] = energy
            assert value(now, "joint_energy_joules_total", joint=joint) >= energy - 1e-9
    assert dips, "no joint gave energy back: the test shows nothing"
    assert value(before, "samples_lost_total") == READINGS[-1].link.losses.samples > 0
    monkeypatch.setattr(prometheus_sink, "SILENCE", 0.0)
    found = shown(page)
    assert value(found, "connected") == 0.0
    assert (
        "ur_energy_total_power_watts",
        frozenset({("arm", "arm-1")}),
    ) in before.keys() - found
    assert {key for key in before if key[0].endswith("_total")} <= found.keys()


def test_slow_clients_do_not_lock_scrapes_out(
    page: MetricsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They send a byte now and then, for ever: each has one deadline, and makes room before it."""
    page.deliver(LAST)
    address = ("127.0.0.1", page.address.port)
    over = threading.Event()

    def slow() -> None:
        with suppress(OSError), socket.create_connection(address, timeout=240) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\nX: ")
            while not over.wait(0.02):
                client.sendall(b"x")

    threads = [
        threading.Thread(target=slow) for _ in range(prometheus_sink.MOST_CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            assert "ur_energy_samples_total" in fetched(page.address)
        monkeypatch.setattr(prometheus_sink, "REQUEST_TIMEOUT", 0.2)
        for thread in threads:
            thread.join(10.0)
        assert not any(thread.is_alive() for thread in threads)
    finally:
        over.set()


@needs_program("prometheus")
def test_prometheus_scrapes_and_answers(
    page: MetricsPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real one, five times a second, with the shipped configuration and dashboard."""
    monkeypatch.setattr(prometheus_sink, "SILENCE", 600.0)
    configuration = yaml.safe_load(
        config_file("prometheus", "prometheus.yml").read_text()
    )
    configuration["global"]["scrape_interval"] = "200ms"
    configuration["scrape_configs"][0]["static_configs"] = [
        {"targets": [str(page.address)]}
    ]
    file = tmp_path / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration))
    address = f"127.0.0.1:{free_port()}"
    command = [str(program("prometheus")), f"--config.file={file}"]
    command += [
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address={address}",
    ]

    def query(expression: str) -> list[dict[str, Any]]:
        """Series of an instant query; nothing while it cannot be reached, or starts."""
        words = urllib.parse.urlencode({"query": expression})
        with suppress(OSError):
            answer = json.loads(fetched(address, f"/api/v1/query?{words}"))
            found: list[dict[str, Any]] = answer["data"]["result"]
            return found
        return []

    def number(expression: str) -> float:
        found = query(expression)
        return float(found[0]["value"][1]) if len(found) == 1 else float("nan")

    total = 'ur_energy_total_energy_joules_total{arm="arm-1"}'
    page.deliver(READINGS[0])
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            until(lambda: number(total) >= 0.0, 60.0)
            for reading in READINGS:
                page.deliver(reading)
            # The counter has the value of the topic, except for what is given back at
            # present.
            until(
                lambda: (
                    number(total) == pytest.approx(LAST.numbers()["energy/total/energy"])
                )
            )
            assert number('up{job="ur_energy"}') == 1.0
            assert number("count({__name__=~'ur_energy_.+'})") > 30
            for panel in json.loads(config_file("grafana", "energy.json").read_text())[
                "panels"
            ]:
                for target in panel["targets"]:
                    asked = target["expr"].replace("$arm", "arm-1")
                    asked = re.sub(r"\$__(range|rate_interval)", "1m", asked)
                    until(partial(query, asked), 30.0)
        finally:
            process.terminate()
