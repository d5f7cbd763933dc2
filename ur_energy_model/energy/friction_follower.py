# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction of a session, estimated recursively from the currents that friction explains.

The friction of a session is the model's friction times a scale; a tilt makes the part that
depends on the speed larger, and Coulomb friction smaller (`model.sessions`).
"""

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

# Columns of the regression of a joint's currents: friction per unit of scale, friction per
# unit of tilt, the current that the rest of friction and the load leave, and 1.
SCALE = 0
TILT = 1
_FRICTION = slice(SCALE, TILT + 1)
_REST = 2  # among the parts of friction: the part that no scale or tilt changes
_LEFT = 2
_ONE = 3


class FrictionSplit:
    """Splits the currents of n joints into friction that varies between sessions and the rest.

    Args:
        model: model of the arm.

    Attributes:
        ratio: gear ratios [n].
        constant: torque constants, motor side [n], N m/A.
        inertia: reflected inertias, joint side [n], kg m^2.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.ratio = np.array([joint.gear_ratio for joint in model.joints])
        self.constant = np.array([joint.torque_constant for joint in model.joints])
        self.inertia = np.array([joint.inertia for joint in model.joints])
        factor = np.array([joint.load_factor for joint in model.joints])
        self._per_load = factor / (self.ratio * self.constant)
        self._bank = FrictionBank([joint.friction for joint in model.joints], self.ratio)
        # Of each joint: currents of scale, tilt and the rest per friction term [p, 3], A.
        self._weights = []
        for joint in model.joints:
            level, tilt = friction_directions(joint.friction.law)
            currents = joint.friction.values / joint.torque_constant
            shares = np.stack([level, tilt, 1.0 - level], axis=1)
            self._weights.append(shares * currents[:, None])

    def __call__(
        self,
        qd: Array,
        load: Array,
        current: Array,
        temperature: Array | None,
        direction: Array | None = None,
    ) -> tuple[Array, Array]:
        """Split the currents of samples.

        Args:
            qd: joint velocities [samples, n], rad/s.
            load: torque of links, payload and rotors, joint side [samples, n], N m.
            current: motor currents [samples, n], A.
            temperature: temperatures of the joints [n] or [samples, n], degC, NaN where
                unknown.
            direction: direction of Coulomb friction, see `FrictionBank`.

        Returns:
            Currents per unit of scale and tilt [samples, n, 2], A, and the currents that
            the rest of friction and the load leave of the measured ones [samples, n], A.
        """
        terms = self._bank.regressors(qd, load, temperature, direction)
        currents = []
        for of_joint, weights in zip(terms, self._weights, strict=True):
            currents.append(of_joint @ weights)
        parts = np.stack(currents, axis=1)
        left = current - self._per_load * load - parts[..., _REST]
        return parts[..., _FRICTION], left


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
"""Error of currents in a session over the error of filtered currents in the fit. Vibration, noise
and another day explain ratios up to this one: 1.6 to 3 in nine of ten pairs of UR10e recordings, 7
and more where payload or arm differ."""
ANCHOR_BLOCK = 0.25  # time of samples that are used together [s]


class FrictionFollower:
    """Friction scale and tilt of the session of an arm with n joints, recursively from samples.

    Bayesian linear regression of the currents that friction explains, with the spread
    between sessions as prior. Samples within CORRELATION_TIME count as one, and older
    samples count less (FADING).

    Args:
        model: model of the arm; its friction has scale 1 and tilt 0.

    Attributes:
        prior: session with the spread between sessions as uncertainty.
        split: divides currents into friction and the rest.
        moving_seconds: motion of each joint so far [n], s.
    """

    def __init__(self, model: EnergyModel) -> None:
        n = model.dof
        self.prior = Session.unanchored(model.bus.standby, model.sessions, n)
        self.split = FrictionSplit(model.in_session(self.prior))
        self.moving_seconds = np.zeros(n)  # motion of each joint so far [s]
        self._residual = np.array([joint.current_residual for joint in model.joints])
        # Time integrals of the products of the columns of each joint [n, 4, 4], A^2 s.
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
        """Use consecutive samples that follow the previous ones.

        Args:
            dynamics: dynamics of the arm in its current setup.
            time: controller timestamps [samples], s.
            q: joint positions [samples, n], rad.
            qd: joint velocities [samples, n], rad/s.
            qdd: joint accelerations [samples, n], rad/s^2.
            current: motor currents [samples, n], A.
            temperature: temperatures of the joints [samples, n], degC, NaN where unknown.
        """
        load = dynamics.inverse_dynamics(q, qd, qdd) + self.split.inertia * qdd
        friction, left = self.split(qd, load, current, temperature)
        self._use(time, qd, friction, left)

    def track(
        self, time: Array, qd: Array, friction: Array, left: Array
    ) -> tuple[Array, Array]:
        """Use consecutive samples, and predict their friction from the samples before.

        Args:
            time: controller timestamps [samples], s.
            qd: joint velocities [samples, n], rad/s.
            friction: currents per unit of scale and tilt from `split` [samples, n, 2], A.
            left: currents left, from `split` [samples, n], A.

        Returns:
            Currents of friction [samples, n], A, by what was known of scale and tilt
            before the block of each sample, and their variance [samples, n], A^2, with
            what earlier samples left unexplained beyond the usual.
        """
        known, begins = self._use(time, qd, friction, left)
        mean, covariance, noise = self._posterior(known, self.prior, 0.0)
        lengths = np.diff(begins, append=len(time))
        mean = np.repeat(mean, lengths, axis=0)
        covariance = np.repeat(covariance, lengths, axis=0)
        noise = np.repeat(noise, lengths, axis=0)
        variance = np.einsum("snk,snkl,snl->sn", friction, covariance, friction)
        excess = np.maximum(noise - (USUAL_MISFIT * self._residual) ** 2, 0.0)
        return (friction * mean).sum(axis=2), variance + excess

    def session(self, prior: Session | None = None, time: float | None = None) -> Session:
        """The session by the samples so far, friction the mean of a normal posterior.

        The standard deviation of the scale is at least WITHIN_SESSION.

        Args:
            prior: what is known of the session without these samples, standby included;
                None for the spread between sessions.
            time: time at which friction is needed [s]; None for the time of the last
                sample.
        """
        prior = self.prior if prior is None else prior
        if not self.moving_seconds.any():
            return prior
        sums = self._sums * self._kept(self._time if time is None else time)
        mean, covariance, _ = self._posterior(sums, prior, WITHIN_SESSION)
        scale_std = np.sqrt(covariance[:, SCALE, SCALE])
        tilt_std = np.sqrt(covariance[:, TILT, TILT])
        return replace(
            prior,
            friction_scale=mean[:, SCALE],
            friction_std=scale_std,
            moving_seconds=max(prior.moving_seconds, float(self.moving_seconds.max())),
            friction_tilt=mean[:, TILT],
            tilt_std=tilt_std,
            tilt_correlation=covariance[:, SCALE, TILT] / (scale_std * tilt_std),
        )

    def saved(self) -> dict[str, Array]:
        """Everything that is needed to continue with the same model, for `restore`."""
        return {
            "sums": self._sums,
            "seconds": self.moving_seconds,
            "time": np.array(self._time),
        }

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue from a state that `saved` returned."""
        self._sums = saved["sums"]
        self.moving_seconds = saved["seconds"]
        self._time = float(saved["time"])

    def _posterior(
        self, sums: Array, prior: Session, changes: float
    ) -> tuple[Array, Array, Array]:
        """Normal posterior of scale and tilt from sums of samples.

        Args:
            sums: sums of samples as in `_sums` [..., n, 4, 4], A^2 s.
            prior: what is known without these samples.
            changes: standard deviation by which the scale changes from these samples on.

        Returns:
            Mean [..., n, 2] and covariance [..., n, 2, 2] of scale and tilt, and the mean
            squared error that is left of the currents [..., n], A^2.
        """
        squares = sums[..., _FRICTION, _FRICTION]
        products = sums[..., _FRICTION, _LEFT]
        seconds = np.maximum(sums[..., _ONE, _ONE], 1e-9)
        spread = np.maximum(prior.friction_std, 1e-9)
        information = np.zeros((len(spread), 2, 2))
        information[:, SCALE, SCALE] = 1.0 / spread**2
        information[:, TILT, TILT] = 1.0 / TILT_SPREAD**2
        # The prior mean is (friction_scale, 0).
        known = information[:, :, SCALE] * prior.friction_scale[:, None]
        square = squares[..., SCALE, SCALE]
        noise = np.maximum(self._residual**2, 1e-6 * square / seconds)
        # The second round uses the error of the currents that the first round has left.
        for _ in range(2):
            weight = 1.0 / np.maximum(noise * CORRELATION_TIME, 1e-18)
            covariance = np.linalg.inv(information + weight[..., None, None] * squares)
            right = known + weight[..., None] * products
            mean = (covariance @ right[..., None])[..., 0]
            error = sums[..., _LEFT, _LEFT] - 2 * (mean * products).sum(axis=-1)
            error += np.einsum("...i,...ij,...j", mean, squares, mean)
            noise = np.maximum(noise, error / seconds)
        variance = covariance[..., SCALE, SCALE] + changes**2
        covariance[..., SCALE, SCALE] = np.minimum(variance, prior.friction_std**2)
        return mean, covariance, noise

    def _use(
        self, time: Array, qd: Array, friction: Array, left: Array
    ) -> tuple[Array, Indices]:
        """Use samples, block by block, see `track`.

        Returns:
            The sums before each block [blocks, n, 4, 4], A^2 s, and the numbers of the
            samples with which the blocks begin [blocks].
        """
        steps = np.clip(np.diff(time, prepend=time[0]), 0.0, CORRELATION_TIME)
        weight = np.where(np.abs(qd) >= ANCHOR_SPEED, steps[:, None], 0.0)
        rows = np.concatenate(
            [friction, left[..., None], np.ones((*qd.shape, 1))], axis=2
        )
        products = (weight[..., None] * rows)[..., None] * rows[:, :, None]
        begins = np.array([block.start for block in time_blocks(time, ANCHOR_BLOCK)])
        grams = np.add.reduceat(products, begins, axis=0)
        before = np.empty_like(grams)
        lasts = np.append(begins[1:], len(time)) - 1
        for k, last in enumerate(lasts):
            before[k] = self._sums
            now = float(time[last])
            self._sums = self._kept(now) * self._sums + grams[k]
            self._time = now
        moved = grams[..., _ONE, _ONE].sum(axis=0)
        self.moving_seconds = self.moving_seconds + moved
        return before, begins

    def _kept(self, time: float) -> float:
        """Weight of the samples so far at a later time [s], relative to their weight now."""
        return math.exp(-(time - self._time) / FADING) if time > self._time else 1.0
