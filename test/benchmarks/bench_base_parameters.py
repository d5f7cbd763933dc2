"""Base regressor and least squares of a UR5e, here and by figaroh from PyPI, on the same states.

figaroh brings dependencies of its own and so gets an environment of its own, made on first use
in build/peers (needs the network once, about two minutes).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from test.identification.conftest import smooth_motion
from ur_energy_model.identification.base_parameters import BaseParameterFit
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot

SECONDS, RATE = 60.0, 100.0
NOISE = 0.5
"""Of the joint torques [N m]."""
ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "peers"
PEER = Path(__file__).parent / "peers" / "figaroh_base.py"
PACKAGES = ("figaroh==1.0.2", "pin==4.1.0", "numpy==2.4.6")
PATIENCE = 600.0


def states() -> dict[str, Any]:
    """States and joint torques of a UR5e with friction and noise."""
    robot = load_robot("ur5e")
    time = np.arange(SECONDS * RATE) / RATE
    q, qd, qdd = smooth_motion(robot, time, seed=1)
    torque = ArmDynamics(robot).inverse_dynamics(q, qd, qdd) + robot.reflected_inertia * qdd
    torque += 4.0 * np.tanh(qd / 1e-3) + 3.0 * qd
    torque += NOISE * np.random.default_rng(1).standard_normal(q.shape)
    return {"robot": "ur5e", "time": time, "q": q, "qd": qd, "qdd": qdd, "torque": torque}


def ours(data: dict[str, Any]) -> dict[str, float]:
    """Regressor with accumulation, and solution with weights, deviations and consistency."""
    robot = load_robot(data["robot"])
    nothing = np.full_like(data["q"], np.nan)
    constant = np.full(robot.dof, 0.1)
    begin = perf_counter()
    fit = BaseParameterFit(robot, np.array([0.0, 0.0, -9.82]), torque_constant=constant)
    current = data["torque"] / (robot.gear_ratio * constant)
    columns = (data["q"], data["qd"], data["qdd"], current, nothing, nothing, nothing[:, :4])
    fit.accumulate(FilteredMotion(data["time"], *columns))
    built = perf_counter()
    found = fit.solve()
    solved = perf_counter()
    return {
        "rank": found.regrouping.rank,
        "regressor_seconds": built - begin,
        "solve_seconds": solved - built,
        "residual": float(np.sqrt(np.mean(found.torque_rms**2))),
    }


def figaroh(data: dict[str, Any]) -> dict[str, float] | str:
    """The same by figaroh, or why not."""
    python = PEERS / "bin" / "python"
    try:
        if not (PEERS / "ready").exists():
            run: dict[str, Any] = {"check": True, "capture_output": True, "timeout": PATIENCE}
            subprocess.run([sys.executable, "-m", "venv", PEERS], **run)
            subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], **run)
            (PEERS / "ready").touch()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "states.npz"
            np.savez(path, **data)
            done = subprocess.run(
                [python, PEER, path], check=True, capture_output=True, text=True, timeout=PATIENCE
            )
    except (OSError, subprocess.SubprocessError) as error:
        return f"not available ({error})"
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    """Print both, side by side."""
    data = states()
    print(f"base parameters of a UR5e, {len(data['q'])} states of 6 joints, noise {NOISE} N m")
    for name, result in (("ur_energy_model", ours(data)), ("figaroh 1.0.2", figaroh(data))):
        if isinstance(result, str):
            print(f"  {name:16} {result}")
            continue
        building, solving = result["regressor_seconds"], result["solve_seconds"]
        print(
            f"  {name:16} rank {result['rank']:.0f}   regressor {building:6.2f} s   "
            f"solution {solving:6.2f} s   residual {result['residual']:.3f} N m"
        )


if __name__ == "__main__":
    main()
