# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rows of `seconds`, `joint_seconds` and `cycles` from the integrals of the energy meter.

Columns have units and meanings in `schema`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ur_energy_model.energy.cycle_energies import UNACCOUNTED, Cycle
from ur_energy_model.energy.meter import interval
from ur_energy_model.energy.powers import ArmState, Channels, TotalSource
from ur_energy_model.plant.energy_parts import SECOND, PartTable
from ur_energy_model.plant.schema import SourceKeys, arrow_schema, arrow_table
from ur_energy_model.telemetry.samples import run_starts
from ur_energy_model.typing import Array


def second_rows(parts: PartTable, keys: SourceKeys, channels: Channels) -> pa.Table:
    """Rows of `seconds`, one per second.

    Parts that another source covers, and parts of no time, are left out.

    Args:
        parts: parts of a recording; there may be none.
        keys: columns that all rows have in common.
        channels: layout of the integrals of the parts.
    """
    parts = parts.cut(~parts.covered & (parts.accounted + parts.unaccounted > 0.0))
    if (np.diff(parts.second) < 0).any():  # a host clock was set back
        parts = parts.cut(np.argsort(parts.second, kind="stable"))
    first = run_starts(parts.second)

    def sums(values: np.ndarray, over: np.ufunc = np.add) -> np.ndarray:
        """Values of parts [parts, ...] summed up by second [seconds, ...]."""
        return over.reduceat(values, first, axis=0) if len(first) else values

    net = sums(parts.net)
    accounted = sums(parts.accounted)
    arm = channels.arm
    bus = np.where(sums(parts.bus_measured, np.logical_and), net[:, arm["bus"]], np.nan)
    temperature_sums = sums(parts.temperature)
    scaling_sums = sums(parts.scaling)
    # The last column is the number of samples, 0 where none has the value.
    with np.errstate(invalid="ignore"):
        temperature = temperature_sums[:, :-1] / temperature_sums[:, -1:]
        scaling = scaling_sums[:, 0] / scaling_sums[:, -1]
    states = {}
    for state in ArmState:
        name = state.name.lower()
        states[f"{name}_time"] = net[:, channels.state_time + state]
        states[f"{name}_energy"] = net[:, channels.state_energy + state]
    columns = {
        "second": parts.second[first] * SECOND,
        **vars(keys),
        "accounted": accounted,
        "unaccounted": sums(parts.unaccounted),
        "samples": sums(parts.samples),
        **_whole_arm(channels, net, accounted),
        "bus_energy": bus,
        "residual_energy": net[:, arm["model"]] - bus,
        "peak_power": sums(parts.peak, np.maximum),
        **states,
        "joints": channels.joints,
        "joint_energy": net[:, channels.per_joint["electrical_power"]],
        "joint_mechanical_energy": net[:, channels.per_joint["mechanical_power"]],
        "joint_friction_energy": net[:, channels.per_joint["friction_loss"]],
        "joint_copper_energy": net[:, channels.per_joint["copper_loss"]],
        "joint_temperature": temperature,
        "speed_scaling": scaling,
    }
    return arrow_table("seconds", columns)


_ENERGIES = ("total", "model", "standby", "driver", "regeneration", "unexplained")
"""Energies of the whole arm. The total is the sum of the last four energies and of the joints."""


def _whole_arm(channels: Channels, net: Array, seconds: Array) -> dict[str, Any]:
    """Columns that seconds and cycles have in common.

    Args:
        channels: layout of the integrals.
        net: integrals of the powers [rows, channels], J.
        seconds: time integrated over [rows], s.

    Returns:
        Values [rows] by name of the column: energies in J, time in s.
    """
    wall_energy, wall_std = channels.at_wall(net)
    measured = net[:, channels.arm["measured"]]
    energies = {f"{name}_energy": net[:, channels.arm[name]] for name in _ENERGIES}
    return {
        **energies,
        "total_std": channels.deviations_of_total(net),
        "model_std": channels.deviations_of_model(net),
        "wall_energy": wall_energy,
        "wall_std": wall_std,
        "measured": measured,
        "total_source": total_sources(measured, seconds),
    }


def total_sources(measured: Array, seconds: Array) -> list[str]:
    """Names of the sources of totals, see `TotalSource`.

    Args:
        measured: time in which bus power was measured [rows], s.
        seconds: all time that is integrated over [rows], s.
    """
    pairs = zip(measured.tolist(), seconds.tolist(), strict=True)
    return [TotalSource.of(part, whole).name for part, whole in pairs]


def joint_rows(seconds: pa.Table) -> pa.Table:
    """Rows of `joint_seconds`: the lists of `seconds`, one row per second and joint.

    Args:
        seconds: rows of `seconds` with the column `arm`, all with the same number of
            joints.

    Returns:
        Rows of `joint_seconds`, with the column `arm`.
    """
    seconds = seconds.combine_chunks()
    rows = pc.list_parent_indices(seconds["joints"])
    schema = arrow_schema("joint_seconds")
    columns = []
    for name in schema.names:
        if name in seconds.schema.names:
            column = seconds[name].take(rows)
        elif name == "joint":
            column = pc.list_flatten(seconds["joints"])
        else:
            column = _flattened(seconds[f"joint_{name}"], len(rows))
        columns.append(column)
    found = pa.table(columns, schema=schema)
    return found.add_column(0, "arm", seconds["arm"].take(rows))


def _flattened(lists: pa.ChunkedArray, values: int) -> pa.Array:
    """Lists of equal length one after the other; null for each value of a list that is missing.

    Args:
        lists: one list per row.
        values: number of values of all rows, missing values included.
    """
    flat = pc.list_flatten(lists)
    if not lists.null_count:
        return flat
    filled = np.full((len(lists), values // len(lists)), np.nan)
    known = lists.is_valid().to_numpy(zero_copy_only=False)
    filled[known] = flat.to_numpy().reshape(-1, filled.shape[1])
    return pa.array(filled.ravel(), from_pandas=True)


def cycle_rows(cycles: Sequence[Cycle], keys: SourceKeys, channels: Channels) -> pa.Table:
    """Rows of `cycles`, one per complete cycle.

    Args:
        cycles: complete cycles; there may be none.
        keys: columns that all rows have in common.
        channels: layout of the integrals of the cycles.
    """
    net = np.array([cycle.reading.net for cycle in cycles]).reshape(-1, len(channels))
    seconds = np.array([cycle.reading.accounted for cycle in cycles])
    arm = channels.arm
    whole = _whole_arm(channels, net, seconds)
    low, high = interval(whole["total_energy"], whole["total_std"]).T
    motion_time = net[:, channels.state_time + ArmState.MOVING]
    motion_energy = net[:, channels.state_energy + ArmState.MOVING]
    states_end = channels.state_time + len(ArmState)
    time_in_states = net[:, channels.state_time : states_end].sum(axis=1)
    is_measured = np.array(whole["total_source"], dtype=str) == "measured"
    columns = {
        "start": np.array([cycle.start for cycle in cycles], dtype=np.int64),
        **vars(keys),
        "number": np.array([cycle.number for cycle in cycles], dtype=np.int64),
        "program": [cycle.program for cycle in cycles],
        "duration": np.array([cycle.duration for cycle in cycles], dtype=float),
        **whole,
        "bus_energy": np.where(is_measured, net[:, arm["bus"]], np.nan),
        "energy_low": low,
        "energy_high": high,
        "peak_power": np.array([cycle.peak_power for cycle in cycles], dtype=float),
        "motion_time": motion_time,
        "motion_energy": motion_energy,
        "idle_time": time_in_states - motion_time,
        "idle_energy": whole["total_energy"] - motion_energy,
        UNACCOUNTED: np.array([cycle.unaccounted for cycle in cycles], dtype=float),
        "joints": channels.joints,
        "joint_energy": net[:, channels.per_joint["electrical_power"]],
    }
    return arrow_table("cycles", columns)
