# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A harness of faults: `make torture`, or `python -m test.torture`."""
