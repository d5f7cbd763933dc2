# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Users and certificate of OPC UA servers: section `opcua` of the file of credentials."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ur_energy_model.sinks.credentials import existing_file, read_section
from ur_energy_model.sinks.opcua.room import OPCUA
from ur_energy_model.yaml_reader import Record, YamlTree, text

USERNAME = "UR_ENERGY_OPCUA_USERNAME"
PASSWORD = "UR_ENERGY_OPCUA_PASSWORD"
"""Variables of the environment that add one user to the users of the file."""


@dataclass(frozen=True)
class OpcuaCredentials:
    """Whom a server lets in, and what it shows to clients.

    Attributes:
        users: passwords by user name.
        certificate: certificate of the server (DER or PEM); None to make one at the first
            start.
        key: private key of the certificate (PEM); both are stated, or neither.
    """

    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: Path | None = None
    key: Path | None = None


def read_credentials(
    path: Path | None, environment: Mapping[str, str] | None = None
) -> OpcuaCredentials:
    """Credentials of a file, and the user of the environment if the file lacks it.

    Args:
        path: file of credentials; None for the environment only.
        environment: variables USERNAME and PASSWORD; None for os.environ.

    Raises:
        InputError: the file cannot be used, or a certificate or key without the other.
    """
    variables = os.environ if environment is None else environment
    found = OpcuaCredentials()
    if path is not None:
        found = read_section(path, str(OPCUA.secrets), _stated, found)
    username = variables.get(USERNAME)
    password = variables.get(PASSWORD)
    if username and password:
        found = replace(found, users={username: password, **found.users})
    return found


def _stated(section: YamlTree) -> OpcuaCredentials:
    """Credentials that a section states.

    Raises:
        InputError: a key is wrong, or a certificate or key without the other.
    """
    with Record(section) as keys:
        users = keys.read("users", _passwords, {})
        certificate = keys.read("certificate", existing_file, None)
        key = keys.read("key", existing_file, None)
    if (certificate is None) != (key is None):
        raise section.refuse("certificate and key belong together")
    return OpcuaCredentials(users, certificate, key)


def _passwords(users: YamlTree) -> dict[str, str]:
    """Passwords by user name."""
    with Record(users) as keys:
        return {name: text(password) for name, password in keys.remaining().items()}
