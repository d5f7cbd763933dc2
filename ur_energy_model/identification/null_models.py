"""Null models: what least squares of a few lines explain; an identified model must explain more.

Current of a joint: six terms, torque from the controller's own target_moment,

    1/k target_moment + offset + viscous qd + (Coulomb + root sqrt|qd| + load |target_moment|) sign.

Its friction (the terms after the offset) has one scale a session, from the first seconds of motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.identification.friction_data import session_scales
from ur_energy_model.identification.least_squares import (
    BlockedGram,
    Prior,
    cross_validate,
    gram_matrices_by_joint,
    solve,
)
from ur_energy_model.identification.recording import Recording
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.telemetry.samples import time_blocks
from ur_energy_model.typing import Array, Mask

KEY = "null_models"
"""Of the null models in the provenance of a model, by name."""
ANCHOR_SECONDS = 3.0
"""Motion of a joint that its session's friction scale is taken from [s]."""
_TERMS, _FIXED = 6, 2
_FRICTION: Mask = np.arange(_TERMS) >= _FIXED
_STANDING = 1e-3
"""Speed below which friction has no direction, within the resolution of recorded speeds [rad/s]."""
_BLOCK = 1.0  # of time, as in the fit of friction [s]


@dataclass(frozen=True)
class CurrentNull:
    """Coefficients of the currents of n joints [n, 6]; NaN for a joint that hardly moved.

    `held_out`: RMS error of each joint on blocks of time left out of the fit [n], A.
    """

    coefficients: Array
    held_out: Array

    @classmethod
    def of_model(cls, model: EnergyModel) -> CurrentNull | None:
        """The null model that a model was compared with; None where its file has none."""
        stated = model.provenance.get(KEY)
        rows = stated.get("current") if isinstance(stated, dict) else None
        try:
            found = np.array(rows, dtype=float)  # None is NaN
        except (TypeError, ValueError):
            return None
        return (
            cls(found, np.full(model.dof, np.nan)) if found.shape == (model.dof, _TERMS) else None
        )

    def current(self, moment: Array, qd: Array, scale: Array | float = 1.0) -> Array:
        """Currents [samples, n], A, from target_moment, N m, and speeds, rad/s, joint side.

        `scale`: of the friction of the session [n].
        """
        terms = _terms(moment, qd) * self.coefficients
        return np.asarray(terms[..., :_FIXED].sum(axis=2) + scale * terms[..., _FIXED:].sum(axis=2))

    def rms(self, recording: Recording, *, anchor: bool) -> Array:
        """RMS error of a recording's currents while the joint moves [n], A; NaN where unknown.

        Filtered as the model's own; `anchor` scales friction on the first ANCHOR_SECONDS of motion.
        """
        n, narrow = len(self.coefficients), ParallelFilter(recording.cutoff)
        # Gram matrices of friction and what it leaves, of the first seconds and of all samples.
        first, whole, count, seconds = *np.zeros((2, n, 2, 2)), *np.zeros((2, n))
        for motion in recording.motions:
            fixed = self.current(motion.moment, motion.qd, 0.0)
            friction = self.current(motion.moment, motion.qd) - fixed
            rows = np.stack([friction, motion.current - fixed], axis=2)
            rows, moving, time = _filtered(rows, motion, narrow)
            if len(time) < 2:
                continue
            until = seconds + np.cumsum(moving, axis=0) * (time[1] - time[0])
            early = moving & (until <= ANCHOR_SECONDS)
            first += gram_matrices_by_joint(rows * early[..., None])
            whole += gram_matrices_by_joint(rows * moving[..., None])
            count, seconds = count + moving.sum(axis=0), until[-1]
        known = anchor & (first[:, 0, 0] > 0)
        scale = np.where(known, first[:, 0, 1] / np.where(known, first[:, 0, 0], 1.0), 1.0)
        squares = whole[:, 1, 1] - 2 * scale * whole[:, 0, 1] + scale**2 * whole[:, 0, 0]
        mean = np.maximum(squares, 0.0) / np.where(count > 0, count, np.nan)
        return np.asarray(np.sqrt(mean))


def fit_current_null(recordings: Sequence[Recording]) -> CurrentNull | None:
    """The null model of recordings of one arm with n joints; None where target_moment is missing.

    Each recording is a session with its own friction scale, of which the mean is 1.
    """
    sessions: list[tuple[BlockedGram, BlockedGram]] = []
    for recording in recordings:
        grams, moved, narrow = BlockedGram(), BlockedGram(), ParallelFilter(recording.cutoff)
        for motion in recording.motions:
            if not np.isfinite(motion.moment).all():
                return None
            terms = _terms(motion.moment, motion.qd)
            rows = np.concatenate([terms, motion.current[..., None]], axis=2)
            rows, moving, time = _filtered(rows, motion, narrow)
            for block in time_blocks(time, _BLOCK) if len(time) > 1 else ():
                duration = float(time[1] - time[0]) * len(time[block])
                used = rows[block] * moving[block][..., None]
                grams.accumulate(gram_matrices_by_joint(used), duration)
                moved.accumulate(moving[block].sum(axis=0, dtype=float), duration)
        if len(moved) and moved.blocks.any():
            sessions.append((grams, moved))
    if not sessions:
        return None
    prior = Prior(np.zeros(_TERMS), np.full(_TERMS, np.inf))
    dof = sessions[0][1].blocks.shape[1]
    coefficients, held_out = np.full((dof, _TERMS), np.nan), np.full(dof, np.nan)
    for j in range(dof):
        own = [gram.blocks[:, j] for gram, _ in sessions]
        counts = [count.blocks[:, j] for _, count in sessions]
        samples = np.concatenate(counts)
        if np.count_nonzero(samples) > 1:
            _, blocks = session_scales(own, counts, prior, _FRICTION, applied=True)
            coefficients[j] = solve(blocks, prior, samples).coefficients
            held_out[j] = np.sqrt(cross_validate(blocks, prior, samples).mean())
    return CurrentNull(coefficients, held_out)


def _terms(moment: Array, qd: Array) -> Array:
    """Columns of the six terms [samples, n, 6]."""
    sign = np.sign(qd) * (np.abs(qd) > _STANDING)
    root, load = sign * np.sqrt(np.abs(qd)), sign * np.abs(moment)
    return np.stack([moment, np.ones_like(qd), qd, sign, root, load], axis=2)


def _filtered(
    rows: Array, motion: FilteredMotion, narrow: ParallelFilter
) -> tuple[Array, Mask, Array]:
    """Rows [samples, n, k] of a motion as its comparison has them, where joints move, and times."""
    inside = narrow.inside(motion)
    moving = narrow.moving(motion, MOVING_SPEED)[inside]
    return narrow(motion, rows)[inside], moving, motion.time[inside]
