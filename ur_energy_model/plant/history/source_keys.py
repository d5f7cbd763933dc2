"""SourceKeys: what all rows of one source of the history have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.learning.kept_models import file_digest
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import GENERIC
from ur_energy_model.plant.history.schema import arrow_schema
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.terminal_text import printable

if TYPE_CHECKING:
    import pyarrow

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


def model_row(keys: SourceKeys, model: EnergyModel | None, path: Path | None) -> pyarrow.Table:
    """The row of the table `models`.

    Args:
        keys: of a source whose energies were computed with the model.
        model: the model; None for the generic one.
        path: of its file; None for the generic one.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    with needed_here():
        import pyarrow as pa
    made = {} if model is None or path is None else model.provenance

    def text(name: str) -> str | None:
        return None if made.get(name) is None else str(made[name])

    row = {
        "model": keys.model,
        "robot": keys.robot,
        "sha256": None if path is None else file_digest(path),
        "serial": text("serial"),
        "date": text("date"),
        # A path can have any bytes, a column only UTF-8.
        "path": None if path is None else printable(str(path.absolute())),
    }
    return pa.Table.from_pylist([row], arrow_schema("models"))


def robot_key(info: RecordingInfo, robot: str) -> str:
    """Type of the arm in the history: as recorded, or else that of the model."""
    return info.robot or robot
