# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Telemetry of the robot: sources, recording, bags and CSV files."""
