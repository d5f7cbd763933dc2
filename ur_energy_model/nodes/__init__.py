# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ROS 2 nodes. Apart from the demo, only this package imports ROS."""

import os

# Threads of OpenBLAS slow down operations on small matrices. Must be set before numpy is
# imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
