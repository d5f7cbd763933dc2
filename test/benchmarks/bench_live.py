"""`ur_energy live` with all sinks at 500 Hz: CPU and memory, and memory over a simulated day.

A process sends packets of the known arm at 500 Hz over RTDE, as for the estimator node. A client of
Foxglove takes all topics, a broker gets the messages if mosquitto is installed, metrics are scraped
once a second. Processor time does not depend on what else the machine does, except for its caches.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from test.benchmarks.bench_estimator import fresh_host, model, resident, send, spent_by
from test.energy.known_arm import motion, packets
from test.sinks.foxglove_client import FoxgloveClient
from test.sinks.mosquitto import Mosquitto
from test.sinks.peers import free_port, program
from test.sinks.test_live_arm import Played
from ur_energy_model.energy.live import LiveOptions
from ur_energy_model.model.model_file import save_model
from ur_energy_model.sinks.live_arm import LiveArm, SinkGroup
from ur_energy_model.sinks.options import SinkOptions, open_sinks
from ur_energy_model.telemetry.samples import Telemetry

WARM_UP, SECONDS = 15.0, 20.0
MOST_CPU, MOST_MEMORY = 20.0, 250.0
"""What is promised with all sinks: percent of a core; MB."""
HOURS = 24
MOST_WAITING = 20
"""Readings that may wait in a sink before the simulated day pauses."""


@contextlib.contextmanager
def live(host: str, folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command, which prints JSON into a pipe that is read."""
    command = [sys.executable, "-m", "ur_energy_model.cli.main", "live", "--json"]
    command += ["--host", host, "--model", str(folder / "model.yaml"), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        reader = threading.Thread(target=child.stdout.read, daemon=True)
        reader.start()
        yield child
        child.terminate()


def measured(child: subprocess.Popen[bytes], also: Callable[[], None]) -> tuple[float, float]:
    """Share of a core, and resident memory [MB]; `also` is called once a second."""
    process, shares = str(child.pid), (0.0, 0.0)
    for seconds in (WARM_UP, SECONDS):
        start, spent = time.monotonic(), spent_by(process)
        while time.monotonic() < start + seconds:
            time.sleep(1.0)
            also()
        shares = (spent_by(process) - spent) / (time.monotonic() - start), resident(process)
    return shares


def samples(page: str) -> float:
    """Number of samples that a page of metrics states."""
    found = re.search(r"^ur_energy_samples_total\{.*\} (\S+)$", page, re.M)
    assert found is not None
    return float(found.group(1))


def follow(client: FoxgloveClient) -> None:
    """Take everything that a Foxglove server sends, in a thread of its own."""
    client.advertised("/energy")
    client.subscribe(*client.channels)

    def take() -> None:
        with contextlib.suppress(Exception):  # the server ends first
            while True:
                client._take()

    threading.Thread(target=take, daemon=True).start()


def at_500_hz() -> None:
    """Without sinks, and with all of them."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as held:
        folder, host = Path(name), fresh_host()
        save_model(model(), folder / "model.yaml")
        sender, told = context.Pipe()
        arm = context.Process(target=send, args=(told, host))
        arm.start()
        sender.recv()
        with live(host, folder, "--duration", "60") as child:
            share, memory = measured(child, lambda: None)
        print(f"without sinks: {100 * share:.1f} % of a core, {memory:.0f} MB")
        sender.send("stop")
        arm.join(20)
        sender, told = context.Pipe()
        arm = context.Process(target=send, args=(told, host))
        arm.start()
        sender.recv()
        foxglove, metrics, opcua = free_port(), free_port(), free_port()
        options = ["--foxglove", f"127.0.0.1:{foxglove}", "--prometheus", f"127.0.0.1:{metrics}"]
        options += ["--opcua", f"opc.tcp://127.0.0.1:{opcua}"]
        broker = "no broker (mosquitto is not installed)"
        if program("mosquitto") is not None:
            mosquitto = held.enter_context(Mosquitto(folder, "allow_anonymous true"))
            options += ["--mqtt", f"mqtt://127.0.0.1:{mosquitto.port}"]
            broker = "a broker"
        environment = {"XDG_STATE_HOME": str(folder), "HOME": str(folder)}
        os.environ |= environment  # where the OPC UA server keeps its certificate
        with live(host, folder, "--state-file", str(folder / "state.json"), *options) as child:
            client = FoxgloveClient(foxglove)
            follow(client)
            url = f"http://127.0.0.1:{metrics}/metrics"
            pages: list[tuple[float, str]] = []

            def scrape() -> None:
                with urllib.request.urlopen(url, timeout=20) as answer:
                    pages.append((time.monotonic(), answer.read().decode()))

            share, memory = measured(child, scrape)
            (start, first), (end, last) = pages[0], pages[-1]
            rate = (samples(last) - samples(first)) / (end - start)
        sender.send("stop")
        arm.join(20)
    print(
        f"{rate:.0f} samples a second, Foxglove (a client of all topics), Prometheus (a scrape a "
        f"second), OPC UA, {broker}: {100 * share:.1f} % of a core (promised: at most "
        f"{MOST_CPU:.0f}), {memory:.0f} MB (promised: at most {MOST_MEMORY:.0f})"
    )


def minutes(outlets: SinkGroup, sizes: list[float]) -> Iterator[Telemetry]:
    """A day of samples, ten a second, as fast as the sinks take readings."""
    whole = motion(60.0)
    columns = {name: values[::50] for name, values in whole.columns.items()}
    for minute in range(60 * HOURS):
        for batch in packets(Telemetry(whole.time[::50] + 60.1 * minute, columns), 10):
            yield batch
            while any(status.waiting > MOST_WAITING for status in outlets.statuses):
                time.sleep(0.001)
        if minute % 60 == 59:
            sizes.append(resident("self"))


def day() -> None:
    """Memory over a day with a reading a second to each sink that needs no other server."""
    with tempfile.TemporaryDirectory() as name:
        os.environ |= {"XDG_STATE_HOME": name, "HOME": name}
        options = SinkOptions(
            foxglove=("127.0.0.1:0",),
            prometheus=("127.0.0.1:0",),
            opcua=(f"opc.tcp://127.0.0.1:{free_port()}",),
            sink_rate=1.0,
        )
        sizes: list[float] = []
        outlets = SinkGroup(open_sinks(options), options.sink_rate)
        arm = LiveArm(
            "a day",
            lambda: Played(minutes(outlets, sizes)),
            lambda _: (model(), "known"),
            LiveOptions(state_file=Path(name) / "state.json"),
        )
        arm.start(outlets)
        while not (arm.reader.ended or arm.reader.failure):
            arm.state("view")
            time.sleep(0.25)
        statuses = outlets.statuses
        arm.close()
        outlets.close()
        if arm.reader.failure is not None:
            raise arm.reader.failure
    delivered = ", ".join(f"{each.name.split()[0]} {each.delivered}" for each in statuses)
    print(
        f"memory over a simulated day: {sizes[0]:.1f} MB after an hour, {sizes[-1]:.1f} MB after "
        f"{HOURS}; readings delivered: {delivered}"
    )


def main() -> None:
    """Print all figures."""
    at_500_hz()
    day()


if __name__ == "__main__":
    main()
