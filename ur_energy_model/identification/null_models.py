# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Null models: what least squares of a few lines explain; an identified model must explain more.

Current of a joint: six terms, torque from the controller's own target_moment,

    1/k target_moment + offset + viscous qd + (Coulomb + root sqrt|qd| + load
    |target_moment|) sign.

Its friction (the terms after the offset) has one scale a session, from the first seconds
of motion.

Power at the supply: a constant, from standstill where the session has any, and two
coefficients of the copper losses sum R i^2 and the power of the shafts sum k_t N qd i, R
and k_t of the robot file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.filtered_motion import ParallelFilter
from ur_energy_model.identification.friction_data import session_scales
from ur_energy_model.identification.least_squares import (
    BlockedGram,
    Prior,
    cross_validate,
    joint_gram_matrices,
    solve,
)
from ur_energy_model.identification.recording import Recording, SessionData
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array, Mask

KEY = "null_models"  # of the null models in the provenance of a model, by name
# motion of a joint that its session's friction scale is taken from [s]
ANCHOR_SECONDS = 3.0
_TERMS = 6  # terms of the current
_FRICTION: Mask = np.arange(_TERMS) >= 2  # terms of friction
_STANDING = 1e-3
"""Speed below which friction has no direction, within the resolution of recorded speeds
[rad/s]."""


@dataclass(frozen=True)
class CurrentNull:
    """The null model of the currents of n joints.

    Attributes:
        coefficients: coefficients of the currents [n, 6]; NaN for a joint that hardly
            moved.
        held_out: RMS error of each joint on blocks of time left out of the fit [n], A.
    """

    coefficients: Array
    held_out: Array

    @classmethod
    def of_model(cls, model: EnergyModel) -> CurrentNull | None:
        """The null model that a model was compared with; None where its file has none."""
        found = _stated(model, "current")
        n = model.dof
        return cls(found, np.full(n, np.nan)) if found.shape == (n, _TERMS) else None

    def rms(self, recording: Recording, *, anchor: bool) -> Array:
        """RMS error of a recording's currents while the joint moves [n], A; NaN where unknown.

        Args:
            recording: recording whose currents are filtered as for the model itself.
            anchor: whether friction is scaled on the first ANCHOR_SECONDS of motion.
        """
        n = len(self.coefficients)
        # Gram matrices of terms, current and 1: of the first seconds, and of all motion
        first = np.zeros((n, _TERMS + 2, _TERMS + 2))
        whole = np.zeros((n, _TERMS + 2, _TERMS + 2))
        seconds = np.zeros(n)
        for gram, period in _grams(recording):
            moved = period * gram[:, -1, -1]
            share = (ANCHOR_SECONDS - seconds) / np.maximum(moved, 1e-9)
            first = first + np.clip(share, 0.0, 1.0)[:, None, None] * gram
            whole = whole + gram
            seconds = seconds + moved
        # Columns of friction, and of the current that the other terms leave.
        split = np.zeros((n, _TERMS + 2, 2))
        split[:, :_TERMS, 0] = np.where(_FRICTION, self.coefficients, 0.0)
        split[:, :_TERMS, 1] = split[:, :_TERMS, 0] - self.coefficients
        split[:, _TERMS, 1] = 1.0
        early = split.swapaxes(1, 2) @ first @ split
        late = split.swapaxes(1, 2) @ whole @ split
        known = anchor & (early[:, 0, 0] > 0)
        friction = np.where(known, early[:, 0, 0], 1.0)
        scale = np.where(known, early[:, 0, 1] / friction, 1.0)
        squares = late[:, 1, 1] - 2 * scale * late[:, 0, 1] + scale**2 * late[:, 0, 0]
        count = np.where(whole[:, -1, -1] > 0, whole[:, -1, -1], np.nan)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) / count))


def fit_current_null(recordings: Sequence[SessionData]) -> CurrentNull | None:
    """The null model of recordings of one arm with n joints; None where target_moment is missing.

    Each recording is a session with its own friction scale; the mean of the scales is 1.

    Args:
        recordings: recordings of the arm.
    """
    sessions: list[Array] = []  # Gram matrices of each block of time
    for recording in recordings:
        grams = BlockedGram()
        for gram, period in _grams(recording):
            if not np.isfinite(gram).all():
                return None
            grams.accumulate(gram, period * float(gram[:, -1, -1].max()))
        if len(grams):
            sessions.append(grams.blocks)
    if not sessions:
        return None
    prior = Prior(np.zeros(_TERMS), np.full(_TERMS, np.inf))
    dof = sessions[0].shape[1]
    coefficients = np.full((dof, _TERMS), np.nan)
    held_out = np.full(dof, np.nan)
    for j in range(dof):
        own = [blocks[:, j, :-1, :-1] for blocks in sessions]
        counts = [blocks[:, j, -1, -1] for blocks in sessions]
        samples = np.concatenate(counts)
        if np.count_nonzero(samples) > 1:
            blocks = session_scales(own, counts, prior, _FRICTION, applied=True).blocks
            coefficients[j] = solve(blocks, prior, samples).coefficients
            held_out[j] = np.sqrt(cross_validate(blocks, prior, samples).mean())
    return CurrentNull(coefficients, held_out)


def _stated(model: EnergyModel, name: str) -> Array:
    """Coefficients of a null model in a model; a scalar NaN where its file has none."""
    stated = model.provenance.get(KEY)
    if not isinstance(stated, dict):
        return np.array(np.nan)
    try:
        return np.array(stated.get(name), dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def supply_columns(robot: RobotDescription, qd: Array, current: Array) -> Array:
    """1, sum R i^2 and sum k_t N qd i [samples, 3], W, of speeds and currents [samples, n].

    Args:
        robot: robot with its resistances and torque constants.
        qd: joint speeds [samples, n], rad/s.
        current: currents of the motors [samples, n], A.
    """
    copper = np.square(current) @ robot.winding_resistance
    shafts = (qd * current) @ (robot.torque_constant * robot.gear_ratio)
    return np.column_stack([np.ones(len(copper)), copper, shafts])


def fit_power_null(
    recordings: Sequence[SessionData], robot: RobotDescription
) -> Array | None:
    """Coefficients of `supply_columns` [3] by least squares; None without bus power."""
    gram = np.zeros((4, 4))
    for recording in recordings:
        for _, qd, current, power in recording.supply():
            rows = np.column_stack([supply_columns(robot, qd, current), power])
            rows = rows[np.isfinite(rows).all(axis=1)]
            gram += rows.T @ rows
    if not gram[0, 0] > 3:
        return None
    return np.asarray(np.linalg.lstsq(gram[:3, :3], gram[:3, 3], rcond=None)[0])


def power_null_errors(
    model: EnergyModel, recording: Recording, *, anchor: bool
) -> dict[str, float | None]:
    """RMSE [W] and energy error [%] of the null model's power by JSON key; empty where unknown.

    Args:
        model: model whose file may have a null model.
        recording: recording with or without bus power.
        anchor: whether the constant is taken from the recording's own standstill.
    """
    known = _stated(model, "power")
    robot = model.description()
    if known.shape != (3,):
        return {}
    # what the two coefficients leave of the power, the power, and standstill of all joints
    rests = list[Array]()
    powers = list[Array]()
    stills = list[Mask]()
    for _, qd, current, power in recording.supply():
        rest = power - supply_columns(robot, qd, current)[:, 1:] @ known[1:]
        good = np.isfinite(rest)
        rests.append(rest[good])
        powers.append(power[good])
        stills.append(np.all(np.abs(qd[good]) < _STANDING, axis=1))
    if not sum(map(len, rests)):
        return {}
    rest = np.concatenate(rests)
    still = np.concatenate(stills)
    constant = float(known[0])
    if anchor and still.any():
        constant = float(rest[still].mean())
    error = constant - rest
    error_percent = 100 * error.mean() / np.concatenate(powers).mean()
    return {
        "null_rmse": float(np.sqrt(np.mean(np.square(error)))),
        "null_energy_error_percent": float(error_percent),
    }


def _grams(recording: SessionData) -> Iterator[tuple[Array, float]]:
    """Gram matrices [n, 8, 8] of terms, current and 1 where joints move, and sample periods [s]."""
    narrow = ParallelFilter(recording.cutoff)
    for motion in recording.motions:
        moment = motion.moment
        qd = motion.qd
        sign = np.sign(qd) * (np.abs(qd) > _STANDING)
        friction = (qd, sign, sign * np.sqrt(np.abs(qd)), sign * np.abs(moment))
        rows = np.stack([moment, np.ones_like(qd), *friction, motion.current], axis=2)
        for gram, _ in joint_gram_matrices(motion, rows, narrow, moving_only=True):
            yield gram, motion.period * narrow.inside(motion).step
