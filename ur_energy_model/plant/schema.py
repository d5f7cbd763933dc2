"""Tables of the history: columns with type, unit and meaning.

They are Delta Lake tables, divided by `day` (UTC), which is not repeated in the files; `arm` (see
`arm_name`) is the first column of the files. `source` is the SHA-256 of the bag, or the name of a
live writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow

from ur_energy_model.energy.powers import ArmState
from ur_energy_model.errors import printable
from ur_energy_model.learning.state import file_digest
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import GENERIC
from ur_energy_model.plant.energy_parts import Times
from ur_energy_model.typing import Array, Mask

Kind = Literal["time", "text", "integer", "number", "flag", "numbers", "texts"]
"""Of a column's values; `numbers` and `texts` are lists, one entry per joint."""

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: in the file.
        kind: of its values.
        unit: SI unit, degC, or empty.
        description: what it is.
        nullable: whether values can be missing.
    """

    name: str
    kind: Kind
    unit: str
    description: str
    nullable: bool = False


def _states() -> tuple[Column, ...]:
    return tuple(
        column
        for state in ArmState
        for column in (
            Column(f"{state.name.lower()}_time", "number", "s", f"time in state {state.name}"),
            Column(
                f"{state.name.lower()}_energy", "number", "J", f"total_energy in state {state.name}"
            ),
        )
    )


_SOURCE = (
    Column("source", "text", "", "SHA-256 of the bag, or name of the live writer"),
    Column("robot", "text", "", "type of the arm, such as ur5e"),
    Column("model", "text", "", "model in use: first 16 digits of its SHA-256, or generic"),
)
_WHOLE_ARM = (
    Column("total_energy", "number", "J", "model at the supply: joints, drivers, standby and "
           "regeneration"),
    Column("total_std", "number", "J", "standard deviation of total_energy; errors of the model "
           "are common to all rows, so that sums of it are upper bounds"),
    Column("bus_energy", "number", "J", "measured voltage times current", nullable=True),
)  # fmt: skip
_PEAK_POWER = Column("peak_power", "number", "W", "largest total power")
_REGENERATION = Column("regeneration_energy", "number", "J", "what the supply cannot take back, "
                       "stored or burnt, part of total_energy", nullable=True)  # fmt: skip
_JOINTS = Column("joints", "texts", "", "names of the joints, the order of all lists")
_JOINT_ENERGY = Column("joint_energy", "numbers", "J", "electrical energy, regeneration subtracted")

SECONDS: tuple[Column, ...] = (
    Column("second", "time", "UTC", "begin of the second"),
    *_SOURCE,
    Column("accounted", "number", "s", "time integrated over"),
    Column("unaccounted", "number", "s", "time in gaps, without energy"),
    Column("samples", "integer", "", "number of samples"),
    *_WHOLE_ARM,
    Column("standby_energy", "number", "J", "standby, part of total_energy"),
    Column("driver_energy", "number", "J", "drivers, part of total_energy"),
    Column("residual_energy", "number", "J", "total_energy minus bus_energy", nullable=True),
    _PEAK_POWER,
    *_states(),
    _JOINTS,
    _JOINT_ENERGY,
    Column("joint_mechanical_energy", "numbers", "J", "mechanical energy, motor side"),
    Column("joint_friction_energy", "numbers", "J", "friction losses"),
    Column("joint_copper_energy", "numbers", "J", "copper losses"),
    Column("joint_temperature", "numbers", "degC", "mean temperature", nullable=True),
    Column("speed_scaling", "number", "", "mean of slider times limiter", nullable=True),
    _REGENERATION,
)
"""Per second and arm. A second holds the samples whose host time is in it, each with the step that
ends in it; sums over all rows of a source are its energies."""

CYCLES: tuple[Column, ...] = (
    Column("start", "time", "UTC", "begin of the cycle"),
    *_SOURCE,
    Column("number", "integer", "", "of the cycle in its source, from 1"),
    Column("program", "text", "", "name of the program where it is known", nullable=True),
    Column("duration", "number", "s", "from start to end, gaps included"),
    *_WHOLE_ARM,
    Column("energy_low", "number", "J", "lower end of the 95 % interval of total_energy"),
    Column("energy_high", "number", "J", "upper end of the 95 % interval of total_energy"),
    _PEAK_POWER,
    Column("motion_time", "number", "s", "time in motion"),
    Column("motion_energy", "number", "J", "total_energy in motion"),
    Column("idle_time", "number", "s", "time without motion"),
    Column("idle_energy", "number", "J", "total_energy without motion"),
    _JOINTS,
    _JOINT_ENERGY,
    Column("standby_energy", "number", "J", "standby, part of total_energy", nullable=True),
    Column("driver_energy", "number", "J", "drivers, part of total_energy", nullable=True),
    _REGENERATION,
)
"""Per program cycle."""

_JOINT_HEALTH = (
    Column("joint_moving", "numbers", "s", "motion that was used"),
    Column("joint_temperature", "numbers", "degC", "mean temperature in motion"),
    Column("joint_friction", "numbers", "", "friction over the model's at that temperature"),
    Column("joint_friction_std", "numbers", "", "standard deviation of joint_friction"),
    Column("joint_friction_reference", "numbers", "N m", "the model's at 0.5 rad/s, joint side"),
    Column("joint_torque_constant", "numbers", "N m/A", "torque per ampere, motor side"),
    Column("joint_torque_constant_std", "numbers", "N m/A", "its standard deviation"),
)
"""NaN stands for joints that hardly moved and for temperatures that are unknown."""

HEALTH: tuple[Column, ...] = (
    Column("minute", "time", "UTC", "begin of the minute"),
    *_SOURCE,
    _JOINTS,
    *_JOINT_HEALTH,
    Column("standby", "number", "W", "standby power at standstill", nullable=True),
    Column("standby_std", "number", "W", "standard deviation of standby", nullable=True),
)
"""Per minute with enough motion or standstill, and arm."""

JOINT_SECONDS: tuple[Column, ...] = (
    Column("second", "time", "UTC", "begin of the second"),
    Column("joint", "text", "", "name of the joint"),
    Column("energy", "number", "J", "electrical energy, regeneration subtracted"),
    Column("mechanical_energy", "number", "J", "mechanical energy, motor side"),
    Column("friction_energy", "number", "J", "friction losses"),
    Column("copper_energy", "number", "J", "copper losses"),
    Column("temperature", "number", "degC", "mean temperature", nullable=True),
    Column("source", "text", "", "SHA-256 of the bag, or name of the live writer"),
)
"""The lists of `seconds`, one row per joint."""

MODELS: tuple[Column, ...] = (
    Column("model", "text", "", "as in the column model of the other tables"),
    Column("robot", "text", "", "type of the arm"),
    Column("sha256", "text", "", "of the model file; missing for a generic model", nullable=True),
    Column("serial", "text", "", "of the arm that was identified", nullable=True),
    Column("date", "text", "", "when it was identified, ISO 8601", nullable=True),
    Column("path", "text", "", "absolute path of the model file when it was used", nullable=True),
)
"""Per model that energies were computed with; a generic one has a row per type of arm."""

SOURCES: tuple[Column, ...] = (
    Column("source", "text", "", "SHA-256 of the bag, or name of the live writer"),
    Column("bag", "text", "", "absolute path where it was read"),
    Column("arm", "text", "", "name of the arm"),
    Column("robot", "text", "", "type of the arm"),
    Column("model", "text", "", "as in the column model of the other tables"),
    Column("start", "time", "UTC", "first sample"),
    Column("end", "time", "UTC", "last sample"),
    Column("host_time", "flag", "", "whether these are times of day, not those of the controller"),
    Column("seconds", "integer", "", "number of rows of seconds"),
    Column("cycles", "integer", "", "number of rows of cycles"),
    Column("health", "integer", "", "number of rows of health"),
    Column("energy", "number", "J", "sum of total_energy of seconds"),
    Column("accounted", "number", "s", "time integrated over"),
    Column("left_out", "number", "s", "time that other sources had covered"),
)
"""Per bag. A source counts if the log of `seconds` has its transaction."""

TABLES: dict[str, tuple[Column, ...]] = {
    "seconds": SECONDS,
    "cycles": CYCLES,
    "health": HEALTH,
    "joint_seconds": JOINT_SECONDS,
    "models": MODELS,
    "sources": SOURCES,
}
"""Columns by table; further tables may be added, columns of these only at their end."""
UNDIVIDED = ("models", "sources")
"""Tables that are not divided by arm and day."""


def arrow_schema(table: str) -> pyarrow.Schema:
    """Arrow schema of a table, with units and descriptions as metadata of its columns."""
    types = {
        "time": pyarrow.timestamp("us", tz="UTC"),
        "text": pyarrow.string(),
        "integer": pyarrow.int64(),
        "number": pyarrow.float64(),
        "flag": pyarrow.bool_(),
        "numbers": pyarrow.list_(pyarrow.float64()),
        "texts": pyarrow.list_(pyarrow.string()),
    }
    fields = [
        pyarrow.field(
            column.name,
            types[column.kind],
            nullable=column.nullable,
            metadata={"unit": column.unit, "description": column.description},
        )
        for column in TABLES[table]
    ]
    return pyarrow.schema(fields, metadata={"ur_energy_model.history": str(SCHEMA_VERSION)})


# Arrow columns of the history from arrays.


def arrow_table(table: str, columns: Mapping[str, Any]) -> pyarrow.Table:
    """Rows of a table of the history.

    Args:
        table: its name in TABLES.
        columns: every column of it: an Arrow array, an array [rows], or one text for all rows;
            NaN in a column that may have missing values is a missing one. The first column decides
            the number of rows.
    """
    schema = arrow_schema(table)
    rows = len(columns[schema.names[0]])
    arrays = []
    for field in schema:
        value = columns[field.name]
        if value is None or isinstance(value, str):
            arrays.append(pyarrow.repeat(pyarrow.scalar(value, field.type), rows))
        elif isinstance(value, np.ndarray):
            missing = np.isnan(value) if field.nullable and value.dtype.kind == "f" else None
            arrays.append(pyarrow.array(value, mask=missing).cast(field.type))
        else:
            arrays.append(value)
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def times(values: Times) -> pyarrow.Array:
    """Host times [rows], ns since 1970 UTC, with a resolution of 1 us."""
    return pyarrow.array(values // 1000).cast(pyarrow.timestamp("us", tz="UTC"))


def lists(values: Array, known: Mask | None = None) -> pyarrow.Array:
    """One list per row of values [rows, n]; a row that is not known [rows] is missing."""
    rows, n = values.shape
    offsets = pyarrow.array(np.arange(rows + 1, dtype=np.int32) * n)
    mask = None if known is None else pyarrow.array(~known)
    return pyarrow.ListArray.from_arrays(offsets, pyarrow.array(values.ravel()), mask=mask)


def same_texts(texts: Sequence[str], rows: int) -> pyarrow.Array:
    """The same list of texts in every row."""
    n = len(texts)
    offsets = pyarrow.array(np.arange(rows + 1, dtype=np.int32) * n)
    return pyarrow.ListArray.from_arrays(
        offsets, pyarrow.array(list(texts) * rows, pyarrow.string())
    )


# SourceKeys: what all rows of one source of the history have in common.

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
    """
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
    return pyarrow.Table.from_pylist([row], arrow_schema("models"))
