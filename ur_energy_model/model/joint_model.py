"""JointModel: identified constants of one joint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ur_energy_model.model.friction.law import Friction
from ur_energy_model.model.sessions import scaled_parameters
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class JointModel:
    """Identified constants of one joint.

    Attributes:
        name: joint name.
        gear_ratio: motor turns per joint turn.
        reflected_inertia: of motor and reducer, joint side [kg m^2].
        torque_constant: motor torque per RTDE ampere [N m/A].
        winding_resistance: copper loss per RTDE ampere squared [ohm].
        back_emf_constant: converted power per RTDE ampere and motor speed [V s/rad].
        friction: law and parameters, motor side.
        std: standard deviations by quantity (the names above and the friction parameters).
        source: the stage each quantity comes from: "target_moment", "current", "bus_power",
            "prior" or "given".
        current_covariance: covariance [1 + p, 1 + p] of (1/k_t, friction parameters / k_t), the
            coefficients that give current from torque.
        current_residual: RMS of the measured minus the modelled current while moving [A].
        friction_reason: why this friction law was chosen.
    """

    name: str
    gear_ratio: float
    reflected_inertia: float
    torque_constant: float
    winding_resistance: float
    back_emf_constant: float
    friction: Friction
    std: Mapping[str, float] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    current_covariance: Array = field(default_factory=lambda: np.zeros((0, 0)))
    current_residual: float = 0.0
    friction_reason: str = ""

    @property
    def constants(self) -> dict[str, float]:
        """The constants other than friction, by attribute name."""
        return {
            "gear_ratio": self.gear_ratio,
            "reflected_inertia": self.reflected_inertia,
            "torque_constant": self.torque_constant,
            "winding_resistance": self.winding_resistance,
            "back_emf_constant": self.back_emf_constant,
        }

    @property
    def current_root(self) -> Array:
        """Square root [1 + p, 1 + p] of `current_covariance`; zeros if it is unknown."""
        size = 1 + len(self.friction.law.parameters)
        if self.current_covariance.size == 0:
            return np.zeros((size, size))
        return square_root(self.current_covariance)

    def with_friction_scaled(self, factor: float) -> JointModel:
        """The joint with the session-dependent part of its friction times a factor."""
        names = self.friction.law.parameters
        factors = np.where(scaled_parameters(names), factor, 1.0)
        by_name = dict(zip(names, factors.tolist(), strict=True))
        covariance = self.current_covariance
        if covariance.size:
            each = np.append(1.0, factors)
            covariance = covariance * np.outer(each, each)
        parameters = {
            name: by_name[name] * value for name, value in self.friction.parameters.items()
        }
        return replace(
            self,
            friction=replace(self.friction, parameters=parameters),
            std={name: by_name.get(name, 1.0) * value for name, value in self.std.items()},
            current_covariance=covariance,
        )


def square_root(covariance: Array) -> Array:
    """R [m, m] with R R' = covariance [m, m]."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None)))
