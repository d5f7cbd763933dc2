"""The arm on the desk: a simulated controller with known truth."""
