"""Time to identify ten minutes at 500 Hz, and to build and solve the base regressor.

The regressor is also built and solved with figaroh (PyPI), where `pip install figaroh` was run; the
package itself does not need it.
"""

from __future__ import annotations

import resource
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from test.identification.exact_arm import ExactArm
from ur_energy_model.identification.base_parameters import BaseParameterFit
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.identification.regrouping import FullRegressor, regroup
from ur_energy_model.identification.signals import Motion, motions
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.bags import BagWriter

MINUTES = 10
RATE = 500.0
GRAVITY = np.array([0.0, 0.0, -9.82])
SAMPLES = 6000


def long_bag(folder: Path, minutes: int) -> Path:
    """A bag of many minutes, written minute by minute."""
    arm, path = ExactArm(), folder / f"{minutes}min"
    first = arm.record(60.0, rate=RATE, seed=0)
    writer = BagWriter(path, first.info, tuple(first.columns))
    for minute in range(minutes):
        part = arm.record(60.0, rate=RATE, seed=minute)
        writer.write(replace(part, time=part.time + 60.0 * minute))
    writer.close()
    return path


def whole_pipeline() -> None:
    """Identification of a long bag, bag reading included."""
    with tempfile.TemporaryDirectory() as name:
        for minutes in (1, MINUTES):
            bag = long_bag(Path(name), minutes)
            start, cpu = perf_counter(), process_time()
            identify([bag], "ur5e")
            wall, cpu = perf_counter() - start, process_time() - cpu
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"identify {minutes:2d} min at {RATE:.0f} Hz: {wall:5.2f} s ({cpu:5.2f} s of "
                f"processor time), peak memory {peak:.0f} MB"
            )


def base_regressor() -> None:
    """The same base regressor, built and solved here and with figaroh."""
    arm = ExactArm()
    recording = arm.record(SAMPLES / 100.0, seed=1)
    stretches = list(motions([recording], 6, 5.0, 0.01))
    fit = BaseParameterFit(arm.robot, GRAVITY)
    start = perf_counter()
    for motion in stretches:
        fit.add(motion)
    rank = len(fit.solve().values)
    ours = perf_counter() - start
    print(
        f"base parameters, {SAMPLES} samples, {rank} of {_width(arm.robot)} columns: {ours:.2f} s"
    )
    theirs = _with_figaroh(arm.robot, stretches)
    print("the same with figaroh: " + ("not installed" if theirs is None else f"{theirs:.2f} s"))


def _width(robot: RobotDescription) -> int:
    return len(FullRegressor(robot, GRAVITY).names)


def _with_figaroh(robot: RobotDescription, stretches: list[Motion]) -> float | None:
    """Seconds to build figaroh's regressor of the same motion, and to solve its base columns."""
    try:
        from figaroh.tools.qrdecomposition import double_QR
        from figaroh.tools.regressor import build_regressor_basic, get_index_eliminate
    except ImportError:
        return None
    dynamics = ArmDynamics(robot)

    class Robot:
        """What figaroh asks of a robot."""

        model = dynamics.model
        data = dynamics.model.createData()

    settings: dict[str, Any] = {"has_friction": True, "has_actuator_inertia": True}
    settings |= {"is_joint_torques": True, "has_joint_offset": False}
    settings |= {"act_idxv": list(range(robot.dof))}
    q, qd, qdd, current = (
        np.concatenate([getattr(part, name) for part in stretches])
        for name in ("q", "qd", "qdd", "current")
    )
    torque = (current * robot.gear_ratio * robot.torque_constant).T.ravel()
    start = perf_counter()
    full = build_regressor_basic(Robot(), q, qd, qdd, settings)
    names = {str(i): 0.0 for i in range(full.shape[1])}
    dropped, kept = get_index_eliminate(full, names, 1e-6)
    double_QR(torque, np.delete(full, dropped, axis=1), kept)
    return perf_counter() - start


def main() -> None:
    """Print the figures."""
    whole_pipeline()
    base_regressor()
    start = perf_counter()
    regroup(FullRegressor(ExactArm().robot, GRAVITY))
    print(f"regrouping of 78 parameters: {perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
