"""True constants of a simulated arm with its options, in its session."""

from __future__ import annotations

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.simulation.arm.arm_options import ArmOptions
from ur_energy_model.simulation.arm.drive_sets import with_drive_set
from ur_energy_model.simulation.arm.parameters import ArmParameters, draw_parameters
from ur_energy_model.simulation.arm.sessions import SimulatedSession


def actual_parameters(
    robot: RobotDescription, seed: int, session: SimulatedSession, options: ArmOptions
) -> ArmParameters:
    """Constants of arm number `seed` of this type, with its drive set, in a session."""
    drawn = with_drive_set(draw_parameters(robot, seed), robot, options.drive_set)
    parameters = session.applied_to(drawn)
    return parameters.without_friction() if options.frictionless else parameters
