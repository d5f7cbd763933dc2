# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Null models: simple least-squares models that an identified model must surpass.

Current of a joint: six terms, with the torque from the controller's own target_moment,

    1/k target_moment + offset + viscous qd
    + (Coulomb + root sqrt|qd| + load |target_moment|) sign(qd).

Friction (the terms after the offset) has one scale per session, from the first seconds of
motion.

Power at the supply: a constant, from standstill where the session has any, and one
coefficient each of the copper losses, sum R i^2, and of the power of the shafts, sum k_t N
qd i, with R and k_t of the robot file.
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

KEY = "null_models"  # key of the null models in the provenance of a model
ANCHOR_SECONDS = 3.0  # motion of a joint that shows the friction scale of its session [s]
_TERMS = 6  # number of terms of the current
_CURRENT = _TERMS  # column of the measured current behind the terms
_ONE = _TERMS + 1  # column of ones behind the current; its square counts samples
_COLUMNS = _TERMS + 2
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
        # Gram matrices of terms, current and 1: of the first seconds, and of all motion.
        first = np.zeros((n, _COLUMNS, _COLUMNS))
        whole = np.zeros((n, _COLUMNS, _COLUMNS))
        seconds = np.zeros(n)
        for gram, period in _grams(recording):
            moved = period * gram[:, _ONE, _ONE]
            share = (ANCHOR_SECONDS - seconds) / np.maximum(moved, 1e-9)
            first = first + np.clip(share, 0.0, 1.0)[:, None, None] * gram
            whole = whole + gram
            seconds = seconds + moved
        # Two combinations of the columns: friction, and the rest, which is the current
        # less all terms but friction. Friction times its scale should equal the rest.
        friction = 0
        rest = 1
        split = np.zeros((n, _COLUMNS, 2))
        split[:, :_TERMS, friction] = np.where(_FRICTION, self.coefficients, 0.0)
        split[:, :_TERMS, rest] = split[:, :_TERMS, friction] - self.coefficients
        split[:, _CURRENT, rest] = 1.0
        early = split.swapaxes(1, 2) @ first @ split
        all_motion = split.swapaxes(1, 2) @ whole @ split
        known = anchor & (early[:, friction, friction] > 0)
        square = np.where(known, early[:, friction, friction], 1.0)
        scale = np.where(known, early[:, friction, rest] / square, 1.0)
        squares = (
            all_motion[:, rest, rest]
            - 2 * scale * all_motion[:, friction, rest]
            + scale**2 * all_motion[:, friction, friction]
        )
        samples = whole[:, _ONE, _ONE]
        count = np.where(samples > 0, samples, np.nan)
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
            grams.accumulate(gram, period * float(gram[:, _ONE, _ONE].max()))
        if len(grams):
            sessions.append(grams.blocks)
    if not sessions:
        return None
    prior = Prior(np.zeros(_TERMS), np.full(_TERMS, np.inf))
    dof = sessions[0].shape[1]
    coefficients = np.full((dof, _TERMS), np.nan)
    held_out = np.full(dof, np.nan)
    for j in range(dof):
        own = [blocks[:, j, :_ONE, :_ONE] for blocks in sessions]
        counts = [blocks[:, j, _ONE, _ONE] for blocks in sessions]
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
    """Columns of the null model of the power [samples, 3]: ones, copper losses and shafts, W.

    Args:
        robot: description of the arm, with winding resistances and torque constants.
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
    columns = slice(0, 3)
    power_column = 3
    gram = np.zeros((4, 4))  # Gram matrix of the three columns and the power
    for recording in recordings:
        for _, qd, current, power in recording.supply():
            rows = np.column_stack([supply_columns(robot, qd, current), power])
            rows = rows[np.isfinite(rows).all(axis=1)]
            gram += rows.T @ rows
    samples = gram[0, 0]  # the first column is 1
    if not samples > 3:
        return None
    normal = gram[columns, columns]
    coefficients, *_ = np.linalg.lstsq(normal, gram[columns, power_column], rcond=None)
    return np.asarray(coefficients)


def power_null_errors(
    model: EnergyModel, recording: Recording, *, anchor: bool
) -> dict[str, float | None]:
    """RMSE [W] and energy error [%] of the null model's power by JSON key; empty where unknown.

    Args:
        model: model whose provenance may have a null model.
        recording: recording with or without bus power.
        anchor: whether the constant is taken from standstill in the recording.
    """
    known = _stated(model, "power")
    robot = model.description()
    if known.shape != (3,):
        return {}
    # For the samples of each part: the power less copper losses and shafts, the power, and
    # whether all joints stand still.
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
