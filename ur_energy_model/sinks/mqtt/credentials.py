# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Credentials for MQTT brokers, from a file (section `mqtt`) or the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ur_energy_model.errors import InputError
from ur_energy_model.sinks.credentials import existing_file, read_section
from ur_energy_model.sinks.mqtt.room import MQTT
from ur_energy_model.yaml_reader import Record, YamlTree, text

VARIABLE = "UR_ENERGY_MQTT_"
"""Beginning of the variables that are used where the file does not state a key."""
TEXTS = ("username", "password")
FILES = ("ca", "certificate", "key")


@dataclass(frozen=True)
class MqttCredentials:
    """Credentials for a broker; the default is an anonymous connection.

    Attributes:
        username: name of the user; None for none.
        password: never without a user name.
        ca: certificates (PEM) that may sign the certificate of the broker; None for the
            certificates of the system.
        certificate: our own (PEM), where the broker requires one.
        key: private key of our own certificate (PEM).
    """

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


def read_credentials(
    path: Path | None, environment: Mapping[str, str] | None = None
) -> MqttCredentials:
    """Credentials of a file, completed from the environment key by key.

    Args:
        path: file of credentials; None for the environment only.
        environment: variables such as UR_ENERGY_MQTT_PASSWORD; None for os.environ.

    Raises:
        InputError: the file cannot be used, a certificate is missing, or a password has
            no user name.
    """
    variables = os.environ if environment is None else environment
    stated: dict[str, str | Path] = {}
    if path is not None:
        stated = read_section(path, str(MQTT.secrets), _stated, stated)
    values = {**_from_environment(variables), **stated}
    if "password" in values and "username" not in values:
        place = path or f"{VARIABLE}PASSWORD"
        raise InputError(place, "has no username", "state both")
    return MqttCredentials(**values)  # type: ignore[arg-type]


def _stated(section: YamlTree) -> dict[str, str | Path]:
    """Values of the keys that a section states, empty texts left out."""
    found: dict[str, str | Path] = {}
    with Record(section) as keys:
        for key in (*TEXTS, *FILES):
            child = keys.get(key)
            if child is None:
                continue
            value = text(child) if key in TEXTS else existing_file(child)
            if value:
                found[key] = value
    return found


def _from_environment(variables: Mapping[str, str]) -> dict[str, str | Path]:
    """Values of the keys that the environment states."""
    found: dict[str, str | Path] = {}
    for key in (*TEXTS, *FILES):
        variable = f"{VARIABLE}{key.upper()}"
        value = variables.get(variable)
        if not value:
            continue
        if key in FILES and not Path(value).is_file():
            raise InputError(variable, f"{value} is not a file", "check the path")
        found[key] = value if key in TEXTS else Path(value)
    return found
