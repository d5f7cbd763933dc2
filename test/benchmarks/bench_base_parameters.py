"""Base regressor and least squares of a UR5e, here and by figaroh from PyPI, on the same states."""

from __future__ import annotations

import subprocess
from time import perf_counter
from typing import Any

import numpy as np

from test.benchmarks.peers.methods import python_with_figaroh, run_figaroh
from test.identification.conftest import smooth_motion
from ur_energy_model.identification.base_parameters import BaseParameterFit
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot

SECONDS, RATE, NOISE = 60.0, 100.0, 0.5
"""Of the states [s, Hz], and of the joint torques [N m]."""
ROBOT, GRAVITY = load_robot("ur5e"), np.array([0.0, 0.0, -9.82])


def states() -> dict[str, Any]:
    """States and joint torques of a UR5e with friction and noise, as figaroh_script reads them."""
    time = np.arange(SECONDS * RATE) / RATE
    q, qd, qdd = smooth_motion(ROBOT, time, seed=1)
    torque = ArmDynamics(ROBOT).inverse_dynamics(q, qd, qdd) + ROBOT.reflected_inertia * qdd
    torque += 4.0 * np.tanh(qd / 1e-3) + 3.0 * qd
    torque += NOISE * np.random.default_rng(1).standard_normal(q.shape)
    motion = {"time": time, "q_0": q, "qd_0": qd, "qdd_0": qdd}
    return {"robot": "ur5e", "gravity": GRAVITY, "torque": torque, **motion}


def ours(data: dict[str, Any]) -> dict[str, float]:
    """Regressor with accumulation, and solution with weights, deviations and consistency."""
    nothing, constant = np.full_like(data["q_0"], np.nan), np.full(ROBOT.dof, 0.1)
    begin = perf_counter()
    fit = BaseParameterFit(ROBOT, GRAVITY, torque_constant=constant)
    current = data["torque"] / (ROBOT.gear_ratio * constant)
    columns = (data["q_0"], data["qd_0"], data["qdd_0"], current, nothing, nothing, nothing[:, :4])
    fit.accumulate(FilteredMotion(data["time"], *columns))
    built = perf_counter()
    found = fit.solve()
    return {
        "rank": found.regrouping.rank,
        "regressor_seconds": built - begin,
        "solve_seconds": perf_counter() - built,
        "residual": float(np.sqrt(np.mean(found.torque_rms**2))),
    }


def figaroh(data: dict[str, Any]) -> dict[str, float] | str:
    """The same by figaroh, or why not."""
    try:
        python = python_with_figaroh(install=True)
        assert python is not None
        return run_figaroh(python, data)[0]
    except (OSError, subprocess.SubprocessError) as error:
        return f"not available ({error})"


def main() -> None:
    """Print both, side by side."""
    data = states()
    print(f"base parameters of a UR5e, {len(data['q_0'])} states of 6 joints, noise {NOISE} N m")
    for name, result in (("ur_energy_model", ours(data)), ("figaroh 1.0.2", figaroh(data))):
        if isinstance(result, str):
            print(f"  {name:16} {result}")
            continue
        building, solving = result["regressor_seconds"], result["solve_seconds"]
        print(
            f"  {name:16} rank {result['rank']:.0f}   regressor {building:6.2f} s   "
            f"solution {solving:6.2f} s   residual {result['residual']:.3f} N m"
        )
