"""Rows of the table `seconds` from parts of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.channels import Channels
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.arrow_columns import arrow_table, lists, same_texts, times
from ur_energy_model.plant.history.part_table import PartTable
from ur_energy_model.plant.history.schema import arrow_schema
from ur_energy_model.plant.history.source_keys import SourceKeys
from ur_energy_model.plant.history.time_ranges import SECOND
from ur_energy_model.telemetry.runs import run_starts

if TYPE_CHECKING:
    import pyarrow


def second_rows(parts: PartTable, keys: SourceKeys, channels: Channels) -> pyarrow.Table:
    """One row per second; parts that another source covers, or of no time, are left out.

    Args:
        parts: any number.
        keys: of the source.
        channels: of the parts.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    parts = parts.cut(~parts.covered & (parts.accounted + parts.unaccounted > 0.0))
    if (np.diff(parts.second) < 0).any():  # a host clock was set back
        parts = parts.cut(np.argsort(parts.second, kind="stable"))
    first = run_starts(parts.second)

    def sums(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, first, axis=0) if len(first) else values

    net, arm = sums(parts.net), channels.arm
    joint = {name: net[:, columns] for name, columns in channels.per_joint.items()}
    measured = (
        np.logical_and.reduceat(parts.bus_measured, first) if len(first) else parts.bus_measured
    )
    bus = np.where(measured, net[:, arm["bus"]], np.nan)
    temperature, scaling = sums(parts.temperature), sums(parts.scaling)
    readings = np.maximum(temperature[:, -1:], 1.0)
    states = {}
    for state in ArmState:
        name = state.name.lower()
        states[f"{name}_time"] = net[:, channels.state_time + state]
        states[f"{name}_energy"] = net[:, channels.state_energy + state]
    columns = {
        "second": times(parts.second[first] * SECOND),
        "source": keys.source,
        "robot": keys.robot,
        "model": keys.model,
        "accounted": sums(parts.accounted),
        "unaccounted": sums(parts.unaccounted),
        "samples": sums(parts.samples),
        "total_energy": net[:, arm["total"]],
        "total_std": channels.deviations_of_total(net),
        "bus_energy": bus,
        "standby_energy": net[:, arm["standby"]],
        "driver_energy": net[:, arm["driver"]],
        "residual_energy": net[:, arm["total"]] - bus,
        "peak_power": np.maximum.reduceat(parts.peak, first) if len(first) else parts.peak,
        **states,
        "joints": same_texts(channels.joints, len(first)),
        "joint_energy": lists(joint["electrical_power"]),
        "joint_mechanical_energy": lists(joint["mechanical_power"]),
        "joint_friction_energy": lists(joint["friction_loss"]),
        "joint_copper_energy": lists(joint["copper_loss"]),
        "joint_temperature": lists(temperature[:, :-1] / readings, temperature[:, -1] > 0),
        "speed_scaling": np.where(
            scaling[:, 1] > 0, scaling[:, 0] / np.maximum(scaling[:, 1], 1.0), np.nan
        ),
        "regeneration_energy": net[:, arm["regeneration"]],
    }
    return arrow_table("seconds", columns)


def joint_rows(seconds: pyarrow.Table) -> pyarrow.Table:
    """Rows of joint_seconds, one per row of `seconds` and joint; the column `arm` stays.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    with needed_here():
        import pyarrow as pa
        import pyarrow.compute as pc
    seconds = seconds.combine_chunks()
    joints = seconds["joints"]
    rows, schema = pc.list_parent_indices(joints), arrow_schema("joint_seconds")
    columns = {"joint": pc.list_flatten(joints)}
    for name in schema.names:
        if name in seconds.schema.names:
            columns[name] = seconds[name].take(rows)
    for name in ("energy", "mechanical_energy", "friction_energy", "copper_energy", "temperature"):
        lists_ = seconds[f"joint_{name}"]
        flat = pc.list_flatten(lists_)
        if lists_.null_count:  # rows without the list have no values
            values = np.full((len(seconds), len(rows) // max(len(seconds), 1)), np.nan)
            values[lists_.is_valid().to_numpy(zero_copy_only=False)] = flat.to_numpy().reshape(
                -1, values.shape[1]
            )
            flat = pa.array(values.ravel(), from_pandas=True)
        columns[name] = flat
    found = pa.table([columns[name] for name in schema.names], schema=schema)
    return found.add_column(0, "arm", seconds["arm"].take(rows))
