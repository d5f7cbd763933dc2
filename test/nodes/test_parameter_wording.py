"""Errors in the terms of a node."""

from __future__ import annotations

import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.nodes.managed_node import explain


@pytest.mark.parametrize(
    ("text", "node", "wanted"),
    [
        ("--friction: unknown law", "identification", "friction: unknown law"),
        ("check --robot and the address", "logger", "check robot_model and the address"),
        ("check --host; or --wait longer", "logger", "check robot_ip; or --wait longer"),
        (
            "use a model (identify: --robot ur5e)",
            "estimator",
            "use a model (identify: --robot ur5e)",
        ),
        (
            "try ur_energy record --host X, or --host Y",
            "logger",
            "try ur_energy record --host X, or robot_ip Y",
        ),
        ("set --friction", "logger", "set --friction"),
        ("free address with --host", "simulated_robot", "free address with host"),
        (
            "--mqtt: permit it with --allow-network",
            "estimator",
            "mqtt: permit it with allow_network",
        ),
        ("a -- b --no c--robot", "logger", "a -- b --no c--robot"),
    ],
)
def test_options_become_parameters(text: str, node: str, wanted: str) -> None:
    assert explain(text, node) == wanted


def test_errors_become_text() -> None:
    error = InputError("m.yaml", "is empty", "set --model")
    assert explain(error, "estimator") == "m.yaml: is empty; set model_file"
