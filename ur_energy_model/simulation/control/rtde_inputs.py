"""The one table of RTDE input fields, and which client owns which.

Source: the RTDE guide. A field belongs to the first client that puts it into an input recipe,
until that client disconnects; for others it is in use.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ur_energy_model.telemetry.fields import FIELDS, ValueKind
from ur_energy_model.telemetry.rtde.protocol import IN_USE, NOT_FOUND

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
"""Beginnings of the names of output fields that belong to the control box and not to the arm."""


class InputOwnership:
    """Which client may write which input field."""

    def __init__(self) -> None:
        self._owners: dict[str, Hashable] = {}

    def claim(self, owner: Hashable, names: Sequence[str]) -> tuple[str, ...]:
        """Try to get fields for a client.

        Returns:
            Per name its RTDE type, IN_USE or NOT_FOUND. Fields change hands only where every
            name could be had.
        """
        answers = tuple(
            IN_USE if self._owners.get(name, owner) != owner else INPUTS.get(name, NOT_FOUND)
            for name in names
        )
        if IN_USE not in answers and NOT_FOUND not in answers:
            self._owners.update(dict.fromkeys(names, owner))
        return answers

    def release(self, owner: Hashable) -> None:
        """Free all fields of a client that has gone."""
        self._owners = {name: who for name, who in self._owners.items() if who != owner}
