"""SourceKeys: what all rows of one source of the history have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.learning.kept_models import file_digest
from ur_energy_model.model.generic import GENERIC
from ur_energy_model.telemetry.samples import RecordingInfo

LIVE = "live-"
"""Begin of the names of live writers."""
DIGITS = 16
"""Of the SHA-256 of a model file that name the model."""


@dataclass(frozen=True)
class SourceKeys:
    """What all rows of one source have in common.

    Attributes:
        source: SHA-256 of the bag, or name of the live writer.
        robot: type of the arm.
        model: first digits of the SHA-256 of the model file, or "generic".
    """

    source: str
    robot: str
    model: str


def model_key(model: Path | None) -> str:
    """Name of a model in the history; None stands for the generic one."""
    digest = None if model is None else file_digest(model)
    return GENERIC if digest is None else digest[:DIGITS]


def robot_key(info: RecordingInfo, robot: str) -> str:
    """Type of the arm in the history: as recorded, or else that of the model."""
    return info.robot or robot


def is_live(source: str) -> bool:
    """Whether a source, or a file of one, is that of a live writer."""
    return source.startswith(LIVE)
