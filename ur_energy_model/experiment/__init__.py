# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Exciting trajectories: design, safety checks, execution and protocols of the papers."""
