"""Days of the simulated arm's work, through the calculator and the health meter."""

from __future__ import annotations

from dataclasses import replace

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.learning.learner import first_model
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.plant_health import ArmMinutes, arm_minutes
from ur_energy_model.plant.rows import HealthMeter, HealthRow, health_table
from ur_energy_model.plant.schema import SourceKeys
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.named_motions import Planner

ARM, RATE = "ur5e", 125.0
RUN_IN = 40
"""Sessions after which friction no longer decreases."""
BEGIN = 1_767_250_000.0
MINUTES = 2
FIELDS = (
    "actual_q",
    "actual_qd",
    "actual_current",
    "target_q",
    "target_qd",
    "target_qdd",
    "joint_temperatures",
    "actual_robot_voltage",
    "actual_robot_current",
    "robot_mode",
    "safety_mode",
    "payload",
    "payload_cog",
)


def day_of_work(seed: int, session: int, joint: int, factor: float) -> Telemetry:
    """Some minutes of pick and place; a joint's friction has a factor."""
    robot = replace(load_robot(ARM), rate=RATE)
    planner = Planner(robot)
    motion = planner.chain_through(planner.random_points(seed), rest=0.5)
    arm = SimulatedArm(robot, motion=motion, seed=seed, options=ArmOptions(session=session))
    if factor != 1.0:
        arm.change_friction(joint, factor)
    return record_arm(arm, 60.0 * MINUTES + 1.0, FIELDS)


def rows_of(
    samples: Telemetry, begin: float, model: EnergyModel
) -> tuple[HealthMeter, list[HealthRow]]:
    """Rows of health of samples that begin at a host time [s]."""
    calculator = EnergyCalculator(model, load_robot(ARM))
    meter, rows = HealthMeter(calculator), []
    for start in range(0, len(samples), 5000):
        table = calculator(samples.cut(slice(start, start + 5000)))
        if table is not None:
            rows += meter.observe(table, begin + table.samples.time)
    return meter, [*rows, *meter.finish()]


def simulated_minutes(seed: int, days: int, joint: int, factor: float, since: int) -> ArmMinutes:
    """One session a day by the generic model; from a day on, the joint's friction has a factor."""
    model, rows = first_model(load_robot(ARM)), []
    for day in range(days):
        samples = day_of_work(seed, RUN_IN + day, joint, factor if day >= since else 1.0)
        meter, own = rows_of(samples, BEGIN + 86400.0 * day, model)
        rows += own
    keys = SourceKeys("made", ARM, "generic")
    found = arm_minutes(health_table(rows, meter.reference, load_robot(ARM).joint_names, keys))
    assert found is not None
    return found
