"""Payload, drive gains and what the model leaves out, from Gram matrices of weighing columns.

    drive = gain * (bare + bodies @ parameters) + own @ coefficients,

bilinear in gain and parameters: Gauss-Newton with priors. gain is the model's over the true torque
constant. The noisy side is the drive, so the gain belongs on the other one: a factor on the drive
would come out too small.

Errors of the links' masses and centres are considered and not estimated (Schmidt's consider
covariance; Jazwinski, Stochastic Processes and Filtering Theory, 1970, sec. 8.4): they pass into
the standard deviations by how far each of them would move the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.identification.weighing_columns import BODY, STATIC, WeighingColumns

Array = NDArray[np.float64]

FEW_SAMPLES = 50
"""Samples below which a joint counts as still."""
LINK_MASS_ERROR = 0.005
"""Relative error of a link's mass against the published one, assumed."""
_LINK_CENTER_ERROR = 0.001
"""Error of a link's centre of mass [m], assumed."""
_ROUNDS = 6
_MASS_STD = 100.0
_FIRST_MOMENT_STD = 3.0
_PAYLOAD_TENSOR_STD = 0.1
_FIXED = 1e-9


@dataclass(frozen=True)
class GainPrior:
    """What is known of the drives' gains, the model's over the true torque constants.

    Attributes:
        weight: standard deviation by which gains are held.
        spread: standard deviation believed. Gains held tighter than that keep errors of the links
            from taking them along.
        found_on_links: the torque constants were found with the same published links, so that
            what the errors of all links together do to a joint's torque is in its constant already.
        links_cancel: errors of the links do not count.
    """

    weight: float
    spread: float
    found_on_links: bool
    links_cancel: bool = False


FREE = GainPrior(0.3, 0.3, found_on_links=False)
"""Nothing known."""
HELD = GainPrior(0.003, 0.005, found_on_links=True)
"""What does not cancel between the model's identification and the weighing, assumed: torque
constants themselves are known to a percent, most of which is the error of the links."""
HELD_TWICE = replace(HELD, links_cancel=True)
"""For two weighings whose difference counts: what the links are wrong by is in both of them."""


@dataclass(frozen=True)
class WeighingSolution:
    """What was found.

    Attributes:
        payload: ten parameters about the flange.
        payload_covariance: [10, 10].
        gain: of the joints [n].
        gain_std: [n].
        rms: residual under the model as it is, but for payload and gain [n], N m; NaN for joints
            that stood still.
    """

    payload: Array
    payload_covariance: Array
    gain: Array
    gain_std: Array
    rms: Array


class WeighingSolver:
    """Solves one weighing.

    Args:
        columns: of the arm, n joints.
        blocks: Gram matrices of their rows, per block of time [blocks, n, width, width].
        gains: prior of the gains.
        friction_change: how much friction may differ from the model's [n], as a share of it.
        known_mass: payload mass where it is given [kg].
    """

    def __init__(
        self,
        columns: WeighingColumns,
        blocks: Array,
        gains: GainPrior,
        friction_change: Array,
        known_mass: float | None = None,
    ) -> None:
        self._columns, self._gains = columns, gains
        self._friction_change = friction_change
        n = columns.dof
        counts = blocks[:, :, -1, -1].sum(axis=0)
        self._joints = [int(j) for j in np.flatnonzero(counts >= FEW_SAMPLES)]
        self._counts = counts
        self._static = np.tile(np.arange(BODY) < STATIC, n)
        self._static[-BODY:] = False
        self._blocks = self._less_gain(blocks) if gains.found_on_links else blocks
        self._totals = self._blocks.sum(axis=0)
        self._size = BODY * n + n * (1 + len(columns.own))
        self._considered = np.zeros(self._size, dtype=bool)
        self._considered[: BODY * n] = self._static
        self._mean, self._weight = self._priors(known_mass)

    def solve(self) -> WeighingSolution:
        """Gauss-Newton; noise and its correlation by joint are found along the way."""
        estimated, n = ~self._considered, self._columns.dof
        values, noise = self._mean.copy(), np.ones(n)
        precision = np.where(estimated, self._weight**-2, 0.0)
        information = np.zeros((self._size, self._size))
        for _ in range(_ROUNDS):
            information, right = np.diag(precision), precision * (self._mean - values)
            for j in self._joints:
                slopes, residual = self._linearised(values, j)
                weighted = slopes @ self._totals[j] / noise[j] ** 2
                information += weighted @ slopes.T
                right += weighted @ residual
            values[estimated] += np.linalg.solve(
                information[np.ix_(estimated, estimated)], right[estimated]
            )
            for j in self._joints:
                noise[j] = self._noise(values, j)
        covariance = self._covariance(information)
        payload = slice(BODY * (n - 1), BODY * n)
        gains = [self._own(j).start for j in range(n)]
        return WeighingSolution(
            payload=values[payload],
            payload_covariance=covariance[payload, payload],
            gain=values[gains],
            gain_std=np.sqrt(np.diag(covariance)[gains]),
            rms=np.array([self._rms(values, j) for j in range(n)]),
        )

    def _less_gain(self, blocks: Array) -> Array:
        """Columns of the links' static parameters less what the gain has of them already."""
        totals, bare = blocks.sum(axis=0), self._columns.bare
        out = blocks.copy()
        static = np.flatnonzero(self._static)
        for j in self._joints:
            change = np.eye(self._columns.width)
            share = totals[j, bare, static] / max(totals[j, bare, bare], 1e-12)
            change[static, bare] = -share
            out[:, j] = change @ blocks[:, j] @ change.T
        return out

    def _own(self, joint: int) -> slice:
        """Unknowns of a joint: its gain, then what the model leaves out."""
        width = 1 + len(self._columns.own)
        start = BODY * self._columns.dof + joint * width
        return slice(start, start + width)

    def _priors(self, known_mass: float | None) -> tuple[Array, Array]:
        """Means and standard deviations of all unknowns."""
        columns, n = self._columns, self._columns.dof
        mean, std = np.zeros(self._size), np.empty(self._size)
        middle, spread = columns.tensor_errors
        bodies, bodies_mean = np.zeros((n, BODY)), np.zeros((n, BODY))
        bodies[:, 0] = LINK_MASS_ERROR * columns.masses
        bodies[:, 1:STATIC] = _LINK_CENTER_ERROR * columns.masses[:, None]
        bodies[:, STATIC:] = spread[:, None]
        bodies_mean[:, STATIC + np.array([0, 2, 5])] = middle[:, None]
        bodies_mean[-1] = 0.0
        bodies[-1] = [_MASS_STD, *[_FIRST_MOMENT_STD] * 3, *[_PAYLOAD_TENSOR_STD] * 6]
        if known_mass is not None:
            bodies_mean[-1, 0], bodies[-1, 0] = known_mass, _FIXED
        mean[: BODY * n] = bodies_mean.ravel()
        std[: BODY * n] = np.maximum(bodies, _FIXED).ravel()
        for j in range(n):
            own = self._own(j)
            mean[own.start] = 1.0
            std[own] = np.append(self._gains.weight, columns.own_std(j, self._friction_change[j]))
        return mean, std

    def _linearised(self, values: Array, joint: int) -> tuple[Array, Array]:
        """Slopes [unknowns, width] and residual [width], as combinations of a row's columns."""
        columns, own = self._columns, self._own(joint)
        bodies = slice(0, BODY * columns.dof)
        gain = values[own.start]
        load = np.zeros(columns.width)
        load[bodies], load[columns.bare] = values[bodies], 1.0
        slopes = np.zeros((self._size, columns.width))
        slopes[bodies, bodies] = gain * np.eye(bodies.stop)
        slopes[own.start] = load
        slopes[np.arange(own.start + 1, own.stop), columns.own] = 1.0
        residual = -gain * load
        residual[columns.own] -= values[own.start + 1 : own.stop]
        residual[columns.drive] += 1.0
        return slopes, residual

    def _noise(self, values: Array, joint: int) -> float:
        """Standard deviation of white noise that tells as little as the residual does.

        Residuals are correlated in time; the scatter of whole blocks shows how many samples count
        as one.
        """
        slopes, residual = self._linearised(values, joint)
        total = self._totals[joint]
        variance = max(float(residual @ total @ residual), 1e-12) / self._counts[joint]
        scores = (self._blocks[:, joint] @ residual) @ slopes.T
        scatter = ((scores - scores.mean(axis=0)) ** 2).sum(axis=0)
        white = np.einsum("uc,cd,ud->u", slopes, total, slopes)
        seen = white > 1e-9 * white.max()
        return float(np.sqrt(max(variance, np.mean(scatter[seen] / white[seen]))))

    def _covariance(self, information: Array) -> Array:
        """Of all unknowns; what was not estimated counts with what is believed of it."""
        estimated, n = ~self._considered, self._columns.dof
        held = self._weight[estimated]
        believed = self._weight.copy()
        believed[[self._own(j).start for j in range(n)]] = self._gains.spread
        inverse = np.linalg.inv(information[np.ix_(estimated, estimated)])
        wider = (believed[estimated] ** 2 - held**2) / held**4
        counts = 0.0 if self._gains.links_cancel else believed[self._considered] ** 2
        moved = inverse @ information[np.ix_(estimated, self._considered)]
        out = np.zeros((self._size, self._size))
        out[np.ix_(estimated, estimated)] = (
            inverse + (inverse * wider) @ inverse + (moved * counts) @ moved.T
        )
        return out

    def _rms(self, values: Array, joint: int) -> float:
        if joint not in self._joints:
            return float("nan")
        bare = values.copy()
        bare[self._own(joint).start + 1 : self._own(joint).stop] = 0.0
        _, residual = self._linearised(bare, joint)
        square = max(float(residual @ self._totals[joint] @ residual), 0.0)
        return float(np.sqrt(square / self._counts[joint]))
