"""Addresses of controllers."""

import pytest

from ur_energy_model.telemetry.rtde.address import is_address


@pytest.mark.parametrize(
    "text", ["192.168.0.10", "::1", "fe80::1%eth0", "robot", "ur-5e.cell.local"]
)
def test_addresses_and_names_are_accepted(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize(
    "text", ["", " ", "192.168..10", "robot 1", "a" * 64 + ".local", "\x1b[2J", "a\n", "x" * 300]
)
def test_what_cannot_be_an_address_is_refused(text: str) -> None:
    assert not is_address(text)
