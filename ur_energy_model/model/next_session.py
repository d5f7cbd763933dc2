# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The friction to expect in a session that has not begun, from the sessions before it.

Friction of a joint changes in two ways. Wear, running-in and new grease change it for
good (drift); from session to session it varies without lasting effect (scatter). The level
of a joint is the natural logarithm of its friction. In session k,

    level_k = usual_k + scatter_k,    usual_k = usual_(k-1) + trend + drift_k,

where scatter and drift are normal and in part common to all joints of an arm, whose
lubricant and temperature are alike. If levels only scatter, their mean is the best
expectation; if they drift, the last session counts most. The size of the differences
between sessions and the share of drift in them follow from the sessions themselves: the
expectation is an average over a grid of both, weighted by the likelihood of the levels and
a prior. For given size and share all variables are normal, and the expectation is a linear
regression (kriging of the levels).
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.sessions import COMMON_FRICTION, FRICTION_SPREAD
from ur_energy_model.typing import Array

PRIOR_FREEDOM = 4.0
"""Degrees of freedom of the prior spread: it weighs as much as five compared sessions."""
MOST_SESSIONS = 40  # latest sessions that are used

_SIZES = FRICTION_SPREAD * np.array([0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0])
"""Tried standard deviations between a session and the next one."""
_SHARES = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0])
"""Tried shares of drift in the variance between a session and the next one."""
_RARITY = 0.5
"""Decrease of the logarithm of the prior from scatter alone to drift alone: the friction of a
UR10e scatters by 5 to 7 % from day to day, and its base wears by 20 % within five
months."""
_TREND = 0.6
"""Standard deviation of the trend over the standard deviation of the drift. Running-in and wear go
on for many sessions in one direction, and a drift without a trend would always come one session
late."""
_LEAST_ERROR = 0.02
"""Least relative error of the friction of a session: the motions of a session have their own
speeds, at which the form of the friction law has an error."""
_ANY_LEVEL = 1.0  # deviation of the usual level before any session


class ExpectedFriction(NamedTuple):
    """Friction of n joints in a session that has not begun.

    Attributes:
        factor: friction over the friction of the fit, which has level 0 [n].
        spread: relative standard deviation of the friction [n].
    """

    factor: Array
    spread: Array


class _Covariances(NamedTuple):
    """Covariances of the m measured levels, and of these with the n levels to expect.

    Covariances by drift and scatter are per unit of the variance of drift or scatter from
    one session to the next.

    Attributes:
        drift: covariance by drift [m, m].
        scatter: covariance by scatter [m, m].
        same_joint: 1 where two levels are of one joint, else 0 [m, m].
        same_session: 1 where two levels are of one session, else 0 [m, m].
        drift_ahead: covariance by drift with the levels to expect [n, m].
        joint_ahead: 1 where a level is of the joint to expect, else 0 [n, m].
        drift_then: variance by drift of a level to expect.
    """

    drift: Array
    scatter: Array
    same_joint: Array
    same_session: Array
    drift_ahead: Array
    joint_ahead: Array
    drift_then: float


def expected_friction(
    levels: Array, errors: Array, *, ordered: bool = True
) -> ExpectedFriction:
    """The friction that the next session is expected to have.

    Args:
        levels: natural logarithms of the friction of sessions over the friction of a fit
            to all of them [sessions, n], in order of time; NaN where a joint did not
            move.
        errors: relative standard deviations of the measured friction [sessions, n].
        ordered: False where the order of the sessions is not known; their mean is
            expected then.
    """
    levels = levels[-MOST_SESSIONS:]
    errors = errors[-MOST_SESSIONS:]
    sessions, n = levels.shape
    known = np.isfinite(levels)
    measured = levels[known]
    covariances = _covariances(known)
    noise = np.diag(np.square(np.maximum(errors[known], _LEAST_ERROR)))
    shares = _SHARES.tolist() if ordered else [0.0]
    tried = [
        _expectation(measured, noise, covariances, size, share)
        for size, share in product(_SIZES.tolist(), shares)
    ]
    posterior = np.array([each.posterior for each in tried])
    weights = np.exp(posterior - posterior.max())
    weights = weights / weights.sum()
    means = np.array([each.mean for each in tried])
    variances = np.array([each.variance for each in tried])
    mean = weights @ means
    # Variance of a mixture: within its components, and between them.
    variance = weights @ (variances + np.square(means - mean))
    # The friction of some joints varies more than the friction of the others, or less. The
    # first session of a joint has no session before it to be compared with.
    squares = np.zeros((sessions, n))
    squares[known] = weights @ np.array([each.surprise for each in tried])
    later = known & (np.cumsum(known, axis=0) > 1)
    counted = np.count_nonzero(later, axis=0)
    variance = variance * (PRIOR_FREEDOM + (squares * later).sum(axis=0))
    variance = variance / (PRIOR_FREEDOM + counted)
    seen = known.any(axis=0)
    return ExpectedFriction(
        np.where(seen, np.exp(mean), 1.0),
        np.where(seen, np.sqrt(variance), FRICTION_SPREAD),
    )


class _Expectation(NamedTuple):
    """Levels to expect for one size of the differences and one share of drift.

    Attributes:
        mean: levels to expect [n].
        variance: variances of these levels [n].
        surprise: squared difference of each measured level from its expectation by the
            sessions before, over the variance of the difference [m].
        posterior: logarithm of the likelihood of the levels times the prior.
    """

    mean: Array
    variance: Array
    surprise: Array
    posterior: float


def _expectation(
    measured: Array, noise: Array, covariances: _Covariances, size: float, share: float
) -> _Expectation:
    """Levels to expect from the measured ones, by linear regression.

    Args:
        measured: measured levels [m].
        noise: covariance of the measurements [m, m].
        covariances: covariances of the levels.
        size: standard deviation between a session and the next one.
        share: share of drift in the variance between a session and the next one.
    """
    drift = size**2 * share
    # Two sessions differ by two independent scatters: each has half of the variance.
    scatter = 0.5 * size**2 * (1.0 - share)
    usual = _ANY_LEVEL**2 * covariances.same_joint + drift * covariances.drift
    root = np.linalg.cholesky(usual + scatter * covariances.scatter + noise)
    # Solved with the Cholesky factor, measured levels become independent innovations of
    # unit variance: each is a difference from the expectation by the levels before it.
    innovations = np.linalg.solve(root, measured)
    ahead = _ANY_LEVEL**2 * covariances.joint_ahead + drift * covariances.drift_ahead
    gain = np.linalg.solve(root, ahead.T)
    then = _ANY_LEVEL**2 + drift * covariances.drift_then + scatter
    # The part of the factor within a session: differences from the sessions before.
    own = np.where(covariances.same_session > 0.0, root, 0.0)
    # The prior of the variance is a scaled inverse chi-squared distribution.
    prior = -PRIOR_FREEDOM * np.log(size)
    prior -= 0.5 * PRIOR_FREEDOM * (FRICTION_SPREAD / size) ** 2
    likelihood = -0.5 * innovations @ innovations - np.log(np.diag(root)).sum()
    return _Expectation(
        mean=gain.T @ innovations,
        variance=then - np.square(gain).sum(axis=0),
        surprise=np.square(own @ innovations) / np.square(own).sum(axis=1),
        posterior=float(likelihood + prior - _RARITY * share),
    )


def _covariances(known: Array) -> _Covariances:
    """Covariances of the levels that are known; `known` is boolean [sessions, n]."""
    sessions, n = known.shape
    session, joint = np.nonzero(known)
    same_joint = (joint[:, None] == joint).astype(float)
    same_session = (session[:, None] == session).astype(float)
    shared = COMMON_FRICTION + (1.0 - COMMON_FRICTION) * same_joint
    passed = np.minimum(session[:, None], session) + _TREND**2 * np.outer(
        session, session
    )
    joint_ahead = (np.arange(n)[:, None] == joint).astype(float)
    shared_ahead = COMMON_FRICTION + (1.0 - COMMON_FRICTION) * joint_ahead
    return _Covariances(
        drift=passed * shared,
        scatter=same_session * shared,
        same_joint=same_joint,
        same_session=same_session,
        drift_ahead=(session + _TREND**2 * sessions * session) * shared_ahead,
        joint_ahead=joint_ahead,
        drift_then=sessions + _TREND**2 * sessions**2,
    )
