# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Samples that show the type of an arm: which fields, windows and poses can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.telemetry.samples import Telemetry, equal_runs
from ur_energy_model.typing import Array, Indices

FIELDS: tuple[str, ...] = (
    "target_q", "target_qd", "target_qdd", "target_moment",
    "actual_q", "actual_qd", "actual_TCP_pose",
    "payload", "payload_cog", "robot_mode",
)  # fmt: skip
"""Fields that show the type of an arm; those that a recording lacks show nothing."""
_TARGETS = ("target_q", "target_qd", "target_qdd")
_MEASURED = ("actual_q", "actual_qd")

_POSES = 12  # least number of different poses for a comparison of torques
_POSE_GRID = 0.1  # least distance of different poses [rad]
_TOOL_POSES = 5  # least number of different poses for a comparison of tool poses
_TOOL_POSE_GRID = 0.05  # least distance of these poses [rad]
_MOST_TOOL_POSES = 400
"""Number of tool poses that are compared, at most about twice as many."""
_LASTING = 10
"""Number of samples that must have a speed or exceed it, so that outliers do not count."""


def joints_of(part: Telemetry) -> int:
    """Number of joints of a part's samples; 0 without positions."""
    for name in ("actual_q", "target_q"):
        if name in part and part[name].ndim == 2:
            return int(part[name].shape[1])
    return 0


def torque_windows(windows: Sequence[Telemetry]) -> list[Telemetry]:
    """The columns of windows that show torques: target_moment, its motion and the payload.

    The motion is the target motion where it was recorded, else the measured motion.

    Args:
        windows: windows of a recording, of arms with the same number of joints.

    Returns:
        Stretches of samples with one payload; none if they have too few different poses.
    """
    usable: list[Telemetry] = []
    for part in windows:
        if not _are_recorded(part, ("target_moment",)):
            continue
        if _are_recorded(part, _TARGETS):
            left_out = set(_MEASURED)
        elif _are_recorded(part, _MEASURED):
            left_out = set(_TARGETS)
        else:
            continue
        names = [name for name in FIELDS if name in part and name not in left_out]
        usable.append(replace(part, columns={name: part[name] for name in names}))
    usable = _with_one_payload(usable)
    positions: list[Array] = []
    for part in usable:
        name = "target_q" if "target_q" in part else "actual_q"
        positions.append(part[name])
    if len(_different(positions, _POSE_GRID)) < _POSES:
        return []
    return usable


def tool_poses(windows: Sequence[Telemetry]) -> tuple[Array, Array]:
    """Different poses of the arm with the positions of the tool.

    Args:
        windows: windows of a recording, of arms with the same number of joints n.

    Returns:
        Joint positions [poses, n], rad, and tool positions in the base frame [poses, 3], m;
        both empty if the recording has fewer than _TOOL_POSES.
    """
    needed = ("actual_q", "actual_TCP_pose")
    usable = [part for part in windows if _are_recorded(part, needed)]
    q = [part["actual_q"] for part in usable]
    rows = _different(q, _TOOL_POSE_GRID)
    if len(rows) < _TOOL_POSES:
        return np.zeros((0, 0)), np.zeros((0, 3))
    rows = rows[:: max(1, len(rows) // _MOST_TOOL_POSES)]
    position = np.concatenate([part["actual_TCP_pose"][:, :3] for part in usable])
    return np.concatenate(q)[rows], position[rows]


def _are_recorded(part: Telemetry, names: Sequence[str]) -> bool:
    """Whether each of these columns [samples, n] has a row without NaN."""
    for name in names:
        if name not in part or not np.isfinite(part[name]).all(axis=1).any():
            return False
    return True


def _with_one_payload(windows: Sequence[Telemetry]) -> list[Telemetry]:
    """Stretches of samples with the most frequent payload that is set in the controller."""
    stretches: list[tuple[tuple[float, ...], Telemetry]] = []
    for part in windows:
        names = [name for name in ("payload", "payload_cog") if name in part]
        if not names:
            stretches.append(((), part))
            continue
        payload = np.round(np.column_stack([part[name] for name in names]), 3)
        for rows in equal_runs(np.nan_to_num(payload)):
            key = tuple(payload[rows.start].tolist())
            stretches.append((key, part.cut(rows)))
    samples: Counter[tuple[float, ...]] = Counter()
    for key, part in stretches:
        samples[key] += len(part)
    if not samples:
        return []
    most_frequent, _ = samples.most_common(1)[0]
    return [part for key, part in stretches if key == most_frequent]


def _different(positions: Sequence[Array], grid: float) -> Indices:
    """Rows of different poses: the first row in each cell of a grid.

    Args:
        positions: joint positions of each window [samples, n], rad.
        grid: size of the cells [rad].

    Returns:
        Ascending indices of rows of all windows, one after another.
    """
    if not positions:
        return np.zeros(0, dtype=np.intp)
    q = np.concatenate(positions)
    finite = np.flatnonzero(np.isfinite(q).all(axis=1))
    # The limit of 1000 rad keeps the numbers of cells of impossible positions in range.
    cells = np.round(np.clip(q[finite], -1e3, 1e3) / grid).astype(np.int64)
    _, first = np.unique(cells, axis=0, return_index=True)
    return finite[np.sort(first)]


def lasting_speed(windows: Sequence[Telemetry], dof: int) -> Array:
    """Speed of each joint that at least _LASTING samples have or exceed [n], rad/s."""
    speeds = [np.zeros((_LASTING, dof))]  # at least the rows that are needed
    for part in windows:
        name = "target_qd" if "target_qd" in part else "actual_qd"
        if name in part:
            speeds.append(np.abs(part[name]))
    ordered = np.sort(np.nan_to_num(np.concatenate(speeds)), axis=0)
    return np.asarray(ordered[-_LASTING])
