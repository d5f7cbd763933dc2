"""METRICS as JSON."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ur_energy_model.identification.evaluation import Metrics

KEYS = [
    "bag",
    "samples",
    "torque",
    "current",
    "current_all",
    "power",
    "power_from_motion",
    "motion_energy_error_percent",
    "cutoff",
    "duration",
    "current_interval",
    "current_interval_all",
    "session",
    "motion",
    "warnings",
    "serials",
]


def test_json_keys() -> None:
    values: dict[str, Any] = {field.name: None for field in fields(Metrics)} | {
        "bag": "bag",
        "cutoff": 4.0,
    }
    content = Metrics(**values).as_json()
    assert list(content) == KEYS
    assert content["power"] is None
    assert content["cutoff"] == 4.0
