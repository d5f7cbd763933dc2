"""`ur_energy evaluate`: its contract with scripts."""

from __future__ import annotations

from pathlib import Path

from test.cli.conftest import Capture, printed, refused
from ur_energy_model.cli.main import DONE, main


def test_evaluate(model: Path, bag: Path, capsys: Capture) -> None:
    assert main(["evaluate", str(model), str(bag), str(bag), "--json"]) == DONE
    results = printed(capsys)["results"]
    assert isinstance(results, list)
    assert len(results) == 2
    first = results[0]
    assert {"bag", "samples", "torque", "current", "power"} <= set(first)
    assert set(first["current"][0]) == {"mean", "max", "rms", "r2"}
    assert set(first["power"]) >= {"rmse", "rmse_percent", "r2", "energy_error_percent"}
    assert set(first["power"]) == set(first["power_from_motion"])
    for entry in (first["power"], first["power_from_motion"]):
        assert 0 < entry["rmse_low"] < entry["rmse"] < entry["rmse_high"]
        assert entry["std"] > 0
        assert 0 <= entry["coverage"] <= 1
    assert main(["evaluate", str(model), str(bag)]) == DONE
    assert "RMSE" in capsys.readouterr().out


def test_a_broken_model_is_refused(bag: Path, model: Path, tmp_path: Path, capsys: Capture) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(model.read_text().replace("unit: N m/A", "unit: Nm"))
    refused(["evaluate", str(broken), str(bag)], capsys, "broken.yaml", "line ", "N m/A")
