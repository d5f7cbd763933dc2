"""User names, passwords and certificates of sinks, from a YAML file or the environment.

They are never on the command line, where every user of the machine reads them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ur_energy_model.errors import InputError
from ur_energy_model.files import user_path
from ur_energy_model.yaml_reader import Record, YamlTree, text

ENVIRONMENT: dict[str, str] = {
    "username": "UR_ENERGY_MQTT_USERNAME",
    "password": "UR_ENERGY_MQTT_PASSWORD",
    "ca": "UR_ENERGY_MQTT_CA",
    "certificate": "UR_ENERGY_MQTT_CERTIFICATE",
    "key": "UR_ENERGY_MQTT_KEY",
}
"""Variables that are used where the file does not state a key of `mqtt`."""
_TEXTS = ("username", "password")
"""Keys of `mqtt` that are no files."""
OPCUA_USERNAME, OPCUA_PASSWORD = "UR_ENERGY_OPCUA_USERNAME", "UR_ENERGY_OPCUA_PASSWORD"
"""Variables of one more OPC UA user."""
_REMEDY = "correct the line; docs/mqtt_and_opcua.md shows the file"


@dataclass(frozen=True)
class MqttCredentials:
    """What a broker asks for."""

    username: str | None = None  # None for an anonymous connection
    password: str | None = field(default=None, repr=False)  # None for an anonymous connection
    ca: Path | None = None  # certificates that may sign the broker's, None for those of the system
    certificate: Path | None = None  # our own, where the broker requires them
    key: Path | None = None  # our own, where the broker requires them


@dataclass(frozen=True)
class OpcuaCredentials:
    """Passwords by user name of the OPC UA server, and files of its certificate and key.

    Certificate and key are None to make them at the first start.
    """

    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: Path | None = None
    key: Path | None = None


class Credentials(NamedTuple):
    """Those of all sinks."""

    mqtt: MqttCredentials = MqttCredentials()
    opcua: OpcuaCredentials = OpcuaCredentials()


def read_credentials(
    path: Path | None, environment: Mapping[str, str] | None = None
) -> Credentials:
    """Credentials of a file, completed from the environment.

    Args:
        path: None for the environment only. Relative paths in it begin at its folder.
        environment: default os.environ.

    Raises:
        InputError: the file cannot be used, or a certificate it names is missing.
    """
    variables = os.environ if environment is None else environment
    mqtt, opcua = dict[str, Any](), OpcuaCredentials()

    def existing(tree: YamlTree) -> Path:
        file = (path or Path()).parent / user_path(text(tree))
        if not file.is_file():
            raise tree.refuse(f"{file} is not a file")
        return file

    def of_mqtt(tree: YamlTree) -> dict[str, Any]:
        with Record(tree) as keys:
            return {
                key: keys.read(key, text if key in _TEXTS else existing, None)
                for key in ENVIRONMENT
            }

    def of_opcua(tree: YamlTree) -> OpcuaCredentials:
        with Record(tree) as keys:
            users = keys.read("users", passwords, {})
            files = [keys.read(key, existing, None) for key in ("certificate", "key")]
        if (files[0] is None) != (files[1] is None):
            raise tree.refuse("certificate and key belong together")
        return OpcuaCredentials(users, *files)

    def passwords(tree: YamlTree) -> dict[str, str]:
        with Record(tree) as keys:
            return {name: text(child) for name, child in keys.remaining().items()}

    if path is not None:
        with Record(YamlTree.read(path, InputError, _REMEDY)) as keys:
            mqtt = keys.read("mqtt", of_mqtt, mqtt)
            opcua = keys.read("opcua", of_opcua, opcua)
    for key, variable in ENVIRONMENT.items():
        if not mqtt.get(key) and (value := variables.get(variable)):
            mqtt[key] = value if key in _TEXTS else Path(value)
            if key not in _TEXTS and not mqtt[key].is_file():
                raise InputError(variable, f"{value} is not a file", "check the path")
    if variables.get(OPCUA_USERNAME) and variables.get(OPCUA_PASSWORD):
        user = {variables[OPCUA_USERNAME]: variables[OPCUA_PASSWORD]}
        opcua = replace(opcua, users={**user, **opcua.users})
    if mqtt.get("password") and not mqtt.get("username"):
        raise InputError(path or ENVIRONMENT["password"], "has no username", "state both")
    return Credentials(
        MqttCredentials(**{key: mqtt.get(key) or None for key in ENVIRONMENT}), opcua
    )
