"""The simulated control box: programs, registers, kinematics."""
