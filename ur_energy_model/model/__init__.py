# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The model of an arm: rigid bodies, friction, drives and supply."""
