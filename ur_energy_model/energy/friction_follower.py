# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction of a session: the part of measured currents that it explains, followed recursively."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.sessions import Session, friction_directions
from ur_energy_model.telemetry.samples import time_blocks
from ur_energy_model.typing import Array, Indices


class FrictionSplit:
    """Splits currents into friction that varies between sessions and everything else, n joints."""

    def __init__(self, model: EnergyModel) -> None:
        self.ratio = np.array([joint.gear_ratio for joint in model.joints])
        self.constant = np.array([joint.torque_constant for joint in model.joints])
        self.inertia = np.array([joint.inertia for joint in model.joints])
        factor = np.array([joint.load_factor for joint in model.joints])
        self._per_load = factor / (self.ratio * self.constant)
        self._bank = FrictionBank([joint.friction for joint in model.joints], self.ratio)
        # of the friction terms in currents of scale, tilt and the rest [p, 3]
        self._weights = []
        for joint in model.joints:
            level, tilt = friction_directions(joint.friction.law.parameters)
            per_ampere = joint.friction.values / joint.torque_constant
            self._weights.append(
                np.stack([level, tilt, 1.0 - level], axis=1) * per_ampere[:, None]
            )

    def __call__(
        self,
        qd: Array,
        load: Array,
        current: Array,
        temperature: Array | None,
        direction: Array | None = None,
    ) -> tuple[Array, Array]:
        """Currents per unit of scale and tilt [samples, n, 2], and those left [samples, n], A.

        `load` is the torque of links, payload and rotors, joint side [samples, n], N m;
        temperatures [n] or [samples, n], degC, are NaN where unknown; direction:
        `FrictionBank`.
        """
        terms = self._bank.regressors(qd, load, temperature, direction)
        parts = np.stack(
            [t @ w for t, w in zip(terms, self._weights, strict=True)], axis=1
        )
        left = current - self._per_load * load - parts[..., 2]
        return parts[..., :2], left


ANCHOR_SPEED = 0.1
"""Least joint speed that is used, away from stiction and the reversal of friction [rad/s]."""
CORRELATION_TIME = 0.3  # correlation time of the model error of a current [s]
WITHIN_SESSION = 0.03
"""Relative standard deviation of friction within a session: warming, different motions."""
TILT_SPREAD = 0.09
"""Standard deviation of the tilt between sessions. With FRICTION_SPREAD it makes 0.20 for friction
that depends on the speed and 0.12 for Coulomb friction, the spreads between days of a
UR10e."""
FADING = 900.0
"""Time constant with which samples count less [s]: joints warm up within minutes to an hour."""
USUAL_MISFIT = 3.0
"""Error of currents in a session over that of filtered currents in the fit, which vibration, noise
and another day explain: 1.6 to 3 in nine of ten pairs of UR10e recordings, 7 and more
where payload or arm are others."""
ANCHOR_BLOCK = 0.25  # time of samples that are used together [s]


class FrictionFollower:
    """Friction scale and tilt of the session of an arm with n joints, recursively from samples.

    Bayesian linear regression of the currents that friction explains, with the spread
    between sessions as prior; samples within CORRELATION_TIME count as one, and fade
    (FADING).
    """

    def __init__(self, model: EnergyModel) -> None:
        n = model.dof
        self.prior = Session.unanchored(model.bus.standby, model.sessions, n)
        self.split = FrictionSplit(model.in_session(self.prior))
        self.moving_seconds = np.zeros(n)  # motion of each joint so far [s]
        self._residual = np.array([joint.current_residual for joint in model.joints])
        # Time integrals of products of friction per scale and tilt, the currents left,
        # and 1 [n, 4, 4], A^2 s.
        self._sums = np.zeros((n, 4, 4))
        self._time = math.nan

    def observe(
        self,
        dynamics: ArmDynamics,
        time: Array,
        q: Array,
        qd: Array,
        qdd: Array,
        current: Array,
        temperature: Array | None = None,
    ) -> None:
        """Use consecutive samples that follow the previous ones: motion and motor currents.

        Times [samples], s; all others [samples, n] in rad, rad/s, rad/s^2, A and degC,
        NaN where a temperature is unknown. The dynamics are of the arm in its current
        setup.
        """
        load = dynamics.inverse_dynamics(q, qd, qdd) + self.split.inertia * qdd
        self._use(time, qd, *self.split(qd, load, current, temperature))

    def track(
        self, time: Array, qd: Array, friction: Array, left: Array
    ) -> tuple[Array, Array]:
        """Use consecutive samples, split by `split`; what was known of friction before each.

        Returns the currents of friction [samples, n], A, by scale and tilt from the
        samples before the block of theirs, and their variance [samples, n], A^2: also
        what these samples left unexplained beyond the usual.
        """
        known, blocks = self._use(time, qd, friction, left)
        lengths = np.diff(blocks, append=len(time))
        mean, own, noise = (
            np.repeat(each, lengths, axis=0)
            for each in self._posterior(known, self.prior, 0.0)
        )
        variance = np.einsum("snk,snkl,snl->sn", friction, own, friction)
        excess = np.maximum(noise - (USUAL_MISFIT * self._residual) ** 2, 0.0)
        return (friction * mean).sum(axis=2), variance + excess

    def session(self, prior: Session | None = None, time: float | None = None) -> Session:
        """The session by the samples so far, friction the mean of a normal posterior.

        The standard deviation of the scale is at least WITHIN_SESSION. What is known of
        the session otherwise is `prior`, standby included: None for the spread between
        sessions. `time`: at which friction is needed [s], by default that of the last
        sample.
        """
        prior = self.prior if prior is None else prior
        if not self.moving_seconds.any():
            return prior
        sums = self._sums * self._kept(self._time if time is None else time)
        mean, covariance, _ = self._posterior(sums, prior, WITHIN_SESSION)
        std, tilt = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)).T
        return replace(
            prior,
            friction_scale=mean[:, 0],
            friction_std=std,
            moving_seconds=max(prior.moving_seconds, float(self.moving_seconds.max())),
            friction_tilt=mean[:, 1],
            tilt_std=tilt,
            tilt_correlation=covariance[:, 0, 1] / (std * tilt),
        )

    def saved(self) -> dict[str, Array]:
        """Everything needed to continue with the same model, for `restore`."""
        seconds = self.moving_seconds
        time = np.array(self._time)
        return {"sums": self._sums, "seconds": seconds, "time": time}

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `saved` gave."""
        self._sums = saved["sums"]
        self.moving_seconds = saved["seconds"]
        self._time = float(saved["time"])

    def _posterior(
        self, sums: Array, prior: Session, changes: float
    ) -> tuple[Array, Array, Array]:
        """Mean [..., n, 2] and covariance [..., n, 2, 2] of scale and tilt, from `_sums`.

        Also the mean squared error of the currents that is left [..., n], A^2. The scale
        `changes` from these samples on by this standard deviation.
        """
        squares = sums[..., :2, :2]
        products = sums[..., :2, 2]
        seconds = np.maximum(sums[..., 3, 3], 1e-9)
        spread = np.maximum(prior.friction_std, 1e-9)
        information = np.zeros((len(spread), 2, 2))
        information[:, 0, 0] = 1.0 / spread**2
        information[:, 1, 1] = 1.0 / TILT_SPREAD**2
        known = information[:, :, 0] * prior.friction_scale[:, None]
        noise = np.maximum(self._residual**2, 1e-6 * squares[..., 0, 0] / seconds)
        # the error of the model's currents is at least what is left in the end
        for _ in range(2):
            weight = 1.0 / np.maximum(noise * CORRELATION_TIME, 1e-18)
            covariance = np.linalg.inv(information + weight[..., None, None] * squares)
            right = known + weight[..., None] * products
            mean = (covariance @ right[..., None])[..., 0]
            error = sums[..., 2, 2] - 2 * (mean * products).sum(axis=-1)
            error += np.einsum("...i,...ij,...j", mean, squares, mean)
            noise = np.maximum(noise, error / seconds)
        variance = covariance[..., 0, 0] + changes**2
        covariance[..., 0, 0] = np.minimum(variance, prior.friction_std**2)
        return mean, covariance, noise

    def _use(
        self, time: Array, qd: Array, friction: Array, left: Array
    ) -> tuple[Array, Indices]:
        """Use samples; returns the sums before each block [blocks, n, 4, 4], and its begin."""
        steps = np.clip(np.diff(time, prepend=time[0]), 0.0, CORRELATION_TIME)
        weight = np.where(np.abs(qd) >= ANCHOR_SPEED, steps[:, None], 0.0)
        rows = np.concatenate(
            [friction, left[..., None], np.ones((*qd.shape, 1))], axis=2
        )
        products = (weight[..., None] * rows)[..., None] * rows[:, :, None]
        begins = np.array([block.start for block in time_blocks(time, ANCHOR_BLOCK)])
        grams = np.add.reduceat(products, begins, axis=0)
        before = np.empty_like(grams)
        for k, end in enumerate(np.append(begins[1:], len(time)) - 1):
            before[k] = self._sums
            now = float(time[end])
            self._sums = self._kept(now) * self._sums + grams[k]
            self._time = now
        self.moving_seconds = self.moving_seconds + grams[..., 3, 3].sum(axis=0)
        return before, begins

    def _kept(self, time: float) -> float:
        """Share of the samples so far that counts at a later time [s]."""
        return math.exp(-(time - self._time) / FADING) if time > self._time else 1.0
