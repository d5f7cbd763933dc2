"""Identification of the power model: from motor currents and speeds to power at the supply."""
