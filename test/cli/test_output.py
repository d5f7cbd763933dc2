"""Tables as they are printed where there is no terminal."""

from __future__ import annotations

from test.cli.conftest import Capture
from ur_energy_model.cli.output import WIDTH, print_table
from ur_energy_model.telemetry.bag.layout import JOINT_NAMES


def test_numbers_of_a_wide_table_are_whole(capsys: Capture) -> None:
    headings = ["arm", "joint", "kWh", "standby %", "idle %", "motion %", "hours", "EUR", "kg CO2"]
    numbers = [0.0004589, 44.14, 5.765, 94.23, 0.009856, 8.246e-05, 0.0001649]
    rows = [["ur10e", "shoulder lift", *numbers], ["ur3e", "elbow", *numbers]]
    print_table("energy", headings, rows)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= WIDTH
    for number in numbers:
        assert out.count(f"{number:.4g}") == 2
    assert all(word in out.split() for word in ("ur10e", "ur3e", "standby", "CO2"))


def test_long_headings_of_numbers_are_broken_at_underscores(capsys: Capture) -> None:
    angles = [f"{-100.25 - j:.2f}" for j in range(6)]
    print_table("waypoints", ["step", *JOINT_NAMES], [["1", *angles]])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert any(line.split()[-6:] == angles for line in lines)
