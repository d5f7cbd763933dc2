"""SinkOptions: which sinks to run, the same for `ur_energy live` and for the node's parameters."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ur_energy_model.errors import InputError
from ur_energy_model.files import user_path
from ur_energy_model.yaml_reader import Record, YamlTree, text

READINGS_PER_SECOND = 10.0
"""Default rate of readings [Hz]."""


@dataclass(frozen=True)
class SinkOptions:
    """Sinks as the user states them; each tuple may be empty.

    Attributes:
        foxglove: ADDRESS:PORT of Foxglove servers.
        foxglove_origins: further sites whose pages may connect to Foxglove servers; "*" for all.
        mcap: files that get what the Foxglove server sends.
        prometheus: ADDRESS:PORT of metrics servers.
        mqtt: URLs of brokers, mqtt:// or mqtts://; no credentials in them.
        opcua: URLs of OPC UA servers, opc.tcp://.
        rate: of readings [Hz].
        allow_network: listen on addresses other than loopback.
        credentials: YAML file with user names, passwords and certificates of sinks; None to use
            environment variables only.
        mqtt_group, mqtt_node: of Sparkplug topics.
        mqtt_json: also publish plain JSON topics.
    """

    foxglove: tuple[str, ...] = ()
    foxglove_origins: tuple[str, ...] = ()
    mcap: tuple[Path, ...] = ()
    prometheus: tuple[str, ...] = ()
    mqtt: tuple[str, ...] = ()
    opcua: tuple[str, ...] = ()
    rate: float = READINGS_PER_SECOND
    allow_network: bool = False
    credentials: Path | None = None
    mqtt_group: str = "ur_energy"
    mqtt_node: str = "estimator"
    mqtt_json: bool = False


# Addresses on which sinks listen: loopback unless the user opens them.


@dataclass(frozen=True)
class Address:
    """Where a server listens.

    Attributes:
        host: IPv4 or IPv6 address, or localhost.
        port: 0 for a free one.
    """

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def listening_address(
    option: str, text: str, *, port: int, allow_network: bool, host: str = "127.0.0.1"
) -> Address:
    """The address that a user states for a server.

    Args:
        option: that states it, for messages.
        text: ADDRESS:PORT, :PORT, ADDRESS or nothing.
        port: default.
        allow_network: whether addresses other than loopback may be used.
        host: default.

    Raises:
        InputError: no such address or port, or not a loopback one without allow_network.
    """
    name, colon, digits = text.rpartition(":")
    if not colon or text.endswith("]"):
        name, digits = text, ""
    name = name.removeprefix("[").removesuffix("]") or host
    if digits and not (digits.isdecimal() and int(digits) <= 65535):
        raise InputError(option, f"'{text}' has no valid port", "state ADDRESS:PORT, 0 to 65535")
    if name != "localhost":
        try:
            ipaddress.ip_address(name)
        except ValueError:
            raise InputError(
                option, f"'{name}' is not an IP address", "state ADDRESS:PORT"
            ) from None
    address = Address(name, int(digits) if digits else port)
    if not (address.is_loopback or allow_network):
        raise InputError(
            option,
            f"{address} can be reached from other machines",
            "use 127.0.0.1, or permit it with --allow-network",
        )
    return address


# User names, passwords and certificates of sinks, from a YAML file or the environment.
#
# They are never on the command line, where every user of the machine reads them.

ENVIRONMENT: dict[str, str] = {
    "username": "UR_ENERGY_MQTT_USERNAME",
    "password": "UR_ENERGY_MQTT_PASSWORD",
    "ca": "UR_ENERGY_MQTT_CA",
    "certificate": "UR_ENERGY_MQTT_CERTIFICATE",
    "key": "UR_ENERGY_MQTT_KEY",
}
"""Variables that are used where the file does not state a key of `mqtt`."""
OPCUA_USERNAME, OPCUA_PASSWORD = "UR_ENERGY_OPCUA_USERNAME", "UR_ENERGY_OPCUA_PASSWORD"
"""Variables of one more OPC UA user."""
_REMEDY = "correct the line; docs/mqtt_and_opcua.md and docs/mqtt_and_opcua.md show the file"


@dataclass(frozen=True)
class MqttCredentials:
    """How a broker is told who we are, and how we know the broker.

    Attributes:
        username, password: None for an anonymous connection.
        ca: certificates that may sign the broker's, None for those of the system.
        certificate, key: our own, where the broker asks for them.
    """

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class OpcuaCredentials:
    """Who may use the OPC UA server, and how clients know it.

    Attributes:
        users: passwords by user name.
        certificate, key: of the server; None to make them at the first start.
    """

    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class Credentials:
    """Those of all sinks."""

    mqtt: MqttCredentials = MqttCredentials()
    opcua: OpcuaCredentials = field(default_factory=OpcuaCredentials)


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
    known: dict[str, str] = {}
    opcua = OpcuaCredentials()
    if path is not None:
        tree = YamlTree.read(path, InputError, _REMEDY)
        with Record(tree) as keys:
            known = keys.read("mqtt", lambda node: _mqtt(node, path.parent), {})
            opcua = keys.read("opcua", lambda node: _opcua(node, path.parent), opcua)
    given = {key: known.get(key) or variables.get(name) for key, name in ENVIRONMENT.items()}
    if variables.get(OPCUA_USERNAME) and variables.get(OPCUA_PASSWORD):
        user = {variables[OPCUA_USERNAME]: variables[OPCUA_PASSWORD]}
        opcua = replace(opcua, users={**user, **opcua.users})
    mqtt = MqttCredentials(
        given["username"],
        given["password"],
        *(_file(ENVIRONMENT[key], given[key]) for key in ("ca", "certificate", "key")),
    )
    if mqtt.password is not None and mqtt.username is None:
        raise InputError(path or ENVIRONMENT["password"], "has no username", "state both")
    return Credentials(mqtt, opcua)


def _mqtt(tree: YamlTree, folder: Path) -> dict[str, str]:
    with Record(tree) as keys:
        out = {key: keys.read(key, text, "") for key in ("username", "password")}
        for key in ("ca", "certificate", "key"):
            child = keys.get(key)
            if child is not None:
                out[key] = str(_existing(child, folder))
    return out


def _opcua(tree: YamlTree, folder: Path) -> OpcuaCredentials:
    with Record(tree) as keys:
        users = keys.read("users", _passwords, {})
        certificate, key = (
            None if child is None else _existing(child, folder)
            for child in (keys.get("certificate"), keys.get("key"))
        )
    if (certificate is None) != (key is None):
        raise tree.refuse("certificate and key belong together")
    return OpcuaCredentials(users, certificate, key)


def _passwords(tree: YamlTree) -> dict[str, str]:
    with Record(tree) as keys:
        return {name: text(child) for name, child in keys.remaining().items()}


def _existing(tree: YamlTree, folder: Path) -> Path:
    path = folder / user_path(text(tree))
    if not path.is_file():
        raise tree.refuse(f"{path} is not a file")
    return path


def _file(variable: str, name: str | None) -> Path | None:
    if not name:
        return None
    path = Path(name)
    if not path.is_file():
        raise InputError(variable, f"{path} is not a file", "check the path")
    return path
