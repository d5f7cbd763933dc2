# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction laws to fit to the currents of an arm: candidates, their choice, priors and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.identification.filtered_motion import (
    PADDING,
    FilteredMotion,
    first_bandwidth,
)
from ur_energy_model.identification.least_squares import Prior, Solution, solve
from ur_energy_model.low_pass import low_pass
from ur_energy_model.model.drive_errors import FRICTION_COEFFICIENTS, LOAD_COEFFICIENT
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, FrictionBank, FrictionLaw
from ur_energy_model.model.friction_files import is_own
from ur_energy_model.model.friction_terms import (
    LOAD_ASYMMETRY,
    REFERENCE_TEMPERATURE,
    OperatingPoint,
    Term,
    TypicalFriction,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import scaled_parameters
from ur_energy_model.telemetry.usable_samples import spline
from ur_energy_model.typing import Array, Mask

# Candidate friction laws of a joint, and the choice among them by held-out errors.

AUTO = "auto"
WARMTH = 2.0  # temperature span from which temperature-dependent friction is tried [K]
USUAL = "shear_thinning_load"
AUTOMATIC = (
    USUAL,
    "coulomb_viscous",
    "power_flow",
    "temperature_linear",
    "power_temperature",
    "power_load_temperature",
)
"""Laws that "auto" chooses among. The usual one has what recordings of other days show,
shear thinning (6 % less error than a power of the speed on a UR10e) and load. A recording
alone hardly shows which of its terms other speeds and loads need, and the priors hold
those that it does not: three of seven recordings of a UR10e chose a straight line of the
speed for the lift, with 1.2 times (up to 1.7) the error on other days. Power flow hardly
lowers the error, but without it torque constants are wrong on arms that have it. A power
of the speed at one temperature, Stribeck, polynomial and the manufacturer's double
exponential are fitted on request only."""
GRID = 8  # values of a shape constant that are tried

CLEAR_GAIN = 0.02  # held-out RMS that another law must save, relative


class FrictionCandidate(NamedTuple):
    """A law with values for its shape constants.

    Attributes:
        law: friction law.
        shape: shape constants of the law by name.
    """

    law: FrictionLaw
    shape: dict[str, float]

    def scaled(self, width: int) -> Mask:
        """Coefficients [width] of (1/k_t, friction parameters / k_t, ...) that a session scales."""
        own = scaled_parameters(self.law)
        return np.pad(own, (1, width - 1 - len(own)))


def candidates(friction: str, *, warm: bool) -> tuple[FrictionCandidate, ...]:
    """Laws to fit, with a logarithmic grid over the shape constants that are not fixed.

    Args:
        friction: name of a law, or "auto" for all laws of AUTOMATIC.
        warm: whether recorded temperatures change enough for laws that use them.

    Raises:
        InputError: unknown law.
    """
    if friction != AUTO and friction not in LAWS:
        raise InputError(
            "--friction",
            f"unknown law '{friction}'",
            f"use auto or one of {', '.join(LAWS)}",
        )
    if friction != AUTO:
        return tuple(_candidates_of(LAWS[friction]))
    found: list[FrictionCandidate] = []
    for name, law in LAWS.items():
        is_tried = name in AUTOMATIC or is_own(law)
        if is_tried and (warm or not law.uses_temperature):
            found += _candidates_of(law)
    return tuple(found)


def _candidates_of(law: FrictionLaw) -> list[FrictionCandidate]:
    """A law with all combinations of the values that are tried for its shape constants."""
    grids = []
    for constant in law.shape.values():
        values = [constant.default]
        if not constant.is_fixed:
            values = np.geomspace(constant.low, constant.high, GRID).tolist()
        grids.append(values)
    shapes = [dict(zip(law.shape, values, strict=True)) for values in product(*grids)]
    return [FrictionCandidate(law, shape) for shape in shapes]


def choose(errors: dict[str, Array]) -> tuple[str, str]:
    """The usual law unless another is clearly better, and the reason for the choice.

    Args:
        errors: held-out mean squared residual [folds], A^2, by law name.
    """
    rms = {name: float(np.sqrt(values.mean())) for name, values in errors.items()}
    ranked = sorted(rms, key=rms.__getitem__)
    best = ranked[0]
    chosen = best
    reason = "least held-out RMS"
    usual_is_as_good = USUAL in rms and not clearly_better(errors[best], errors[USUAL])
    if best != USUAL and usual_is_as_good:
        chosen = USUAL
        reason = "no law is clearly better: held-out RMS"
    reason += f", {rms[chosen]:.4g} A"
    ranked.remove(chosen)
    if ranked:
        other = ranked[0]
        reason += f" against {rms[other]:.4g} A of {other}"
    return chosen, reason


def clearly_better(errors: Array, than: Array) -> bool:
    """Whether held-out errors [folds], A^2, are smaller by more than scatter and CLEAR_GAIN."""
    gain = than - errors
    if len(gain) < 2:
        return False
    scatter = gain.std(ddof=1) / np.sqrt(len(gain))  # standard deviation of the mean
    clear = (
        (1 + CLEAR_GAIN) ** 2 - 1
    ) * than.mean()  # CLEAR_GAIN is of RMS, not of squares
    return bool(gain.mean() > max(2 * scatter, clear))


# Friction scales of several sessions. Recordings of different days share an arm's torque
# constants and the form of its friction, but not its level. A fit to several sessions
# therefore gives each a friction scale per joint, alternating between parameters for
# given scales and scales for given parameters. Scales are relative to the mean of the
# sessions.

_ROUNDS = 4  # rounds of parameters and scales
_WIDEST = 0.3  # prior standard deviation of the scales
_BOUNDS = (0.2, 5.0)  # smallest and largest scale


class SessionScales(NamedTuple):
    """Friction of one joint in each session.

    Attributes:
        scales: friction of each session over the fitted friction [sessions].
        deviations: standard deviations of the scales as measured, without a prior
            [sessions].
        blocks: Gram matrices of all sessions, friction scaled [blocks, p + 1, p + 1].
    """

    scales: Array
    deviations: Array
    blocks: Array


def session_scales(
    sessions: Sequence[Array],
    counts: Sequence[Array],
    prior: Prior,
    which: Mask,
    *,
    applied: bool,
) -> SessionScales:
    """Scales of one joint, with mean 1 where they are applied.

    Args:
        sessions: Gram matrices of [regressor, measurement] per block of time [blocks, p +
            1, p + 1], of each session.
        counts: samples of each block [blocks].
        prior: prior of the coefficients.
        which: coefficients that the scale multiplies [p].
        applied: False where the law may explain differences of the sessions by
            temperature: scales are then the remainder.
    """
    scales = np.ones(len(sessions))
    deviations = np.zeros(len(sessions))
    unscaled = np.concatenate(sessions)
    blocks = unscaled
    if len(sessions) < 2 or not which.any():
        return SessionScales(scales, deviations, blocks)
    # Number of the session of each block.
    owner = np.repeat(np.arange(len(sessions)), [len(each) for each in sessions])
    for _ in range(_ROUNDS if applied else 1):
        solution = solve(blocks, prior, np.concatenate(counts))
        for index, session in enumerate(sessions):
            scales[index], deviations[index] = _scale_of(session, solution, which)
        scales = np.clip(scales, *_BOUNDS)
        if applied:
            scales /= scales.mean()
            factors = np.where(np.append(which, False), scales[owner, None], 1.0)
            blocks = unscaled * factors[:, :, None] * factors[:, None]
    return SessionScales(scales, deviations, blocks)


def _scale_of(session: Array, solution: Solution, which: Mask) -> tuple[float, float]:
    """Scale that fits a session best, other coefficients as fitted, and its deviation.

    The scale has a prior of 1 with the deviation _WIDEST; the deviation has no prior.

    Args:
        session: Gram matrices of [regressor, measurement] of the session [blocks, p + 1, p
            + 1].
        solution: solution for all sessions, p coefficients.
        which: coefficients that the scale multiplies [p].
    """
    p = len(which)
    gram = session.sum(axis=0)
    normal = gram[:p, :p]
    measured = gram[:p, p]
    scaled = np.where(which, solution.coefficients, 0.0)
    rest = solution.coefficients - scaled
    square = float(scaled @ normal @ scaled)
    cross = float(scaled @ (measured - normal @ rest))
    change = cross / square - 1.0 if square > 0 else 0.0
    independent = solution.effective_samples / max(solution.samples, 1.0)
    weight = square * independent / max(solution.residual**2, 1e-30)
    scale = 1.0 + change * weight / (weight + 1.0 / _WIDEST**2)
    return scale, max(weight, 1e-12) ** -0.5


# Priors of a joint's torque constant and friction.

TORQUE_CONSTANT_SPREAD = 0.5
"""Weak prior that keeps the regression finite; torque_constants.py applies the real
one."""
LOAD_ASYMMETRY_SPREAD = 0.01
"""Half the difference of load friction between both directions of power flow; gear
catalogues state a few percent less efficiency for strain-wave gears driven by the
load."""
_NEGLIGIBLE = 1e-6  # least size of a term of a law, and asymmetry without torque constant
_WARM = REFERENCE_TEMPERATURE + 10.0
"""Temperature at which terms of friction laws have their usual size [degC]."""
_COULOMB_SHARE = 0.04  # joint-side Coulomb friction over the rated torque
_VISCOUS_SHARE = 0.028  # joint-side viscous friction over the rated torque [s/rad]
_FORM = 0.02
"""Error of each friction coefficient that a model known before may have beyond its
standard deviation, relative."""
_LEAST = 1e-9  # least error of a coefficient, in its unit


def current_prior(robot: RobotDescription, law: FrictionLaw, j: int) -> Prior:
    """Prior of (1/k_t, friction parameters / k_t) of one joint.

    Torque constant from the robot file. Friction, motor side, from the starting values of
    the law's terms (`Term.start`). Without a rated torque there is no prior of friction
    but for values that do not depend on the joint, and for the asymmetry of load friction.
    Without a torque constant there is none of anything but what the currents cannot
    separate from it.

    Args:
        robot: the arm.
        law: friction law, with p parameters.
        j: index of the joint, from 0.

    Returns:
        Prior of the 1 + p coefficients, as of `JointModel.current_coefficients`.
    """
    constant = robot.torque_constant[j]
    known = bool(np.isfinite(constant))
    starts = _starts(robot, law, j) if known else _unknown_starts(law)
    if LOAD_ASYMMETRY in law.terms:
        starts[LOAD_ASYMMETRY] = (0.0, LOAD_ASYMMETRY_SPREAD if known else _NEGLIGIBLE)
    # The coefficients are 1 for the load and the friction parameters, all over k_t.
    of_load = (1.0, TORQUE_CONSTANT_SPREAD) if known else (0.0, np.inf)
    mean, std = np.array([of_load, *(starts[name] for name in law.parameters)]).T
    scale = constant if known else 1.0
    return Prior(mean / scale, std / scale)


def typical_friction(robot: RobotDescription, j: int) -> TypicalFriction:
    """Friction that a joint of its size typically has; NaN without a rated torque.

    From factory no-load calibrations of UR5e joints: joint-side Coulomb friction near 4 %
    of the rated torque and viscous friction near 2.8 % per rad/s, on the large and the
    small size alike.

    Args:
        robot: the arm.
        j: index of the joint, from 0.
    """
    ratio = float(robot.gear_ratio[j])
    rated = float(robot.max_torque[j])
    return TypicalFriction(
        coulomb=_COULOMB_SHARE * rated / ratio,
        viscous=_VISCOUS_SHARE * rated / ratio**2,
        gear_ratio=ratio,
        fastest=ratio * float(robot.max_velocity[j]),
    )


def _unknown_starts(law: FrictionLaw) -> dict[str, tuple[float, float]]:
    """No starting values: those of a joint whose torque constant is not known."""
    return dict.fromkeys(law.parameters, (0.0, np.inf))


def _starts(
    robot: RobotDescription, law: FrictionLaw, j: int
) -> dict[str, tuple[float, float]]:
    """Starting value of each parameter and its standard deviation, motor side.

    Args:
        robot: the arm.
        law: friction law.
        j: index of the joint, from 0.
    """
    typical = typical_friction(robot, j)
    starts = _unknown_starts(law)
    for name, term in law.terms.items():
        if isinstance(term.start, tuple):
            starts[name] = term.start
    if not np.isfinite(typical.coulomb):
        return starts
    # A term without a start is as wide as Coulomb friction: at half of what the joint
    # can do.
    speed = 0.5 * robot.max_velocity[[j]]
    load = 0.5 * robot.max_torque[[j]]
    middle = OperatingPoint(speed, load, typical.gear_ratio, _WARM)
    sizes = np.maximum(np.abs(law.regressor(middle, law.default_shape)[0]), _NEGLIGIBLE)
    for (name, term), size in zip(law.terms.items(), sizes.tolist(), strict=True):
        if term.start is None:
            starts[name] = (0.0, typical.coulomb / size)
        elif not isinstance(term.start, tuple):
            starts[name] = term.start(typical)
    return starts


def known_prior(model: EnergyModel, j: int) -> Prior:
    """Prior of (1/k_t, friction parameters / k_t) from an earlier model, in any session.

    The torque constant is as uncertain as in `current_prior`. With the full covariance of
    the friction, few data correct it only in the directions in which it is uncertain: a
    friction scale at first, single parameters later.

    Args:
        model: the earlier one.
        j: index of the joint, from 0.
    """
    joint = model.joints[j]
    mean = joint.current_coefficients
    load = mean[LOAD_COEFFICIENT]
    friction = mean[FRICTION_COEFFICIENTS]
    covariance = joint.current_root @ joint.current_root.T
    covariance[LOAD_COEFFICIENT] = 0.0
    covariance[:, LOAD_COEFFICIENT] = 0.0
    covariance[LOAD_COEFFICIENT, LOAD_COEFFICIENT] = (TORQUE_CONSTANT_SPREAD * load) ** 2
    scaled = scaled_parameters(joint.friction.law)
    spread = float(model.session.friction_std[j]) * np.where(scaled, friction, 0.0)
    scale = np.append(0.0, spread)
    floor = np.append(0.0, np.abs(friction) * _FORM + _LEAST)
    covariance = covariance + np.outer(scale, scale) + np.diag(floor**2)
    return Prior(mean, np.sqrt(np.diag(covariance)), covariance)


# Columns of the regression of current on load, friction and acceleration.


class RecordedPoints(NamedTuple):
    """Operating points of a motion at the samples of its recording, before it was thinned.

    Friction changes its sign, and some laws their torque, within less than the period of a
    thinned motion. Its values at the motion's samples would be aliased, whereas the currents
    passed the first filter before they were thinned: at 500 Hz, LuGre's breakaway friction
    had an error of 50 %.

    Attributes:
        point: speeds, loads and temperatures [each samples, n].
        each: samples of the recording for each of the motion.
        period: period of the recording [s].
        bandwidth: bandwidth of the first filter [Hz].
    """

    point: OperatingPoint
    each: int
    period: float
    bandwidth: float

    @classmethod
    def of(
        cls, point: OperatingPoint, time: Array, cutoff: float, rate: float
    ) -> RecordedPoints:
        """The points of a motion, between whose samples they are interpolated.

        Args:
            point: speeds, loads and temperatures of the motion [samples, n].
            time: its times, at an even period [samples], s.
            cutoff: cut-off frequency of the second filter [Hz].
            rate: samples per second of the recording [Hz].
        """
        each = max(1, round(rate * float(time[1] - time[0])))
        period = float(time[1] - time[0]) / each
        recorded = time[0] + period * np.arange(each * len(time))
        temperature = point.temperature
        if temperature is not None:
            temperature = np.repeat(np.asarray(temperature), each, axis=0)
        between = replace(
            point,
            speed=spline(time, point.speed)(recorded),
            load=spline(time, point.load)(recorded),
            temperature=temperature,
        )
        return cls(between, each, period, first_bandwidth(cutoff, rate))

    def at_samples(self, values: Array) -> Array:
        """Values of the points at the motion's samples [samples, n], through the first filter."""
        filtered = low_pass(values, self.period, self.bandwidth, padding=PADDING)
        return filtered[:: self.each]


LOAD_COLUMN = 0  # first of the columns of one candidate; friction terms follow
ACCELERATION = -2  # the last column but one, where the inertia is fitted
CURRENT = -1  # the last column


class CurrentColumns:
    """The distinct columns of all candidates, so that candidates share their common terms.

    Attributes:
        width: number of columns.

    Args:
        laws: candidates of the friction law.
        accelerations: add a column for the motor inertia.
        known: a model known before, whose friction has separate columns.
    """

    def __init__(
        self,
        laws: Sequence[FrictionCandidate],
        accelerations: bool,
        known: EnergyModel | None = None,
    ) -> None:
        # column and shape constants of each term, by the term and the values of its constants
        self._terms: dict[
            tuple[Term, tuple[float, ...]], tuple[int, dict[str, float]]
        ] = {}
        self._candidates: list[list[int]] = []
        for law, shape in laws:
            columns = []
            for term in law.terms.values():
                key = (term, tuple(shape[name] for name in term.uses))
                if key not in self._terms:
                    self._terms[key] = (len(self._terms) + 1, shape)
                column, _ = self._terms[key]
                columns.append(column)
            self._candidates.append(columns)
        self._accelerations = accelerations
        self._bank = None
        self._known_from = len(self._terms) + 1
        end = self._known_from
        if known is not None:
            frictions = [joint.friction for joint in known.joints]
            ratio = np.array([joint.gear_ratio for joint in known.joints])
            self._bank = FrictionBank(frictions, ratio)
            self._counts = [len(friction.law.parameters) for friction in frictions]
            end += max(self._counts)
        self.width = end + 1 + accelerations

    def of_law(self, index: int | None, j: int) -> list[int]:
        """Columns of a candidate of a joint: load, friction, acceleration, current.

        Args:
            index: index of the candidate; None for the law known before.
            j: index of the joint, from 0.
        """
        if index is None:
            terms = list(range(self._known_from, self._known_from + self._counts[j]))
        else:
            terms = self._candidates[index]
        own = [self.width + ACCELERATION] if self._accelerations else []
        return [LOAD_COLUMN, *terms, *own, self.width + CURRENT]

    def columns(
        self,
        point: OperatingPoint,
        motion: FilteredMotion,
        recorded: RecordedPoints | None = None,
    ) -> Array:
        """All columns of a motion [samples, n, width].

        Args:
            point: speeds, loads and temperatures of the motion [samples, n].
            motion: motion with accelerations and currents.
            recorded: the same at the samples of the recording, from which the friction
                terms of the candidates are computed; None for those of the motion.
        """
        out = np.zeros((*motion.current.shape, self.width))
        out[..., LOAD_COLUMN] = point.load / point.gear_ratio
        for (term, _), (column, shape) in self._terms.items():
            if recorded is None:
                out[..., column] = term(point, shape)
            else:
                out[..., column] = recorded.at_samples(term(recorded.point, shape))
        if self._bank is not None:
            temperature = (
                None if point.temperature is None else np.asarray(point.temperature)
            )
            found = self._bank.regressors(point.speed, point.load, temperature)
            for j, own in enumerate(found):
                out[:, j, self._known_from : self._known_from + own.shape[1]] = own
        if self._accelerations:
            out[..., ACCELERATION] = motion.qdd / point.gear_ratio
        out[..., CURRENT] = motion.current
        return out
