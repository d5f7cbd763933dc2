# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Predictions use what is known of the session: followed friction and standby power."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from test.energy.known_arm import changed, known_model, motion, packets
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import Session, SessionFriction
from ur_energy_model.telemetry.samples import Telemetry

SCALE = np.array([1.3, np.nan, 0.8, 1.0, 1.0, 1.0])
FRICTION = SessionFriction(SCALE, np.full(6, 0.03), 60.0)


def moved(scale: float, seconds: float, start: float = 100.0) -> Telemetry:
    """Motion of the known arm with its friction scaled, as its controller would show it."""
    samples = motion(seconds, start=start)
    rate = 2 * np.pi * 0.5
    angle = rate * (samples.time - samples.time[0])[:, None] + np.arange(6)
    q = samples["actual_q"]
    qd = samples["actual_qd"]
    qdd = -rate * np.sin(angle)
    model = known_model()
    actual = model.in_session(replace(model.session, friction_scale=np.full(6, scale)))
    current = actual.predict(q, qd, qdd, std=False).current
    return changed(
        samples, actual_current=current, target_q=q, target_qd=qd, target_qdd=qdd
    )


def found(calculator: EnergyCalculator, samples: Telemetry) -> Session:
    """The session after more samples."""
    for packet in packets(samples, 50):
        calculator(packet)
    return calculator.model_in_session().session


def test_the_first_motion_anchors_predictions_until_learning_has_measured_friction():
    model = known_model()
    robot = load_robot("ur5e")
    calculator = EnergyCalculator(model, robot)
    session = found(calculator, moved(1.2, 5.0))
    np.testing.assert_allclose(session.friction_scale, 1.2, atol=0.04)
    assert (session.friction_std < model.session.friction_std).all()
    assert session.moving_seconds >= 3.0
    vague = replace(FRICTION, std=np.full(6, 0.3), moving_seconds=0.0)
    calculator.use_friction(vague)  # of earlier sessions
    np.testing.assert_allclose(
        calculator.model_in_session().session.friction_scale, 1.2, atol=0.04
    )
    calculator.use_friction(FRICTION)
    known = calculator.model_in_session().session
    measured = np.isfinite(SCALE)
    np.testing.assert_array_equal(known.friction_scale[measured], SCALE[measured])
    np.testing.assert_array_equal(known.friction_std[measured], FRICTION.std[measured])
    np.testing.assert_allclose(known.friction_scale[~measured], 1.2, atol=0.04)
