"""Bytes of states: read back as written, damage is found."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.learning.state import decoded, encoded

VALUES = {
    "numbers": [1, 2.5, -np.inf, None, True, "text"],
    "arrays": {"a": np.arange(6.0).reshape(2, 3), "empty": np.zeros((0, 4))},
    "nested": [{"deep": np.array([np.nan, np.inf])}],
}


def test_values_are_read_back() -> None:
    found = decoded(encoded(VALUES))
    assert found["numbers"] == VALUES["numbers"]
    np.testing.assert_array_equal(found["arrays"]["a"], np.arange(6.0).reshape(2, 3))
    assert found["arrays"]["empty"].shape == (0, 4)
    np.testing.assert_array_equal(found["nested"][0]["deep"], [np.nan, np.inf])


def test_any_changed_byte_is_found() -> None:
    data = encoded(VALUES)
    for place in range(0, len(data), max(1, len(data) // 97)):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        with pytest.raises(ValueError, match=r"damaged|not a state"):
            decoded(bytes(damaged))


@pytest.mark.parametrize("data", [b"", b"x" * 1000, encoded(VALUES)[:-1]])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"damaged|not a state"):
        decoded(data)
