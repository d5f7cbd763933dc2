"""Health of arms over days and months: friction, torque constants and standby power."""
