"""Execution of a trajectory on a robot: approach, motion, recording."""
