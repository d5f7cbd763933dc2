"""Arguments of a URScript call, checked against the parameters of its function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ur_energy_model.simulation.control.program import ScriptError
from ur_energy_model.simulation.control.urscript_calls import Call, Pose
from ur_energy_model.typing import Array

LARGEST = 1e6
"""Largest number of a list: beyond any position, speed, mass or inertia of an arm."""
_SHOWN = 40


@dataclass(frozen=True)
class Arguments:
    """Arguments by parameter name.

    Every method raises `ScriptError`, which ends the program with a message, where an argument is
    missing, of another type, not finite or out of range.

    Attributes:
        function: name of the called function, for messages.
        given: argument by parameter name.
    """

    function: str
    given: Mapping[str, Any]

    @classmethod
    def of_call(cls, call: Call, parameters: tuple[str, ...]) -> Arguments:
        """Bind the arguments of a call to the parameters of its function, in order.

        Raises:
            ScriptError: too many arguments, or one that the function does not have.
        """
        if len(call.positional) > len(parameters):
            raise ScriptError(f"{call.name} takes at most {len(parameters)} arguments")
        given = dict(zip(parameters, call.positional, strict=False))
        for key, value in call.named.items():
            if key not in parameters or key in given:
                raise ScriptError(f"{call.name}: {key[:_SHOWN]} is unknown or given twice")
            given[key] = value
        return cls(call.name, given)

    def number(
        self, name: str, default: float | None = None, *, low: float = 0.0, high: float = LARGEST
    ) -> float:
        """A number from `low` to `high`."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refused(name, value, "a number")
        if not low <= value <= high:
            raise self._refused(name, value, f"{low:g} to {high:g}")
        return float(value)

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._refused(name, value, f"a whole number from {low} to {high}")
        return value

    def truth(self, name: str) -> bool:
        """True or False."""
        value = self._value(name)
        if not isinstance(value, bool):
            raise self._refused(name, value, "True or False")
        return value

    def vector(self, name: str, size: int, default: tuple[float, ...] | None = None) -> Array:
        """`size` numbers [size] up to `LARGEST`, from a list or a pose."""
        value = self._value(name, default)
        items = value if isinstance(value, list | tuple) else ()
        numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in items)
        if len(items) != size or not numeric or not all(abs(x) <= LARGEST for x in items):
            raise ScriptError(f"{self.function} needs {_WORDS.get(size, size)} numbers as {name}")
        return np.array(items, dtype=float)

    def is_pose(self, name: str) -> bool:
        """Whether an argument is a pose p[...]."""
        return isinstance(self.given.get(name), Pose)

    def _value(self, name: str, default: Any = None) -> Any:
        value = self.given.get(name, default)
        if value is None:
            raise ScriptError(f"{self.function} needs an argument {name}")
        return value

    def _refused(self, name: str, value: Any, expected: str) -> ScriptError:
        shown = repr(value)[:_SHOWN] if isinstance(value, str | int | float) else "a list"
        return ScriptError(f"{self.function}: {name} must be {expected}, not {shown}")


_WORDS = {3: "three", 6: "six"}
