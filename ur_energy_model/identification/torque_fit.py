# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fit of torques that are linear in parameters: torque = W p.

W has any columns (model/regressor.py): base parameters, other friction laws. Torque and
columns pass the same filter; then ordinary least squares, and least squares weighted by the
noise of each joint, with a covariance that allows for correlated residuals. Sources: Raviola
et al., RAAD 2021, sec. 2; Machines 2024, 12(9), 595, sec. 3 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.filtered_motion import FilteredMotion, ParallelFilter
from ur_energy_model.identification.least_squares import (
    BlockedGram,
    filtered_rows,
    masked_gram_matrices,
    pseudo_inverse,
    solve_normal_equations,
)
from ur_energy_model.model.regressor import Regressor
from ur_energy_model.typing import Array, Mask

RCOND = 1e-13
"""Singular values of the normal equations below this share of the largest count as zero."""
_BASE = slice(0, -2)
_TORQUE = -2
_ONE = -1
"""Columns of a row: the regressor, the torque, and 1, which counts the samples."""
_FOLDS = 5  # folds of the cross-validation
_HIDDEN = 1e-6
"""Share of a parameter in what no motion shows that is rounding."""


@dataclass(frozen=True)
class TorqueRows:
    """Torques of a motion without gaps and their regressor, filtered alike.

    Attributes:
        time: controller clock [samples], s.
        regressor: columns of the parameters [samples, n, parameters].
        torque: torques, joint side [samples, n], N m.
        used: torques that enter the fit [samples, n]; the others belong to joints that
            stand still, where friction takes any value.
    """

    time: Array
    regressor: Regressor
    torque: Array
    used: Mask


def torque_rows(
    motion: FilteredMotion,
    regressor: Regressor,
    torque: Array,
    narrow: ParallelFilter | None = None,
    *,
    moving_only: bool = True,
) -> TorqueRows:
    """Torques and columns of a motion as they enter a fit.

    Args:
        motion: motion without gaps.
        regressor: columns of the samples of the motion.
        torque: torques of the same samples, joint side [samples, n], N m.
        narrow: filter of the recording, for torques and columns alike; None for none.
        moving_only: whether joints that stand still are left out.
    """
    rows = np.concatenate([regressor.values, torque[:, :, None]], axis=2)
    time, rows, used = filtered_rows(motion, rows, narrow, moving_only=moving_only)
    columns = Regressor(rows[:, :, :-1], regressor.columns, regressor.units)
    return TorqueRows(time, columns, rows[:, :, -1], used)


@dataclass(frozen=True)
class Verification:
    """Errors of parameters in the prediction of torques (general-trajectory check).

    Attributes:
        torque_rms: RMS residual of the torque of each joint [n], N m.
        torque_r2: coefficient of determination of the torque of each joint [n].
        normalised_error: sqrt(e'e) / number of torque samples, of filtered torques in
            motion [N m]; publications use `NormalisedError`.
        samples: number of torque samples used, each joint counted.
    """

    torque_rms: Array
    torque_r2: Array
    normalised_error: float
    samples: int


@dataclass(frozen=True)
class TorqueFit(Verification):
    """Parameters of torques, and their errors in the prediction of the fitted data.

    The normalised error is cross-validated: each block of time is predicted by a fit to the
    other blocks.

    Attributes:
        columns: names of the parameters.
        units: units of the parameters.
        ordinary: parameters by ordinary least squares [parameters].
        values: parameters by least squares weighted with each joint's noise [parameters].
        covariance: covariance of `values` [parameters, parameters], correlated residuals
            allowed for; without what the motion does not show.
        determined: parameters that the motion shows [parameters]. The others are zero, or
            share with others what is shown of them together: they have columns that are
            zero or depend on others, such as those of all parameters of an arm.
        condition_number: condition number of the stacked regressor of the data.
    """

    columns: tuple[str, ...]
    units: tuple[str, ...]
    ordinary: Array
    values: Array
    covariance: Array
    determined: Mask
    condition_number: float

    @property
    def std(self) -> Array:
        """Standard deviations of `values` [parameters]; infinite where not determined."""
        return np.where(self.determined, np.sqrt(np.diag(self.covariance)), np.inf)


def fit_torque(rows: Iterable[TorqueRows]) -> TorqueFit:
    """Parameters of the torques of one or more motions with the same columns.

    Raises:
        IdentificationError: too little motion for the number of parameters.
    """
    return _accumulated(rows).solve()


def verify_torque(rows: Iterable[TorqueRows], values: Array) -> Verification:
    """Errors of parameters in the prediction of torques, such as of another recording.

    Args:
        rows: torques and columns of one or more motions.
        values: parameters of these columns [parameters].

    Raises:
        IdentificationError: there is no motion.
    """
    return _accumulated(rows).verify(values)


def _accumulated(rows: Iterable[TorqueRows]) -> TorqueRegression:
    """The sums of all rows.

    Raises:
        IdentificationError: there are no rows.
    """
    regression: TorqueRegression | None = None
    for each in rows:
        if regression is None:
            columns = each.regressor.columns
            dof = each.torque.shape[1]
            regression = TorqueRegression(columns, each.regressor.units, dof)
        regression.accumulate(each)
    if regression is None:
        raise IdentificationError("no motion to fit torques to; record a motion")
    return regression


class TorqueRegression:
    """Accumulates torques and columns for a fit, in constant memory.

    Args:
        columns: names of the parameters.
        units: units of the parameters.
        dof: number of joints n.
    """

    def __init__(
        self, columns: tuple[str, ...], units: tuple[str, ...], dof: int
    ) -> None:
        self.columns = columns
        self.units = units
        self.dof = dof
        self._grams = BlockedGram()

    def accumulate(self, rows: TorqueRows) -> None:
        """Add the torques of a motion.

        Raises:
            ValueError: they have other columns.
        """
        if rows.regressor.columns != self.columns:
            raise ValueError("motions of one fit have the same columns")
        if not len(rows.time):
            return
        ones = np.ones_like(rows.torque)
        whole = np.dstack([rows.regressor.values, rows.torque, ones])
        for gram, duration in masked_gram_matrices(rows.time, whole, rows.used):
            self._grams.accumulate(gram, duration)

    @property
    def total(self) -> Array:
        """Gram matrices of [columns, torque, 1] of each joint [n, p + 2, p + 2]."""
        return np.asarray(self._blocks.sum(axis=0))

    @property
    def _blocks(self) -> Array:
        """Gram matrices per block of time [blocks, n, p + 2, p + 2]."""
        width = len(self.columns) + 2
        if not len(self._grams):
            return np.zeros((0, self.dof, width, width))
        return self._grams.blocks

    def solve(self) -> TorqueFit:
        """Fit the accumulated torques.

        Raises:
            IdentificationError: too little motion for the number of parameters.
        """
        count = len(self.columns)
        blocks = self._blocks
        total = blocks.sum(axis=0)
        samples = total[:, _ONE, _ONE]
        if samples.sum() < 2 * count or (samples < 2).any():
            raise IdentificationError(
                f"{int(samples.sum())} torque samples of moving joints cannot give {count} "
                "parameters; record an exciting motion of all joints (ur_energy excite)"
            )
        ordinary = _solve(total, np.ones(self.dof))
        noise = np.sqrt(_squares(total, ordinary) / samples)
        values = _solve(total, 1 / np.maximum(noise, 1e-9) ** 2)
        fitted = self.verify(values)
        gram = total[:, _BASE, _BASE].sum(axis=0)
        return TorqueFit(
            torque_rms=fitted.torque_rms,
            torque_r2=fitted.torque_r2,
            normalised_error=np.sqrt(_held_out_squares(blocks)) / samples.sum(),
            samples=fitted.samples,
            columns=self.columns,
            units=self.units,
            ordinary=ordinary,
            values=values,
            covariance=_covariance(blocks, values),
            determined=_determined(gram),
            condition_number=float(np.sqrt(np.linalg.cond(gram))),
        )

    def verify(self, values: Array) -> Verification:
        """Prediction of the accumulated torques by parameters [parameters]."""
        total = self.total
        samples = total[:, _ONE, _ONE]
        squares = _squares(total, values)
        sums = total[:, _TORQUE, _ONE]
        variation = total[:, _TORQUE, _TORQUE] - sums**2 / np.maximum(samples, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return Verification(
                torque_rms=np.sqrt(squares / samples),
                torque_r2=np.asarray(1 - squares / variation),
                normalised_error=float(np.sqrt(squares.sum()) / samples.sum()),
                samples=int(samples.sum()),
            )

    def difference(self, values: Array, others: Array) -> Array:
        """RMS difference of the torques by two sets of parameters [n], N m.

        Args:
            values: parameters [parameters].
            others: parameters [parameters].
        """
        total = self.total
        change = values - others
        squares = np.einsum("r,jrc,c->j", change, total[:, _BASE, _BASE], change)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) / total[:, _ONE, _ONE]))


def _solve(gram: Array, weights: Array) -> Array:
    """Weighted least squares [p] from Gram matrices [n, p + 2, p + 2]."""
    weighted = np.einsum("j,jrc->rc", weights, gram)
    return solve_normal_equations(weighted[_BASE, _BASE], weighted[_BASE, _TORQUE], RCOND)


def _squares(gram: Array, values: Array) -> Array:
    """Sum of squared residuals per joint [n]; rows are [columns, torque, 1]."""
    full = np.append(-values, [1.0, 0.0])
    return np.asarray(np.maximum(np.einsum("r,jrc,c->j", full, gram, full), 0.0))


def _covariance(blocks: Array, values: Array) -> Array:
    """Covariance [p, p] of parameters, correlated residuals allowed for.

    Correlated residuals inflate the covariance: with independent ones the variance of
    block scores would equal the information; the mean ratio is the number of samples that
    count as one.

    Args:
        blocks: Gram matrices per block of time [blocks, n, p + 2, p + 2].
        values: parameters by weighted least squares [p].
    """
    total = blocks.sum(axis=0)
    squares = _squares(total, values)
    samples = total[:, _ONE, _ONE]
    weights = samples / np.maximum(squares, 1e-12)
    residual = np.append(-values, [1.0, 0.0])
    scores = np.einsum("j,bjrc,c->br", weights, blocks, residual)[:, _BASE]
    information = np.einsum("j,jrc->rc", weights, total)[_BASE, _BASE]
    scatter = ((scores - scores.mean(axis=0)) ** 2).sum(axis=0)
    shown = np.diag(information) > 0
    ratios = scatter[shown] / np.diag(information)[shown]
    inflation = max(1.0, float(np.mean(ratios))) if shown.any() else 1.0
    return np.asarray(inflation * pseudo_inverse(information, RCOND))


def _determined(gram: Array) -> Mask:
    """Parameters that columns with this Gram matrix [p, p] determine [p]."""
    length = np.sqrt(np.diag(gram))
    scale = np.where(length > 0, length, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    hidden = vectors[:, values <= RCOND * values[-1]]
    return np.asarray((length > 0) & (np.square(hidden).sum(axis=1) < _HIDDEN))


def _held_out_squares(blocks: Array) -> float:
    """Sum of squared torque errors [(N m)^2] of blocks that are predicted from the others.

    Args:
        blocks: Gram matrices per block of time [blocks, n, p + 2, p + 2].
    """
    total = blocks.sum(axis=0)
    equal_weights = np.ones(len(total))
    squares = 0.0
    for part in np.array_split(np.arange(len(blocks)), min(_FOLDS, len(blocks))):
        fold = blocks[part].sum(axis=0)
        others = total if len(part) == len(blocks) else total - fold
        squares += float(_squares(fold, _solve(others, equal_weights)).sum())
    return squares
