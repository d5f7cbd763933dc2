"""The line about a model: age, origin and held-out errors."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from test.energy.known_arm import known_model
from ur_energy_model.nodes.estimator_health import model_line
from ur_energy_model.nodes.lines import Level

PATH = Path("model.yaml")
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)
MADE = {
    "date": "2026-11-12T00:00:00+00:00",
    "serial": "20195599999",
    "bags": [{"path": "a"}, {"path": "b"}],
}
HELD_OUT = ({"power": {"rmse": 2.31, "energy_error_percent": -1.2}}, {"power": None})


def test_age_origin_and_held_out_errors_are_told() -> None:
    line = model_line(PATH, replace(known_model(), provenance=MADE, validation=HELD_OUT), NOW)
    assert line.level is Level.INFO
    assert line.text == (
        "model model.yaml: ur5e, serial 20195599999, identified on 2026-11-12 (10 days ago) from "
        "2 recordings, held-out power within 2.3 W rms and energy within 1.2 % (1 recording)"
    )


def test_an_old_model_is_a_warning() -> None:
    old = {**MADE, "date": "2025-01-01T00:00:00+00:00"}
    line = model_line(PATH, replace(known_model(), provenance=old), NOW)
    assert line.level is Level.WARN
    assert "check it against a new recording" in line.text


def test_a_model_that_says_nothing_about_itself() -> None:
    for odd in ({}, {"date": "yesterday", "bags": 3, "serial": None}):
        line = model_line(PATH, replace(known_model(), provenance=odd, validation=()), NOW)
        assert "date and recordings unknown, not checked on held-out recordings" in line.text


@pytest.mark.parametrize(
    ("entry", "counts"),
    [
        ({"motion": "held out", "serials": {"model": "1", "recording": "1"}}, True),
        ({"motion": "same motion again"}, False),
        ({"motion": "fitted"}, False),
        ({"motion": "held out", "serials": {"model": "1", "recording": "2"}}, False),
    ],
)
def test_only_other_motions_of_the_arm_are_held_out(entry: dict[str, object], counts: bool) -> None:
    validation = ({**HELD_OUT[0], **entry},)
    line = model_line(PATH, replace(known_model(), provenance=MADE, validation=validation), NOW)
    assert ("held-out power" in line.text) == counts
