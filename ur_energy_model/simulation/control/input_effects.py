"""What RTDE inputs other than registers do: speed slider, digital and analog outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping
from typing import Any, Protocol

import numpy as np

_DIGITAL = (("standard", 0), ("configurable", 8), ("tool", 16))


class HasInputs(Protocol):
    """What inputs act on, as a control box does."""

    @property
    def values(self) -> MutableMapping[str, Any]:
        """Output fields by name."""

    def set_speed_slider(self, fraction: float) -> None:
        """Move the speed slider."""

    def set_digital_outputs(self, mask: int, bits: int) -> None:
        """Set the outputs that a mask selects."""


def apply_inputs(box: HasInputs, inputs: Mapping[str, Any]) -> None:
    """Apply one input package to a control box.

    A mask without the field that it selects has no effect, nor has a value that is not finite.
    """
    fraction = inputs.get("speed_slider_fraction", math.nan)
    if inputs.get("speed_slider_mask") and math.isfinite(fraction):
        box.set_speed_slider(fraction)
    for group, shift in _DIGITAL:
        mask = inputs.get(f"{group}_digital_output_mask")
        if mask:
            bits = inputs.get(f"{group}_digital_output", 0)
            box.set_digital_outputs(mask << shift, bits << shift)
    mask = inputs.get("standard_analog_output_mask", 0)
    for i in (0, 1):
        level = inputs.get(f"standard_analog_output_{i}", 0.0)
        if mask >> i & 1 and math.isfinite(level):
            level = float(np.clip(level, 0.0, 1.0))
            voltage = inputs.get("standard_analog_output_type", 0) >> i & 1
            box.values[f"standard_analog_output{i}"] = (
                10.0 * level if voltage else 0.004 + 0.016 * level
            )
