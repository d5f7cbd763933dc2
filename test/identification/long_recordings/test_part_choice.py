"""Which parts of a long recording are chosen."""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.parts import chosen_parts


def information(parts: int, seed: int = 0) -> np.ndarray:
    """Gram matrices [parts, 2, 3, 3] of alike parts."""
    rows = np.random.default_rng(seed).normal(size=(parts, 2, 50, 3))
    return np.swapaxes(rows, 2, 3) @ rows


def test_a_short_recording_is_used_as_a_whole() -> None:
    np.testing.assert_array_equal(chosen_parts(information(4), np.full(4, 30.0), 120.0), range(4))


def test_alike_parts_are_spread_over_the_recording() -> None:
    chosen = chosen_parts(information(100), np.full(100, 30.0), 600.0)
    assert chosen[0] == 0
    assert 30.0 * len(chosen) == 600.0
    assert (np.diff(chosen) > 0).all()
    tenths = np.bincount(chosen // 10, minlength=10)
    assert (tenths >= 1).all()


def test_the_only_part_in_which_a_joint_moves_is_chosen() -> None:
    told = information(100)
    told[:, 1] = 0.0
    told[73, 1] = 50.0 * np.eye(3)
    assert 73 in chosen_parts(told, np.full(100, 30.0), 120.0)


def test_units_of_the_columns_do_not_matter() -> None:
    told, seconds = information(60), np.full(60, 30.0)
    scale = np.array([1.0, 1e3, 1e-4])
    np.testing.assert_array_equal(
        chosen_parts(told, seconds, 300.0),
        chosen_parts(told * np.outer(scale, scale), seconds, 300.0),
    )


def test_parts_of_different_lengths_stay_within_the_time() -> None:
    seconds = np.random.default_rng(1).uniform(1.0, 40.0, 80)
    chosen = chosen_parts(information(80), seconds, 200.0)
    assert 160.0 < seconds[chosen].sum() <= 200.0
