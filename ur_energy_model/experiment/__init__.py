"""Exciting trajectories: design, safety checks, execution and protocols of the papers."""
