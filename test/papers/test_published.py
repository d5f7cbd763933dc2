# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Every number of the table of published values stands in its source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ur_energy_model.identification.base_parameters import FullRegressor, raviola_base
from ur_energy_model.model.robots import load_robot
from ur_energy_model.papers.published import (
    Paper,
    PublishedItem,
    PublishedRow,
    paper,
    papers,
)
from ur_energy_model.papers.s0_inertia import cylinder_tensors

SOURCES = Path(__file__).resolve().parents[3] / "shared" / "sources"
FILES = {
    "s0": "S0_clochiatti_2024_robotica.txt",
    "s1": "S1_raviola_2021_raad.txt",
    "s2": "S2_ecbot.txt",
    "s3": "S3_ur5_slides.txt",
    "s4": "S4_machines_2024.txt",
}
DERIVED = {
    *(("s1", key) for key in ("limits", "ranges")),  # multiples of pi
    # Counted in words or by a list, the mean of Table 7, and 209.96 over 213.42.
    *(
        ("s4", key)
        for key in ("base_parameters", "inertial", "harmonics", "mean_difference")
    ),
    *(("s4", key) for key in ("load_ratio", "payload_ratio")),
}


def numbers(value: Any) -> Iterator[float]:
    """The numbers in a value, signs left out."""
    match value:
        case bool() | None:
            return
        case int() | float():
            yield abs(float(value))
        case list() | tuple() | dict():
            for each in value.values() if isinstance(value, dict) else value:
                yield from numbers(each)
        case str():
            yield from (float(each) for each in re.findall(r"\d+\.?\d*", value))


def published(paper: Paper) -> Iterator[tuple[str, float]]:
    """Names and numbers of all rows and inputs of a paper."""
    for item in paper.items:
        for key, row in item.rows.items():
            if (paper.key, key) not in DERIVED:
                yield from ((key, each) for each in numbers(row.published))
    for key, value in paper.inputs.items():
        if not isinstance(value, str):
            yield from ((key, each) for each in numbers(value))


def spellings(number: float) -> set[str]:
    """How a number may be printed: plainly, with digits more, or as mantissa of a power of ten."""
    mantissa = f"{number:.6e}".partition("e")[0]
    exact = {
        text for digits in range(6) if float(text := f"{number:.{digits}f}") == number
    }
    short = {f"{number:g}", f"{1e3 * number:g}", f"{number / 1e3:g}e^3", repr(number)}
    power = {f"{number * 10**k:g}" for k in (3, 4, 5)} if number < 0.01 else set[str]()
    return exact | short | power | {mantissa.rstrip("0").rstrip(".")}


@pytest.mark.parametrize("own", papers(), ids=lambda own: own.key)
def test_published_numbers_stand_in_their_source(own: Paper) -> None:
    source = SOURCES / FILES[own.key]
    if not source.is_file():
        pytest.skip("the sources are not beside the checkout")
    text = source.read_text(encoding="utf-8").replace(",", "").replace("\u2212", "-")
    text = re.sub(r"(?<=\d)[ \u00a0](?=000)", "", text)
    missing = [
        (key, number)
        for key, number in published(own)
        if number and not any(each in text for each in spellings(number))
    ]
    assert not missing


GIVEN = "the simulator draws it within 3 %"


@pytest.mark.parametrize(
    ("row", "here", "simulated", "verdict"),
    [
        ({"tolerance": 0.1}, 2.1, True, "agrees; another arm"),
        ({"tolerance": 0.1}, 2.3, True, "differs; another arm"),
        ({"tolerance": 0.1, "given": GIVEN}, 2.1, True, f"recovered: {GIVEN}"),
        ({"tolerance": 0.1, "given": GIVEN}, 2.3, True, "differs; another arm"),
        # A real arm is given nothing.
        ({"tolerance": 0.1, "given": GIVEN}, 2.1, False, "agrees; another arm"),
        (
            {"tolerance": 0.5, "given": GIVEN},
            2.1,
            True,
            f"recovered within ±50 %: {GIVEN}",
        ),
        ({"within": (2.0, 3.0), "given": GIVEN}, 3.0, True, f"recovered: {GIVEN}"),
        ({"given": GIVEN}, 2.0, True, "see text"),
        ({"tolerance": 0.1, "given": GIVEN}, None, True, "not obtained"),
        ({"tolerance": 0.1, "given": GIVEN, "input": True}, 2.0, True, "input"),
        ({"published": None, "given": GIVEN}, 2.0, True, "not published"),
    ],
)
def test_a_number_that_was_given_is_recovered(
    row: dict[str, Any], here: float | None, simulated: bool, verdict: str
) -> None:
    content: dict[str, Any] = {"published": 2.0, "differs": ("arm",)} | row
    published = PublishedRow("a number", **content)
    item = PublishedItem("Table I", "numbers", rows={"number": published})
    own = Paper("s1", "A paper", "Somebody", (item,), simulated=simulated)
    assert own.row("number", here).verdict == verdict


def test_what_is_drawn_is_given() -> None:
    """Every number that the simulator is known to draw or to share with the paper."""
    given = {
        (own.key, key)
        for own in papers()
        for item in own.items
        for key, row in item.rows.items()
        if row.given
    }
    drawn = {
        "s0": ("torque_constant_large_joints", "torque_constant_wrists"),
        "s1": ("torque_constants", "unchanged", "normalised_error"),
        "s2": ("rmse", "r2", "dynamics_rmse"),
        "s3": ("rest_error", "coefficient_0"),
        "s4": (
            *("link_recovered", "largest_difference", "noteworthy"),
            *("calibrated", "mean_difference", "load_torque_estimated", "load_ratio"),
            *("coulomb", "viscous", "payload_ratio"),
        ),
    }
    for own, keys in drawn.items():
        assert {(own, key) for key in keys} <= given


def test_limits_and_the_contradiction_of_rms_and_r2() -> None:
    """RMS 0.020 A with R2 0.985 belongs to a deviation of 0.16 A."""
    s0, s1, _, _, s4 = papers()
    np.testing.assert_allclose(s1["limits"], [np.pi, 5.5 * np.pi], rtol=1e-6)
    assert s4["max_acceleration"] == [120.0, 120.0, 120.0, 180.0, 270.0, 270.0]
    deviation = s0["current_limits"]["large_joints"] / np.sqrt(1 - 0.985)
    assert any(f"{deviation:.2f} A" in each.text for each in s0.errata)


def test_table_9_of_s4_against_table_5() -> None:
    s4 = paper("s4")
    theirs = np.array(s4["identified"])
    simulated = np.array(s4["theoretical"])
    own = simulated != 0
    ratio = theirs[own] / simulated[own]
    assert (np.abs(ratio).min(), np.abs(ratio).max()) == pytest.approx(
        (0.01276, 671.1), rel=1e-3
    )
    assert int((ratio < 0).sum()) == 7
    found = dict(zip(s4["base_names"], theirs, strict=True))
    assert abs(found["Ixx_6"]) > found["Izz_6"]  # Ixx - Iyy: impossible for a body


def test_the_base_of_s1_is_in_the_order_of_the_paper() -> None:
    """36 inertial, 6 + 6 of friction, 4 motor inertias; independent, and as many as the rank.

    A planar arm has fewer: the number belongs to the arm.
    """
    robot = load_robot("ur5")
    gravity = np.array([0.0, 0.0, -9.81])
    planar = replace(robot, alpha=np.zeros(robot.dof))
    assert len(raviola_base(FullRegressor(planar, gravity))) < 52
    regressor = FullRegressor(robot, gravity)
    names = raviola_base(regressor)
    kinds = [name.split("_")[0] for name in names]
    assert kinds[36:] == ["fc"] * 6 + ["fv"] * 6 + ["Ja"] * 4
    random = np.random.default_rng(1)
    q, qd, qdd = random.uniform(-3, 3, (3, 200, 6))
    columns = regressor(q, qd, qdd).stacked
    chosen = columns[:, [regressor.names.index(name) for name in names]]
    assert (
        np.linalg.matrix_rank(chosen)
        == np.linalg.matrix_rank(columns)
        == len(names)
        == 52
    )


def test_the_cylinders_of_a_link() -> None:
    """Wrist 3 is one cylinder: m r^2 / 2 about its axis, m (3 r^2 + l^2) / 12 across."""
    robot = load_robot("ur5e")
    radius = 0.045
    mass = robot.mass[~robot.fixed]
    tensors = cylinder_tensors(robot)
    across = mass[5] * (3 * radius**2 + (2 * radius) ** 2) / 12
    np.testing.assert_allclose(
        np.diag(tensors[5]), [across, across, mass[5] * radius**2 / 2]
    )
    for tensor in tensors:
        values = np.linalg.eigvalsh(tensor)
        assert values[0] > 0
        assert values[2] <= values[0] + values[1]
