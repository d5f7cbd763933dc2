# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The code of the page "As a library" runs as it stands there, block after block."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.contracts.surface import FIXTURES
from ur_energy_model.model.model_file import load_model

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "library.md"
REFERENCE = ROOT / "docs" / "reference.md"
SLOW = "## Power and energy"  # from this heading on, models are identified
IMPORT = re.compile(r"from (ur_energy_model\S*) import")


def code(text: str) -> str:
    """All blocks of a page, in order."""
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the two bags of the page; the present one."""
    for name, bag in (("my_bag", "excitation"), ("another_bag", "work")):
        (tmp_path / name).symlink_to(FIXTURES / bag)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_arrays_regressors_and_fits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, found = PAGE.read_text(encoding="utf-8"), dict[str, Any]()
    exec(code(page.partition(SLOW)[0]), found)
    fit = found["fit"]
    assert fit.columns[-1] == "root_6"
    by_name = dict(zip(fit.columns, fit.values, strict=True))
    assert by_name["Ja_3"] > 0
    check = found["verify_torque"](found["rows_of"]("another_bag"), fit.values)
    assert check.torque_r2[0] > 0.95  # the others hardly move there, or not at all
    assert np.allclose(np.diag(found["correlation"]), 1.0)
    assert (folder / "fit.npz").is_file()
    assert (folder / "arm.urdf").is_file()
    assert "condition number" in capsys.readouterr().out


@pytest.mark.truth
def test_the_whole_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = {}
    exec(code(PAGE.read_text(encoding="utf-8")), found)
    assert load_model(folder / "model.yaml").dof == 6
    assert 0 < found["energy"] < 1e5
    ecbot = dict(zip(found["layout"].columns, found["solution"], strict=False))
    assert 20 < ecbot["standby"] < 60
    assert ecbot["R_1"] > 0
    out = capsys.readouterr().out
    for name in found["power_model_names"]():
        assert f"{name} " in out


def test_the_reference_has_every_module_of_the_page() -> None:
    modules = IMPORT.findall(PAGE.read_text(encoding="utf-8"))
    assert len(modules) > 10
    reference = REFERENCE.read_text(encoding="utf-8")
    for module in modules:
        assert f"automodule:: {module}\n" in reference, module
