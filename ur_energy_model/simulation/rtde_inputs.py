"""RTDE input fields, and which client owns them.

Source: the RTDE guide. The first client that puts a field into an input recipe owns it until it
disconnects; other clients get IN_USE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ur_energy_model.telemetry.fields import FIELDS, ValueKind
from ur_energy_model.telemetry.rtde.protocol import IN_USE, NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

INPUTS: dict[str, ValueKind] = {
    "speed_slider_mask": "UINT32",
    "speed_slider_fraction": "DOUBLE",
    "standard_digital_output_mask": "UINT8",
    "standard_digital_output": "UINT8",
    "configurable_digital_output_mask": "UINT8",
    "configurable_digital_output": "UINT8",
    "tool_digital_output_mask": "UINT8",
    "tool_digital_output": "UINT8",
    "standard_analog_output_mask": "UINT8",
    "standard_analog_output_type": "UINT8",
    "standard_analog_output_0": "DOUBLE",
    "standard_analog_output_1": "DOUBLE",
    "external_force_torque": "VECTOR6D",
    **{name: field.kind for name, field in FIELDS.items() if name.startswith("input_")},
}
"""RTDE type of each input field by name."""

OWN_FIELDS = ("output_", "standard_analog", "analog_io", "actual_digital", "io_current", "tool_")
"""Prefixes of output fields that belong to the control box, not to the arm."""


class InputOwnership:
    """Owners of the input fields."""

    def __init__(self) -> None:
        self._owners: dict[str, Hashable] = {}

    def claim(self, owner: Hashable, names: Sequence[str]) -> tuple[str, ...]:
        """Claim fields for a client; all of them or none.

        Returns:
            Per name its RTDE type, IN_USE or NOT_FOUND. With any IN_USE or NOT_FOUND, nothing
            is claimed.
        """
        answers = tuple(
            IN_USE if self._owners.get(name, owner) != owner else INPUTS.get(name, NOT_FOUND)
            for name in names
        )
        if IN_USE not in answers and NOT_FOUND not in answers:
            self._owners.update(dict.fromkeys(names, owner))
        return answers

    def release(self, owner: Hashable) -> None:
        """Release all fields of a client that disconnected."""
        self._owners = {name: each for name, each in self._owners.items() if each != owner}
