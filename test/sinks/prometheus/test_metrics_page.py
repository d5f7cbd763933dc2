"""The metrics page: names and values, counters that never decrease, silence, hostile clients."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import islice

import pytest

from test.sinks.live_readings import live_readings
from test.sinks.prometheus.pages import Series, fetched, series, value
from test.sinks.prometheus.write_golden import GOLDEN, recorded
from test.sinks.waiting import until
from ur_energy_model.sinks import prometheus as metrics_server
from ur_energy_model.sinks import prometheus as prometheus_sink
from ur_energy_model.sinks.options import Address, SinkOptions
from ur_energy_model.sinks.prometheus import MetricsPage
from ur_energy_model.sinks.prometheus_metrics import METRICS, Kind
from ur_energy_model.sinks.sink import QueuedSink

SUFFIXES = ("_watts", "_joules", "_celsius", "_seconds")
REQUIRED = {
    "ur_energy_joint_power_watts": ("arm", "joint"),
    "ur_energy_joint_energy_joules_total": ("arm", "joint"),
    "ur_energy_total_power_watts": ("arm",),
    "ur_energy_total_energy_joules_total": ("arm",),
    "ur_energy_bus_power_watts": ("arm",),
    "ur_energy_bus_energy_joules_total": ("arm",),
    "ur_energy_samples_lost_total": ("arm",),
}


@pytest.fixture
def page() -> Iterator[MetricsPage]:
    page = MetricsPage(Address("127.0.0.1", 0))
    page.open()
    yield page
    page.close()


def read(page: MetricsPage) -> Series:
    return series(fetched(page.address))


def test_names_follow_the_conventions() -> None:
    by_name = {metric.name: metric for metric in METRICS}
    for name, labels in REQUIRED.items():
        assert by_name[name].labels == labels
    for metric in METRICS:
        assert metric.help.endswith(".")
        assert (metric.kind is Kind.COUNTER) == metric.name.endswith("_total")
        assert metric.name.startswith("ur_energy_")


def test_a_recorded_page(page: MetricsPage) -> None:
    """Every series of a known motion, as it was when the names were agreed on."""
    found = recorded(page)
    golden = json.loads(GOLDEN.read_text())
    assert found.keys() == golden.keys()
    assert found == pytest.approx(golden, rel=1e-6, abs=1e-6)


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


def test_before_the_first_reading_the_page_is_empty(page: MetricsPage) -> None:
    assert fetched(page.address) == ""


def test_clients_that_send_nothing_do_not_block_scrapes(
    page: MetricsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_server._Handler, "timeout", 0.3)
    page.deliver(next(live_readings(1.0)))
    with ExitStack() as held:
        for _ in range(2 * metrics_server.MOST_CONNECTIONS):
            address = ("127.0.0.1", page.address.port)
            held.enter_context(closing(socket.create_connection(address, timeout=10)))

        def answered() -> bool:
            try:
                return "ur_energy_samples_total" in fetched(page.address)
            except OSError:
                return False

        until(answered)


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

    threads = [threading.Thread(target=slow) for _ in range(metrics_server.MOST_CONNECTIONS)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            assert "ur_energy_samples_total" in fetched(page.address)
        monkeypatch.setattr(metrics_server, "REQUEST_TIMEOUT", 0.2)
        for thread in threads:
            thread.join(10.0)
        assert not any(thread.is_alive() for thread in threads)
    finally:
        over.set()


def test_garbage_is_answered_with_an_error(page: MetricsPage) -> None:
    with socket.create_connection(("127.0.0.1", page.address.port), timeout=20) as client:
        client.sendall(b"\x00\xff" * 50 + b"\r\n\r\n")
        assert b"400" in client.recv(1000)
    assert fetched(page.address) == ""


def test_a_port_in_use_is_a_problem_that_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from ur_energy_model.sinks import sink as sinks

    monkeypatch.setattr(sinks, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(sinks, "LONGEST_PAUSE", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        sink: QueuedSink = prometheus_sink.prometheus_sink(str(address), SinkOptions())
        with closing(sink):
            until(lambda: "in use" in (sink.status.problem or ""))
            taken.close()
            until(lambda: sink.status.problem is None)
            for reading in islice(live_readings(1.0), 3):
                sink.offer(reading)
            until(lambda: sink.status.delivered == 3)
            assert "ur_energy_total_power_watts" in fetched(address)
