# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What reviewers of ROS packages look for: the linters of ament, or their equals.

`make test` runs ruff, whose rules E, F, W and D are those of flake8 and pydocstyle.
`colcon test` runs what is installed of them. What flake8 and ruff judge differently is
left to ruff (setup.cfg).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("ur_energy_model", "launch", "test", "tools", "examples", "docs")
COPYRIGHT = "Copyright 2026 ur_energy_model maintainers"
LICENSE = "SPDX-License-Identifier: Apache-2.0"
SOURCES = {".py", ".js", ".cjs", ".css"}
PEP257_WITHOUT = [
    "D102",
    "D105",
    "D107",
    "D203",
    "D205",
    "D212",
    "D213",
    "D400",
    "D401",
    "D403",
    "D413",
    "D415",
]
"""Rules that contradict the style of the package, or are not those of ruff."""


def test_each_source_file_states_copyright_and_license() -> None:
    """In SPDX's short form, which ament_copyright does not read; empty files have no source."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    sources = [path for path in [ROOT / "setup.py", *files] if path.suffix in SOURCES]
    without = [
        str(path.relative_to(ROOT))
        for path in sources
        if path.stat().st_size > 0
        and not all(
            line in path.read_text("utf-8")[:400] for line in (COPYRIGHT, LICENSE)
        )
    ]
    assert len(sources) > 100
    assert without == []


def test_ruff() -> None:
    beside = Path(sys.executable).with_name("ruff")
    ruff = beside if beside.exists() else shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    done = subprocess.run(
        [ruff, "check", "--no-cache", ROOT], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_flake8() -> None:
    main = pytest.importorskip(
        "ament_flake8.main", reason="ament_flake8 is not installed"
    )
    paths = [str(ROOT / folder) for folder in FOLDERS]
    code, errors = main.main_with_errors(
        argv=["--config", str(ROOT / "setup.cfg"), *paths]
    )
    assert code == 0, "\n".join(errors)


def test_pep257() -> None:
    main = pytest.importorskip(
        "ament_pep257.main", reason="ament_pep257 is not installed"
    )
    words = ["--convention", "pep257", "--add-ignore", *PEP257_WITHOUT, "--"]
    assert main.main(argv=[*words, str(ROOT / "ur_energy_model")]) == 0
