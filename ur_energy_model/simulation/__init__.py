"""A simulated controller and arm with known true energies."""
