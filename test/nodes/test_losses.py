# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One ledger of losses: lines, diagnostics, sinks and bag state the samples that are missing."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from test.conftest import Simulate
from test.nodes.conftest import Cell
from test.telemetry.rtde_peer import START_TIME, RtdePeer
from test.telemetry.scripted_source import wait_for
from ur_energy_model.nodes.lines import INFO, ConnectionLines, Level, OperatorLines
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.gaps import NO_LOSSES
from ur_energy_model.telemetry.recording.recorder import LATE_SECONDS, Recorder
from ur_energy_model.telemetry.rtde.source import LinkOptions, RtdeSource
from ur_energy_model.telemetry.samples import Telemetry

LOST = re.compile(r"([\d,]+) samples? lost")
FIRST = 50  # ticks of the peer before anything happens

Send = Callable[[RtdePeer, RtdeSource], int]
"""Sends further ticks of a peer; returns the tick behind the last one."""


def silent(source: RtdeSource) -> None:
    """Wait until the source is known to be silent."""
    wait_for(lambda: source.status.outage > 0.0)


def late(peer: RtdePeer, source: RtdeSource) -> int:
    """All packets of a silence come at its end, twice."""
    for begin in (FIRST, 600):
        silent(source)
        peer.send_ticks(range(begin, begin + 550))
        wait_for(lambda: source.status.outage == 0.0)
    return 1150


def skipping(peer: RtdePeer, source: RtdeSource) -> int:
    """The controller leaves out ticks, behind a silence too."""
    peer.send_ticks([*range(FIRST, 80), *range(83, 100), *range(144, 200)])
    silent(source)
    peer.send_ticks(range(400, 420))
    return 420


def disconnected(peer: RtdePeer, source: RtdeSource) -> int:
    """The connection is lost for a while; what was sent last is late."""
    peer.send_ticks(range(FIRST, 100))
    silent(source)
    peer.send_ticks(range(100, 150))
    wait_for(lambda: source.status.outage == 0.0)
    peer.disconnect()
    wait_for(lambda: not source.status.connected)
    peer.send_ticks(range(500, 520))
    return 520


def in_thread(action: Callable[[], object]) -> Callable[[], None]:
    """Begin an action in a thread; returns what waits for its end."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread.join


@pytest.fixture
def peer() -> Iterator[RtdePeer]:
    with RtdePeer() as peer:
        yield peer


@pytest.mark.parametrize(
    ("send", "missing"), [(late, 0), (skipping, 3 + 44 + 200), (disconnected, 350)]
)
def test_every_loss_is_in_one_line_and_in_the_bag_and_nothing_else_is(
    tmp_path: Path, peer: RtdePeer, send: Send, missing: int
) -> None:
    written: list[tuple[Level, str]] = []
    lines = OperatorLines(lambda level, text: written.append((level, text)))
    link = LinkOptions(peer.port, dashboard_port=1, silence=60.0)
    source = RtdeSource(peer.host, fields=("actual_q",), link=link, batch_seconds=0.0)
    sent = in_thread(lambda: peer.send_ticks(range(FIRST)))
    with source, Recorder(source, record=tmp_path / "bag") as recorder:
        sent()
        connection = ConnectionLines(lines, peer.host)

        def watch() -> None:
            while recorder.reading:
                connection.update(source.status, source.info)
                time.sleep(0.01)

        watched = in_thread(watch)
        last = send(peer, source)
        wait_for(lambda: recorder.status.samples == last - missing)
        assert recorder.status.losses.samples == source.status.losses.samples == missing
        status = recorder.stop()
        link_status = source.status
        recorder.close()
        watched()
        connection.end(link_status)
    reported = sum(
        int(n.replace(",", "")) for _, text in written for n in LOST.findall(text)
    )
    assert (reported, status.losses.samples) == (missing, missing)
    bag = read_bag(tmp_path / "bag")
    assert (len(bag), bag.lost) == (last - missing, missing)
    if not missing:
        assert all(level is INFO for level, text in written if "come again" in text)


def test_a_process_that_did_not_run_for_a_while_loses_nothing(
    cell: Cell, simulate: Simulate, fresh_host: Callable[[], str]
) -> None:
    """Its samples wait in the socket."""
    host = fresh_host()
    observer = cell.observer
    controller = simulate(host)
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    bags = cell.folder / "bags"
    logger = cell.start_process("logger", robot_ip=host, bag_directory=str(bags))

    def recorded() -> int:
        observer.next_message("/diagnostics")
        return int(observer.status("/diagnostics", "logger: recording")["samples"])

    observer.wait(lambda: recorded() > 250, "samples in the bag")
    for stopped in (logger, controller, logger):
        stopped.send_signal(signal.SIGSTOP)
        time.sleep(1.0)  # the length of the stall
        stopped.send_signal(signal.SIGCONT)
        enough = recorded() + 250
        while recorded() < enough:
            pass
    logger.send_signal(signal.SIGSTOP)
    time.sleep(1.0)
    logger.send_signal(signal.SIGCONT)
    code, output = cell.stop(logger)
    (path,) = bags.iterdir()
    bag = read_bag(path)
    cycles = round(500.0 * float(bag.time[-1] - bag.time[0])) + 1
    assert (code, len(bag) + bag.lost) == (0, cycles)
    reported = sum(int(number.replace(",", "")) for number in LOST.findall(output))
    # a busy machine may lose some, but all of them truly
    assert reported == bag.lost, output
    assert f"{len(bag):,} samples, {bag.lost:,} lost" in output


def test_the_end_of_a_bag_waits_for_samples_that_have_come(
    tmp_path: Path, peer: RtdePeer
) -> None:
    """The reading thread does not run for a while, and then the bag is ended."""
    busy = threading.Event()
    free = threading.Event()

    def tap(batch: Telemetry) -> None:
        if batch.time[-1] > START_TIME + (FIRST - 0.5) / 500.0:
            busy.set()
            free.wait()

    link = LinkOptions(peer.port, dashboard_port=1)
    source = RtdeSource(peer.host, fields=("actual_q",), link=link, batch_seconds=0.0)
    sent = in_thread(lambda: peer.send_ticks(range(FIRST)))
    with source, Recorder(source, tap=tap, record=tmp_path / "bag") as recorder:
        sent()
        wait_for(lambda: recorder.status.samples == FIRST)
        peer.send_ticks([FIRST])
        busy.wait()
        peer.send_ticks(range(FIRST + 1, 300))
        time.sleep(2.0 * LATE_SECONDS)
        stopped = in_thread(recorder.stop)
        free.set()
        stopped()
        assert (recorder.status.samples, recorder.status.losses) == (300, NO_LOSSES)
    assert len(read_bag(tmp_path / "bag")) == 300
