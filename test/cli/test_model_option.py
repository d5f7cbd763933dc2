"""Subcommands without a model file: the generic model of the arm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from test.cli.conftest import Capture, refused
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.files import config_file

WORDS = "generic ur5e, not identified"
PLAN = "time,q_0,q_1,q_2,q_3,q_4,q_5\n0,0,-1,1,0,0,0\n2,1,-1.5,1,0,0,0\n"


def printed(capsys: Capture) -> Any:
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def unnamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording that does not name its robot."""
    recording = ExactArm().record(20.0)
    other = replace(recording, info=replace(recording.info, robot=None))
    return write_bag(tmp_path_factory.mktemp("unnamed") / "bag", other)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.csv"
    path.write_text(PLAN)
    return path


def test_estimate_takes_the_generic_model_of_the_robot(
    bag: Path, model: Path, unnamed: Path, capsys: Capture
) -> None:
    assert main(["estimate", str(bag), "--robot", "ur5e", "--json"]) == DONE
    generic = printed(capsys)
    assert generic["model"] == "generic"
    assert main(["estimate", str(bag), "--json"]) == DONE  # the bag names the robot
    assert printed(capsys) == generic
    assert main(["estimate", str(model), "--json", str(bag)]) == DONE
    identified = printed(capsys)
    assert identified["model"] == str(model)
    assert identified.keys() == generic.keys()
    for content in (generic, identified):
        total = content["total"]
        low, high = total["supply_energy_interval"]
        assert low < content["bus_energy"] < high
    refused(["estimate", str(unnamed)], capsys, str(unnamed), "--robot")
    assert main(["estimate", str(unnamed), "--robot", "ur5e"]) == DONE
    out, err = capsys.readouterr()
    assert WORDS in err
    assert "± 95 %" in out


def test_a_model_of_another_robot_is_refused(bag: Path, model: Path, capsys: Capture) -> None:
    refused(["estimate", str(model), str(bag), "--robot", "ur10e"], capsys, "ur5e", "--robot")
    refused(["estimate", str(bag), "--robot", "ur10e"], capsys, "ur5e", "ur10e")
    refused(["estimate", str(bag), "--robot", "gen3"], capsys, "gen3", "ur5e", "identify")
    refused(["estimate", str(bag), "--robot", "ur6"], capsys, "ur6")


def test_predict_takes_the_generic_model(
    plan: Path, bag: Path, model: Path, capsys: Capture
) -> None:
    assert main(["predict", str(plan), "--robot", "ur5e", "--json"]) == DONE
    anywhere = printed(capsys)
    assert anywhere["model"] == "generic"
    assert main(["predict", str(plan), "--session", str(bag), "--json"]) == DONE
    here = printed(capsys)
    assert here["model"] == "generic"
    widths = [content["total"]["supply_energy_std"] for content in (here, anywhere)]
    assert widths[0] < 0.9 * widths[1]
    assert main(["predict", str(plan), "--robot", "ur5e"]) == DONE
    assert WORDS in capsys.readouterr().err
    assert main(["predict", str(model), str(plan), "--json"]) == DONE
    assert printed(capsys)["model"] == str(model)
    refused(["predict", str(plan)], capsys, "--robot ur5e")


def test_a_payload_needs_the_torque_constants_of_this_arm(bag: Path, capsys: Capture) -> None:
    refused(["payload", str(config_file("models", "ur5e.yaml")), str(bag)], capsys, "identify")


def test_report_says_that_the_model_is_generic(
    bag: Path, model: Path, tmp_path: Path, capsys: Capture
) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(bag), "--robot", "ur5e", "-o", str(page), "--json"]) == DONE
    content = printed(capsys)
    assert content["model"] == "generic"
    verdict = content["verdict"]
    assert "generic" in verdict["headline"]
    text = json.dumps(verdict)
    assert WORDS in text
    assert "fitted to" not in text
    assert WORDS in page.read_text(encoding="utf-8")
    assert main(["report", str(model), str(bag), "-o", str(page), "--json"]) == DONE
    content = printed(capsys)
    assert content["model"] == str(model)
    assert "generic" not in json.dumps(content["verdict"])
