"""Powers from telemetry or motion: joints, drivers, supply."""
