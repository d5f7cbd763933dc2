"""The ur_energy command."""
