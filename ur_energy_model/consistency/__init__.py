# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What was said about a recording, compared with what the recording itself shows."""
