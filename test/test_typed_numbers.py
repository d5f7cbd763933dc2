# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What people type as numbers: the number to write instead, and payloads that arms can carry."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from test.absent_rooms import absent_rooms
from ur_energy_model.addresses import address_hint, is_address
from ur_energy_model.cli.listing import all_commands
from ur_energy_model.cli.options import options_of_tables
from ur_energy_model.cli.parser import command_tables
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import (
    OVERLOAD,
    available_robots,
    check_payload,
    load_robot,
)
from ur_energy_model.nodes.parameters import NODES
from ur_energy_model.options import Option
from ur_energy_model.typed_numbers import likely_form, number, right_form


@pytest.mark.parametrize(
    ("typed", "unit", "value"),
    [
        ("2m", "s", 120.0), ("60s", "s", 60.0), ("1h30m", "s", 5400.0), ("1:30", "s", 90.0),
        ("1:00:00", "s", 3600.0), ("2 min", "s", 120.0), ("500 ms", "s", 0.5), ("1d", "s", 86400.0),
        ("90s", "min", 1.5), ("2m 30s", "min", 2.5), ("1h", "min", 60.0), ("2w", "days", 14.0),
        ("500Hz", "Hz", 500.0), ("0,5 kHz", "Hz", 500.0), ("125 Hz", "Hz", 125.0),
        ("500g", "kg", 0.5), ("2kg", "kg", 2.0), ("0,5", "kg", 0.5), ("1 lb", "kg", 0.45359237),
        ("28ct", "price", 0.28), ("0,28", "price", 0.28), ("€0.28", "price", 0.28),
        ("28 ct/kWh", "price", 0.28), ("0.28 EUR/kWh", "price", 0.28), ("380 g/kWh", "kg", 0.38),
        ("90%", "share", 0.9), ("150 %", "share", 1.5), ("30cm", "m", 0.3),
        ("250 mm/s", "m/s", 0.25), ("1 GiB", "MB", 1073.741824),
        ("25°C", "degC", 25.0), ("1GB", "MB", 1000.0), ("500MB", "GB", 0.5), ("1.5kW", "W", 1500.0),
        ("90°", "deg", 90.0), ("1'000", "Hz", 1000.0), ("1,000,000", "", 1e6), ("0,5", "", 0.5),
    ],
)  # fmt: skip
def test_the_number_to_write_is_named(typed: str, unit: str, value: float) -> None:
    right = right_form(typed, unit)
    assert right is not None
    assert float(right) == pytest.approx(value)
    with pytest.raises(ValueError, match=f"write {right}"):
        number(float, 0.0, 1e9, unit)(typed)


@pytest.mark.parametrize(
    "typed", ["", "much", "5 bananas", "1:99:99:99", "2m of wire", "--", "€"]
)
def test_other_texts_are_not_guessed(typed: str) -> None:
    assert right_form(typed, "s") is None


def test_a_comma_that_may_separate_thousands_is_shown_both_ways() -> None:
    assert right_form("1,000", "Hz") == "1000, or 1.000"


@given(
    st.text(max_size=40),
    st.sampled_from(["", "s", "kg", "Hz", "price", "share", "m", "deg"]),
)
def test_any_text_has_a_finite_form_or_none(typed: str, unit: str) -> None:
    right = right_form(typed, unit)
    if right is not None:
        assert all(math.isfinite(float(each)) for each in right.split(", or "))


@pytest.mark.parametrize(
    ("value", "unit", "most", "words"),
    [
        (500.0, "kg", 15.0, "0.5 for 500 g"),
        (90.0, "share", 1.0, "0.9 for 90 %"),
        (250.0, "m/s", 20.0, "0.25 for 250 mm/s"),
        (50_000.0, "kg", 15.0, None),
        (20.0, "Hz", 10.0, None),
    ],
)
def test_a_number_in_a_smaller_unit_is_recognised(
    value: float, unit: str, most: float, words: str | None
) -> None:
    assert likely_form(value, unit, 0.0, most) == words


# Options of all commands and nodes.


def numeric_options() -> Iterator[Option]:
    for command in all_commands().values():
        for option in options_of_tables(command_tables(command)):
            if option.kind in (int, float):
                yield option


UNITS_TYPED = {
    "s": "2m", "min": "90s", "Hz": "500Hz", "kg": "500g", "price": "28ct", "share": "90%",
    "degC": "25 °C", "m/s": "250mm/s", "MB": "1GB", "m": "30cm", "rad/s^3": "500 deg/s^3",
}  # fmt: skip


def test_every_numeric_option_explains_its_unit() -> None:
    seen = set()
    for option in numeric_options():
        if not option.unit:
            continue
        text = UNITS_TYPED[option.unit]
        words = text if option.count == 1 else [text] * option.count
        with pytest.raises(ValueError, match="write"):
            option.read([words] if option.many else words)
        seen.add(option.unit)
    assert seen == set(UNITS_TYPED) or (absent_rooms() and seen < set(UNITS_TYPED))


def test_numbers_of_nodes_explain_their_unit() -> None:
    tried = 0
    for node in NODES.values():
        for entry in node:
            typed = {"s": "2m", "Hz": "500Hz", "W": "15W", "GB": "500MB", "days": "1d"}
            if entry.kind is float and entry.unit in typed:
                problem = entry.problem(typed[entry.unit])
                assert problem is not None
                assert "write" in problem
                with pytest.raises(ValueError, match="write"):
                    entry.parse(typed[entry.unit])
                tried += 1
    assert tried > 10


@pytest.mark.parametrize(
    ("typed", "host"),
    [
        ("http://192.168.0.10", "192.168.0.10"),
        ("rtde://robot.cell/", "robot.cell"),
        ("192.168.0.10:30004", "192.168.0.10"),
        ("http://192.168.0.10:80/x?y", "192.168.0.10"),
        ("[::1]:30004", "::1"),
    ],
)
def test_urls_and_ports_are_no_addresses(typed: str, host: str) -> None:
    assert not is_address(typed)
    assert f"write {host} " in address_hint(typed)


HOSTS = ("192.168.0.10", "robot", "robot-1.cell.local", "::1", "fe80::1%eth0")


@pytest.mark.parametrize("host", HOSTS)
def test_addresses_and_names_are_addresses(host: str) -> None:
    assert is_address(host)
    assert address_hint(host) == ""


@pytest.mark.parametrize(
    "host", ["", "192.168..10", "two words", "a/b", "me@robot", "1:2:3"]
)
def test_other_texts_are_no_addresses(host: str) -> None:
    assert not is_address(host)


# Payloads and prices, believed as far as they are possible.


@pytest.mark.parametrize("name", available_robots())
def test_a_payload_is_believed_as_far_as_an_arm_can_carry_it(name: str) -> None:
    robot = load_robot(name)
    if np.isnan(robot.max_payload):
        assert check_payload(robot, 500.0, "--payload") == ()
        return
    assert check_payload(robot, robot.max_payload, "--payload") == ()
    (warning,) = check_payload(robot, 1.5 * robot.max_payload, "--payload")
    assert f"{robot.max_payload:g} kg" in warning
    with pytest.raises(InputError, match="far more than"):
        check_payload(robot, 1.01 * OVERLOAD * robot.max_payload, "--payload")
    with pytest.raises(InputError, match=r"0\.5 for 500 g"):
        check_payload(robot, 500.0, "--payload")


@pytest.mark.parametrize(
    ("name", "kg"), [("ur3e", 3), ("ur5e", 5), ("ur10e", 12.5), ("ur16e", 16)]
)
def test_payloads_of_data_sheets(name: str, kg: float) -> None:
    assert load_robot(name).max_payload == kg


def test_prices_in_hundredths_are_refused() -> None:
    with pytest.raises(InputError, match=r"write 0\.28"):
        Tariff(28.0)
    assert Tariff(28.0, "JPY").price == 28.0
    assert Tariff(-0.05).price == -0.05  # there are negative prices
