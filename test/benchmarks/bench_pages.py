# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pages with measured figures against the code: fails where a figure no longer holds."""

from __future__ import annotations

from tools import simulated_arm_page


def main() -> None:
    """Measure the pages anew and compare; takes some minutes."""
    trials = [simulated_arm_page.trial(seed) for seed in simulated_arm_page.SEEDS]
    simulated_arm_page.check(simulated_arm_page.figures(trials))
