"""The known model with the friction of a real arm, so that its limits leave room for motion."""

from __future__ import annotations

from dataclasses import replace

from test.energy.known_arm import known_model
from ur_energy_model.model.energy_model import EnergyModel

FRICTION = 1e-4
"""Viscous [N m s/rad] and Coulomb friction [N m] of every joint, motor side: at 101 to 1, 1 N m
s/rad and 0.01 N m at the joint."""


def light_model() -> EnergyModel:
    """A UR5e's model with round constants."""
    model = known_model()
    joints = tuple(
        replace(
            joint,
            friction=replace(
                joint.friction, parameters=dict.fromkeys(joint.friction.parameters, FRICTION)
            ),
        )
        for joint in model.joints
    )
    return replace(model, joints=joints)
