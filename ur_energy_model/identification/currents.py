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

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification.grams import BlockedGram, Prior, Solution, cross_validate, solve
from ur_energy_model.identification.signals import Motion
from ur_energy_model.model.friction import LAWS, Friction, FrictionLaw, OperatingPoint
from ur_energy_model.model.robots import RobotDescription

Array = NDArray[np.float64]

AUTO = "auto"
MOVING_SPEED = 0.02
"""Joint speed above which a sample counts as moving [rad/s]."""
SHORTEST_MOTION = 1.0
"""A joint that moved for less time keeps the robot file's constants [s]."""
TORQUE_CONSTANT_SPREAD = 0.15
"""Spread of torque constants between arms of one type (factory calibrations: over 10 %)."""
GAIN_PER_PARAMETER = 0.02
"""Held-out RMS a further parameter must save to be worth having."""
WARMTH = 2.0
"""Temperature span from which temperature-dependent friction is tried [K]."""
_COULOMB_SHARE = 0.04
_VISCOUS_SHARE = 0.028
_GRID = 8


@dataclass(frozen=True)
class Candidate:
    """A law with values for its shape constants."""

    law: FrictionLaw
    shape: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class JointFit:
    """Result for one joint.

    Attributes:
        torque_constant: [N m/A].
        torque_constant_std: [N m/A].
        friction: motor side.
        friction_std: by parameter name.
        covariance: of (1/k_t, friction parameters / k_t).
        source: "current" or "prior", by quantity.
        residual: RMS while moving [A], NaN where the joint did not move.
        reason: why this law, for people.
        comparison: held-out RMS [A] by law name.
        effective_samples: independent samples the data amounts to.
    """

    torque_constant: float
    torque_constant_std: float
    friction: Friction
    friction_std: dict[str, float]
    covariance: Array
    source: dict[str, str]
    residual: float
    reason: str
    comparison: dict[str, float]
    effective_samples: float


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
        if name == friction or (friction == AUTO and (warm or not law.uses_temperature))
    ]
    out: list[Candidate] = []
    for law in laws:
        shapes: list[dict[str, float]] = [{}]
        for name, (low, default, high) in law.shape.items():
            values = [default] if low == high else list(np.geomspace(low, high, _GRID))
            shapes = [{**shape, name: float(value)} for shape in shapes for value in values]
        out.extend(Candidate(law, tuple(shape.items())) for shape in shapes)
    return tuple(out)


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
        self._grams = [BlockedGram() for _ in self.candidates]
        self._counts = BlockedGram()
        self._temperature = np.array([[np.inf, -np.inf]] * robot.dof)
        self._moving_time = np.zeros(robot.dof)

    def add(self, motion: Motion, load: Array) -> None:
        """Add motion [samples, n] with its torque without friction [samples, n], joint side."""
        if len(motion) < 2:
            return
        moving = np.abs(motion.qd) > MOVING_SPEED
        period = float(motion.time[1] - motion.time[0])
        self._moving_time += moving.sum(axis=0) * period
        low = np.fmin.reduce(motion.temperature, axis=0)
        high = np.fmax.reduce(motion.temperature, axis=0)
        self._temperature[:, 0] = np.fmin(self._temperature[:, 0], low)
        self._temperature[:, 1] = np.fmax(self._temperature[:, 1], high)
        edges = np.flatnonzero(np.diff(np.floor(motion.time))) + 1
        parts = np.split(np.arange(len(motion)), edges)
        counts = [moving[part].sum(axis=0, dtype=float) for part in parts]
        for count, part in zip(counts, parts, strict=True):
            self._counts.add(count, len(part) * period)
        for candidate, gram in zip(self.candidates, self._grams, strict=True):
            rows = self._rows(candidate, motion, load) * moving[:, :, None]
            by_joint = np.ascontiguousarray(rows.transpose(1, 0, 2))
            for part in parts:
                piece = by_joint[:, part[0] : part[-1] + 1]
                gram.add(piece.transpose(0, 2, 1) @ piece, len(part) * period)

    def merge(self, other: CurrentFit) -> None:
        """Take over what another accumulator with the same candidates has seen."""
        if other.candidates != self.candidates:
            raise ValueError("accumulators of different friction candidates do not merge")
        for mine, theirs in zip(self._grams, other._grams, strict=True):
            mine.merge(theirs)
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

    def _rows(self, candidate: Candidate, motion: Motion, load: Array) -> Array:
        """[load / N, friction terms, current], [samples, n, p + 1]."""
        ratio = self.robot.gear_ratio
        model = self.robot.friction_temperature_model.T
        point = OperatingPoint(
            motion.qd, load, ratio,
            np.nan_to_num(motion.temperature) if candidate.law.uses_temperature else None,
            model if np.isfinite(model).all() else None,
        )  # fmt: skip
        terms = candidate.law.regressor(point, dict(candidate.shape))
        return np.concatenate([(load / ratio)[..., None], terms, motion.current[..., None]], axis=2)

    def _joint(self, j: int) -> JointFit:
        if self._moving_time[j] < SHORTEST_MOTION:
            return self._from_prior(j)
        counts = self._counts.blocks[:, j]
        scored: list[tuple[Candidate, Array, Prior, Array]] = []
        for candidate, gram in zip(self.candidates, self._grams, strict=True):
            blocks, prior = gram.blocks[:, j], self._prior(candidate.law, j)
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
        return self._result(j, candidate, prior, solution, reason, comparison)

    def _result(
        self, j: int, candidate: Candidate, prior: Prior, solution: Solution, reason: str,
        comparison: dict[str, float],
    ) -> JointFit:  # fmt: skip
        law = candidate.law
        inverse = solution.coefficients[0]
        constant = 1.0 / inverse
        parameters = solution.coefficients[1:] * constant
        # d(parameter) = d(coefficient)/inverse - parameter/inverse d(inverse)
        slopes = np.column_stack([-parameters / inverse, np.eye(len(parameters)) / inverse])
        parameter_std = np.sqrt(np.diag(slopes @ solution.covariance @ slopes.T))
        told = solution.std < 0.5 * prior.std
        names = ("torque_constant", *law.parameters)
        low, high = self._temperature[j]
        known = bool(np.isfinite(low) and np.isfinite(high))
        model = self.robot.friction_temperature_model[j]
        uses_model = law.name == "temperature_exponential" and bool(np.isfinite(model).all())
        return JointFit(
            torque_constant=float(constant),
            torque_constant_std=float(solution.std[0] * constant**2),
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
        "coulomb_reverse": coulomb,
    }  # fmt: skip
    std = {
        "viscous": viscous, "coulomb": coulomb, "coulomb_direct": coulomb,
        "coulomb_reverse": coulomb, "stribeck": coulomb, "load": 0.2,
        "square": viscous / fastest, "cubic": viscous / fastest**2,
        "viscous_temperature": 0.05 * viscous,
    }  # fmt: skip
    if not np.isfinite(rated):
        return dict.fromkeys(mean, 0.0), dict.fromkeys(std, np.inf)
    return mean, std


def _choose(errors: dict[str, Array]) -> tuple[str, str]:
    """Law by held-out error, the one with fewer parameters where the difference is no more than
    its own scatter over folds or than GAIN_PER_PARAMETER; and the reason in words.
    """  # noqa: D205
    order = sorted(errors, key=lambda name: len(LAWS[name].parameters))
    best = min(errors, key=lambda name: float(errors[name].mean()))
    chosen = best
    for name in order:
        extra = len(LAWS[best].parameters) - len(LAWS[name].parameters)
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
