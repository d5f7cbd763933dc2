"""Addresses, credentials and the registry of sinks."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ur_energy_model.errors import InputError, MissingPackageError
from ur_energy_model.sinks.credentials import ENVIRONMENT, Credentials, read_credentials
from ur_energy_model.sinks.options import Address, SinkOptions, listening_address, open_sinks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Address("127.0.0.1", 8765)),
        (":9000", Address("127.0.0.1", 9000)),
        ("127.0.0.5", Address("127.0.0.5", 8765)),
        ("127.0.0.5:0", Address("127.0.0.5", 0)),
        ("localhost:80", Address("localhost", 80)),
        ("[::1]:80", Address("::1", 80)),
        ("[::1]", Address("::1", 8765)),
    ],
)
def test_addresses(text: str, expected: Address) -> None:
    found = listening_address("--foxglove", text, port=8765, allow_network=False)
    assert found == expected
    assert found.is_loopback


def test_other_machines_need_permission() -> None:
    with pytest.raises(InputError, match="--allow-network"):
        listening_address("--foxglove", "0.0.0.0:1", port=1, allow_network=False)
    address = listening_address("--foxglove", "0.0.0.0:1", port=1, allow_network=True)
    assert str(address) == "0.0.0.0:1"


@pytest.mark.parametrize("text", ["127.0.0.1:x", "127.0.0.1:70000", "host.example:1", "1.2.3:4"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        listening_address("--foxglove", text, port=1, allow_network=True)


FILE = """
mqtt:
  username: arm
  password: secret
  ca: ca.pem
opcua:
  users:
    plc: other secret
"""


def test_file_before_environment(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("x")
    file = tmp_path / "credentials.yaml"
    file.write_text(FILE)
    variables = {
        ENVIRONMENT["username"]: "ignored",
        ENVIRONMENT["key"]: str(tmp_path / "ca.pem"),
        "UR_ENERGY_OPCUA_USERNAME": "mes",
        "UR_ENERGY_OPCUA_PASSWORD": "third",
    }
    found = read_credentials(file, variables)
    assert (found.mqtt.username, found.mqtt.password) == ("arm", "secret")
    assert (found.mqtt.ca, found.mqtt.key) == (tmp_path / "ca.pem",) * 2
    assert found.opcua.users == {"plc": "other secret", "mes": "third"}
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mqtt: {usrname: x}", "did you mean|usrname"),
        ("mqtt: {ca: missing.pem}", "is not a file"),
        ("opcua: {certificate: c.yaml}", "belong together"),
        ("mqtt: {password: x}", "has no username"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_credentials(file, {})


def test_the_environment() -> None:
    assert read_credentials(None, {}) == Credentials()
    with pytest.raises(InputError, match="UR_ENERGY_MQTT_CA"):
        read_credentials(None, {"UR_ENERGY_MQTT_CA": "/none"})


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
