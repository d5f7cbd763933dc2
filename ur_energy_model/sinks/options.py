"""SinkOptions: which sinks to run, the same for `ur_energy live` and for the node's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
