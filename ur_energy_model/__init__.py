# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Electro-mechanical identification and live energy estimation of Universal Robots arms."""

__version__ = "0.1.0"
