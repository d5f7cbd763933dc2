# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy live`: bags, controllers that come and go, terminals, pipes, and what is refused."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from test.cli.conftest import Capture, answer
from test.energy.known_arm import known_model, motion
from test.sinks.peers import fetched, free_port, series, until, value
from test.telemetry.bag.bag_files import write_bag
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.model.model_file import save_model

Host = Callable[[], str]
Simulate = Callable[..., "subprocess.Popen[str]"]
LIVE = [sys.executable, "-m", "ur_energy_model.cli.main", "live"]
LEAVES = b"\x1b[?1049l"  # sent by a program that leaves the alternate screen


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model of the known arm."""
    path = tmp_path_factory.mktemp("live") / "known.yaml"
    save_model(known_model(), path)
    return path


@pytest.fixture(scope="module")
def known_bag(known: Path) -> Path:
    """1.5 s of it."""
    return write_bag(known.with_name("bag"), motion(1.5))


@contextmanager
def running(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """`ur_energy live` in a process of its own, which ends with the block."""
    child = subprocess.Popen(
        [*LIVE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def ended(child: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    """Output and errors of a process that a signal ends with exit code 0."""
    child.send_signal(number)
    out, err = child.communicate(timeout=240)
    assert child.returncode == 0, err
    assert "Traceback" not in err
    return out, err


def next_state(child: subprocess.Popen[str], *, connected: bool = True) -> dict[str, Any]:
    """The next line of JSON with samples, or without."""
    assert child.stdout is not None
    while True:
        line = child.stdout.readline()
        assert line, "it ended"
        content: dict[str, Any] = json.loads(line)
        if content["connected"] is connected:
            return content


def test_a_bag_gives_what_estimate_gives_and_counters_survive_restarts(
    known_bag: Path, known: Path, tmp_path: Path, capsys: Capture
) -> None:
    expected = answer(capsys, "estimate", known, known_bag)
    supply = expected["total"]["supply_energy"]
    state = tmp_path / "state.db"
    command = [
        "live",
        "--bag",
        known_bag,
        "--model",
        known,
        "--json",
        "--state-file",
        state,
    ]
    for run in (1, 2):
        assert main(list(map(str, command))) == DONE
        out, err = capsys.readouterr()
        assert f"counters saved in {state}" in err
        last = json.loads(out.splitlines()[-1])
        assert last["ended"] is True
        values = last["values"]
        assert values["energy/total/energy"] == pytest.approx(
            run * supply, rel=[1e-6, 0.01][run - 1]
        )
        if run == 1:
            assert values["energy/bus/energy"] == pytest.approx(
                expected["bus_energy"], rel=1e-9
            )
            for joint, row in zip(last["joints"], expected["joints"], strict=True):
                assert joint["energy"] == pytest.approx(
                    row["electrical_energy"], rel=1e-6
                )


def test_a_controller_that_dies_and_comes_back(
    simulate: Simulate, fresh_host: Host
) -> None:
    """Samples of the outage are counted as lost; sinks and view follow by themselves."""
    host = fresh_host()
    port = free_port()
    arm = simulate(host)
    with running("--host", host, "--json", "--prometheus", f"127.0.0.1:{port}") as child:
        before = next_state(child)
        assert before["robot"] == "ur5e"
        assert before["model"] == "generic ur5e, not identified"
        arm.kill()
        away = next_state(child, connected=False)
        assert away["arm"] == before["arm"]
        simulate(host)
        back = next_state(child)
        assert back["samples_lost"] > 0
        assert back["interruptions"] == 1

        def metric(name: str) -> float:
            page = series(fetched(f"127.0.0.1:{port}"))
            return value(page, f"ur_energy_{name}_total", arm=before["arm"])

        until(
            lambda: metric("total_energy_joules") >= back["values"]["energy/total/energy"]
        )
        assert metric("samples_lost") > 0
        out, err = ended(child, signal.SIGINT)
    last = json.loads(out.splitlines()[-1])
    assert (last["ended"], last["connected"], last["problem"]) == (True, True, None)
    assert f"no samples from {host}" in err


def test_a_terminal_is_filled_and_given_back(known: Path, tmp_path: Path) -> None:
    terminal, line = pty.openpty()
    fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    settings = termios.tcgetattr(line)
    shown = bytearray()

    def appears(text: bytes) -> None:
        end = time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < end, shown[-2000:]
            if select.select([terminal], [], [], 0.1)[0]:
                shown.extend(os.read(terminal, 65536))

    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "100",
    }
    state = tmp_path / "state.db"
    child = subprocess.Popen(
        [*LIVE, "--host", "127.1.2.3", "--model", str(known), "--state-file", str(state)],
        stdin=line,
        stdout=line,
        stderr=line,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(line, termios.TIOCSCTTY, 0),
    )
    with closing(os.fdopen(terminal, "rb", buffering=0, closefd=False)):
        for size in ((24, 80), (0, 0)):  # a terminal of a script may state no size
            fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            shown.clear()
            appears(b"waiting for 127.1.2.3")
        fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 30, 0, 0))
        shown.clear()
        for text in (
            b"waiting for 127.1.2.3: no\x1b",
            b"its address, and the network\x1b",
        ):
            appears(text)  # the whole reason, in lines of the terminal's width
        os.write(terminal, b"q")
        appears(LEAVES)
        assert child.wait(240) == 0
    assert termios.tcgetattr(line) == settings
    for descriptor in (terminal, line):
        os.close(descriptor)
