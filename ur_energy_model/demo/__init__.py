"""Demonstration of the complete workflow with a simulated arm."""
