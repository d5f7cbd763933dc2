"""The zero-phase low-pass and the even grid."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.filtering import at_grid, low_pass

PERIOD = 0.01
TIME = PERIOD * np.arange(2000)


@pytest.mark.parametrize(("frequency", "gain"), [(0.5, 1.0), (5.0, 0.5), (40.0, 0.0)])
def test_a_sine_keeps_its_phase_and_loses_what_two_butterworth_passes_take(frequency, gain):
    sine = np.sin(2 * np.pi * frequency * TIME)[:, None]
    filtered = low_pass(sine, 5.0, PERIOD)
    inside = slice(200, -200)
    assert filtered[inside] == pytest.approx(gain * sine[inside], abs=0.01)


def test_a_constant_stays_what_it_is_up_to_its_ends():
    values = np.full((50, 2, 3), 7.0)
    assert low_pass(values, 3.0, PERIOD) == pytest.approx(values, abs=1e-9)


def test_an_even_extension_keeps_a_signal_at_rest_at_its_ends():
    ramp = np.clip(TIME - 5.0, 0.0, 1.0)[:, None]
    assert low_pass(ramp, 2.0, PERIOD, extension="even")[[0, -1], 0] == pytest.approx([0.0, 1.0])


def test_a_signal_shorter_than_the_padding_and_a_cutoff_above_the_rate_are_filtered():
    assert low_pass(np.ones((4, 1)), 80.0, PERIOD) == pytest.approx(np.ones((4, 1)))
    assert low_pass(np.ones((4, 1)), 0.1, PERIOD) == pytest.approx(np.ones((4, 1)))


def test_samples_that_are_on_the_grid_are_returned_as_they_are():
    values = np.random.default_rng(1).standard_normal((len(TIME), 2))
    jitter = 0.01 * PERIOD * np.sin(np.arange(len(TIME)))
    assert at_grid(TIME, TIME + jitter, values) is values


@pytest.mark.parametrize("cubic", [False, True])
def test_uneven_samples_are_interpolated(cubic):
    uneven = TIME + 0.3 * PERIOD * np.sin(np.arange(len(TIME)))
    uneven[[0, -1]] = TIME[[0, -1]]
    sine = at_grid(TIME, uneven, np.sin(np.outer(uneven, [1.0, 2.0])), cubic=cubic)
    assert sine == pytest.approx(np.sin(np.outer(TIME, [1.0, 2.0])), abs=1e-7 if cubic else 1e-3)
