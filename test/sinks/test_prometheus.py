"""The metrics page: values, counters, silence, slow clients; and the real Prometheus."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
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
    value,
)
from test.sinks.readings import live_readings
from ur_energy_model.layouts.grafana import panels, scrape_configuration
from ur_energy_model.sinks import prometheus as prometheus_sink
from ur_energy_model.sinks.options import Address
from ur_energy_model.sinks.prometheus import MetricsPage


@pytest.fixture
def page() -> Iterator[MetricsPage]:
    page = MetricsPage(Address("127.0.0.1", 0))
    page.open()
    yield page
    page.close()


def read(page: MetricsPage) -> Series:
    return series(fetched(page.address))


def test_values_are_those_of_the_topics(page: MetricsPage) -> None:
    *_, last = live_readings(1.0)
    page.deliver(last)
    found, numbers = read(page), last.numbers()
    for joint in last.joints:
        power = value(found, "ur_energy_joint_power_watts", arm="arm-1", joint=joint)
        assert power == pytest.approx(numbers[f"energy/{joint}/power"])
    assert value(found, "ur_energy_bus_energy_joules_total", arm="arm-1") == pytest.approx(
        numbers["energy/bus/energy"]
    )
    assert value(found, "ur_energy_total_energy_joules_total", arm="arm-1") == pytest.approx(
        numbers["energy/total/energy"]
    )


def test_counters_never_decrease_although_joints_give_energy_back(page: MetricsPage) -> None:
    before: Series = {}
    dips = 0
    energies: dict[str, float] = {}
    for reading in live_readings(3.0):
        page.deliver(reading)
        now = series(fetched(page.address))
        for key, old in before.items():
            if key[0].endswith("_total"):
                assert now[key] >= old, key
        before = now
        for joint in reading.joints:
            energy = reading.numbers()[f"energy/{joint}/energy"]
            dips += energy < energies.get(joint, energy)
            energies[joint] = energy
            counter = value(now, "ur_energy_joint_energy_joules_total", arm="arm-1", joint=joint)
            assert counter >= energy - 1e-9
    assert dips, "no joint gave energy back: the test shows nothing"


def test_losses_that_were_estimated_too_high_take_nothing_back(page: MetricsPage) -> None:
    reading = next(live_readings(1.0))
    for lost in (0, 500, 480):
        page.deliver(replace(reading, link=replace(reading.link, lost=lost)))
    assert value(read(page), "ur_energy_samples_lost_total", arm="arm-1") == 500


def test_without_a_measured_bus_there_are_no_values_of_it(page: MetricsPage) -> None:
    reading = next(live_readings(1.0))
    page.deliver(replace(reading, snapshot=replace(reading.snapshot, bus_measured=False)))
    assert not [name for name, _ in read(page) if "bus" in name or "residual" in name]


def test_in_silence_counters_stay_and_gauges_go(
    page: MetricsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.deliver(next(live_readings(1.0)))
    before = {name for name, _ in read(page)}
    monkeypatch.setattr(prometheus_sink, "SILENCE", 0.0)
    found = read(page)
    assert value(found, "ur_energy_connected", arm="arm-1") == 0.0
    assert "ur_energy_total_power_watts" in before
    names = {name for name, _ in found}
    assert "ur_energy_total_power_watts" not in names
    assert {name for name in before if name.endswith("_total")} <= names


def test_slow_clients_do_not_lock_scrapes_out(
    page: MetricsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They send a byte now and then, for ever: each has one deadline, and makes room before it."""
    page.deliver(next(live_readings(1.0)))
    address, over = ("127.0.0.1", page.address.port), threading.Event()

    def slow() -> None:
        with suppress(OSError), socket.create_connection(address, timeout=20) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\nX: ")
            while not over.wait(0.02):
                client.sendall(b"x")

    threads = [threading.Thread(target=slow) for _ in range(prometheus_sink.MOST_CONNECTIONS)]
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


JOINT = "shoulder_pan_joint"


class Prometheus:
    """A Prometheus that scrapes one page five times a second, with the shipped configuration."""

    def __init__(self, folder: Path, target: object) -> None:
        configuration = yaml.safe_load(scrape_configuration())
        configuration["global"]["scrape_interval"] = "200ms"
        configuration["scrape_configs"][0]["static_configs"] = [{"targets": [str(target)]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        self._address = f"127.0.0.1:{free_port()}"
        path = program("prometheus")
        assert path is not None
        self._process = subprocess.Popen(
            [
                path,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self._address}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Series of an instant query; nothing while it cannot be reached.

        A query that Prometheus refuses fails the test.
        """
        words = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(
                f"http://{self._address}/api/v1/query?{words}", timeout=20
            ) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
                return found
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is starting
                return []
            pytest.fail(f"{expression}: {error.read().decode()}")
        except OSError:
            return []

    def value(self, expression: str) -> float:
        """Value of the only series; NaN where there is none."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if len(found) == 1 else float("nan")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)


@needs_program("prometheus")
def test_prometheus_scrapes_and_answers(
    page: MetricsPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_sink, "SILENCE", 600.0)
    readings = list(live_readings(2.0))
    page.deliver(readings[0])
    with closing(Prometheus(tmp_path, page.address)) as server:
        total = 'ur_energy_total_energy_joules_total{arm="arm-1"}'
        until(lambda: server.value(total) >= 0.0, 60.0)
        for reading in readings:
            page.deliver(reading)
        numbers = readings[-1].numbers()
        # The counter has the value of the topic, except for what is given back at present.
        joint = f'ur_energy_joint_energy_joules_total{{arm="arm-1", joint="{JOINT}"}}'
        until(lambda: server.value(total) == pytest.approx(numbers["energy/total/energy"]))
        assert server.value(joint) >= numbers[f"energy/{JOINT}/energy"] - 1e-9
        assert server.value('up{job="ur_energy"}') == 1.0
        (metadata,) = server.query("count({__name__=~'ur_energy_.+'})")
        assert float(metadata["value"][1]) > 30
        for panel in panels():
            for expression, _ in panel.queries:
                asked = expression.replace("$arm", "arm-1")
                asked = re.sub(r"\$__(range|rate_interval)", "1m", asked)
                until(partial(server.query, asked), 30.0)
