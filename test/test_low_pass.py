"""The zero-phase low-pass filter."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.low_pass import low_pass

PERIOD = 0.002
TIME = PERIOD * np.arange(5000)


@pytest.mark.parametrize(("frequency", "gain"), [(0.5, 1.0), (5.0, 0.5), (50.0, 0.0)])
def test_gain_without_delay(frequency: float, gain: float) -> None:
    """Twice a second-order Butterworth: half the amplitude at the cut-off, no phase."""
    wave = np.sin(2 * np.pi * frequency * TIME)
    middle = slice(1000, -1000)
    filtered = low_pass(wave[:, None], PERIOD, 5.0, padding=1.5)[middle, 0]
    assert filtered == pytest.approx(gain * wave[middle], abs=2e-3)


def test_short_signals_and_high_cutoffs() -> None:
    assert low_pass(np.ones(3), PERIOD, 1.0, padding=1.5) == pytest.approx(np.ones(3))
    fast = low_pass(np.ones((50, 2)), 0.1, 20.0, padding=1.5)
    assert fast == pytest.approx(np.ones((50, 2)))
