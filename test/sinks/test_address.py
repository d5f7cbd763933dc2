"""Addresses of sinks: loopback unless opened."""

from __future__ import annotations

import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.sinks.options import Address, listening_address


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
