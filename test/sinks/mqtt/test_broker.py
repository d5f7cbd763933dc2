"""URLs of brokers."""

from __future__ import annotations

import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.sinks.mqtt import broker_of


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mqtt://127.0.0.1", "mqtt://127.0.0.1:1883"),
        ("mqtt://localhost:2000/", "mqtt://localhost:2000"),
        ("mqtts://broker.example", "mqtts://broker.example:8883"),
        ("mqtts://[::1]:1", "mqtts://[::1]:1"),
    ],
)
def test_urls(url: str, expected: str) -> None:
    assert str(broker_of("--mqtt", url, allow_network=False)) == expected


@pytest.mark.parametrize(
    "url",
    ["", "broker", "http://broker", "mqtt://", "mqtt://b:x", "mqtt://b:70000", "mqtt://b/topic"],
)
def test_what_is_no_broker_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="mqtt://HOST"):
        broker_of("--mqtt", url, allow_network=True)


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(InputError, match="UR_ENERGY_MQTT_PASSWORD") as refused:
        broker_of("--mqtt", "mqtts://me:secret@broker", allow_network=True)
    assert "secret" not in str(refused.value)


def test_unencrypted_readings_leave_the_machine_only_with_permission() -> None:
    with pytest.raises(InputError, match="mqtts://"):
        broker_of("--mqtt", "mqtt://broker.example", allow_network=False)
    assert not broker_of("--mqtt", "mqtt://broker.example", allow_network=True).tls
