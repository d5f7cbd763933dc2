"""Options of `ur_energy excite` as a design request."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.cli.excite import request_of
from ur_energy_model.cli.main import build_parser
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.design_problem import DesignRequest


def request(*arguments: str) -> DesignRequest:
    return request_of(build_parser().parse_args(["excite", "--robot", "ur5e", *arguments]), "ur5e")


@pytest.mark.parametrize("words", [("1.5", "0", "0", "0.1"), ("1.5,0,0,0.1",)])
def test_payload_with_its_centre(words: tuple[str, ...]) -> None:
    payload = request("--payload", *words).setup.payload
    assert payload.mass == 1.5
    assert np.array_equal(payload.center_of_mass, [0, 0, 0.1])


def test_wall_normals_are_normalised() -> None:
    table, wall = request("--table", "0.1", "--wall", "-2", "0", "0", "-1.2").walls
    assert (table.name, table.offset) == ("table", 0.1)
    assert np.array_equal(wall.normal, [-1, 0, 0])
    assert wall.offset == pytest.approx(-0.6)


def test_tool_length_includes_its_rounded_end() -> None:
    (tool,) = request("--tool", "0.2", "0.05").tool
    assert tool.radius == 0.05
    assert tool.end[2] + tool.radius == pytest.approx(0.2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--tool-speed", "0"),
        ("--period", "1e-300"),
        ("--wall", "0", "0", "0", "1"),
    ],
)
def test_impossible_values_are_refused_by_option(arguments: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=arguments[0]):
        request(*arguments)
