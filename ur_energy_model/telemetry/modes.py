"""What the RTDE codes robot_mode, safety_mode and runtime_state mean (RTDE guide)."""

from __future__ import annotations

from ur_energy_model.robot_modes import ROBOT_MODES as ROBOT_MODES

SAFETY_MODES: dict[int, str] = {
    1: "normal", 2: "reduced", 3: "protective stop", 4: "recovery", 5: "safeguard stop",
    6: "system emergency stop", 7: "robot emergency stop", 8: "violation", 9: "fault",
}  # fmt: skip

BRAKES_RELEASED = (6, 7)
"""robot_mode with brakes released: backdrive (freedrive) and running."""
POWER_OFF = 3
"""robot_mode at and below which the joints have no power."""
PROTECTIVE_STOP = 3
"""safety_mode."""
PLAYING = 2
"""runtime_state of a program that runs."""
