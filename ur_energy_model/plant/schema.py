# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tables of the history: columns with type, unit and meaning, and Arrow tables of them.

They are Delta Lake tables, divided by `day` (UTC), which is not repeated in the files;
`arm` (see `arm_name`) is the first column of the files. `source` is the SHA-256 of the
bag, or the name of a live writer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ur_energy_model.energy.powers import ArmState
from ur_energy_model.errors import printable
from ur_energy_model.files import file_digest, open_regular
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import GENERIC

SCHEMA_VERSION = 1
"""Version in the metadata of files; it rises where old readers would misread new
files."""
_TYPES = {
    "time": pa.timestamp("us", tz="UTC"),
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "flag": pa.bool_(),
    "numbers": pa.list_(pa.float64()),
    "texts": pa.list_(pa.string()),
}
"""Arrow types by kind of column; `numbers` and `texts` are lists, one entry per joint."""


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: name of the column, as in SQL.
        kind: kind of the values, one of _TYPES.
        unit: SI or degC; "" for none.
        description: description for the page of the tables and the metadata of the files.
        nullable: whether values may be missing.
    """

    name: str
    kind: str
    unit: str
    description: str
    nullable: bool = False


# Columns that several tables have.

_SOURCE = (
    Column("source", "text", "", "SHA-256 of the bag, or name of the live writer"),
    Column("robot", "text", "", "type of the arm, such as ur5e"),
    Column(
        "model", "text", "", "model in use: first 16 digits of its SHA-256, or generic"
    ),
)
"""Where a row comes from, see `SourceKeys`."""
_WHOLE_ARM = (
    Column("total_energy", "number", "J", "at the supply: measured where bus power is, else by "
           "the model; joints, drivers, standby, regeneration and unexplained_energy"),
    Column("total_std", "number", "J", "standard deviation of total_energy; where it is of the "
           "model, its errors are common to all rows, so that sums of it are upper bounds"),
    Column("bus_energy", "number", "J", "measured voltage times current", nullable=True),
)  # fmt: skip
_PEAK_POWER = Column("peak_power", "number", "W", "largest total power")
_REGENERATION = Column("regeneration_energy", "number", "J", "what the supply cannot take back, "
                       "stored or burnt, part of total_energy")  # fmt: skip
_WALL = (
    Column("wall_energy", "number", "J", "at the mains, by the model of control box and supply: of "
           "a power meter's readings, else of any cell"),
    Column("wall_std", "number", "J", "standard deviation of wall_energy, as total_std"),
)  # fmt: skip
_SOURCE_OF_TOTAL = (
    Column("model_energy", "number", "J", "sum of the modelled parts"),
    Column("unexplained_energy", "number", "J", "total_energy minus model_energy"),
    Column("measured", "number", "s", "time in which total_energy is measured"),
    Column("total_source", "text", "", "whether total_energy is measured, modelled or mixed"),
    Column("model_std", "number", "J", "standard deviation of model_energy, as total_std"),
)  # fmt: skip
_JOINTS = Column("joints", "texts", "", "names of the joints, the order of all lists")
_JOINT_ENERGY = Column(
    "joint_energy", "numbers", "J", "electrical energy, regeneration subtracted"
)

# The states of an arm, two columns each: time in the state and energy in the state.
_STATES: list[Column] = []
for _state in ArmState:
    _name = _state.name.lower()
    _time_in = f"time in state {_state.name}"
    _energy_in = f"total_energy in state {_state.name}"
    _STATES.append(Column(f"{_name}_time", "number", "s", _time_in))
    _STATES.append(Column(f"{_name}_energy", "number", "J", _energy_in))

# Tables.

SECONDS: tuple[Column, ...] = (
    Column("second", "time", "UTC", "begin of the second"),
    *_SOURCE,
    Column("accounted", "number", "s", "time integrated over"),
    Column("unaccounted", "number", "s", "time in gaps, without energy"),
    Column("samples", "integer", "", "number of samples"),
    *_WHOLE_ARM,
    Column("standby_energy", "number", "J", "standby, part of total_energy"),
    Column("driver_energy", "number", "J", "drivers, part of total_energy"),
    Column(
        "residual_energy",
        "number",
        "J",
        "the model's energy minus bus_energy; unexplained_energy has the other sign",
        nullable=True,
    ),
    _PEAK_POWER,
    *_STATES,
    _JOINTS,
    _JOINT_ENERGY,
    Column("joint_mechanical_energy", "numbers", "J", "mechanical energy, motor side"),
    Column("joint_friction_energy", "numbers", "J", "friction losses"),
    Column("joint_copper_energy", "numbers", "J", "copper losses"),
    Column("joint_temperature", "numbers", "degC", "mean temperature", nullable=True),
    Column("speed_scaling", "number", "", "mean of slider times limiter", nullable=True),
    _REGENERATION,
    *_WALL,
    *_SOURCE_OF_TOTAL,
)
"""Per second and arm. A second holds the samples whose host time is in it, each with the step that
ends in it; sums over all rows of a source are its energies."""

CYCLES: tuple[Column, ...] = (
    Column("start", "time", "UTC", "begin of the cycle"),
    *_SOURCE,
    Column("number", "integer", "", "of the cycle: in its bag, from 1, or as on energy/cycle"),
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
    Column("standby_energy", "number", "J", "standby, part of total_energy"),
    Column("driver_energy", "number", "J", "drivers, part of total_energy"),
    _REGENERATION,
    *_WALL,
    Column("unaccounted_s", "number", "s", "time of the cycle in gaps, without energy"),
    *_SOURCE_OF_TOTAL,
)  # fmt: skip
"""Per program cycle; the energies of a cycle with a gap are without the time of the
gap."""

HEALTH: tuple[Column, ...] = (
    Column("minute", "time", "UTC", "begin of the minute"),
    *_SOURCE,
    _JOINTS,
    Column("joint_moving", "numbers", "s", "motion that was used"),
    Column("joint_temperature", "numbers", "degC", "mean temperature in motion"),
    Column(
        "joint_friction", "numbers", "", "friction over the model's at that temperature"
    ),
    Column("joint_friction_std", "numbers", "", "standard deviation of joint_friction"),
    Column(
        "joint_friction_reference",
        "numbers",
        "N m",
        "the model's at 0.5 rad/s, joint side",
    ),
    Column("joint_torque_constant", "numbers", "N m/A", "torque per ampere, motor side"),
    Column("joint_torque_constant_std", "numbers", "N m/A", "its standard deviation"),
    Column("standby", "number", "W", "standby power at standstill", nullable=True),
    Column("standby_std", "number", "W", "standard deviation of standby", nullable=True),
)
"""Per minute with enough motion or standstill, and arm; NaN stands for joints that hardly moved and
for temperatures that are unknown."""

PROGRAM_NODES: tuple[Column, ...] = (
    Column("minute", "time", "UTC", "begin of the minute"),
    *_SOURCE,
    Column("program", "text", "", "name of the program where it is known", nullable=True),
    Column("node", "text", "", "label of the program node; without a script, and outside of nodes, "
           "line and its number; none where it cannot be told"),
    Column("count", "integer", "", "how often it was begun"),
    Column("seconds", "number", "s", "time in it"),
    Column("joules", "number", "J", "energy at the supply in it, as total_energy of seconds"),
    Column("model_joules", "number", "J", "as model_energy of seconds"),
    Column("measured", "number", "s", "as measured of seconds"),
    Column("total_source", "text", "", "as total_source of seconds"),
)  # fmt: skip
"""Per minute, arm and node of a running program."""

JOINT_SECONDS: tuple[Column, ...] = (
    SECONDS[0],
    Column("joint", "text", "", "name of the joint"),
    *(
        column._replace(name=column.name.removeprefix("joint_"), kind="number")
        for column in SECONDS
        if column.name.startswith("joint_")
    ),
    _SOURCE[0],
)
"""The lists of `seconds`, one row per joint."""

MODELS: tuple[Column, ...] = (
    Column("model", "text", "", "as in the column model of the other tables"),
    Column("robot", "text", "", "type of the arm"),
    Column(
        "sha256",
        "text",
        "",
        "of the model file; missing for a generic model",
        nullable=True,
    ),
    Column("serial", "text", "", "of the arm that was identified", nullable=True),
    Column("date", "text", "", "when it was identified, ISO 8601", nullable=True),
    Column(
        "path",
        "text",
        "",
        "absolute path of the model file when it was used",
        nullable=True,
    ),
    Column(
        "content",
        "text",
        "",
        "of the model file: bags are added again with it",
        nullable=True,
    ),
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
    Column(
        "host_time",
        "flag",
        "",
        "whether these are times of day, not those of the controller",
    ),
    Column("seconds", "integer", "", "number of rows of seconds"),
    Column("cycles", "integer", "", "number of rows of cycles"),
    Column("health", "integer", "", "number of rows of health"),
    Column("energy", "number", "J", "sum of total_energy of seconds"),
    Column("accounted", "number", "s", "time integrated over"),
    Column("left_out", "number", "s", "time that other sources had covered"),
    Column(
        "program_nodes", "integer", "", "number of rows of program_nodes", nullable=True
    ),
    Column("settings", "text", "", "options of history add, JSON", nullable=True),
)
"""Per bag: numbers of rows are those that it had when it was added."""

TABLES: dict[str, tuple[Column, ...]] = {
    "seconds": SECONDS,
    "cycles": CYCLES,
    "health": HEALTH,
    "program_nodes": PROGRAM_NODES,
    "joint_seconds": JOINT_SECONDS,
    "models": MODELS,
    "sources": SOURCES,
}
"""Columns by table; further tables may be added, columns of these only at their end."""
UNDIVIDED = ("models", "sources")  # tables that are not divided by arm and day


def arrow_schema(table: str) -> pa.Schema:
    """Arrow schema of a table, with units and descriptions as metadata of its columns.

    Args:
        table: name of the table, one of TABLES.
    """
    fields = []
    for column in TABLES[table]:
        metadata = {"unit": column.unit, "description": column.description}
        kind = _TYPES[column.kind]
        fields.append(pa.field(column.name, kind, column.nullable, metadata))
    return pa.schema(fields, metadata={"ur_energy_model.history": str(SCHEMA_VERSION)})


def arrow_table(table: str, columns: Mapping[str, Any]) -> pa.Table:
    """Rows of a table of the history.

    Args:
        table: name of the table, one of TABLES.
        columns: all columns of the table by name, the first one an array. A column is an
            array of values [rows]; of times [rows], ns since 1970 UTC; of numbers of the
            joints [rows, n]; or the names of the joints or one text, which are the same
            in all rows. NaN (of all joints) is a missing value where the column allows
            it.
    """
    schema = arrow_schema(table)
    rows = len(columns[schema.names[0]])
    arrays = []
    for column, field in zip(TABLES[table], schema, strict=True):
        value = columns[column.name]
        if value is None or isinstance(value, str):
            array = pa.repeat(pa.scalar(value, field.type), rows)
        elif column.kind == "time":
            microseconds = value // 1000
            array = pa.array(microseconds).cast(field.type)
        elif column.kind == "texts":
            array = _list_array(np.tile(np.array(value, dtype=object), (rows, 1)), field)
        elif column.kind == "numbers":
            array = _list_array(value, field)
        else:
            array = pa.array(value, from_pandas=column.nullable).cast(field.type)
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema)


def _list_array(values: np.ndarray, field: pa.Field) -> pa.ListArray:
    """Lists of equal length from values [rows, n]; lists of NaN alone may be missing."""
    mask = None
    if field.nullable:
        mask = pa.array(np.isnan(values).all(axis=1))
    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    flat = pa.array(values.ravel(), field.type.value_type)
    return pa.ListArray.from_arrays(offsets, flat, mask=mask)


LIVE = "live-"  # begin of the names of live writers
DIGITS = 16  # digits of the SHA-256 of a model file that name the model


@dataclass(frozen=True)
class SourceKeys:
    """Values that all rows of one source have in common, by the names of their columns.

    Attributes:
        source: SHA-256 of the bag, or name of the live writer.
        robot: type of the arm, such as ur5e.
        model: key of the model, see `model_key`.
    """

    source: str
    robot: str
    model: str


def model_key(model: Path | None) -> str:
    """Key of a model in the history.

    Args:
        model: file of the model; None for the generic model.

    Returns:
        The first 16 digits of the file's SHA-256, or "generic".
    """
    digest = None if model is None else file_digest(model)
    return GENERIC if digest is None else digest[:DIGITS]


def content_key(content: str) -> str:
    """Key of a model in the history, by the content of its file; see `model_key`."""
    return hashlib.sha256(content.encode()).hexdigest()[:DIGITS]


ModelRow = Mapping[str, str | None]
"""A row of the table `models`: values by column."""


def model_row(keys: SourceKeys, model: EnergyModel | None, path: Path | None) -> ModelRow:
    """The row of the table `models` for the model that a source was computed with.

    Args:
        keys: keys of the source.
        model: model of the arm; None for a generic model.
        path: path of the model file; None for a generic model. The content is left out if
            the file is another one by now, or no text.
    """
    provenance = {} if model is None or path is None else model.provenance

    def text(name: str) -> str | None:
        """An entry of the provenance of the model; None if it has none."""
        return None if provenance.get(name) is None else str(provenance[name])

    digest = None
    content = None
    if path is not None:
        with suppress(OSError, UnicodeDecodeError), open_regular(path) as file:
            found = file.read()
            digest = hashlib.sha256(found).hexdigest()
            content = found.decode() if digest.startswith(keys.model) else None
    return {
        "model": keys.model,
        "robot": keys.robot,
        "sha256": digest,
        "serial": text("serial"),
        "date": text("date"),
        # A path can have any bytes, a column only UTF-8.
        "path": None if path is None else printable(str(path.absolute())),
        "content": content,
    }
