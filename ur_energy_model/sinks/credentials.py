# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""User names, passwords and certificates of sinks, from a YAML file or the environment.

They are never on the command line, where every user of the machine reads them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ur_energy_model.errors import InputError
from ur_energy_model.files import user_path
from ur_energy_model.yaml_reader import Record, YamlTree, text

ENVIRONMENT: dict[str, str] = {
    key: f"UR_ENERGY_MQTT_{key.upper()}"
    for key in ("username", "password", "ca", "certificate", "key")
}
"""Variables that are used where the file does not state a key of `mqtt`."""
_TEXTS = ("username", "password")  # keys of `mqtt` that are no files


@dataclass(frozen=True)
class MqttCredentials:
    """What a broker asks for; None for an anonymous connection."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    # certificates that may sign the broker's, None for those of the system
    ca: Path | None = None
    certificate: Path | None = None  # our own, where the broker requires them
    key: Path | None = None


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

    def existing(tree: YamlTree) -> Path:
        assert path is not None
        file = path.parent / user_path(text(tree))
        if not file.is_file():
            raise tree.refuse(f"{file} is not a file")
        return file

    def of_mqtt(tree: YamlTree) -> dict[str, Any]:
        with Record(tree) as keys:
            return {
                k: keys.read(k, text if k in _TEXTS else existing, None)
                for k in ENVIRONMENT
            }

    def of_opcua(tree: YamlTree) -> dict[str, Any]:
        with Record(tree) as keys:
            users = keys.read("users", passwords, {})
            files = {
                key: keys.read(key, existing, None) for key in ("certificate", "key")
            }
        if len(set(map(bool, files.values()))) > 1:
            raise tree.refuse("certificate and key belong together")
        return {"users": users, **files}

    def passwords(tree: YamlTree) -> dict[str, str]:
        with Record(tree) as keys:
            return {name: text(child) for name, child in keys.remaining().items()}

    mqtt = dict[str, Any]()
    opcua = dict[str, Any]()
    if path is not None:
        remedy = "correct the line; docs/mqtt_and_opcua.md shows the file"
        with Record(YamlTree.read(path, InputError, remedy)) as keys:
            mqtt = keys.read("mqtt", of_mqtt, mqtt)
            opcua = keys.read("opcua", of_opcua, opcua)
    for key, variable in ENVIRONMENT.items():
        value = variables.get(variable) or None
        if not mqtt.get(key):
            mqtt[key] = value if value is None or key in _TEXTS else Path(value)
            if isinstance(mqtt[key], Path) and not mqtt[key].is_file():
                raise InputError(variable, f"{value} is not a file", "check the path")
    user, word = (variables.get(f"UR_ENERGY_OPCUA_{key.upper()}") for key in _TEXTS)
    if user and word:
        opcua["users"] = {user: word, **opcua.get("users", {})}
    if mqtt["password"] and not mqtt["username"]:
        raise InputError(path or ENVIRONMENT["password"], "has no username", "state both")
    return Credentials(MqttCredentials(**mqtt), OpcuaCredentials(**opcua))
