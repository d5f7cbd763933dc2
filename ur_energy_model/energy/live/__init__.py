"""Live energy: counters that survive restarts, cycles, snapshots."""
