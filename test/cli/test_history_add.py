"""`ur_energy history add` and `watch`, as a user calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from test.cli.conftest import Capture, printed, refused
from test.identification.exact_arm import write_bag
from test.plant.made_up_bags import HOUR, MODEL, NOON, Session, estimated, rows
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.learning.state import file_digest
from ur_energy_model.model.model_file import save_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two bags, and the model beside it."""
    folder = tmp_path_factory.mktemp("history") / "bags"
    for k in range(2):
        Session(at=NOON + k * HOUR, cycle=1.0).bag(folder / f"bag_{k}")
    save_model(MODEL, folder.parent / "model.yaml")
    return folder


def test_add(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    bags, model = sorted(folder.iterdir()), folder.parent / "model.yaml"
    command = ["history", "add", str(tmp_path / "store"), *map(str, bags), "--model", str(model)]
    assert main([*command, "--json"]) == DONE
    result = printed(capsys)
    assert (result["added"], result["skipped"], result["failed"]) == (2, 0, [])
    assert result["energy"] == pytest.approx(sum(estimated(bag).supply for bag in bags))
    assert result["seconds"] == 16
    assert main([*command, "--json"]) == DONE
    again = printed(capsys)
    assert (again["added"], again["skipped"], again["energy"]) == (0, 2, 0.0)
    found = rows(tmp_path / "store")
    digest = file_digest(model)
    assert digest is not None
    assert {row["model"] for row in found} == {digest[:16]}
    assert len(rows(tmp_path / "store", "cycles")) == 12
    assert main(command) == DONE
    assert "2 were there already" in capsys.readouterr().err


def test_without_a_model_each_bag_gets_the_generic_one_of_its_type(
    tmp_path: Path, capsys: Capture
) -> None:
    bags = []
    for robot in ("ur5e", "ur10e", None):
        telemetry = Session(serial=robot).telemetry()
        telemetry = replace(telemetry, info=replace(telemetry.info, robot=robot))
        bags.append(str(write_bag(tmp_path / str(robot), telemetry)))
    store = tmp_path / "store"
    assert main(["history", "add", str(store), *bags, "--json"]) == 3
    (failed,) = json.loads(capsys.readouterr().out)["failed"]
    assert failed["bag"] == bags[2]
    assert "--robot ur5e" in failed["reason"]
    assert {(row["robot"], row["model"]) for row in rows(store)} == {
        ("ur5e", "generic"),
        ("ur10e", "generic"),
    }


def test_a_bag_that_fails_is_named_and_the_others_are_added(
    folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    bags, model = sorted(folder.iterdir()), folder.parent / "model.yaml"
    command = ["history", "add", str(tmp_path / "store"), str(bags[0]), str(tmp_path / "none")]
    command += ["--model", str(model), "--workers", "1"]
    assert main([*command, "--json"]) == 3
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert result["added"] == 1
    assert [failed["bag"] for failed in result["failed"]] == [str(tmp_path / "none")]
    assert "1 of 2 bags failed" in err
    refused([*command[:3], *command[4:]], capsys, "none", "1 of 1 bags failed")


def test_what_cannot_be_used_is_refused(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    bag, model = str(folder / "bag_0"), str(folder.parent / "model.yaml")
    refused(["history", "add", "ftp://x", bag, "--model", model], capsys, "ftp://x")
    refused(["history", "add", model, bag, "--model", model], capsys, "is not a folder")
    refused(["history", "add", str(tmp_path), bag, "--model", "none.yaml"], capsys, "none.yaml")
    refused(["history", "watch", str(tmp_path), model, "--model", model], capsys, "not a folder")


def test_the_arm_can_be_named(folder: Path, tmp_path: Path) -> None:
    command = ["history", "add", str(tmp_path), str(folder / "bag_0"), "--arm", "cell 7/left"]
    assert main([*command, "--model", str(folder.parent / "model.yaml")]) == DONE
    assert {row["arm"] for row in rows(tmp_path)} == {"cell_7_left"}


def test_watch_once(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    for file in folder.rglob("bag_*/*"):
        os.utime(file, (time.time() - 60.0,) * 2)
    command = ["history", "watch", str(tmp_path), str(folder), "--once", "--json"]
    command += ["--model", str(folder.parent / "model.yaml")]
    assert main(command) == DONE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["bag"] for line in lines] == [str(folder / f"bag_{k}") for k in range(2)]
    assert all(line["added"] == 1 for line in lines)
    assert len(rows(tmp_path)) == 16


def test_watch_until_ctrl_c(folder: Path, tmp_path: Path) -> None:
    bags, store = tmp_path / "bags", tmp_path / "store"
    bags.mkdir()
    command = [sys.executable, "-m", "ur_energy_model.cli.main", "history", "watch", str(store)]
    command += [str(bags), "--model", str(folder.parent / "model.yaml"), "--interval", "0.05"]
    process = subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        bag = Session().bag(tmp_path / "made")
        for file in bag.iterdir():
            os.utime(file, (time.time() - 60.0,) * 2)
        bag.rename(bags / "made")
        assert json.loads(process.stdout.readline())["added"] == 1
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
    finally:
        process.kill()
    assert len(rows(store)) == 8
