# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tests and benchmarks; a package, because the standard library has a `test` of its own."""
