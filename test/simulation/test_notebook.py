# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The notebook of the documentation runs with what is installed, and nothing of the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "simulation" / "notebook.md"
MOST_LINES = 40


def cells() -> str:
    """The code of the notebook."""
    text = NOTEBOOK.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```\{code-cell\}\n(.*?)```", text, re.DOTALL))


def test_it_is_short() -> None:
    assert len([line for line in cells().splitlines() if line.strip()]) <= MOST_LINES


@pytest.mark.truth
def test_the_notebook_ends_with_a_figure(tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(cells(), encoding="utf-8")
    environment = {**os.environ, "TMPDIR": str(tmp_path), "MPLBACKEND": "agg"}
    out = subprocess.run(
        [sys.executable, "-I", "cells.py"],
        cwd=tmp_path,
        env=environment,
        check=True,
        timeout=1200,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    (r2,) = re.findall(r"R2 (\d\.\d+)", out)
    assert float(r2) > 0.99
    (figure,) = tmp_path.rglob("figure.pdf")
    assert figure.read_bytes().startswith(b"%PDF-")
