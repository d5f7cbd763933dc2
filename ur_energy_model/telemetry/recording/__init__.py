# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""From a telemetry source into bags, without losing a sample."""
