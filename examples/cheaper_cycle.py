# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Optimizes a recorded cycle and prints what to type on the pendant, step by step.

python examples/cheaper_cycle.py model.yaml my_bag
"""

import sys

from ur_energy_model.model.model_file import load_model
from ur_energy_model.optimization.cycle import OptimizationOptions
from ur_energy_model.optimization.optimize import optimize_cycle

model_file, bag = sys.argv[1:3]
cycle = optimize_cycle(load_model(model_file), bag, OptimizationOptions(keep_dwell=0.5))

print(f"{cycle.energy:.0f} J -> {cycle.typed_energy:.0f} J")
for number, step in enumerate(cycle.sheet, 1):
    if step.do == "wait":
        print(f"step {number}: wait {step.text('wait')}")
    else:
        print(
            f"step {number}: {step.do}, {step.text('speed')}, {step.text('acceleration')}"
        )
