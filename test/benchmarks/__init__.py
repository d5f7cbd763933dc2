# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Benchmarks: figures to read, not checks."""

import os

# As the command line and the nodes do, before numpy: what is measured is what users have.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
