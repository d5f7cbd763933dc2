"""Less energy for the same work: cycles, time laws and their allocation over a cycle."""
