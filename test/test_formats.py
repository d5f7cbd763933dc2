# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Formats: a table of keys reads what it writes, refuses the rest, and explains itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ur_energy_model.codec import plain
from ur_energy_model.errors import InputError
from ur_energy_model.formats import UNKNOWN, Key, Section, rows, table_of
from ur_energy_model.forms import (
    ANY_TEXT,
    Constant,
    Covariance,
    Estimate,
    Estimated,
    Measured,
    Numbers,
    Scope,
    one_of,
)
from ur_energy_model.typing import Array
from ur_energy_model.yaml_nodes import Origin
from ur_energy_model.yaml_reader import Quantity, YamlTree

LENGTH = Quantity("m", 0, 10)


@dataclass
class Cart:
    """What the format of this test describes."""

    radius: float
    mass: Estimated
    load: Array
    places: Array
    covariance: Array
    note: str
    colour: str


CART = Section(
    Cart,
    (
        Key("kind", Constant("cart"), "what the file is"),
        Key("radius", Measured(LENGTH), "of the wheels"),
        Key("mass", Estimate(Quantity("kg", 0, 100)), "of all"),
        Key("load", table_of(Quantity("N", 0, 1e3), "<wheel>", "of a wheel"), "by wheel"),
        Key("places", Numbers(LENGTH, ("k", 2), unknown=np.nan), "of bolts", UNKNOWN),
        Key("covariance", Covariance(LENGTH, "2n"), "of loads"),
        Key("note", ANY_TEXT, "for people", default=""),
        Key("colour", one_of(("red", "blue")), "of the paint", "red", always=True),
    ),
)
CONTENT: dict[str, object] = {
    "kind": "cart",
    "radius": {"value": 0.5, "unit": "m"},
    "mass": {"value": 20.0, "unit": "kg", "std": 2.0, "source": "scales"},
    "load": {"unit": "N", "left": 100.0, "right": 90.0},
    "places": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "covariance": np.eye(4).tolist(),
    "colour": "red",
}


def scope() -> Scope:
    return Scope({"<wheel>": ("left", "right")}, {"n": 2})


def read(content: dict[str, object]) -> Cart:
    origin = Origin(Path("cart.yaml"), InputError, "correct the line")
    return CART.read(YamlTree.from_content(content, origin), scope())


def test_what_is_written_is_read() -> None:
    cart = read(CONTENT)
    assert cart.mass == Estimated(20.0, 2.0, "scales")
    assert cart.load.tolist() == [100.0, 90.0]
    assert cart.places.shape == (3, 2)
    assert plain(CART.write(cart, scope())) == CONTENT  # without the empty note
    cart.note = "squeaks"
    assert read(plain(CART.write(cart, scope()))).note == "squeaks"


def test_missing_keys_have_their_defaults() -> None:
    without = {
        name: value
        for name, value in CONTENT.items()
        if name not in ("places", "note", "colour")
    }
    cart = read(without)
    assert cart.places.shape == (0, 2)
    assert (cart.note, cart.colour) == ("", "red")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("kind", "car", "kind 'car' must be 'cart'"),
        ("radius", {"value": 0.5, "unit": "mm"}, "unit 'mm' must be 'm'"),
        ("radius", {"value": 0.5}, "'unit' is missing"),
        ("radius", {"value": 11, "unit": "m"}, "expected 0 to 10 m"),
        ("radius", {"value": 0.5, "unit": "m", "sdt": 1}, "unknown key 'sdt'"),
        ("radius", {"value": float("nan"), "unit": "m"}, "finite"),
        ("mass", {"value": -20, "unit": "kg", "std": 2, "source": "x"}, "negative"),
        ("load", {"unit": "N", "left": 1}, "'right' is missing"),
        ("load", {"unit": "N", "left": 1, "right": 1, "middle": 1}, "unknown key"),
        ("places", [[1, 2], [1]], "2 are needed"),
        ("covariance", np.eye(3).tolist(), "4 rows of 4"),
        ("covariance", np.diag([1, 1, 1, 0]).tolist()[::-1], "not a covariance"),
        ("colour", "blu", "did you mean 'blue'"),
        ("colours", "red", "did you mean 'colour'"),
    ],
)
def test_wrong_values_are_refused_with_their_key(
    key: str, value: object, problem: str
) -> None:
    content = {**CONTENT, key: value}
    if key == "colours":
        del content["colour"]
    with pytest.raises(InputError, match=problem) as error:
        read(content)
    assert key in str(error.value)


def test_a_fitted_value_may_have_the_wrong_sign_by_chance() -> None:
    mass = {"value": -5.0, "unit": "kg", "std": 2.0, "source": "scales"}
    assert read({**CONTENT, "mass": mass}).mass.value == -5.0


def test_the_reference_has_every_key() -> None:
    found = {row.key: row for row in rows(CART)}
    assert found["load.<wheel>"].content == "number, N"
    assert found["radius"].limits == "0 to 10"
    assert found["colour"].needed == "else red"
    assert found["note"].needed == "no"
    assert {key.name for key in CART.keys} <= found.keys()
