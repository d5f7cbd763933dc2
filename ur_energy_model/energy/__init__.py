# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power and energy of an arm: the calculator, live counters, recordings, plans."""
