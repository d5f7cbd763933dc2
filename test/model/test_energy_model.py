"""Powers of a model, and their uncertainty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.model.made_up import N, made_up_model, motion
from ur_energy_model.model.drives import PREDICTION_ERROR
from ur_energy_model.model.sessions import COMMON_FRICTION, Session, scaled_parameters


def test_powers_add_up() -> None:
    model = made_up_model()
    out = model.predict(*motion())
    speed = 101.0 * motion()[1]
    np.testing.assert_allclose(out.copper_loss, 0.3 * out.current**2)
    np.testing.assert_allclose(out.mechanical_power, speed * 0.1 * out.current)
    np.testing.assert_allclose(
        out.electrical_power, out.copper_loss + 0.98 * out.mechanical_power, atol=1e-9
    )
    total = 25.0 + out.electrical_power.sum(axis=1) + 0.2 * np.abs(out.current).sum(axis=1)
    np.testing.assert_allclose(out.total_power, np.maximum(total, 0.0))


def test_measured_and_predicted_currents_give_the_same_powers() -> None:
    """And the supply takes no power back."""
    model = made_up_model()
    predicted = model.predict(*motion())
    measured = model.joint_power(motion()[1], predicted.current, standby=30.0, std=False)
    np.testing.assert_allclose(measured.electrical_power, predicted.electrical_power)
    assert measured.standby_power[0] == 30.0
    assert measured.sensitivity.shape == (50, N, 0)
    braking = model.joint_power(np.ones((1, N)), np.full((1, N), -5.0))
    assert braking.electrical_power.sum() < -100.0
    assert braking.total_power[0] == 0.0


def test_standard_deviations_follow_the_parameters() -> None:
    """Powers of models drawn from the covariance have the predicted standard deviation."""
    model = made_up_model()
    q, qd, qdd = motion(5)
    link = model.dynamics().inverse_dynamics(q, qd, qdd)
    claimed = model.from_link_torque(link, qd, qdd)
    spread = model.sessions.friction_of(N)
    random = np.random.default_rng(2)
    drawn = []
    for _ in range(600):
        errors = random.standard_normal(3) @ model.bus.errors
        errors[0] += random.normal(0.0, model.sessions.standby)
        common = random.standard_normal()
        joints = []
        for j, joint in enumerate(model.joints):
            mean = np.append(1.0, joint.friction.values) / joint.torque_constant
            value = random.multivariate_normal(mean, joint.current_covariance)
            value *= random.normal(1.0, PREDICTION_ERROR)
            names = joint.friction.law.parameters
            level = np.sqrt(COMMON_FRICTION) * common
            level += np.sqrt(1 - COMMON_FRICTION) * random.standard_normal()
            value[1:] *= np.where(scaled_parameters(names), 1.0 + spread[j] * level, 1.0)
            parameters = dict(zip(names, value[1:] / value[0], strict=True))
            joints.append(
                replace(
                    joint,
                    torque_constant=1 / value[0],
                    winding_resistance=joint.winding_resistance + errors[1 + j],
                    back_emf_constant=joint.back_emf_constant + errors[1 + N + j],
                    friction=replace(joint.friction, parameters=parameters),
                )
            )
        other = replace(
            model,
            joints=tuple(joints),
            bus=replace(
                model.bus,
                floor=-1e9,
                standby=model.bus.standby + errors[0],
                driver=model.bus.driver + errors[1 + 2 * N :],
            ),
        )
        out = other.from_link_torque(link, qd, qdd, std=False)
        # the sensitivities leave the driver's share of current errors out: it is far smaller
        drawn.append(np.column_stack([out.electrical_power, out.total_power]))
    scatter = np.std(drawn, axis=0)
    np.testing.assert_allclose(
        scatter[:, :N], np.linalg.norm(claimed.sensitivity, axis=-1), rtol=0.12
    )
    np.testing.assert_allclose(scatter[:, N], claimed.total_power_std, rtol=0.15)


def test_without_bus_power_a_torque_constant_hardly_changes_the_converted_power() -> None:
    """Back-EMF constants then are the torque constants: less current, at more volts per speed."""
    model = made_up_model()
    share, q, qd, qdd = 0.07, *motion(5)
    joints = []
    for joint in model.joints:
        mean = np.append(1.0, joint.friction.values) / joint.torque_constant
        covariance = share**2 * np.outer(mean, mean)
        joints.append(replace(joint, current_covariance=covariance))
    constants = np.array([joint.back_emf_constant for joint in joints])
    errors = np.zeros((1, 1 + 3 * N))
    errors[0, 1 + N : 1 + 2 * N] = share * constants
    bus = replace(model.bus, errors=errors, source="prior")
    model = replace(model, joints=tuple(joints), bus=bus)
    larger = replace(
        model,
        joints=tuple(
            replace(
                joint,
                torque_constant=(1 + share) * joint.torque_constant,
                back_emf_constant=(1 + share) * joint.back_emf_constant,
            )
            for joint in joints
        ),
    )
    before, after = model.predict(q, qd, qdd), larger.predict(q, qd, qdd)
    shared = before.sensitivity[:, 0, -3]  # the last two are the session's
    expected = (after.electrical_power - before.electrical_power)[:, 0]
    np.testing.assert_allclose(shared, expected, rtol=0.15, atol=1e-3)
    measured = model.joint_power(qd, before.current)
    # A measured current does not know the torque constant: all of its error counts.
    np.testing.assert_allclose(
        measured.sensitivity[:, 0, 0], share * 0.98 * before.mechanical_power[:, 0], rtol=1e-6
    )


SESSION = Session(27.0, 0.2, np.linspace(0.9, 1.1, N), np.full(N, 0.01), 5.0, 3.0)


def test_a_session_scales_friction_and_replaces_standby() -> None:
    """A model anchored in one session can be anchored in another one and back."""
    model = made_up_model()
    here = model.in_session(SESSION)
    assert here.bus.standby == 27.0
    for scale, before, after in zip(SESSION.friction_scale, model.joints, here.joints, strict=True):
        values = before.friction.values
        factor = np.where(scaled_parameters(before.friction.law.parameters), scale, 1.0)
        np.testing.assert_allclose(after.friction.values, factor * values)
    qd = np.full((1, N), 0.5)
    still = np.zeros((1, N))
    friction = [m.predict(still, qd, still, std=False).friction_loss for m in (model, here)]
    there_and_back = here.in_session(Session.unanchored(model.bus.standby, model.sessions, N))
    for before, after in zip(model.joints, there_and_back.joints, strict=True):
        np.testing.assert_allclose(after.friction.values, before.friction.values)
        np.testing.assert_allclose(after.current_covariance, before.current_covariance)
    whole = [0, 1, 3, 4, 5]  # joint 2 has load friction, which stays
    expected = SESSION.friction_scale * friction[0][0]
    np.testing.assert_allclose(friction[1][0, whole], expected[whole])


def test_anchoring_narrows_intervals_and_keeps_the_number_of_errors() -> None:
    model = made_up_model()
    model = replace(model, bus=replace(model.bus, errors=np.zeros((1, 1 + 3 * N))))
    anywhere, here = model.predict(*motion()), model.in_session(SESSION).predict(*motion())
    assert here.sensitivity.shape == anywhere.sensitivity.shape
    assert here.total_sensitivity.shape == anywhere.total_sensitivity.shape
    assert (here.total_power_std < anywhere.total_power_std).mean() > 0.9
    assert (here.current_std <= 1.2 * anywhere.current_std).all()
    measured = [
        m.joint_power(motion()[1], anywhere.current).total_power_std
        for m in (model, model.in_session(SESSION))
    ]
    np.testing.assert_allclose(measured[0], model.sessions.standby)  # friction is in the current
    np.testing.assert_allclose(measured[1], 0.2)


def test_uncertainty_of_currents_includes_session_and_standstill() -> None:
    model = made_up_model()
    joints = tuple(replace(j, current_covariance=np.zeros((0, 0))) for j in model.joints)
    model = replace(model, joints=joints)
    still = np.zeros((1, N))
    fast = model.predict(still, np.full((1, N), 2.0), still)
    joint = model.joints[3]
    friction = fast.friction_loss[0, 3] / (101.0 * 2.0) / joint.torque_constant
    expected = np.sqrt(
        0.02**2 + (PREDICTION_ERROR * fast.current[0, 3]) ** 2 + (0.08 * friction) ** 2
    )
    assert fast.current_std[0, 3] == pytest.approx(expected, rel=1e-3)
    rest = model.predict(still, still, still)
    assert rest.current_std[0, 3] > 0.4 * joint.friction.parameters["coulomb"] / 0.1


def test_an_uncertain_motor_inertia_widens_intervals_of_power() -> None:
    model = made_up_model().in_session(SESSION)
    vague = replace(
        model,
        joints=tuple(
            replace(joint, std={**joint.std, "reflected_inertia": 0.5}) for joint in model.joints
        ),
    )
    speed, q = np.full((2, N), 1.0), np.zeros((2, N))
    cruising, starting = np.zeros((2, N)), np.full((2, N), 5.0)
    for made, wider in ((cruising, False), (starting, True)):
        sure = np.linalg.norm(model.predict(q, speed, made).sensitivity, axis=-1)
        unsure = np.linalg.norm(vague.predict(q, speed, made).sensitivity, axis=-1)
        assert bool((unsure > 1.001 * sure).all()) is wider
