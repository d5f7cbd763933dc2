# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""OPC UA: a server with a tree of nodes for each arm."""
