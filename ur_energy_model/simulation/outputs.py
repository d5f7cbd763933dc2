"""RTDE values of the simulated arm: those of every cycle, and those computed when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Value = float | Array


class Outputs(Mapping[str, Value]):
    """RTDE field name -> value in the present cycle.

    Values of `lazy` fields, which cost more than most clients need, are computed on first use in
    a cycle.

    Args:
        lazy: functions by field name.
    """

    def __init__(self, lazy: Mapping[str, Callable[[], Value]]) -> None:
        self._lazy = dict(lazy)
        self._values: dict[str, Value] = {}

    def renew(self, values: dict[str, Value]) -> None:
        """Begin a new cycle with these values."""
        self._values = values

    def __getitem__(self, name: str) -> Value:
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._lazy[name]()
            return value

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._lazy

    def __iter__(self) -> Iterator[str]:
        return iter({**self._values, **self._lazy})

    def __len__(self) -> int:
        return len({**self._values, **self._lazy})
