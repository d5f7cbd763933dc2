# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Powers of a model, and their uncertainty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

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
    total = (
        25.0 + out.electrical_power.sum(axis=1) + 0.2 * np.abs(out.current).sum(axis=1)
    )
    np.testing.assert_allclose(out.total_power, np.maximum(total, 0.0))


def test_standard_deviations_follow_the_parameters() -> None:
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
            law = joint.friction.law
            level = np.sqrt(COMMON_FRICTION) * common
            level += np.sqrt(1 - COMMON_FRICTION) * random.standard_normal()
            value[1:] *= np.where(scaled_parameters(law), 1.0 + spread[j] * level, 1.0)
            parameters = dict(zip(law.parameters, value[1:] / value[0], strict=True))
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
                driver=model.bus.driver + errors[1 + 2 * N : -1],
                drag=model.bus.drag + errors[-1],
            ),
        )
        out = other.from_link_torque(link, qd, qdd, std=False)
        # the sensitivities leave the driver's share of current errors out: it is far
        # smaller
        drawn.append(np.column_stack([out.electrical_power, out.total_power]))
    scatter = np.std(drawn, axis=0)
    np.testing.assert_allclose(
        scatter[:, :N], np.linalg.norm(claimed.sensitivity, axis=-1), rtol=0.12
    )
    np.testing.assert_allclose(
        scatter[:, N], np.linalg.norm(claimed.total_sensitivity, axis=-1), rtol=0.15
    )


SESSION = Session(27.0, 0.2, np.linspace(0.9, 1.1, N), np.full(N, 0.01), 5.0, 3.0)


def test_a_session_scales_friction_and_replaces_standby() -> None:
    model = made_up_model()
    here = model.in_session(SESSION)
    assert here.bus.standby == 27.0
    for scale, before, after in zip(
        SESSION.friction_scale, model.joints, here.joints, strict=True
    ):
        values = before.friction.values
        factor = np.where(scaled_parameters(before.friction.law), scale, 1.0)
        np.testing.assert_allclose(after.friction.values, factor * values)
    qd = np.full((1, N), 0.5)
    still = np.zeros((1, N))
    friction = [
        m.predict(still, qd, still, std=False).friction_loss for m in (model, here)
    ]
    whole = [0, 1, 3, 4, 5]  # joint 2 has load friction, which stays
    expected = SESSION.friction_scale * friction[0][0]
    np.testing.assert_allclose(friction[1][0, whole], expected[whole])
