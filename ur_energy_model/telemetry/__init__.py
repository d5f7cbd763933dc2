"""Telemetry of the robot: sources, recording, bags and CSV files."""
