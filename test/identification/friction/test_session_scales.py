"""Several sessions of one arm: friction and standby of each, and what they spread by."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import ExactArm
from ur_energy_model.cli.identify import identification_json
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.identification.assembly import spread_between_sessions
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.pipeline import Identification, IdentificationOptions, identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.sessions import FRICTION_SPREAD, STANDBY_SPREAD

SCALES = (0.85, 1.0, 1.15)
STANDBY = (24.0, 26.0, 30.0)
LAW = "coulomb_viscous"
PARAMETERS = {"viscous": 4e-4, "coulomb": 0.05}


def arm(scale: float, standby: float) -> ExactArm:
    parameters = {name: scale * value for name, value in PARAMETERS.items()}
    return ExactArm(law=LAWS[LAW], parameters=parameters, standby=standby)


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("sessions")
    return [
        arm(scale, standby).bag(folder, f"day{k}", seed=40 + k, seconds=25)
        for k, (scale, standby) in enumerate(zip(SCALES, STANDBY, strict=True))
    ]


@pytest.fixture(scope="module")
def together(bags: list[Path]) -> Identification:
    return identify(bags, "ur5e", IdentificationOptions(friction=LAW))


@pytest.fixture(scope="module")
def alone(bags: list[Path]) -> Identification:
    return identify(bags[1:2], "ur5e", IdentificationOptions(friction=LAW))


@pytest.fixture(scope="module")
def model(alone: Identification) -> EnergyModel:
    return alone.model


def test_every_session_has_friction_and_standby_of_its_own(together: Identification) -> None:
    truth = ExactArm()
    for j, joint in enumerate(together.joints):
        np.testing.assert_allclose(joint.session_scales, SCALES, rtol=0.03)
        assert joint.torque_constant == pytest.approx(truth.torque_constant[j], rel=0.03)
        values = joint.friction.parameters
        assert values["coulomb"] == pytest.approx(PARAMETERS["coulomb"] * truth.size[j], rel=0.05)
    assert together.model.bus.standby == pytest.approx(np.mean(STANDBY), abs=0.6)
    assert together.model.bus.residual == pytest.approx(truth.power_noise, rel=0.1)


def test_the_spread_is_stated_with_its_count(
    together: Identification, alone: Identification
) -> None:
    spread = together.model.sessions
    assert spread.count == 3
    np.testing.assert_allclose(
        spread.friction, spread_between_sessions(np.array(SCALES), FRICTION_SPREAD), rtol=0.1
    )
    assert spread.standby == pytest.approx(
        spread_between_sessions(np.array(STANDBY), STANDBY_SPREAD), rel=0.1
    )
    assert alone.model.sessions.count == 0
    assert alone.model.sessions.standby == STANDBY_SPREAD


def test_stated_friction_intervals_hold_other_sessions(alone: Identification) -> None:
    content = identification_json(alone)
    for joint, model in zip(content["joints"], alone.model.joints, strict=True):
        curve = joint["friction_curve"]
        assert (curve["std"] > 1.5 * curve["std_this_session"]).all()
        np.testing.assert_allclose(
            curve["std"],
            np.hypot(curve["std_this_session"], FRICTION_SPREAD * curve["torque"]),
            rtol=1e-6,
        )
        here = joint["friction_std_this_session"]["coulomb"]
        value = model.friction.parameters["coulomb"]
        assert model.std["coulomb"] == pytest.approx(np.hypot(here, FRICTION_SPREAD * value))
    assert content["sessions"]["count"] == 0


def test_few_sessions_count_beside_the_prior() -> None:
    """The prior, in the limit the scatter of the sessions, and between them in between."""
    random = np.random.default_rng(0)
    assert spread_between_sessions(np.array([1.0]), 0.08) == pytest.approx(0.08)
    many = spread_between_sessions(1 + 0.02 * random.standard_normal(400), 0.08)
    assert many == pytest.approx(0.02, rel=0.15)
    few = spread_between_sessions(np.array([0.98, 1.02]), 0.08)
    assert 0.02 < few < 0.08
    # a pair that scatters as the prior has it leaves its variance, and halves that of the mean
    pair = np.array([1.0, 1.0 + 0.08])
    assert spread_between_sessions(pair, 0.08) == pytest.approx(0.08 * np.sqrt(1.5 / 2))


class TestAnotherDay:
    """A model of one day beside a recording of another, with more friction and standby."""

    def test_evaluate_anchors_the_session(self, model: EnergyModel, bags: list[Path]) -> None:
        anchored = evaluate(model, bags[2]).as_json()
        plain = evaluate(model, bags[2], anchor=False).as_json()
        session = anchored["session"]
        assert session["anchored"]
        assert not plain["session"]["anchored"]
        assert session["moving_seconds"] == pytest.approx(3.0, abs=0.1)
        assert np.median(session["friction_scale"]) == pytest.approx(1.13, abs=0.03)
        error = [[entry["rms"] for entry in m["current"]] for m in (anchored, plain)]
        assert (np.array(error[0]) < 0.6 * np.array(error[1])).all()

    def test_currents_lie_within_their_intervals(
        self, model: EnergyModel, bags: list[Path]
    ) -> None:
        for anchor in (True, False):
            entries = evaluate(model, bags[0], anchor=anchor).as_json()["current_interval_all"]
            assert np.mean([entry["coverage"] for entry in entries]) > 0.9
            assert all(entry["std"] > 0 for entry in entries)

    def test_standby_comes_from_standstill(self, model: EnergyModel, tmp_path: Path) -> None:
        bag = arm(1.0, 31.0).bag(tmp_path, seed=50, seconds=12, still=tuple(range(6)))
        session = evaluate(model, bag).as_json()["session"]
        assert session["standby"] == pytest.approx(31.0, abs=0.5)
        assert session["still_seconds"] > 8.0
        assert session["moving_seconds"] == 0.0
        assert session["standby_std"] < 0.2 * STANDBY_SPREAD

    def test_the_command_line_switches_it_off(
        self,
        model: EnergyModel,
        bags: list[Path],
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        path = tmp_path / "model.yaml"
        save_model(model, path)
        found = []
        for options in ([], ["--no-anchor"]):
            assert main(["evaluate", str(path), str(bags[2]), "--json", *options]) == DONE
            found.append(json.loads(capsys.readouterr().out)["results"][0]["session"])
        assert [session["anchored"] for session in found] == [True, False]
