"""Base regressor and least squares by figaroh; run by bench_base_parameters in its own Python.

Usage: python figaroh_base.py STATES.npz; prints JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from figaroh.tools.qrdecomposition import QRDecomposer
from figaroh.tools.regressor import build_regressor_reduced, get_index_eliminate

from test.benchmarks.peers.figaroh_regressor import FigarohRegressor
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot


def main(path: str) -> None:
    data = np.load(path)
    arm = ArmDynamics(load_robot(str(data["robot"])))
    begin = perf_counter()
    whole = FigarohRegressor(arm)(data["q"], data["qd"], data["qdd"])
    built = perf_counter()
    names = [f"p{k}" for k in range(whole.shape[1])]
    dropped, kept = get_index_eliminate(whole, dict.fromkeys(names, 0.0))
    reduced = build_regressor_reduced(whole, dropped)
    result = QRDecomposer().decompose(reduced, kept, tau=data["torque"].T.ravel())
    solved = perf_counter()
    base = reduced[:, list(result.base_indices)]
    residual = data["torque"].T.ravel() - base @ np.asarray(result.phi_b).ravel()
    print(
        json.dumps(
            {
                "rank": base.shape[1],
                "regressor_seconds": built - begin,
                "solve_seconds": solved - built,
                "residual": float(np.sqrt(np.mean(residual**2))),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
