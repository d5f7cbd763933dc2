"""The count of intervals that hold the truth, on errors whose distribution is known."""

from __future__ import annotations

import numpy as np
import pytest

from test.benchmarks.peers.coverage import Coverage, covered


def test_an_interval_reaches_1_96_deviations_to_both_sides():
    assert covered([1.95, -1.95, 0.0], 1.0).all()
    assert not covered([1.97, -1.97], 1.0).any()


@pytest.mark.parametrize(("stated", "share", "rms"), [(1.0, 0.95, 1.0), (0.5, 0.673, 2.0)])
def test_normal_errors_are_covered_as_often_as_their_stated_deviation_says(stated, share, rms):
    coverage = Coverage()
    coverage.add(np.random.default_rng(0).standard_normal(20_000), np.full(20_000, stated))
    assert coverage.share == pytest.approx(share, abs=0.01)
    assert coverage.rms == pytest.approx(rms, rel=0.02)


def test_samples_of_one_signal_count_as_one_interval():
    coverage = Coverage()
    coverage.add([0.0, 3.0], [1.0, 1.0], as_one=True)
    coverage.add(0.0, 1.0)
    assert coverage.count == pytest.approx(2.0)
    assert coverage.share == pytest.approx(0.75)
    assert coverage.rms == pytest.approx(np.sqrt(4.5 / 2))


def test_what_was_not_stated_does_not_count():
    coverage = Coverage()
    coverage.add([1.0, np.nan], [np.nan, 1.0])
    assert coverage.count == 0
    assert np.isnan(coverage.share)
    assert np.isnan(coverage.rms)


def test_a_deviation_of_zero_claims_to_be_exact():
    coverage = Coverage()
    coverage.add([0.0, 0.1], [0.0, 0.0])
    assert coverage.share == 0.5
    assert coverage.rms == np.inf
