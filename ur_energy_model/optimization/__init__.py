# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Less energy for the same work: cycles, time laws and their allocation over a cycle."""
