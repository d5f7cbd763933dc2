"""Payload, drive gains and model error from the Gram matrices of payload columns.

    drive = link_gain * (bare + links + payload_gain * payload) + errors @ coefficients,

bilinear in gains and parameters: Gauss-Newton with a normal prior. Its posterior is the prior of
the next recording of the same arm (recursive least squares; Jazwinski, Stochastic Processes and
Filtering Theory, 1970, ch. 7). The noise is on the drive side, so the gain belongs on the other
side: a factor on the drive would be biased low.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.payload.payload_columns import PayloadColumns
from ur_energy_model.model.inertial_parameters import COUNT, MASS, TENSOR, entries_of
from ur_energy_model.model.payload_calibration import LINK_PARAMETERS, PayloadCalibration
from ur_energy_model.typing import Array, Indices

_ROUNDS = 8
_MASS_STD = 100.0
_FIRST_MOMENT_STD = 3.0
_PAYLOAD_TENSOR_STD = 0.1
_FIXED = 1e-9
_SYSTEMATIC = 2.0
"""Factor on the noise for model errors that repeat from block to block."""
_TENSOR_COUNT = TENSOR.stop - TENSOR.start


@dataclass(frozen=True)
class PayloadSolution:
    """Result of a payload identification as inertial parameters.

    Attributes:
        payload: inertial parameters at the flange [10].
        payload_covariance: [10, 10].
        calibration: posterior of links and drives.
        rms: residual of the model with payload and gains, without error terms [n], N m; NaN for
            joints that stood still.
    """

    payload: Array
    payload_covariance: Array
    calibration: PayloadCalibration
    rms: Array


class _Unknowns:
    """Positions of the unknowns in one vector, for n joints.

    Args:
        n: joints.
        errors: error terms of a joint.

    Attributes:
        links: static parameters of the links [4 n].
        link_gain, payload_gain: [n].
        calibration: all of these, in the order of `PayloadCalibration.vector` [6 n].
        payload: inertial parameters of the payload [10].
        tensors: tensor entries of the links [6 n].
        errors: coefficients of the error terms [n, errors].
        size: number of unknowns.
    """

    def __init__(self, n: int, errors: int) -> None:
        sizes = (LINK_PARAMETERS * n, n, n, COUNT, _TENSOR_COUNT * n, errors * n)
        self.size = sum(sizes)
        (
            self.links,
            self.link_gain,
            self.payload_gain,
            self.payload,
            self.tensors,
            coefficients,
        ) = np.split(np.arange(self.size), np.cumsum(sizes)[:-1])
        self.errors = coefficients.reshape(n, errors)
        self.calibration: Indices = np.concatenate([self.links, self.link_gain, self.payload_gain])


class PayloadSolver:
    """Solves for the payload of one recording.

    Args:
        columns: of the arm, n joints.
        blocks: Gram matrices of their rows, per block of time [blocks, n, width, width].
        joints: those that moved.
        prior: of links and drives.
        friction_change: relative deviation of friction from the model's [n].
        duration: of the recording [s].
        known_mass: payload mass, where it is known [kg]; 0 for an empty flange.
    """

    def __init__(
        self,
        columns: PayloadColumns,
        blocks: Array,
        joints: list[int],
        prior: PayloadCalibration,
        friction_change: Array,
        duration: float,
        known_mass: float | None = None,
    ) -> None:
        self._columns, self._blocks, self._joints = columns, blocks, joints
        self._totals = blocks.sum(axis=0)
        self._counts = self._totals[:, columns.one, columns.one]
        n = columns.dof
        self._unknowns = _Unknowns(n, len(columns.errors))
        body = COUNT * np.arange(n)[:, None]
        self._static_columns = (body + np.arange(LINK_PARAMETERS)).ravel()
        self._tensor_columns = (body + np.arange(COUNT)[TENSOR]).ravel()
        self._payload_columns = np.arange(COUNT * (n - 1), COUNT * n)
        self._shares = [self._share(j) for j in range(n)]
        self._mean, self._precision = self._prior(prior, friction_change, duration, known_mass)

    def solve(self) -> PayloadSolution:
        """Gauss-Newton; the noise of each joint is estimated in every iteration."""
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
        calibration, payload = self._unknowns.calibration, self._unknowns.payload
        return PayloadSolution(
            payload=values[payload],
            payload_covariance=covariance[np.ix_(payload, payload)],
            calibration=PayloadCalibration.from_vector(
                values[calibration], covariance[np.ix_(calibration, calibration)]
            ),
            rms=np.array([self._rms(values, j) for j in range(self._columns.dof)]),
        )

    def _share(self, joint: int) -> Array:
        """Part of the links' static parameters that the gain of a joint includes [4 n].

        Torque constants were identified with the published links, so they include the part of a
        link's error that is proportional to the weight of the bare arm. They do not include what
        is on the flange.
        """
        total, bare = self._totals[joint], self._columns.bare
        share = total[bare, self._static_columns] / max(total[bare, bare], 1e-12)
        share[-LINK_PARAMETERS:] = 0.0
        return np.asarray(share)

    def _prior(
        self,
        calibration: PayloadCalibration,
        friction_change: Array,
        duration: float,
        known_mass: float | None,
    ) -> tuple[Array, Array]:
        """Mean and precision of all unknowns."""
        columns, unknowns, n = self._columns, self._unknowns, self._columns.dof
        mean, std = np.zeros(unknowns.size), np.ones(unknowns.size)
        mean[unknowns.calibration] = calibration.vector
        middle, spread = columns.tensor_errors
        tensors = middle[:, None] * entries_of(np.eye(3))
        errors = np.repeat(spread[:, None], _TENSOR_COUNT, axis=1)
        tensors[-1], errors[-1] = 0.0, _FIXED  # the last link has the payload's tensor
        mean[unknowns.tensors], std[unknowns.tensors] = tensors.ravel(), errors.ravel()
        std[unknowns.payload] = [
            _MASS_STD,
            *[_FIRST_MOMENT_STD] * 3,
            *[_PAYLOAD_TENSOR_STD] * _TENSOR_COUNT,
        ]
        if known_mass is not None:
            mean[unknowns.payload[MASS]], std[unknowns.payload[MASS]] = known_mass, _FIXED
        if known_mass == 0.0:
            std[unknowns.payload] = _FIXED
        for j in range(n):
            std[unknowns.errors[j]] = columns.error_std(j, friction_change[j], duration)
        precision = np.diag(np.maximum(std, _FIXED) ** -2.0)
        precision[np.ix_(unknowns.calibration, unknowns.calibration)] = np.linalg.inv(
            calibration.covariance
        )
        return mean, precision

    def _linearised(self, values: Array, joint: int) -> tuple[Array, Array]:
        """Jacobian [unknowns, width] and residual [width] as combinations of a row's columns."""
        columns, unknowns, share = self._columns, self._unknowns, self._shares[joint]
        errors = unknowns.errors[joint]
        gain, scale = values[unknowns.link_gain[joint]], values[unknowns.payload_gain[joint]]
        links, payload = np.zeros(columns.width), np.zeros(columns.width)
        links[self._static_columns] = values[unknowns.links]
        links[self._tensor_columns] = values[unknowns.tensors]
        links[columns.bare] = 1.0 - share @ values[unknowns.links]
        payload[self._payload_columns] = values[unknowns.payload]
        slopes = np.zeros((len(values), columns.width))
        slopes[unknowns.links, self._static_columns] = gain
        slopes[unknowns.links, columns.bare] = -gain * share
        slopes[unknowns.tensors, self._tensor_columns] = gain
        slopes[unknowns.payload, self._payload_columns] = gain * scale
        slopes[unknowns.link_gain[joint]] = links + scale * payload
        slopes[unknowns.payload_gain[joint]] = gain * payload
        slopes[errors, columns.errors] = 1.0
        residual = -gain * (links + scale * payload)
        residual[columns.errors] -= values[errors]
        residual[columns.drive] += 1.0
        return slopes, residual

    def _noise(self, values: Array, joint: int) -> float:
        """Standard deviation of white noise with the same information as the residual, N m.

        Residuals are correlated in time; the scatter between blocks of time gives the number of
        samples that count as one.
        """
        slopes, residual = self._linearised(values, joint)
        total = self._totals[joint]
        variance = max(float(residual @ total @ residual), 1e-12) / self._counts[joint]
        scores = (self._blocks[:, joint] @ residual) @ slopes.T
        few = len(scores) / max(len(scores) - 1, 1)
        scatter = few * ((scores - scores.mean(axis=0)) ** 2).sum(axis=0)
        white = (slopes @ total * slopes).sum(axis=1)
        seen = white > 1e-9 * white.max()
        return _SYSTEMATIC * float(np.sqrt(max(variance, np.mean(scatter[seen] / white[seen]))))

    def _rms(self, values: Array, joint: int) -> float:
        if joint not in self._joints:
            return float("nan")
        bare = values.copy()
        bare[self._unknowns.errors[joint]] = 0.0
        _, residual = self._linearised(bare, joint)
        square = max(float(residual @ self._totals[joint] @ residual), 0.0)
        return float(np.sqrt(square / self._counts[joint]))
