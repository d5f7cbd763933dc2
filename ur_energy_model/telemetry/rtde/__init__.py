# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Telemetry from a controller: RTDE packets, connection, recovery from losses."""
