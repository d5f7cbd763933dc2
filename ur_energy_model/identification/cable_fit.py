# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The chain of cable segments fitted to bus current and voltage drops.

`joint_meter` states the equations. Here are the sums of products of block means that they
are fitted to, so that memory does not grow with the recordings, and the nonlinear least
squares with the covariance of correlated residuals (Newey and West, Econometrica 55,
1987).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.cable import Cable
from ur_energy_model.typing import Array

FACTOR_STD = 1.0
"""Prior deviation of measured over modelled power, common to both parts of a joint's power."""
PART_STD = 0.5  # prior deviation of each part of a joint's power from the common factor
_LAGS = 10  # number of blocks over which residuals may be correlated
_ROUNDS = 60  # largest number of steps of Gauss and Newton
_LONGEST_STEP = 0.5  # largest change of a value in a step [ohm, or of a factor]
_CONVERGED = 1e-6  # largest change of a value in the last step
_LEAST_NOISE = 1e-10
"""Least variance of block means [A^2, V^2]: some simulated arms have no noise."""


class CableLayout:
    """Places of channels, of their powers and shown quantities, and of values, for n joints.

    Channels [3 n + 1] are the modelled powers [2 n], which are known, and the quantities
    that the cable shows [n + 1].

    Args:
        joints: number of joints n.

    Attributes:
        channels: number of channels, 3 n + 1.
        powers: channels of losses over voltage [n] and converted power over voltage [n], A.
        losses: channels of losses over voltage [n], A.
        converted: channels of converted power over voltage [n], A.
        shown: channels of bus current and drops of voltage [n + 1], A and V.
        bus: channel of the bus current, A.
        drops: channels of the drops of voltage to each joint [n], V.
        resistance: values that are resistances [n], ohm.
        factors: values that are factors on the powers [2 n], in the order of the channels.
        loss_factors: values that are factors on the losses [n].
        converted_factors: values that are factors on the converted power [n].
        but_converted: values other than `converted_factors` [2 n].
    """

    def __init__(self, joints: int) -> None:
        n = joints
        self.channels = 3 * n + 1
        self.powers = slice(0, 2 * n)
        self.losses = slice(0, n)
        self.converted = slice(n, 2 * n)
        self.shown = slice(2 * n, 3 * n + 1)
        self.bus = 2 * n
        self.drops = slice(2 * n + 1, 3 * n + 1)
        self.resistance = slice(0, n)
        self.factors = slice(n, 3 * n)
        self.loss_factors = slice(n, 2 * n)
        self.converted_factors = slice(2 * n, 3 * n)
        self.but_converted = slice(0, 2 * n)


BUS = 0
DROPS = slice(1, None)
"""Places of the bus current and of the drops to each joint among the shown quantities [n + 1]."""


@dataclass
class BlockSums:
    """Means of `width` channels over blocks of time, and products of these means, over recordings.

    Attributes:
        duration: duration of a block [s].
        width: number of channels.
        count: number of blocks.
        products: sums of products of block means with block means 0 to _LAGS blocks later,
            less the means of each recording [1 + lags, width, width].
    """

    duration: float
    width: int
    count: int = 0
    products: Array = field(init=False)

    def __post_init__(self) -> None:
        self.products = np.zeros((1 + _LAGS, self.width, self.width))
        self._start()

    def _start(self) -> None:
        """Begin another recording."""
        # Samples of the block that is not complete yet.
        self._waiting_time = np.zeros(0)
        self._waiting = np.zeros((0, self.width))
        self._tail = np.zeros((0, self.width))  # the last block means
        self._number = 0  # number of blocks of the recording
        self._sum = np.zeros(self.width)  # sums of the block means
        self._raw = np.zeros_like(self.products)  # products before the mean is taken off
        self._reference: Array | None = None  # subtracted from all values of a recording

    def add(self, time: Array, values: Array) -> None:
        """Add consecutive samples.

        Args:
            time: times [samples], s.
            values: values of the channels [samples, width].
        """
        if not len(time):
            return
        time = np.concatenate([self._waiting_time, time])
        values = np.concatenate([self._waiting, values])
        number = np.floor(time / self.duration + 1e-6)
        complete = number != number[-1]
        self._waiting_time = time[~complete]
        self._waiting = values[~complete]
        self._add_blocks(number[complete], values[complete])

    def _add_blocks(self, number: Array, values: Array) -> None:
        """Add the means of whole blocks.

        Args:
            number: number of the block that a sample belongs to [samples].
            values: values of the channels [samples, width].
        """
        if not len(number):
            return
        before_first = number[0] - 1.0
        starts = np.flatnonzero(np.diff(number, prepend=before_first))
        counts = np.diff(np.append(starts, len(number)))
        means = np.add.reduceat(values, starts, axis=0) / counts[:, None]
        if self._reference is None:
            self._reference = means[0]
        means = means - self._reference
        known = len(self._tail)
        joined = np.concatenate([self._tail, means])
        for lag in range(1 + _LAGS):
            first = max(known, lag)
            if first < len(joined):
                earlier = joined[first - lag : len(joined) - lag]
                self._raw[lag] += earlier.T @ joined[first:]
        self._tail = joined[-_LAGS:]
        self._number += len(means)
        self._sum += means.sum(axis=0)

    def finish_recording(self) -> None:
        """Include the recording, whose mean values are not used."""
        self._add_blocks(np.zeros(len(self._waiting)), self._waiting)
        if self._number > 1:
            mean = self._sum / self._number
            for lag in range(1 + _LAGS):
                pairs = max(self._number - lag, 0)
                self.products[lag] += self._raw[lag] - pairs * np.outer(mean, mean)
            self.count += self._number
        self._start()

    def covariance(self, lag: int) -> Array:
        """Covariance of block means with those `lag` blocks later [width, width]."""
        return np.asarray(self.products[lag] / max(self.count, 1))


class CableFit(NamedTuple):
    """A cable and powers of the joints as fitted to bus current and voltage drops.

    Attributes:
        values: resistances [n], ohm, factors of losses [n] and of converted power [n], at
            the places of `CableLayout` [3 n].
        covariance: covariance of the values [3 n, 3 n].
        residual: RMS of the block means of bus current [A] and drops [V], [1 + n].
        misfit: weighted squares that the chain leaves and free coefficients explain, per
            degree of freedom and corrected for correlation: 1 for an exact chain.
            Variances are multiplied by a misfit above 1.
        worst: joint whose drop the chain explains least.
        noise: covariance of the residuals of bus current and drops [1 + n, 1 + n].
        inflation: factor on variances by the correlation of residuals over time, 1 or
            more.
    """

    values: Array
    covariance: Array
    residual: Array
    misfit: float
    worst: int
    noise: Array
    inflation: float

    @property
    def std(self) -> Array:
        """Standard deviations [3 n]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


def fit_cable(sums: BlockSums, cable: Cable) -> CableFit:
    """Resistances and factors that explain the bus current and the drops of voltage.

    Args:
        sums: sums of the channels of `CableLayout`.
        cable: prior of the resistances.
    """
    n = len(cable.resistance)
    layout = CableLayout(n)
    prior, precision = _prior(cable)
    columns = sums.products[0][layout.powers, layout.powers]
    shared = sums.products[0][layout.powers, layout.shown]
    freedom = max(sums.count - 1 - 2 * n, 1)
    values = prior
    weight: Array = np.zeros((n + 1, n + 1))
    for _ in range(_ROUNDS):
        coefficients, slopes = _chain(values, n)
        noise = _residual_products(sums.products[0], coefficients, n) / freedom
        weight = np.asarray(np.linalg.inv(noise + _LEAST_NOISE * np.eye(n + 1)))
        left = shared.T - coefficients @ columns
        information, gradient = _normal_equations(slopes, weight, columns, left)
        step = np.linalg.solve(
            information + precision, gradient + precision @ (prior - values)
        )
        values = values + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _CONVERGED:
            break
    bread = np.linalg.inv(information + precision)
    meat = _score_covariance(sums, coefficients, slopes, weight, freedom)
    covariance = bread @ (meat + precision) @ bread
    wider = np.sqrt(np.maximum(np.diag(bread) / np.diag(covariance), 1.0))
    covariance = wider[:, None] * covariance * wider
    white = max(np.trace(bread @ information), 1e-12)
    inflation = max(float(np.trace(bread @ meat) / white), 1.0)
    # Sums of products that free coefficients explain and the chain does not.
    beyond = left @ np.linalg.pinv(columns, rcond=1e-8, hermitian=True)
    squares = beyond @ left.T
    rank = int(np.linalg.matrix_rank(columns))
    free = max((n + 1) * rank - 3 * n, 1)  # free coefficients less 3 n of the chain
    misfit = float(np.trace(squares @ weight)) / free / inflation
    worst = int(np.argmax((np.diag(squares) / np.diag(noise))[DROPS]))
    return CableFit(
        values=values,
        covariance=max(misfit, 1.0) * covariance,
        residual=np.sqrt(np.diag(noise)),
        misfit=misfit,
        worst=worst,
        noise=noise,
        inflation=inflation,
    )


def factors_without_bus(
    sums: BlockSums, cable: Cable, fit: CableFit
) -> tuple[Array, Array]:
    """Factors of converted power as the drops show them, given the bus current.

    What the bus current itself shows of the powers is left out, for a fit that uses bus
    power; nothing is assumed of these factors before.

    Args:
        sums: sums to which the cable was fitted.
        cable: prior of the resistances.
        fit: fit of the cable.

    Returns:
        The factors [n], and the inverse of their covariance [n, n].
    """
    n = len(cable.resistance)
    layout = CableLayout(n)
    columns = sums.products[0][layout.powers, layout.powers]
    coefficients, slopes = _chain(fit.values, n)
    left = sums.products[0][layout.powers, layout.shown].T - coefficients @ columns
    # Weight of the drops given the bus current: the weight of all shown quantities, less
    # the weight of the bus current alone.
    noise = fit.noise + _LEAST_NOISE * np.eye(n + 1)
    weight = np.asarray(np.linalg.inv(noise), dtype=float)
    weight[BUS, BUS] -= 1.0 / noise[BUS, BUS]
    weight = weight / (fit.inflation * max(fit.misfit, 1.0))
    information, gradient = _normal_equations(slopes, weight, columns, left)
    others = layout.but_converted
    converted = layout.converted_factors
    prior = np.concatenate([cable.resistance, np.ones(n)])
    precision = np.diag(np.concatenate([cable.std**-2.0, np.full(n, PART_STD**-2.0)]))
    # The other values are eliminated from the normal equations (Schur complement).
    beside = gradient[others] + precision @ (prior - fit.values[others])
    share = information[converted, others] @ np.linalg.inv(
        information[others, others] + precision
    )
    alone = information[converted, converted] - share @ information[others, converted]
    right = gradient[converted] - share @ beside
    step = np.linalg.pinv(alone, rcond=1e-9, hermitian=True) @ right
    return fit.values[converted] + step, alone


def _normal_equations(
    slopes: Array, weight: Array, columns: Array, left: Array
) -> tuple[Array, Array]:
    """Normal equations of one step of Gauss and Newton: matrix [3 n, 3 n] and right side [3 n].

    Args:
        slopes: derivatives of the coefficients by the values [3 n, 1 + n, 2 n].
        weight: inverse covariance of the residuals [1 + n, 1 + n].
        columns: sums of products of the powers [2 n, 2 n].
        left: sums of products of the residuals with the powers [1 + n, 2 n].
    """
    matrix = np.einsum(
        "aij,ik,bkl,lj->ab", slopes, weight, slopes, columns, optimize=True
    )
    right = np.einsum("aij,ik,kj->a", slopes, weight, left, optimize=True)
    return matrix, right


def _prior(cable: Cable) -> tuple[Array, Array]:
    """Mean [3 n] and inverse covariance [3 n, 3 n] of resistances and factors."""
    n = len(cable.resistance)
    layout = CableLayout(n)
    mean = np.concatenate([cable.resistance, np.ones(2 * n)])
    covariance = np.zeros((3 * n, 3 * n))
    covariance[layout.resistance, layout.resistance] = np.diag(cable.std**2)
    # Both factors of a joint have an error in common, and each has one of its own.
    common = np.tile(FACTOR_STD**2 * np.eye(n), (2, 2))
    covariance[layout.factors, layout.factors] = common + PART_STD**2 * np.eye(2 * n)
    return mean, np.asarray(np.linalg.inv(covariance))


def _chain(values: Array, n: int) -> tuple[Array, Array]:
    """Coefficients of bus current and drops, and their change with resistances and factors.

    Args:
        values: resistances and factors [3 n].
        n: number of joints.

    Returns:
        Coefficients of the powers over voltage [1 + n, 2 n], and their slopes [3 n, 1 + n,
        2 n].
    """
    layout = CableLayout(n)
    factors = values[layout.factors]
    joint = np.arange(n)
    # Last segment of the cable that the drop to joint j and the current of joint i share.
    passed = np.minimum(joint[:, None], joint)
    whole = np.cumsum(values[layout.resistance])[passed]
    of_current = np.concatenate([np.ones((1, n)), whole])  # bus current, then the drops
    shares = np.tile(of_current, 2)  # losses and converted power alike
    coefficients = shares * factors
    slopes = np.zeros((3 * n, 1 + n, 2 * n))
    for segment in range(n):
        through = np.tile(passed >= segment, (1, 2))
        slopes[segment, DROPS] = through * factors
    each = np.arange(2 * n)
    slopes[layout.factors][each, :, each] = shares.T
    return coefficients, slopes


def _residual_products(products: Array, coefficients: Array, n: int) -> Array:
    """Sums of products of residuals [1 + n, 1 + n], from sums of products of the channels."""
    left = np.concatenate([-coefficients, np.eye(n + 1)], axis=1)
    return np.asarray(left @ products @ left.T)


def _score_covariance(
    sums: BlockSums, coefficients: Array, slopes: Array, weight: Array, freedom: int
) -> Array:
    """Covariance of the gradient with residuals that are correlated over time [3 n, 3 n].

    Residuals are taken to be independent of the motion, so that the covariances of both
    multiply.

    Args:
        sums: products of the channels with the channels of later blocks.
        coefficients: coefficients of bus current and drops [1 + n, 2 n].
        slopes: derivatives of the coefficients by the values [3 n, 1 + n, 2 n].
        weight: inverse covariance of the residuals [1 + n, 1 + n].
        freedom: degrees of freedom of the residuals.
    """
    n = len(weight) - 1
    powers = CableLayout(n).powers
    weighted = np.einsum("aij,ik->akj", slopes, weight)
    lags = min(_LAGS, sums.count // 5)
    total = np.zeros((3 * n, 3 * n))
    for lag in range(1 + lags):
        noise = _residual_products(sums.products[lag], coefficients, n) / freedom
        motion = sums.products[lag][powers, powers]
        part = np.einsum(
            "aij,ik,bkl,jl->ab", weighted, noise, weighted, motion, optimize=True
        )
        share = 1.0 - lag / (1.0 + lags)  # weights of Newey and West
        both_ways = part if lag == 0 else part + part.T
        total += share * both_ways
    return total
