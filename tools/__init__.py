# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Developer tools: what writes generated files, figures and pages of the documentation."""
