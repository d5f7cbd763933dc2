"""The live estimator: energy counters that survive restarts, cycles, snapshots."""
