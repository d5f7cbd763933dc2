# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reports: recordings evaluated with a model, as an HTML page and static figures."""
