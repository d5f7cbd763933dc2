"""Cost of a controller cycle of the simulated arm, and how exactly it keeps energy."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.trajectory.named_motions import named_motion

SECONDS = 20.0


def measure(name: str) -> tuple[float, float, float, float]:
    """Seconds to the first cycle, median and 99th percentile of a cycle [ms], imbalance [%]."""
    robot = load_robot(name)
    begin = perf_counter()
    arm = SimulatedArm(robot, motion=named_motion("trajectory_a", robot))
    arm.tick()
    start = perf_counter() - begin
    before, stored = arm.energies(), arm.stored_energy()
    times = np.empty(round(SECONDS * arm.rate))
    for k in range(len(times)):
        begin = perf_counter()
        arm.tick()
        times[k] = perf_counter() - begin
    joints = arm.energies().joints().sum(axis=1) - before.joints().sum(axis=1)
    output, electrical = joints[4], joints[1]
    imbalance = (output - (arm.stored_energy() - stored)) / electrical
    return start, 1e3 * float(np.median(times)), 1e3 * float(np.quantile(times, 0.99)), imbalance


def main() -> None:
    """Print the figures of three arms."""
    print("simulated arm, trajectory A        start    cycle   99 %   of a core   energy balance")
    for name in ("ur5e", "ur10e", "ur3"):
        rate = load_robot(name).rate
        start, median, late, imbalance = measure(name)
        print(
            f"  {name:6} at {rate:3.0f} Hz              {start:5.2f} s  {median:.3f}  {late:.3f} ms"
            f"   {median * rate / 10:4.1f} %      {100 * imbalance:+.3f} %"
        )


if __name__ == "__main__":
    main()
