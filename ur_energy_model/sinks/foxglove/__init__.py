# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Foxglove and Lichtblick: a WebSocket server and MCAP files."""
