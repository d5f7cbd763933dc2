# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""JSON of commands on fixed inputs: key paths with types, and values within a stated tolerance.

Tolerances were measured with the kernels of OpenBLAS for the oldest CPU and numpy without
AVX2, FMA and AVX-512. All but two commands stay within 1e-6; these have the reason beside
them.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from test.absent_rooms import needs_room
from test.contracts.bag_readers import by_mcap, by_rosbags
from test.contracts.golden import check, numbers, shape
from test.contracts.surface import FIXTURES, ur_energy

MODEL, WORK, EXCITATION = (
    FIXTURES / name for name in ("model.yaml", "work", "excitation")
)
MOTION = FIXTURES / "motion.csv"
STORE = "plant"
EXACT = 1e-6
FLOOR = 1e-9
CHANGING = (
    "seconds",
    "cpu_percent",
    "bytes",
    "version",
    "package_version",
    "date",
    "bound_gap",
)
"""Keys whose values differ between runs, versions or CPUs (the gap is 0 or what is left of it)."""


@dataclass(frozen=True)
class Run:
    """A command with --json.

    Attributes:
        words: of the command; names without a folder are of the folder that the test runs
            in.
        tolerance: of its numbers, relative; None where only its keys are a contract.
        store: whether the history store must be there.
        loose: wider tolerances of everything below a key.
    """

    words: tuple[object, ...]
    tolerance: float | None = EXACT
    store: bool = False
    loose: Mapping[str, float] = field(default_factory=dict)


RUNS: dict[str, Run] = {
    "inspect": Run(("inspect", WORK)),
    "import": Run(("import", FIXTURES / "recording.csv", "--robot", "ur5e", "-o", "imported")),
    "identify": Run(
        ("identify", EXCITATION, "--validate", WORK, "--friction", "power", "-o", "m.yaml")
    ),
    # what the data hardly determine ends where the optimizer stops
    "base_parameters": Run(
        ("base-parameters", EXCITATION), loose={"physically_consistent": 3e-3}
    ),
    "evaluate": Run(("evaluate", MODEL, WORK)),
    "estimate": Run(("estimate", MODEL, WORK, "--csv", "power.csv", "--bag", "energy")),
    "estimate_generic": Run(("estimate", WORK)),
    "predict": Run(("predict", MODEL, MOTION)),
    "predict_session": Run(("predict", MODEL, MOTION, "--session", WORK)),
    "payload": Run(("payload", MODEL, WORK)),
    "payload_empty": Run(("payload", MODEL, WORK, "--empty", EXCITATION)),
    # The optimum is flat: durations and energies on the curve vary by 3e-4 with the last bit
    # of a step of the search. Savings are differences.
    "optimize": Run(
        ("optimize", MODEL, WORK, "-o", "cheaper"),
        1e-3,
        loose={
            "saving_percent": 0.01,
            "saving_percent_interval": 0.01,
            "most_saving_percent": 0.01,
            "wall_most_saving_percent": 0.01,
        },
    ),
    "learn": Run(("learn", WORK, "--model", MODEL, "-o", "learned.yaml")),
    "report": Run(("report", MODEL, WORK, "-o", "report.html"), None),
    "excite_check": Run(("excite", "--check", FIXTURES / "trajectory.yaml")),
    "layouts": Run(("layouts", "--namespace", "cell1", "--tf-prefix", "left_", "-o", "layouts")),
    "history_add": Run(("history", "add", "new", WORK, "--model", MODEL, "--workers", "1")),
    "history_summary": Run(
        (*("history", "summary", STORE, "--tariff", "0.25", "--co2", "0.38"),
         *("--by", "day", "--by", "program")), store=True,
    ),
    "history_joints": Run(("history", "summary", STORE, "--by", "joint"), store=True),
    "history_health": Run(("history", "health", STORE), store=True),
    "history_export": Run(("history", "export", STORE, "-o", "out.csv"), store=True),
    "history_cycles": Run(
        ("history", "export", STORE, "-o", "cycles.csv", "--table", "cycles"), store=True
    ),
    "history_report": Run(("history", "report", STORE, "-o", "plant.html"), None, store=True),
}  # fmt: skip
WRITTEN_CSV = {
    "estimate": "power.csv", "optimize": "cheaper/pendant.csv",
    "history_export": "out.csv", "history_cycles": "cycles.csv",
}  # fmt: skip
"""Tables that a command writes: their columns, and the sum of each column of numbers."""
WRITTEN_BAG = {"estimate": "energy"}
"""Bags of energies: channels, schemas and type hashes as two other readers find them."""
WRITTEN_FOLDER = {"optimize": "cheaper", "layouts": "layouts"}
TABLES = ("seconds", "joint_seconds", "cycles", "health", "models")


def make_store(folder: Path) -> None:
    """A history store that is made now; the tests of files have one made before."""
    for bag, arm in ((WORK, ()), (EXCITATION, ("--arm", "second"))):
        words = (folder / STORE, bag, "--model", MODEL, "--workers", 1, *arm)
        assert ur_energy("history", "add", *words).code == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("values")


@pytest.fixture
def store(
    folder: Path, made_once: Callable[[str, Callable[[Path], object]], Path]
) -> Path:
    """The history store, a copy of which stands in the folder."""
    needs_room("plant")
    path = folder / STORE
    if not path.exists():
        shutil.copytree(made_once("history", make_store) / STORE, path)
    return path


@pytest.mark.parametrize("name", RUNS)
def test_json(
    name: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    run = RUNS[name]
    monkeypatch.chdir(folder)
    if run.store:
        request.getfixturevalue("store")
    found = ur_energy(*run.words, "--json").json
    check(f"keys/{name}", shape(found))
    if name in WRITTEN_BAG:
        check_energy_bag(folder / WRITTEN_BAG[name])
    if run.tolerance is None:
        return
    values = {"json": numbers(found, CHANGING)}
    if name in WRITTEN_CSV:
        values["table"] = column_sums(folder / WRITTEN_CSV[name])
    if name in WRITTEN_FOLDER:
        files = (folder / WRITTEN_FOLDER[name]).rglob("*.*")
        values["files"] = sorted(str(path.relative_to(folder)) for path in files)
    check(f"values/{name}", values, run.tolerance, FLOOR, run.loose)


def check_energy_bag(bag: Path) -> None:
    """Two readers find the same numbers of messages, and the topics of the contract."""
    mcap = by_mcap(bag)
    rosbags = by_rosbags(bag)
    assert mcap.counts == rosbags.counts
    kinds = {name: mcap.topics[name] | rosbags.topics[name] for name in mcap.topics}
    check("energy_bag", kinds)


def column_sums(path: Path) -> dict[str, object]:
    """Sum of each column of numbers of a CSV file by its heading, and the number of rows."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    sums: dict[str, object] = {"rows": len(rows)}
    for name in rows[0]:
        sums[name] = "text"
        with suppress(ValueError):
            sums[name] = sum(float(row[name]) for row in rows)
    return sums


def test_columns_of_the_history(store: Path) -> None:
    """What queries of users rely on."""
    query = " UNION ALL ".join(
        f"SELECT '{table}' AS name, column_name, column_type FROM (DESCRIBE {table})"
        for table in TABLES
    )
    answer = ur_energy("history", "sql", store, query, "--json").json
    found: dict[str, dict[str, str]] = {table: {} for table in TABLES}
    for row in answer["rows"]:
        found[row["name"]][row["column_name"]] = row["column_type"]
    check("history_tables", found)
