"""Plans from CSV files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.trajectory.plan import Plan, read_plan

NAMES = load_robot("ur5e").joint_names


def plan() -> Plan:
    """Five points with velocities."""
    random = np.random.default_rng(1)
    return Plan(np.linspace(0.0, 2.0, 5), random.random((5, 6)), random.random((5, 6)))


def write(path: Path, header: list[str], rows: np.ndarray) -> Path:
    lines = [",".join(header), *(",".join(map(repr, map(float, row))) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("stem", ["q", "target_q", "actual_q"])
def test_a_csv_file_is_read(tmp_path: Path, stem: str) -> None:
    planned = plan()
    assert planned.qd is not None
    header = ["time", *(f"{stem}_{i}" for i in range(6)), *(f"qd_{i}" for i in range(6)), "note"]
    rows = np.column_stack([planned.time, planned.q, planned.qd, np.zeros(5)])
    read = read_plan(write(tmp_path / "t.csv", header, rows), NAMES)
    assert read.q == pytest.approx(planned.q)
    assert read.qd == pytest.approx(planned.qd)
    assert read.qdd is None


def test_a_csv_file_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    planned = plan()
    header = ["time", *(f"q_{i}" for i in range(6))]
    path = write(tmp_path / "t.csv", header, np.column_stack([planned.time, planned.q]))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_plan(path, NAMES).q == pytest.approx(planned.q)


def test_positions_may_be_named_by_joint(tmp_path: Path) -> None:
    planned = plan()
    path = write(tmp_path / "t.csv", ["t", *NAMES], np.column_stack([planned.time, planned.q]))
    assert read_plan(path, NAMES).q == pytest.approx(planned.q)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "time: is missing"),
        ("time,q_0\n0,1\n", "q_0: is missing"),
        ("time,q_0,q_1,q_2,q_3,q_4,q_5\n0,1\n", "line 2 has 2 columns"),
        ("time,q_0,q_1,q_2,q_3,q_4,q_5\n0,0,0,x,0,0,0\n", "q_2: holds something"),
        ("time,q_0,q_1,q_2,q_3,q_4,q_5\n", "two points"),
    ],
)
def test_unusable_csv_files_are_refused_with_the_reason(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=problem) as refusal:
        read_plan(path, NAMES)
    assert str(path) in str(refusal.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_plan(tmp_path / "none.csv", NAMES)
