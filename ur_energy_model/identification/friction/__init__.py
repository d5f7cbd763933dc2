"""Torque constants and friction from currents."""
