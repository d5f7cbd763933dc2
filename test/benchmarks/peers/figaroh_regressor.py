"""figaroh's regressor of an arm of ours; imported only by scripts that run in a Python with it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from figaroh.tools.regressor import RegressorBuilder, RegressorConfig

from ur_energy_model.model.dynamics import ArmDynamics


class FigarohRegressor:
    """Inertial parameters, friction and motor inertia of every joint.

    Args:
        arm: n joints.
    """

    def __init__(self, arm: ArmDynamics) -> None:
        robot = SimpleNamespace(model=arm.model, data=arm.model.createData())
        config = RegressorConfig(has_friction=True, has_actuator_inertia=True)
        self._builder = RegressorBuilder(robot, config)
        self._joints = {"act_idxv": list(range(arm.dof))}

    def __call__(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Rows of joint 1 at all samples, then of joint 2, ... [n samples, parameters]."""
        return self._builder.build_basic_regressor(q, qd, qdd, self._joints)
