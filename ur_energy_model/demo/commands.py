# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy demo`: the complete workflow with a simulated arm."""

from __future__ import annotations

from ur_energy_model.demo.room import DemoOptions
from ur_energy_model.demo.run import run_demo
from ur_energy_model.rooms import Given


def demo(given: Given) -> None:
    """Run the demo.

    Raises:
        UrEnergyError: the folder is not one of an earlier demo, or a step fails.
    """
    options = given.of(DemoOptions)
    run_demo(options.output, options.robot, options.host, options.seconds, options.seed)
