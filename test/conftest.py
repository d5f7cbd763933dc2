"""Fixtures shared by the tests of several packages."""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does, before numpy

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background jobs have it
    signal.signal(signal.SIGINT, signal.default_int_handler)  # our children need it

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture
def recordings(request: pytest.FixtureRequest) -> Path:
    """Folder with recordings of real arms, beside the checkout."""
    return _beside(request, "data", "recordings of real arms")


@pytest.fixture
def facts(request: pytest.FixtureRequest) -> Path:
    """Folder with published constants, beside the checkout."""
    return _beside(request, "facts", "published constants")


def _beside(request: pytest.FixtureRequest, name: str, content: str) -> Path:
    """A folder beside the checkout; without it the test is skipped with the reason."""
    folder = SHARED / name
    if not folder.is_dir():
        purpose = request.function.__doc__ or request.function.__name__.removeprefix("test_")
        untested = purpose.splitlines()[0].rstrip(".").replace("_", " ")
        pytest.skip(f"{content} are not at {folder}; not tested: {untested}")
    return folder


@pytest.fixture(scope="session")
def fresh_host() -> Callable[[], str]:
    """Loopback addresses that are unique among tests and concurrent test runs."""
    number, process = itertools.count(), os.getpid()
    return lambda: f"127.{64 + next(number) % 190}.{process >> 8 & 255}.{process & 255}"


@pytest.fixture(scope="session")
def fresh_domain() -> Iterator[Callable[[], int]]:
    """ROS domains that are unique among tests and concurrent test runs.

    A domain is reserved by the TCP port with the number of its UDP discovery port (DDSI-RTPS
    9.6.1.1), which ROS does not use.
    """
    with ExitStack() as held:

        def claim() -> int:
            for domain in random.sample(range(1, 101), 100):
                holder = held.enter_context(socket.socket())
                with suppress(OSError):
                    holder.bind(("127.0.0.1", 7400 + 250 * domain))
                    return domain
            pytest.fail("all ROS domains are taken")

        yield claim


Simulate = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def simulate() -> Iterator[Simulate]:
    """Start simulated controllers in separate processes, which end after the module.

    `simulate(host, *options)` returns the process once it is ready.
    """
    children: list[subprocess.Popen[str]] = []

    def start(host: str, *options: str, robot: str = "ur5e") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ur_energy_model.cli.main", "simulate", "--robot", robot]
        child = subprocess.Popen(
            [*command, "--host", host, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        children.append(child)
        assert child.stdout is not None
        assert child.stderr is not None
        line = child.stdout.readline()
        assert line == f"ready {host}:30004\n", line + child.stderr.read()
        return child

    yield start
    for child in children:
        child.send_signal(signal.SIGINT)
    for child in children:
        child.communicate(timeout=20)
