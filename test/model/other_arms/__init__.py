# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arms of another make, which the package has no files of.

Kinematics, masses and limits are those of the URDFs that UFACTORY publishes of xArm 6 and
xArm 7 (xarm_ros2, BSD licence). Motors and gears are not published, nor are capsules.
"""

from __future__ import annotations

from pathlib import Path

SIX_AXES = Path(__file__).with_name("xarm6.yaml")
SEVEN_AXES = Path(__file__).with_name("xarm7.yaml")
