"""A model known before as the prior of the currents: its friction law, values and uncertainty."""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.friction.law_selection import FrictionCandidate
from ur_energy_model.identification.friction.priors import TORQUE_CONSTANT_SPREAD
from ur_energy_model.identification.regression.least_squares import Prior
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.bank import FrictionBank
from ur_energy_model.model.friction.terms import OperatingPoint
from ur_energy_model.model.sessions import scaled_parameters
from ur_energy_model.typing import Array

_FORM = 0.02
"""Error of each friction coefficient that a model known before may have beyond its standard
deviation, relative."""
_LEAST = 1e-9


class KnownFriction:
    """Columns and priors of the friction laws of a model known before.

    With few data its values are corrected only in the directions in which they are uncertain:
    a friction scale at first, single parameters later. That is least squares with the prior's full
    covariance.

    Args:
        model: of the arm, n joints.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        ratio = np.array([joint.gear_ratio for joint in model.joints])
        self._bank = FrictionBank([joint.friction for joint in model.joints], ratio)
        self.counts = [len(joint.friction.law.parameters) for joint in model.joints]
        self.width = max(self.counts)
        """Number of columns."""

    def columns(self, point: OperatingPoint) -> Array:
        """Terms of each joint's law [samples, n, width]; zero beyond its parameters."""
        temperature = None if point.temperature is None else np.asarray(point.temperature)
        terms = self._bank.regressors(point.speed, point.load, temperature)
        out = np.zeros((*point.speed.shape, self.width))
        for j, own in enumerate(terms):
            out[:, j, : own.shape[1]] = own
        return out

    def candidate(self, j: int) -> FrictionCandidate:
        """The law of a joint with its shape."""
        friction = self.model.joints[j].friction
        return FrictionCandidate(friction.law, tuple(friction.all_shape.items()))

    def prior(self, j: int) -> Prior:
        """Prior of (1/k_t, friction parameters / k_t) of a joint in any session.

        The torque constant's is weak, as that of `current_prior`.
        """
        joint = self.model.joints[j]
        names = joint.friction.law.parameters
        mean = np.append(1.0, joint.friction.values) / joint.torque_constant
        covariance = joint.current_root @ joint.current_root.T
        covariance[0], covariance[:, 0] = 0.0, 0.0
        covariance[0, 0] = (TORQUE_CONSTANT_SPREAD * mean[0]) ** 2
        spread = float(self.model.session.friction_std[j])
        scale = np.append(0.0, np.where(scaled_parameters(names), spread * mean[1:], 0.0))
        floor = np.append(0.0, np.abs(mean[1:]) * _FORM + _LEAST)
        covariance = covariance + np.outer(scale, scale) + np.diag(floor**2)
        return Prior(mean, np.sqrt(np.diag(covariance)), covariance)

    def temperature_range(self, j: int, seen: Array) -> Array:
        """Temperatures that the law is known for, those seen [2] included, degC."""
        known = self.model.joints[j].friction.temperature_range
        if known is None or not np.isfinite(seen).all():
            return seen
        return np.array([min(known[0], seen[0]), max(known[1], seen[1])])
