"""Fixtures that more than one room's tests use."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does, before numpy

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def recordings() -> Path:
    """Folder with recordings of real arms, kept beside the checkout and never inside it."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"recordings of real arms are not at {folder}")
    return folder


@pytest.fixture(scope="session")
def facts() -> Path:
    """Folder with published constants, kept beside the checkout."""
    folder = SHARED / "facts"
    if not folder.is_dir():
        pytest.skip(f"published constants are not at {folder}")
    return folder


@pytest.fixture(scope="session")
def fresh_host() -> Callable[[], str]:
    """Loopback addresses that no other test uses, nor another run of the tests beside this one."""
    number, process = itertools.count(), os.getpid()
    return lambda: f"127.{64 + next(number) % 190}.{process >> 8 & 255}.{process & 255}"


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
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
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
