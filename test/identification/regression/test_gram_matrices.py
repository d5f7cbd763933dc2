"""Gram matrices in a bounded number of blocks."""

from __future__ import annotations

import numpy as np

from test.identification.regression.accumulated import accumulated, data
from ur_energy_model.identification.least_squares import MAX_BLOCKS


def test_memory_stays_bounded_and_nothing_is_lost() -> None:
    rows = data(1, samples=200_000)
    gram, counts = accumulated(rows)
    assert len(gram) <= MAX_BLOCKS
    np.testing.assert_allclose(gram.blocks.sum(axis=0), rows.T @ rows, rtol=1e-9)
    assert counts.blocks.sum() == len(rows)


def test_merged_parts_equal_the_whole() -> None:
    rows = data(2, samples=8000)
    whole, _ = accumulated(rows)
    first, _ = accumulated(rows[:3000])
    second, _ = accumulated(rows[3000:])
    first.merge(second)
    np.testing.assert_allclose(first.blocks.sum(axis=0), whole.blocks.sum(axis=0), rtol=1e-12)
