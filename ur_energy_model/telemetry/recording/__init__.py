"""From a telemetry source into bags, without losing a sample."""
