# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Joint trajectories: Fourier series, point-to-point and named motions, plans from CSV files."""
