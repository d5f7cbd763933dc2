"""`identify`, `estimate` and `evaluate` of many bags."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from test.cli.conftest import Capture, printed, refused
from test.identification.exact_arm import ExactArm
from ur_energy_model.cli.main import DONE, REFUSED, main

PARTLY = 3


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("many")
    return [ExactArm().bag(folder / str(seed), seed=seed, seconds=20) for seed in (41, 42)]


@pytest.fixture(scope="module")
def truncated(bags: list[Path]) -> Path:
    bad = bags[0].parents[1] / "truncated"
    shutil.copytree(bags[0], bad)
    (data,) = (path for path in bad.iterdir() if path.suffix in {".mcap", ".db3"})
    with data.open("rb+") as file:
        file.truncate(data.stat().st_size // 3)
    return bad


def several(code: int, capsys: Capture, *words: object) -> dict[str, Any]:
    """JSON of a command that ends with this code."""
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == code
    return printed(capsys)


def test_energies_of_many_bags_are_summed(
    model: Path, bags: list[Path], truncated: Path, capsys: Capture
) -> None:
    content = several(PARTLY, capsys, "estimate", model, bags[0], truncated, bags[1])
    alone = [several(DONE, capsys, "estimate", model, bag) for bag in bags]
    for entry, single, bag in zip(content["results"], alone, bags, strict=True):
        assert entry.pop("bag") == str(bag)
        assert entry == {key: value for key, value in single.items() if key != "model"}
    for name in ("mechanical_energy", "electrical_energy", "supply_energy", "standby_energy"):
        expected = sum(entry["total"][name] for entry in alone)
        assert content["total"][name] == pytest.approx(expected, rel=1e-12)
    assert content["duration"] == pytest.approx(sum(entry["duration"] for entry in alone))
    assert content["bus_energy"] == pytest.approx(sum(entry["bus_energy"] for entry in alone))
    (failed,) = content["failed"]
    assert failed["bag"] == str(truncated)
    assert "is truncated" in failed["reason"]


def test_many_bags_without_a_model(bags: list[Path], truncated: Path, capsys: Capture) -> None:
    content = several(PARTLY, capsys, "estimate", truncated, *bags, "--robot", "ur5e")
    assert content["model"] == "generic"
    assert [entry["bag"] for entry in content["results"]] == [str(bag) for bag in bags]


def test_the_table_of_many_bags(model: Path, bags: list[Path], capsys: Capture) -> None:
    assert main(["estimate", str(model), *map(str, bags)]) == DONE
    out = capsys.readouterr().out
    assert "energy of 2 recordings" in out
    assert "all recordings" in out


def test_bags_of_which_all_fail(model: Path, truncated: Path, capsys: Capture) -> None:
    content = several(REFUSED, capsys, "estimate", model, truncated, "nothing")
    assert content["results"] == []
    assert len(content["failed"]) == 2


def test_files_of_a_single_recording(model: Path, bags: list[Path], capsys: Capture) -> None:
    command = ["estimate", str(model), *map(str, bags)]
    refused([*command, "--csv", "powers.csv"], capsys, "--csv", "single recording")
    refused([*command, "--bag", "energy"], capsys, "--bag", "single recording")
    both = ["--workers", "2", "--scheduler", "tcp://127.0.0.1:8786"]
    refused([*command, *both], capsys, "--workers", "leave one out")


def test_metrics_of_many_bags(
    model: Path, bags: list[Path], truncated: Path, capsys: Capture
) -> None:
    content = several(PARTLY, capsys, "evaluate", model, *bags, truncated)
    alone = [several(DONE, capsys, "evaluate", model, bag) for bag in bags]
    assert content["results"] == [entry["results"][0] for entry in alone]
    assert "total" not in alone[0]
    total = content["total"]
    assert total["recordings"] == 2
    assert total["samples"] == sum(entry["samples"] for entry in content["results"])
    errors = [entry["power"]["rmse"] for entry in content["results"]]
    assert min(errors) <= total["power_rmse"] <= max(errors)
    assert [entry["bag"] for entry in content["failed"]] == [str(truncated)]


def test_a_model_depends_on_neither_order_nor_workers_nor_bad_bags(
    bags: list[Path], truncated: Path, tmp_path: Path, capsys: Capture
) -> None:
    def identified(code: int, *words: object) -> dict[str, Any]:
        output = ("--robot", "ur5e", "--friction", "coulomb_viscous", "-o", tmp_path / "model.yaml")
        return several(code, capsys, "identify", *words, *output)

    first = identified(DONE, bags[0], bags[1])
    second = identified(PARTLY, bags[1], truncated, bags[0], "--workers", "2")
    assert first["failed"] == []
    assert [entry["bag"] for entry in second["failed"]] == [str(truncated)]
    for joint in second["joints"]:  # a scale for each bag, in the order of the bags
        joint["friction_session_scales"].reverse()
    assert close(first["joints"], second["joints"])
    assert close(first["bus_power"], second["bus_power"])
    assert close(first["setup"], second["setup"])
    assert [entry["bag"] for entry in second["fits"]] == [str(bags[1]), str(bags[0])]
    assert close(first["fits"], second["fits"][::-1])


def close(first: object, second: object) -> bool:
    """Whether two JSON values agree to 1e-9."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(close(first[k], second[k]) for k in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(close, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return first == pytest.approx(second, rel=1e-9, abs=1e-12)
    return first == second


def test_bags_that_no_identification_can_use(
    truncated: Path, tmp_path: Path, capsys: Capture
) -> None:
    command = ["identify", str(truncated), "nothing", "--robot", "ur5e"]
    output = tmp_path / "model.yaml"
    refused([*command, "-o", str(output)], capsys, "no bag can be used", "is truncated")
    assert not output.exists()


def test_one_bag_on_workers_prints_the_same(model: Path, bags: list[Path], capsys: Capture) -> None:
    for command in ("estimate", "evaluate"):
        words = [command, str(model), str(bags[0]), "--json"]
        assert main(words) == DONE
        here = capsys.readouterr().out
        assert main([*words, "--workers", "2"]) == DONE
        assert capsys.readouterr().out == here
        assert json.loads(here)
