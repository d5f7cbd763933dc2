"""Power at the supply from currents and speeds."""
