"""Priors of an arm from the arms of a fleet, of one type or several."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from ur_energy_model.codec import plain
from ur_energy_model.identification.assembly import EVIDENCE, Evidence
from ur_energy_model.identification.reflected_inertia import InertiaEstimate, expected_inertia
from ur_energy_model.identification.torque_constants import FLEET, FLEET_POWER, TorqueConstantPrior
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.plant.fleet import Fleet, FleetArm
from ur_energy_model.plant.identify_arms import evidence_of

UR5E, UR3E = load_robot("ur5e"), load_robot("ur3e")
N = UR5E.dof


def arm(name, scale, robot=UR5E, *, std=0.01, links=0.0, inertia=1.0) -> FleetArm:
    """An arm whose constants are the nominal ones times a factor."""
    constant, expected = scale * robot.torque_constant, expected_inertia(robot).value
    return FleetArm(
        name,
        robot,
        Evidence(
            constant,
            std * constant,
            inertia * expected,
            0.01 * expected,
            np.full(robot.dof, links),
        ),
    )


@dataclass(frozen=True)
class Priors:
    """Both priors of an arm."""

    torque_constant: TorqueConstantPrior
    inertia: InertiaEstimate


def prior_of(fleet: Fleet, robot: RobotDescription, name: str | None = None) -> Priors:
    """The prior of an arm; there is one."""
    prior = fleet.prior(robot, name)
    assert prior is not None
    assert prior.torque_constant is not None
    assert prior.inertia is not None
    return Priors(prior.torque_constant, prior.inertia)


def test_arms_that_agree_make_a_narrow_prior():
    fleet = Fleet([arm(f"a{k}", 1.06, inertia=0.95) for k in range(6)])
    prior = prior_of(fleet, UR5E)
    np.testing.assert_allclose(prior.torque_constant.mean, 1.06, atol=0.01)
    assert (np.sqrt(np.diag(prior.torque_constant.covariance)) < 0.03).all()
    assert prior.torque_constant.source == (FLEET_POWER,) * N
    expected = expected_inertia(UR5E)
    np.testing.assert_allclose(prior.inertia.value, 0.95 * expected.value, rtol=0.01)
    assert (prior.inertia.std < 0.3 * expected.std).all()


def test_arms_that_differ_make_a_wide_prior():
    scales = (0.88, 1.1, 0.95, 1.12, 0.9, 1.04)
    fleet = Fleet([arm(f"a{k}", scale) for k, scale in enumerate(scales)])
    prior = prior_of(fleet, UR5E)
    assert (np.sqrt(np.diag(prior.torque_constant.covariance)) > 0.06).all()


def test_an_arm_is_not_its_own_prior():
    fleet = Fleet([*(arm(f"a{k}", 1.06) for k in range(5)), arm("own", 1.03)])
    prior = prior_of(fleet, UR5E, "own")
    np.testing.assert_allclose(prior.torque_constant.mean, 1.06, atol=0.003)
    assert Fleet([arm("own", 0.9)]).prior(UR5E, "own") is None
    assert Fleet([]).prior(UR5E) is None


def test_constants_from_links_say_so():
    fleet = Fleet([arm(f"a{k}", 1.06, links=1.0) for k in range(4)])
    assert prior_of(fleet, UR5E).torque_constant.source == (FLEET,) * N


def test_joints_of_one_size_are_shared_between_types():
    same = np.isin(UR3E.torque_constant, UR5E.torque_constant)
    assert same.any(), "these types have a joint size in common"
    prior = prior_of(Fleet([arm(f"a{k}", 1.06) for k in range(6)]), UR3E)
    np.testing.assert_allclose(prior.torque_constant.mean[same], 1.06, atol=0.03)
    np.testing.assert_allclose(prior.torque_constant.mean[~same], 1.0)


def test_what_arms_have_in_common():
    fleet = Fleet([arm(f"a{k}", 1.06) for k in range(6)])
    found = {(entry.what, entry.joints): entry for entry in fleet.shared()}
    sizes = len(np.unique(UR5E.torque_constant))
    assert len([key for key in found if key[0] == "torque_constant"]) == sizes
    for entry in found.values():
        assert entry.arms == 6
        assert entry.spread == 0.0
        assert entry.spread_limit < 0.03


def test_evidence_is_read_back_from_a_model():
    model = generic_model("ur5e")
    stated = arm("a", 1.02).evidence
    known = replace(model, provenance={**model.provenance, EVIDENCE: plain(stated)})
    found = evidence_of(known, UR5E)
    for name, values in vars(stated).items():
        np.testing.assert_allclose(getattr(found, name), values)


@pytest.mark.parametrize("stated", [None, "text", {}, {"torque_constant": [1.0]}])
def test_models_without_evidence_are_taken_less_the_prior(stated):
    model = generic_model("ur5e")
    joint = model.joints[0]
    joint = replace(
        joint,
        torque_constant=1.05 * UR5E.torque_constant[0],
        std={**joint.std, "torque_constant": 0.01 * UR5E.torque_constant[0]},
        source={**joint.source, "torque_constant": "current and bus_power"},
    )
    provenance = {} if stated is None else {EVIDENCE: stated}
    known = replace(model, joints=(joint, *model.joints[1:]), provenance=provenance)
    found = evidence_of(known, UR5E)
    assert found.torque_constant[0] == pytest.approx(1.05 * UR5E.torque_constant[0], rel=2e-3)
    assert found.torque_constant_std[0] == pytest.approx(0.01 * UR5E.torque_constant[0], rel=0.01)
    assert found.from_links[0] == 0.0


def test_the_prior_of_a_type_is_that_of_the_robot_file():
    prior = TorqueConstantPrior.of_type(UR5E)
    np.testing.assert_array_equal(prior.mean, np.ones(N))
    same = UR5E.torque_constant[0] == UR5E.torque_constant[1]
    assert (prior.covariance[0, 1] > 0) == same
