# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The experiments of the papers: a module for each source, and published beside obtained."""
