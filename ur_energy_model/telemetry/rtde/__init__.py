"""Telemetry from a controller: RTDE packets, connection, recovery from losses."""
