"""Payload, drive gains and what the model leaves out, from Gram matrices of payload columns.

    drive = link_gain * (bare + links + payload_gain * payload) + own @ coefficients,

bilinear in gains and parameters: Gauss-Newton with a normal prior, whose posterior is the prior of
the next recording of the same arm (recursive least squares; Jazwinski, Stochastic Processes and
Filtering Theory, 1970, ch. 7). The noisy side is the drive, so the gain belongs on the other one:
a factor on the drive would come out too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.payload.payload_columns import BODY, STATIC, PayloadColumns
from ur_energy_model.model.payload_calibration import PayloadCalibration
from ur_energy_model.typing import Array

_ROUNDS = 8
_TENSOR = BODY - STATIC
_MASS_STD = 100.0
_FIRST_MOMENT_STD = 3.0
_PAYLOAD_TENSOR_STD = 0.1
_FIXED = 1e-9
_SYSTEMATIC = 2.0
"""What a residual counts beyond its scatter: errors of the model repeat from block to block."""


@dataclass(frozen=True)
class PayloadSolution:
    """What was found.

    Attributes:
        payload: ten parameters about the flange.
        payload_covariance: [10, 10].
        calibration: links and drives, as this recording leaves them.
        rms: residual under the model as it is, but for payload and gain [n], N m; NaN for joints
            that stood still.
    """

    payload: Array
    payload_covariance: Array
    calibration: PayloadCalibration
    rms: Array


class PayloadSolver:
    """Solves for the payload of one recording.

    Args:
        columns: of the arm, n joints.
        blocks: Gram matrices of their rows, per block of time [blocks, n, width, width].
        joints: those that moved.
        prior: of links and drives.
        friction_change: how much friction may differ from the model's [n], as a share of it.
        known_mass: payload mass where it is given [kg]; 0 for an empty flange.
    """

    def __init__(
        self,
        columns: PayloadColumns,
        blocks: Array,
        joints: list[int],
        prior: PayloadCalibration,
        friction_change: Array,
        known_mass: float | None = None,
    ) -> None:
        self._columns, self._blocks, self._joints = columns, blocks, joints
        self._totals = blocks.sum(axis=0)
        self._counts = self._totals[:, -1, -1]
        n, own = columns.dof, len(columns.own)
        sizes = (STATIC * n, n, n, BODY, _TENSOR * n, own * n)
        parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        self._links, self._link_gain, self._payload_gain, self._payload = parts[:4]
        self._tensors, self._own = parts[4], parts[5].reshape(n, own)
        self._shared = np.concatenate(parts[:3])
        body = BODY * np.arange(n)[:, None]
        self._static_columns = (body + np.arange(STATIC)).ravel()
        self._tensor_columns = (body + np.arange(STATIC, BODY)).ravel()
        self._payload_columns = np.arange(BODY * (n - 1), BODY * n)
        self._shares = [self._share(j) for j in range(n)]
        self._mean, self._precision = self._prior(prior, friction_change, known_mass)

    def solve(self) -> PayloadSolution:
        """Gauss-Newton; noise and its correlation by joint are found along the way."""
        values, noise = self._mean.copy(), np.ones(self._columns.dof)
        information = self._precision
        for _ in range(_ROUNDS):
            information = self._precision.copy()
            right = self._precision @ (self._mean - values)
            for j in self._joints:
                slopes, residual = self._linearised(values, j)
                weighted = slopes @ self._totals[j] / noise[j] ** 2
                information += weighted @ slopes.T
                right += weighted @ residual
            values = values + np.linalg.solve(information, right)
            for j in self._joints:
                noise[j] = self._noise(values, j)
        covariance: Array = np.asarray(np.linalg.inv(information), dtype=float)
        shared, payload = self._shared, self._payload
        return PayloadSolution(
            payload=values[payload],
            payload_covariance=covariance[np.ix_(payload, payload)],
            calibration=PayloadCalibration.from_vector(
                values[shared], covariance[np.ix_(shared, shared)]
            ),
            rms=np.array([self._rms(values, j) for j in range(self._columns.dof)]),
        )

    def _share(self, joint: int) -> Array:
        """What the gain of a joint has of its links' static parameters already.

        Torque constants were found with the published links, so the part of a link's error that
        looks like the weight of the bare arm is in them. What is on the flange is not.
        """
        total, bare = self._totals[joint], self._columns.bare
        share = total[bare, self._static_columns] / max(total[bare, bare], 1e-12)
        share[-STATIC:] = 0.0
        return np.asarray(share)

    def _prior(
        self, shared: PayloadCalibration, friction_change: Array, known_mass: float | None
    ) -> tuple[Array, Array]:
        """Mean and precision of all unknowns."""
        columns, n = self._columns, self._columns.dof
        size = self._own[-1, -1] + 1
        mean, std = np.zeros(size), np.empty(size)
        mean[self._shared] = shared.vector
        middle, spread = columns.tensor_errors
        tensors, errors = np.zeros((n, _TENSOR)), np.repeat(spread[:, None], _TENSOR, axis=1)
        tensors[:, [0, 2, 5]] = middle[:, None]
        tensors[-1], errors[-1] = 0.0, _FIXED  # the payload has a tensor of its own there
        mean[self._tensors], std[self._tensors] = tensors.ravel(), errors.ravel()
        std[self._payload] = [_MASS_STD, *[_FIRST_MOMENT_STD] * 3, *[_PAYLOAD_TENSOR_STD] * _TENSOR]
        if known_mass is not None:
            mean[self._payload[0]], std[self._payload[0]] = known_mass, _FIXED
        if known_mass == 0.0:
            std[self._payload] = _FIXED
        for j in range(n):
            std[self._own[j]] = columns.own_std(j, friction_change[j])
        std[self._shared] = 1.0
        precision = np.diag(np.maximum(std, _FIXED) ** -2.0)
        precision[np.ix_(self._shared, self._shared)] = np.linalg.inv(shared.covariance)
        return mean, precision

    def _linearised(self, values: Array, joint: int) -> tuple[Array, Array]:
        """Slopes [unknowns, width] and residual [width], as combinations of a row's columns."""
        columns, share, own = self._columns, self._shares[joint], self._own[joint]
        gain, scale = values[self._link_gain[joint]], values[self._payload_gain[joint]]
        links, payload = np.zeros(columns.width), np.zeros(columns.width)
        links[self._static_columns] = values[self._links]
        links[self._tensor_columns] = values[self._tensors]
        links[columns.bare] = 1.0 - share @ values[self._links]
        payload[self._payload_columns] = values[self._payload]
        slopes = np.zeros((len(values), columns.width))
        slopes[self._links, self._static_columns] = gain
        slopes[self._links, columns.bare] = -gain * share
        slopes[self._tensors, self._tensor_columns] = gain
        slopes[self._payload, self._payload_columns] = gain * scale
        slopes[self._link_gain[joint]] = links + scale * payload
        slopes[self._payload_gain[joint]] = gain * payload
        slopes[own, columns.own] = 1.0
        residual = -gain * (links + scale * payload)
        residual[columns.own] -= values[own]
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
        few = len(scores) / max(len(scores) - 1, 1)
        scatter = few * ((scores - scores.mean(axis=0)) ** 2).sum(axis=0)
        white = np.einsum("uc,cd,ud->u", slopes, total, slopes)
        seen = white > 1e-9 * white.max()
        return _SYSTEMATIC * float(np.sqrt(max(variance, np.mean(scatter[seen] / white[seen]))))

    def _rms(self, values: Array, joint: int) -> float:
        if joint not in self._joints:
            return float("nan")
        bare = values.copy()
        bare[self._own[joint]] = 0.0
        _, residual = self._linearised(bare, joint)
        square = max(float(residual @ self._totals[joint] @ residual), 0.0)
        return float(np.sqrt(square / self._counts[joint]))
