# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Meaning of the RTDE codes robot_mode, safety_mode and runtime_state (RTDE guide)."""

from __future__ import annotations

SAFETY_MODES: dict[int, str] = {
    1: "normal", 2: "reduced", 3: "protective stop", 4: "recovery", 5: "safeguard stop",
    6: "system emergency stop", 7: "robot emergency stop", 8: "violation", 9: "fault",
    10: "validate joint id", 11: "undefined", 12: "automatic mode safeguard stop",
    13: "three-position enabling stop",
}  # fmt: skip

BACKDRIVE = 6  # robot_mode in which the arm is moved by hand (freedrive)
RUNNING = 7  # robot_mode of a robot with its brakes released
BRAKES_RELEASED = (BACKDRIVE, RUNNING)
"""robot_mode with brakes released: backdrive (freedrive) and running."""
POWER_OFF = 3  # highest robot_mode in which the joints have no power
PROTECTIVE_STOP = 3  # safety_mode
REDUCED = 2  # safety_mode with reduced limits; the arm is not stopped
# safety_mode in which the arm may move: normal, and with reduced limits
NORMAL_SAFETY = (1, 2)
SAFETY_STOPS = (3, 5, 6, 7, 8, 9, 12, 13)
"""safety_mode in which a safety function has stopped the arm."""
PLAYING = 2  # runtime_state of a running program

# Names of the robot modes in telemetry and model files.

ROBOT_MODES: dict[int, str] = {
    -1: "no controller", 0: "disconnected", 1: "confirm safety", 2: "booting", 3: "power off",
    4: "power on", 5: "idle", 6: "backdrive", 7: "running", 8: "updating firmware",
}  # fmt: skip
"""RTDE code robot_mode to name (RTDE guide)."""
