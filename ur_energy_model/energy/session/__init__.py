"""What is learnt of a session while it runs: standby power and friction scale."""
