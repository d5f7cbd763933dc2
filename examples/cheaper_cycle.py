"""Optimizes a recorded cycle and prints what to type on the pendant for each moveJ.

python examples/cheaper_cycle.py model.yaml my_bag
"""

import math
import sys

from ur_energy_model.model.file.model_file import load_model
from ur_energy_model.optimization.optimize import optimize_cycle
from ur_energy_model.optimization.options import OptimizationOptions

model_file, bag = sys.argv[1:3]
cycle = optimize_cycle(load_model(model_file), bag, OptimizationOptions(keep_dwell=0.5))

print(f"{cycle.energy:.0f} J -> {cycle.new_energy:.0f} J ({cycle.saving_percent:.1f} % less)")
for number, move in enumerate(cycle.moves, 1):
    if move.move.kind == "moveJ" and math.isfinite(move.speed):
        speed, acceleration = math.degrees(move.speed), math.degrees(move.acceleration)
        print(f"move {number}: speed {speed:.3g} deg/s, acceleration {acceleration:.3g} deg/s^2")
