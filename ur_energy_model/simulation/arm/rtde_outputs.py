"""RTDE fields of the simulated arm, in part computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ur_energy_model.typing import Array

RtdeValue = float | Array


class RtdeOutputs(Mapping[str, RtdeValue]):
    """RTDE field name -> value in the current cycle.

    Expensive values that few clients need are computed on first access in a cycle.
    """

    def __init__(self) -> None:
        self._lazy: dict[str, Callable[[], RtdeValue]] = {}
        self._values: dict[str, RtdeValue] = {}

    def compute_on_demand(self, functions: Mapping[str, Callable[[], RtdeValue]]) -> None:
        """Set the fields that are computed on first access in a cycle, by name."""
        self._lazy = dict(functions)

    def update(self, values: dict[str, RtdeValue]) -> None:
        """Start a new cycle with these values."""
        self._values = values

    def __getitem__(self, name: str) -> RtdeValue:
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
