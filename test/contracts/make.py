# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Writes the golden files anew: `python -m test.contracts.make [-k NAME]`, options as of pytest."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    os.environ["UR_ENERGY_WRITE_GOLDEN"] = "1"
    sys.exit(pytest.main([str(Path(__file__).parent), "-q", *sys.argv[1:]]))
