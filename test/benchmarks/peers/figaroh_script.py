# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Base parameters by figaroh from one recording, torques of others; run in a Python that has it.

Usage: python figaroh_script.py IN.npz OUT.npz. IN holds robot, gravity [3], torque
[samples, n] and the states q_K, qd_K, qdd_K [samples, n] of recordings 0 (to fit), 1, 2,
...; OUT torque_K of the recordings from 1.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from figaroh.tools.qrdecomposition import QRDecomposer
from figaroh.tools.regressor import (
    RegressorBuilder,
    RegressorConfig,
    build_regressor_reduced,
    get_index_eliminate,
)

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup


def main(given: str, result: str) -> None:
    data = np.load(given)
    arm = ArmDynamics(load_robot(str(data["robot"])), Setup(gravity=data["gravity"]))
    robot = SimpleNamespace(model=arm.model, data=arm.model.createData())
    config = RegressorConfig(has_friction=True, has_actuator_inertia=True)
    builder = RegressorBuilder(robot, config)
    joints = {"act_idxv": list(range(arm.dof))}

    def regressor(k: int) -> np.ndarray:
        """Rows of joint 1 at all samples, then of joint 2, ... [n samples, parameters]."""
        states = (data[f"{name}_{k}"] for name in ("q", "qd", "qdd"))
        return builder.build_basic_regressor(*states, joints)

    whole = regressor(0)
    torque = data["torque"].T.ravel()
    dropped, kept = get_index_eliminate(
        whole, {f"p{k}": 0.0 for k in range(whole.shape[1])}
    )
    reduced = build_regressor_reduced(whole, dropped)
    found = QRDecomposer().decompose(reduced, kept, tau=torque)
    base = list(found.base_indices)
    values = np.asarray(found.phi_b).ravel()
    torques = {}
    k = 1
    while f"q_{k}" in data:
        columns = build_regressor_reduced(regressor(k), dropped)[:, base]
        torques[f"torque_{k}"] = (columns @ values).reshape(arm.dof, -1).T
        k += 1
    np.savez(result, **torques)


if __name__ == "__main__":
    main(*sys.argv[1:])
