# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Servers and clients of other projects, and what tests need to talk to them."""

from __future__ import annotations

import os
import shutil
import socket
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parents[2]
NODE_PACKAGES = ROOT / "build" / "npm" / "node_modules"
"""Packages of npm, apart from everything else."""
_PATH = os.environ.get("PATH", "") + ":/usr/sbin"  # where Debian puts daemons


def program(name: str) -> str | None:
    """Path of a program such as mosquitto or prometheus; None if it is not installed."""
    return shutil.which(name, path=_PATH)


def node_package(name: str) -> Path | None:
    """Folder of a package of npm; None if it or Node.js is not installed."""
    folder = NODE_PACKAGES / name
    return folder if folder.is_dir() and program("node") is not None else None


def needs_program(name: str) -> pytest.MarkDecorator:
    """Skips a test, with the reason, where a program is not installed."""
    reason = f"{name} is not installed: make servers"
    return pytest.mark.skipif(program(name) is None, reason=reason)


def needs_node_package(name: str) -> pytest.MarkDecorator:
    """Skips a test, with the reason, where Node.js or a package of npm is not installed."""
    reason = f"the npm package {name} is not in {NODE_PACKAGES}: make servers"
    return pytest.mark.skipif(node_package(name) is None, reason=reason)


def free_port() -> int:
    """A port of 127.0.0.1 that is free now, for servers that cannot choose one themselves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def until(
    condition: Callable[[], object], seconds: float = 240.0, *, pause: float = 0.005
) -> None:
    """Wait for a condition; the limit is for what hangs.

    `pause`: between two looks at the condition [s]; longer where a look takes long itself.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(pause)


Series = dict[tuple[str, frozenset[tuple[str, str]]], float]  # values by name and labels


def fetched(address: object, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=240) as answer:
        text: str = answer.read().decode()
        return text


def series(page: str) -> Series:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def value(found: Series, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]
