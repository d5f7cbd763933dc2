# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""CSV recordings of RTDE data, read strictly and in bounded memory."""
