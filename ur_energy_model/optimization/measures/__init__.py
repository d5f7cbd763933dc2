# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What can be done for less energy: measures, what each of them saves, and how sure that is."""
