"""`ur_energy evaluate`: its contract with scripts."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

from test.cli.conftest import Capture, printed, refused
from test.identification.exact_arm import ExactArm, write_bag
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


def test_a_model_of_another_serial_number_is_said_wherever_it_meets_a_recording(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    """One warning with both serial numbers, wider intervals, and no trust, unless overruled."""
    own = tmp_path / "own.yaml"
    own.write_text(re.sub("serial: null", "serial: 'A7'", model.read_text(), count=1))
    made = ExactArm().record(20.0, seed=8)
    bag = write_bag(tmp_path / "bag", replace(made, info=replace(made.info, serial="B8")))
    page, store = tmp_path / "report.html", tmp_path / "store"
    widths: dict[bool, float] = {}
    for same in (False, True):
        flags = ["--json", *(["--same-arm"] if same else [])]
        shutil.rmtree(store, ignore_errors=True)
        contents = {}
        for name, arguments in {
            "estimate": [str(own), str(bag)],
            "evaluate": [str(own), str(bag)],
            "report": [str(own), str(bag), "-o", str(page)],
            "history add": [str(store), str(bag), "--model", str(own)],
            "live": ["--bag", str(bag), "--model", str(own), "--duration", "1.5"],
        }.items():
            assert main([*name.split(), *arguments, *flags]) == DONE
            content = json.loads(capsys.readouterr().out.splitlines()[-1])
            contents[name] = content
            assert len(content["warnings"]) == (0 if same else 1), name
            for warning in content["warnings"]:
                assert "A7" in warning, name
                assert "B8" in warning, name
            if name in ("estimate", "evaluate", "report"):
                assert content["serials"] == {"model": "A7", "recording": "B8"}
        widths[same] = contents["estimate"]["total"]["supply_energy_std"]
        assert same or "trusted" not in contents["report"]["verdict"]["headline"]
        assert "Serial number B8. Model of A7." in page.read_text(encoding="utf-8")
    assert widths[False] > 1.5 * widths[True]
    for command in (["estimate"], ["evaluate"], ["report", "-o", str(page)]):
        assert main([*command, str(own), str(bag)]) == DONE
        assert "".join(capsys.readouterr()).count("arm A7") == 1


def test_the_fitted_motion_is_no_validation(model: Path, bag: Path, capsys: Capture) -> None:
    assert main(["evaluate", str(model), str(bag)]) == DONE
    assert "fitted to this recording" in capsys.readouterr().err
    repeated = write_bag(bag.parent / "repeated", ExactArm().record(25.0, seed=31))
    assert main(["evaluate", str(model), str(repeated), "--json"]) == DONE
    entry = json.loads(capsys.readouterr().out)["results"][0]
    assert entry["motion"] == "same motion again"
    page = bag.parent / "repeated.html"
    assert main(["report", str(model), str(repeated), "-o", str(page), "--json"]) == DONE
    verdict = printed(capsys)["verdict"]
    assert verdict["grade"] != "good"  # type: ignore[index]
    assert "same motion again" in page.read_text(encoding="utf-8")


def test_samples_that_are_recorded_twice_count_once_and_are_reported(
    model: Path, bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    twice = shutil.copytree(bag, tmp_path / "twice")
    (twice / "metadata.yaml").unlink()
    (file,) = twice.glob("*.mcap")
    shutil.copy(file, twice / "copy_7.mcap")
    energies = []
    for each in (bag, twice):
        found = [
            ["estimate", str(model), str(each)],
            ["evaluate", str(model), str(each)],
            ["report", str(model), str(each), "-o", str(tmp_path / "page.html")],
            ["history", "add", str(tmp_path / each.name), str(each), "--model", str(model)],
        ]
        for arguments in found:
            assert main([*arguments, "--json"]) == DONE
            warnings = printed(capsys)["warnings"]
            assert isinstance(warnings, list)
            told = [line for line in warnings if "samples are in the recording twice" in line]
            assert len(told) == (each == twice), arguments
        assert main([*found[0], "--json"]) == DONE
        energies.append(printed(capsys)["total"])
    assert energies[0] == energies[1]
