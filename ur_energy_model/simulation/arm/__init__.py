"""The simulated arm: mechanics, drives, supply, sensors."""
