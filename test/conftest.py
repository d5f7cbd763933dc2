"""Fixtures that more than one room's tests use."""

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
    """Folder with recordings of real arms, kept beside the checkout and never inside it."""
    return _beside(request, "data", "recordings of real arms")


@pytest.fixture
def facts(request: pytest.FixtureRequest) -> Path:
    """Folder with published constants, kept beside the checkout."""
    return _beside(request, "facts", "published constants")


def _beside(request: pytest.FixtureRequest, name: str, content: str) -> Path:
    """A folder beside the checkout; where it is absent, what the test would have shown is said."""
    folder = SHARED / name
    if not folder.is_dir():
        said = request.function.__doc__ or request.function.__name__.removeprefix("test_")
        untested = said.splitlines()[0].rstrip(".").replace("_", " ")
        pytest.skip(f"{content} are not at {folder}; not tested: {untested}")
    return folder


@pytest.fixture(scope="session")
def fresh_host() -> Callable[[], str]:
    """Loopback addresses that no other test uses, nor another run of the tests beside this one."""
    number, process = itertools.count(), os.getpid()
    return lambda: f"127.{64 + next(number) % 190}.{process >> 8 & 255}.{process & 255}"


@pytest.fixture(scope="session")
def fresh_domain() -> Iterator[Callable[[], int]]:
    """ROS domains that no other test uses, nor another run of the tests beside this one.

    A domain is held by the TCP port of the number that its discovery has in UDP (DDSI-RTPS
    9.6.1.1), which ROS leaves alone.
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
    """Start simulated controllers in processes of their own; they are ended after the module.

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
