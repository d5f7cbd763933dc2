"""Names of the robot modes in telemetry and model files."""

from __future__ import annotations

ROBOT_MODES: dict[int, str] = {
    -1: "no controller", 0: "disconnected", 1: "confirm safety", 2: "booting", 3: "power off",
    4: "power on", 5: "idle", 6: "backdrive", 7: "running", 8: "updating firmware",
}  # fmt: skip
"""RTDE code robot_mode to name (RTDE guide)."""
