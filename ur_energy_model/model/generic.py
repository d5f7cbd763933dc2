"""Generic models: the prior of an arm that nobody has measured."""

from __future__ import annotations

from pathlib import Path

from ur_energy_model.model.energy_model import EnergyModel

GENERIC = "generic"
"""`model` in JSON output if no file was given, and `origin` in the provenance of such a model."""


def is_generic(model: EnergyModel) -> bool:
    """Whether a model is a generic one of the package."""
    return model.provenance.get("origin") == GENERIC


def model_words(model: EnergyModel, path: str | Path | None) -> str:
    """The model in words: "generic ur5e, not identified", or the path of its file."""
    if path is None or is_generic(model):
        return f"generic {model.robot_name}, not identified"
    return str(path)
