"""Command lines of nodes, as the demo starts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ur_energy_model.nodes.launch_arguments import node_command


def test_values_are_written_as_yaml() -> None:
    command = node_command(
        "logger",
        {"robot_ip": "127.0.0.2", "record": True, "fields": ["actual_q", "it's"]},
        namespace="/cell",
    )
    assert Path(command[0]).is_file()
    assert "robot_ip:='127.0.0.2'" in command
    assert "record:=true" in command
    assert "fields:=['actual_q', 'it''s']" in command
    assert "__ns:=/cell" in command


def test_unknown_parameters_and_values_are_refused() -> None:
    with pytest.raises(KeyError, match="no parameter"):
        node_command("logger", {"robot": "x"})
    with pytest.raises(ValueError, match="source must be one of"):
        node_command("estimator", {"source": "serial"})
