# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Draws the energy of each joint per metre of tool path from a bag.

python examples/bag_to_figure.py model.yaml my_bag figure.png
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from ur_energy_model.model.model_file import load_model
from ur_energy_model.report.analysis import analyse

model_file, bag, output = sys.argv[1:4]
analysis = analyse(load_model(model_file), bag)
metres = np.linalg.norm(np.diff(analysis.flange, axis=0), axis=1).sum()

figure = Figure(figsize=(7, 3), layout="constrained")
axes = figure.subplots()
axes.barh(analysis.joint_names, analysis.powers.electrical_energy / metres)
axes.invert_yaxis()
axes.set_xlabel(f"energy per metre of tool path [J/m], over {metres:.1f} m")
figure.savefig(output, dpi=150)
