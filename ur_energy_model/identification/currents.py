"""Torque constant and friction of every joint, together, from measured current.

Clochiatti et al., Robotica 2024, eq. 10-18: with the torque without friction known from motion,
the current is linear in 1/k_t and the friction parameters over k_t,

    I = 1/k_t * load / N + sum over terms (parameter / k_t * term),

so one linear least squares finds both. Every candidate law is accumulated at once in Gram
matrices per block of time; blocked cross-validation chooses, and parsimony wins ties. Only
moving samples are fitted: at standstill friction takes any value up to its limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification.grams import BlockedGram, Prior, Solution, cross_validate, solve
from ur_energy_model.identification.joint_fit import JointFit, friction_of
from ur_energy_model.identification.signals import Motion, NarrowFilter
from ur_energy_model.model.friction import (
    LAWS,
    LOAD_ASYMMETRY,
    Friction,
    FrictionLaw,
    OperatingPoint,
    Term,
)
from ur_energy_model.model.robots import RobotDescription

Array = NDArray[np.float64]

AUTO = "auto"
MOVING_SPEED = 0.02
"""Joint speed above which a sample counts as moving [rad/s]."""
SHORTEST_MOTION = 1.0
"""A joint that moved for less time keeps the robot file's constants [s]."""
TORQUE_CONSTANT_SPREAD = 0.5
"""Weak prior that keeps the regression finite; torque_constants.py weighs what is really known."""
GAIN_PER_PARAMETER = 0.02
"""Held-out RMS a further parameter must save to be worth having."""
LOAD_ASYMMETRY_SPREAD = 0.01
"""Half the difference of load friction between both ways of power flow; gear catalogues put the
efficiency of strain-wave gears a few percent lower where the load drives."""
WARMTH = 2.0
"""Temperature span from which temperature-dependent friction is tried [K]."""
_BY_NAME_ONLY = ("polynomial", "sign")
"""Never chosen by "auto": one is wild beyond the speeds it was fitted at, the other is
coulomb_viscous but for speeds too low to be fitted."""
_FILTER_MEMORY = 6.0
"""Samples over which the narrow filter correlates white noise, at the rate kept behind it."""
_COULOMB_SHARE = 0.04
_VISCOUS_SHARE = 0.028
_GRID = 8


@dataclass(frozen=True)
class Candidate:
    """A law with values for its shape constants."""

    law: FrictionLaw
    shape: tuple[tuple[str, float], ...]


def candidates(friction: str, *, warm: bool) -> tuple[Candidate, ...]:
    """Laws to fit, with a bounded logarithmic grid over shape constants that are not fixed.

    Args:
        friction: name of a law, or "auto" for all of them.
        warm: whether temperatures were recorded and changed, so that laws that use them make sense.

    Raises:
        InputError: no such law.
    """
    if friction != AUTO and friction not in LAWS:
        raise InputError(
            "--friction", f"no such law '{friction}'", f"use auto or one of {', '.join(LAWS)}"
        )
    laws = [
        law
        for name, law in LAWS.items()
        if name == friction
        or (friction == AUTO and name not in _BY_NAME_ONLY and (warm or not law.uses_temperature))
    ]
    out: list[Candidate] = []
    for law in laws:
        shapes: list[dict[str, float]] = [{}]
        for name, (low, default, high) in law.shape.items():
            values = [default] if low == high else list(np.geomspace(low, high, _GRID))
            shapes = [{**shape, name: float(value)} for shape in shapes for value in values]
        out.extend(Candidate(law, tuple(shape.items())) for shape in shapes)
    return tuple(out)


class _Library:
    """The distinct columns of all candidates: load, friction terms with their shapes, current."""

    def __init__(self, laws: Sequence[Candidate]) -> None:
        self._terms: dict[tuple[Term, tuple[float, ...]], tuple[int, dict[str, float]]] = {}
        self.places: list[list[int]] = []
        for candidate in laws:
            shape = dict(candidate.shape)
            place = [0]
            for term in candidate.law.terms.values():
                key = (term, tuple(shape[name] for name in term.uses))
                entry = self._terms.setdefault(key, (len(self._terms) + 1, shape))
                place.append(entry[0])
            self.places.append(place)
        self.width = len(self._terms) + 2
        self.places = [[*place, self.width - 1] for place in self.places]

    def columns(self, point: OperatingPoint, current: Array) -> Array:
        """[samples, n, width]."""
        out = np.empty((*current.shape, self.width))
        out[..., 0] = point.load / point.gear_ratio
        for (term, _), (place, shape) in self._terms.items():
            out[..., place] = term(point, shape)
        out[..., -1] = current
        return out


class CurrentFit:
    """Accumulates motions of any number of recordings and fits all joints.

    Args:
        robot: the arm, n joints; source of the priors.
        friction: law name or "auto".
        warm: see `candidates`.
    """

    def __init__(
        self, robot: RobotDescription, friction: str = AUTO, *, warm: bool = False
    ) -> None:
        self.robot = robot
        self.friction = friction
        self.candidates = candidates(friction, warm=warm)
        self._library = _Library(self.candidates)
        self._grams = BlockedGram()
        self._counts = BlockedGram()
        self._temperature = np.array([[np.inf, -np.inf]] * robot.dof)
        self._moving_time = np.zeros(robot.dof)

    def add(self, motion: Motion, load: Array, narrow: NarrowFilter) -> None:
        """Add an uninterrupted motion.

        Args:
            motion: [samples, n].
            load: its torque without friction, joint side [samples, n], N m.
            narrow: filter for columns and currents.
        """
        inside = narrow.inside(motion)
        if len(motion.time[inside]) < 2:
            return
        low = np.fmin.reduce(motion.temperature, axis=0)
        high = np.fmax.reduce(motion.temperature, axis=0)
        self._temperature[:, 0] = np.fmin(self._temperature[:, 0], low)
        self._temperature[:, 1] = np.fmax(self._temperature[:, 1], high)
        moving = narrow.moving(motion, MOVING_SPEED)[inside]
        rows = narrow(motion, self._library.columns(self._point(motion, load), motion.current))
        rows = rows[inside] * moving[:, :, None]
        time = motion.time[inside]
        period = float(time[1] - time[0])
        self._moving_time += moving.sum(axis=0) * period
        by_joint = np.ascontiguousarray(rows.transpose(1, 0, 2))
        edges = [0, *(np.flatnonzero(np.diff(np.floor(time))) + 1), len(time)]
        for start, stop in pairwise(edges):
            piece = by_joint[:, start:stop]
            duration = (stop - start) * period
            self._grams.add(piece.transpose(0, 2, 1) @ piece, duration)
            self._counts.add(moving[start:stop].sum(axis=0, dtype=float), duration)

    def merge(self, other: CurrentFit) -> None:
        """Take over what another accumulator with the same candidates has seen."""
        if other.candidates != self.candidates:
            raise ValueError("accumulators of different friction candidates do not merge")
        self._grams.merge(other._grams)
        self._counts.merge(other._counts)
        self._moving_time += other._moving_time
        self._temperature[:, 0] = np.minimum(self._temperature[:, 0], other._temperature[:, 0])
        self._temperature[:, 1] = np.maximum(self._temperature[:, 1], other._temperature[:, 1])

    def fit(self) -> tuple[JointFit, ...]:
        """Results per joint.

        Raises:
            IdentificationError: a joint that did not move has no constants in the robot file.
        """
        return tuple(self._joint(j) for j in range(self.robot.dof))

    def _point(self, motion: Motion, load: Array) -> OperatingPoint:
        model = self.robot.friction_temperature_model.T
        return OperatingPoint(
            motion.qd, load, self.robot.gear_ratio,
            motion.temperature if np.isfinite(motion.temperature).all() else None,
            model if np.isfinite(model).all() else None,
        )  # fmt: skip

    def _joint(self, j: int) -> JointFit:
        if self._moving_time[j] < SHORTEST_MOTION:
            return self._from_prior(j)
        counts = self._counts.blocks[:, j]
        scored: list[tuple[Candidate, Array, Prior, Array]] = []
        library = self._grams.blocks[:, j]
        for candidate, place in zip(self.candidates, self._library.places, strict=True):
            blocks, prior = library[:, place][:, :, place], self._prior(candidate.law, j)
            errors = (
                cross_validate(blocks, prior, counts) if len(self.candidates) > 1 else np.zeros(1)
            )
            scored.append((candidate, blocks, prior, errors))
        best: dict[str, tuple[Candidate, Array, Prior, Array]] = {}
        for entry in scored:
            name = entry[0].law.name
            if name not in best or entry[3].mean() < best[name][3].mean():
                best[name] = entry
        chosen, reason = _choose({name: entry[3] for name, entry in best.items()})
        candidate, blocks, prior, _ = best[chosen]
        solution = solve(blocks, prior, counts)
        if solution.coefficients[0] <= 0:
            raise IdentificationError(
                f"{self.robot.joint_names[j]}: current falls as torque rises; check that the "
                "recording belongs to this robot model and that --robot names it"
            )
        comparison = {name: float(np.sqrt(entry[3].mean())) for name, entry in best.items()}
        if len(self.candidates) == 1:
            comparison, reason = {}, "chosen by --friction"
        ratio = _unexplained_over_load(solution, blocks.sum(axis=0))
        return self._result(j, candidate, prior, solution, reason, comparison, ratio)

    def _result(
        self, j: int, candidate: Candidate, prior: Prior, solution: Solution, reason: str,
        comparison: dict[str, float], unexplained_over_load: float = float("inf"),
    ) -> JointFit:  # fmt: skip
        law = candidate.law
        constant = 1.0 / solution.coefficients[0]
        deviation = float(solution.std[0] * constant**2)
        parameters, parameter_std = friction_of(solution.coefficients, solution.covariance)
        told = solution.std < 0.5 * prior.std
        names = ("torque_constant", *law.parameters)
        low, high = self._temperature[j]
        known = bool(np.isfinite(low) and np.isfinite(high))
        model = self.robot.friction_temperature_model[j]
        uses_model = law.name == "temperature_exponential" and bool(np.isfinite(model).all())
        return JointFit(
            torque_constant=float(constant),
            torque_constant_std=deviation,
            friction=Friction(
                law,
                dict(zip(law.parameters, parameters.tolist(), strict=True)),
                dict(candidate.shape),
                (model[0], model[1], model[2], model[3]) if uses_model else None,
                (float(low), float(high)) if known else None,
            ),
            friction_std=dict(zip(law.parameters, parameter_std.tolist(), strict=True)),
            covariance=solution.covariance,
            source={n: "current" if t else "prior" for n, t in zip(names, told, strict=True)},
            residual=solution.residual,
            reason=reason,
            comparison=comparison,
            effective_samples=solution.effective_samples,
            unexplained_over_load=unexplained_over_load,
            regressed_constant=float(constant),
            regressed_std=deviation,
        )

    def _prior(self, law: FrictionLaw, j: int) -> Prior:
        """Prior of (1/k_t, friction parameters / k_t) of one joint.

        Torque constant from the robot file; friction from the factory no-load calibration of
        UR5e joints, scaled with the rated torque, and wide.
        """
        robot = self.robot
        constant = robot.torque_constant[j]
        if not np.isfinite(constant):
            size = 1 + len(law.parameters)
            return Prior(np.zeros(size), np.full(size, np.inf))
        mean, std = nominal_friction(robot, j)
        known = [(mean.get(name, 0.0), std[name]) for name in law.parameters]
        return Prior(
            np.array([1.0, *(value for value, _ in known)]) / constant,
            np.array([TORQUE_CONSTANT_SPREAD, *(spread for _, spread in known)]) / constant,
        )

    def _from_prior(self, j: int) -> JointFit:
        """The robot file's word for a joint that did not move."""
        name = self.friction if self.friction != AUTO else "coulomb_viscous"
        law = LAWS[name]
        prior = self._prior(law, j)
        if not np.isfinite(prior.std).all():
            raise IdentificationError(
                f"{self.robot.joint_names[j]} moved for less than {SHORTEST_MOTION:g} s and the "
                f"robot file {self.robot.name} has no torque constant for it; record a motion of "
                "all joints or add drive.torque_constant to the robot file"
            )
        candidate = next(c for c in candidates(name, warm=True))
        solution = Solution(prior.mean, np.diag(prior.std**2), float("nan"), 0.0, 0.0)
        reason = f"joint moved for less than {SHORTEST_MOTION:g} s: robot file and typical friction"
        return self._result(j, candidate, prior, solution, reason, {})


def _unexplained_over_load(solution: Solution, gram: Array) -> float:
    """RMS of the residual's systematic part over that of the load's current.

    Residuals that are correlated for longer than the filter makes white noise are systematic.
    """
    share = 1.0 - _FILTER_MEMORY * solution.effective_samples / solution.samples
    load = solution.coefficients[0] * np.sqrt(gram[0, 0] / solution.samples)
    return float(solution.residual * np.sqrt(max(share, 0.0)) / max(load, 1e-9))


def nominal_friction(robot: RobotDescription, j: int) -> tuple[dict[str, float], dict[str, float]]:
    """Typical friction of a joint and how far arms spread around it, motor side.

    Factory no-load calibrations of UR5e joints: joint-side Coulomb friction near 4 % of the rated
    torque and viscous friction near 2.8 % per rad/s, on the large and the small size alike.

    Returns:
        Means and standard deviations by parameter name; infinite where the torque is not rated.
    """
    ratio = robot.gear_ratio[j]
    rated = robot.max_torque[j]
    coulomb = _COULOMB_SHARE * rated / ratio
    viscous = _VISCOUS_SHARE * rated / ratio**2
    fastest = ratio * robot.max_velocity[j]
    mean = {
        "viscous": viscous, "coulomb": coulomb, "coulomb_direct": coulomb,
        "coulomb_reverse": coulomb, "power": viscous * ratio,
    }  # fmt: skip
    std = {
        "viscous": viscous, "coulomb": coulomb, "coulomb_direct": coulomb,
        "coulomb_reverse": coulomb, "stribeck": coulomb, "power": viscous * ratio, "load": 0.2,
        LOAD_ASYMMETRY: LOAD_ASYMMETRY_SPREAD,
        "square": viscous / fastest, "cubic": viscous / fastest**2,
        "viscous_temperature": 0.05 * viscous,
        "power_temperature": 0.05 * viscous * ratio,
    }  # fmt: skip
    if not np.isfinite(rated):
        return dict.fromkeys(mean, 0.0), dict.fromkeys(std, np.inf)
    return mean, std


def _choose(errors: dict[str, Array]) -> tuple[str, str]:
    """Law by held-out error, the one with fewer parameters where the difference is no more than
    its own scatter over folds or than GAIN_PER_PARAMETER; and the reason in words.
    """  # noqa: D205
    order = sorted(errors, key=lambda name: LAWS[name].freedom)
    best = min(errors, key=lambda name: float(errors[name].mean()))
    chosen = best
    for name in order:
        extra = LAWS[best].freedom - LAWS[name].freedom
        if extra < 0 or name == best:
            continue
        loss = errors[name] - errors[best]
        scatter = loss.std(ddof=1) / np.sqrt(len(loss)) if len(loss) > 1 else 0.0
        allowance = (1 + GAIN_PER_PARAMETER) ** (2 * extra) - 1
        if loss.mean() <= max(scatter, allowance * errors[best].mean()):
            chosen = name
            break
    rms = {name: float(np.sqrt(values.mean())) for name, values in errors.items()}
    if chosen == best:
        second: Sequence[str] = sorted((n for n in rms if n != best), key=rms.__getitem__)[:1]
        against = f" against {rms[second[0]]:.4g} A of {second[0]}" if second else ""
        return chosen, f"least held-out RMS, {rms[best]:.4g} A{against}"
    return chosen, (
        f"held-out RMS {rms[chosen]:.4g} A; {best} with more parameters gets {rms[best]:.4g} A, "
        "which is within the scatter over folds or not worth them"
    )
