# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A browser that shows pages of optimized cycles."""

from __future__ import annotations

from test.report.browser import browser as browser
