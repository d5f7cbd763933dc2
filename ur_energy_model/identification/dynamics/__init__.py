"""Inertia, mounting and payload from torque; base parameters."""
