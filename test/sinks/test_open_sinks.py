"""open_sinks: makes what was stated, imports nothing else, and closes what it made after errors."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ur_energy_model.errors import InputError, MissingPackageError
from ur_energy_model.sinks.options import SinkOptions, open_sinks

PACKAGES = ("asyncua", "foxglove", "paho", "prometheus_client", "pysparkplug")


def test_without_options_no_package_is_imported() -> None:
    code = (
        "import sys\n"
        "from ur_energy_model.sinks.options import open_sinks\n"
        "from ur_energy_model.sinks.options import SinkOptions\n"
        "assert open_sinks(SinkOptions()) == ()\n"
        f"assert not {{name.partition('.')[0] for name in sys.modules}} & set({PACKAGES!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "package"),
    [
        (SinkOptions(prometheus=("127.0.0.1:0",)), "prometheus_client"),
        (SinkOptions(mqtt=("mqtt://127.0.0.1:1",)), "paho"),
        (SinkOptions(foxglove=("127.0.0.1:0",)), "foxglove"),
        (SinkOptions(opcua=("opc.tcp://127.0.0.1:0",)), "asyncua"),
    ],
)
def test_a_missing_package_is_named(options: SinkOptions, package: str) -> None:
    """In a process of its own: a module that is imported already is not missing."""
    code = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"
        "from ur_energy_model.sinks.options import open_sinks\n"
        "from ur_energy_model.sinks.options import SinkOptions\n"
        f"open_sinks({options!r})\n"
    ).replace("PosixPath", "str")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert MissingPackageError.__name__ in last
    assert f"'{package}'" in last
    assert "'.[sinks]'" in last


def test_an_error_closes_what_was_made(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    options = SinkOptions(prometheus=("127.0.0.1:0", "0.0.0.0:1"))
    with pytest.raises(InputError, match="--allow-network"):
        open_sinks(options)
    assert not [each for each in set(threading.enumerate()) - before if each.is_alive()]


def test_several_of_a_kind(tmp_path: Path) -> None:
    sinks = open_sinks(SinkOptions(prometheus=("127.0.0.1:0", "127.0.0.1:0")))
    names = [sink.status.name for sink in sinks]
    for sink in sinks:
        sink.close()
    assert len(names) == 2
    assert all(name.startswith("prometheus 127.0.0.1:") for name in names)
