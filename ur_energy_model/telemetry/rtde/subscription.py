"""Subscription: what a controller agreed to send, and at which rate it can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ur_energy_model.telemetry.rtde.recipe import Recipe


@dataclass(frozen=True)
class Subscription:
    """What a controller agreed to send.

    Attributes:
        recipe: layout of its data packages.
        missing: fields asked for that it does not have.
        rate: sample rate [Hz].
        version: of its software: major, minor, bugfix, build.
        protocol_version: 2, or 1 for old controllers.
    """

    recipe: Recipe
    missing: tuple[str, ...]
    rate: float
    version: tuple[int, int, int, int]
    protocol_version: int

    @property
    def version_text(self) -> str:
        """Software version such as "5.11.1.108318"."""
        return ".".join(map(str, self.version))


def controller_rate(version: Sequence[int]) -> float:
    """Rate of a controller's real-time loop [Hz], by its software version."""
    return 500.0 if version[0] >= 5 else 125.0


def effective_rate(base: float, wanted: float | None) -> float:
    """Rate [Hz] that a controller sends at when asked for another: it leaves out whole cycles."""
    if wanted is None:
        return base
    return base / max(1, int(base / wanted + 1e-9))
