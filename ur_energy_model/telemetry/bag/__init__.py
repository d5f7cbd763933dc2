# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags: rosbag2 directories with MCAP storage, written, read and repaired."""
