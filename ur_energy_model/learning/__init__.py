# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The model that follows the arm: learned while the arm does its ordinary work."""
