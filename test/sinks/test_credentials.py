"""Credentials: from a file or the environment, refused with one line where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.sinks.credentials import ENVIRONMENT, Credentials, read_credentials

FILE = """
mqtt:
  username: arm
  password: secret
  ca: ca.pem
opcua:
  users:
    plc: other secret
"""


def test_nothing_stated_is_anonymous() -> None:
    assert read_credentials(None, {}) == Credentials()


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


def test_a_missing_certificate_of_the_environment() -> None:
    with pytest.raises(InputError, match="UR_ENERGY_MQTT_CA"):
        read_credentials(None, {"UR_ENERGY_MQTT_CA": "/none"})
