# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Addresses, credentials and the registry of sinks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.sinks.credentials import ENVIRONMENT, Credentials, read_credentials
from ur_energy_model.sinks.options import Address, SinkOptions, server_address


def test_addresses() -> None:
    for text, expected in {
        "": Address("127.0.0.1", 8765),
        ":9000": Address("127.0.0.1", 9000),
        "localhost:80": Address("localhost", 80),
        "[::1]": Address("::1", 8765),
    }.items():
        found = server_address("foxglove", text, SinkOptions())
        assert (found, found.is_loopback) == (expected, True)
    allowed = SinkOptions(allow_network=True)
    assert str(server_address("foxglove", "0.0.0.0:1", allowed)) == "0.0.0.0:1"
    with pytest.raises(InputError):
        server_address("foxglove", "0.0.0.0:1", SinkOptions())
    for text in ("127.0.0.1:x", "127.0.0.1:70000", "host.example:1", "1.2.3:4"):
        with pytest.raises(InputError):
            server_address("foxglove", text, allowed)


def test_file_before_environment(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("x")
    file = tmp_path / "credentials.yaml"
    file.write_text(
        "{mqtt: {username: arm, password: secret, ca: ca.pem}, opcua: {users: {plc: other secret}}}"
    )
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
    assert read_credentials(None, {}) == Credentials()


@pytest.mark.parametrize(
    ("text", "variables", "message"),
    [
        ("mqtt: {usrname: x}", {}, "did you mean|usrname"),
        ("opcua: {certificate: c.yaml}", {}, "belong together"),
        ("", {"UR_ENERGY_MQTT_CA": "/none"}, "UR_ENERGY_MQTT_CA"),
    ],
)
def test_mistakes(
    tmp_path: Path, text: str, variables: dict[str, str], message: str
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_credentials(file if text else None, variables)


CODE = """
import sys
from ur_energy_model.errors import MissingPackageError
from ur_energy_model.sinks.options import SinkOptions, open_sinks
assert open_sinks(SinkOptions()) == ()
for option, text, package in (
    ("prometheus", "127.0.0.1:0", "prometheus_client"), ("mqtt", "mqtt://127.0.0.1:1", "paho"),
    ("foxglove", "127.0.0.1:0", "foxglove"), ("opcua", "opc.tcp://127.0.0.1:0", "asyncua"),
):
    assert package not in sys.modules
    sys.modules[package] = None
    try:
        open_sinks(SinkOptions(**{option: (text,)}))
    except MissingPackageError as error:
        assert f"'{package}'" in str(error) and "'.[sinks]'" in str(error), error
    else:
        sys.exit(option)
"""


def test_a_package_is_imported_by_its_option_only() -> None:
    """In a process of its own: a module that is imported already is not missing."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
