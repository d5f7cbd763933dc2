# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Addresses, ROS domains and simulated controllers for tests, unique among concurrent runs."""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

_NUMBERS: Iterator[int] = itertools.count()


def fresh_host() -> str:
    """A loopback address that no other test and no concurrent run uses."""
    process = os.getpid()
    return f"127.{64 + next(_NUMBERS) % 190}.{process >> 8 & 255}.{process & 255}"


def claim_domain(held: ExitStack) -> int | None:
    """A ROS domain that nobody else uses until `held` ends; None if all are taken.

    A domain is reserved by the TCP port with the number of its UDP discovery port
    (DDSI-RTPS 9.6.1.1), which ROS does not use.
    """
    for domain in random.sample(range(1, 101), 100):
        holder = held.enter_context(socket.socket())
        with suppress(OSError):
            holder.bind(("127.0.0.1", 7400 + 250 * domain))
            return domain
    return None


def simulator_command(host: str, *options: str, robot: str = "ur5e") -> list[str]:
    """Command that starts a simulated controller."""
    command = [
        sys.executable,
        "-m",
        "ur_energy_model.cli.main",
        "simulate",
        "--robot",
        robot,
    ]
    return [*command, "--host", host, *options]


def children_of(process: int) -> list[str]:
    """Numbers of the processes that a process has started and that still belong to it."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [word for path in tasks for word in path.read_text().split()]


class Simulators:
    """Simulated controllers in processes of their own, which end with the block."""

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[str]] = []

    def start(
        self, host: str, *options: str, robot: str = "ur5e"
    ) -> subprocess.Popen[str]:
        """Start a simulated controller; returns its process once it is ready.

        Raises:
            RuntimeError: it ended instead; the text is what it printed.
        """
        child = subprocess.Popen(
            simulator_command(host, *options, robot=robot),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._children.append(child)
        assert child.stdout is not None
        assert child.stderr is not None
        line = child.stdout.readline()
        if line != f"ready {host}:30004\n":
            raise RuntimeError(line + child.stderr.read())
        return child

    def __enter__(self) -> Simulators:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.send_signal(signal.SIGINT)
        for child in self._children:
            child.communicate(timeout=240)
