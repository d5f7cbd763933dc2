"""Design of exciting trajectories."""
