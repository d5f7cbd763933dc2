"""The network side of the simulated controller."""
