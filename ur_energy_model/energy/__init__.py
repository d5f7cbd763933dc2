"""Energy while the arm works: live powers, counters, cycles, plans."""
