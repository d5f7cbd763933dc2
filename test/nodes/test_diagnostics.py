"""Values as diagnostics show them."""

from __future__ import annotations

import numpy as np

from ur_energy_model.telemetry.bag.cdr import text_of


def test_values_become_readable_text() -> None:
    shown = [text_of(v) for v in (None, True, 1234567.8912, np.float64(0.5), 7, "x")]
    assert shown == ["unknown", "yes", "1234567.891", "0.5", "7", "x"]
