"""Energy of a cycle: its moves and dwells in order, by the same calculation as `predict`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.meter import trapezoid
from ur_energy_model.energy.powers.plan_powers import PlanPowers
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.optimization.cycle import WorkCycle
from ur_energy_model.trajectory import motions as moving
from ur_energy_model.trajectory.plan import Motion, Plan
from ur_energy_model.typing import Array

SHORTEST_REST = 1e-6
"""Rest that is a stretch of its own [s]."""
PERIOD = 0.004
"""Sample period of a typed move [s]."""


@dataclass(frozen=True)
class Stretch:
    """A move or a dwell as it is run.

    Attributes:
        plan: its motion.
        payload: on the flange; None stands for the model's.
        moving: whether it is a move.
    """

    plan: Plan
    payload: Payload | None
    moving: bool = True


@dataclass(frozen=True)
class StretchEnergy:
    """Energy of a stretch of k samples.

    Attributes:
        energy: whole arm at the supply [J].
        motion: energy without the standby power [J].
        sensitivity: change of the energy per standard deviation of each independent parameter
            error [errors], J; empty if not requested.
        peak_power: largest supply power [W].
        time: since the start of the cycle [k], s.
        power: at the supply [k], W.
        torque: of the joints, friction included, joint side [k, n], N m.
        moving: whether it is a move.
    """

    energy: float
    motion: float
    sensitivity: Array
    peak_power: float
    time: Array
    power: Array
    torque: Array
    moving: bool = True

    @property
    def energy_std(self) -> float:
        """Standard deviation from the model's parameters [J]."""
        return float(np.linalg.norm(self.sensitivity))


class CycleEnergies:
    """Computes the energies of cycles of one arm.

    Args:
        model: of the arm, in the session of the recording where it is known.
        temperature: of the joints [n], degC; None if unknown.
    """

    def __init__(self, model: EnergyModel, temperature: Array | None = None) -> None:
        self.model, self.temperature = model, temperature
        self._known: dict[int, tuple[Payload, ArmDynamics]] = {}
        self._own = model.dynamics()

    def dynamics(self, payload: Payload | None) -> ArmDynamics:
        """The arm with a payload."""
        if payload is None:
            return self._own
        if id(payload) not in self._known:
            setup = Setup(self.model.setup.gravity, payload)
            self._known[id(payload)] = (payload, self.model.dynamics(setup=setup))
        return self._known[id(payload)][1]

    def of(self, stretches: Sequence[Stretch], *, std: bool = True) -> list[StretchEnergy]:
        """Energies of the stretches of a cycle that repeats.

        Args:
            stretches: in order; together one cycle.
            std: compute the sensitivities.
        """
        powers = PlanPowers(self.model, self.temperature, std=False)
        for motion, dynamics in self._motions(stretches[-2:], 0.0):  # as the cycle before left it
            powers(motion, dynamics)
        powers = powers.restarted(std=std)
        start, out = 0.0, []
        for stretch in stretches:
            out.append(self._stretch(powers, stretch, start))
            start += stretch.plan.duration
        return out

    def total(self, stretches: Sequence[Stretch]) -> float:
        """Energy of a cycle that repeats, from its stretches in order [J]."""
        return sum(part.energy for part in self.of(stretches, std=False))

    def _motions(
        self, stretches: Sequence[Stretch], start: float
    ) -> Iterator[tuple[Motion, ArmDynamics]]:
        for stretch in stretches:
            for motion in stretch.plan.motion():
                yield (
                    Motion(motion.time + start, motion.q, motion.qd, motion.qdd),
                    self.dynamics(stretch.payload),
                )
            start += stretch.plan.duration

    def _stretch(self, powers: PlanPowers, stretch: Stretch, start: float) -> StretchEnergy:
        ratio = np.array([joint.gear_ratio for joint in self.model.joints])
        parts = []
        for motion, dynamics in self._motions([stretch], start):
            split, total = powers(motion, dynamics)
            parts.append((motion.time, total, split.motor_torque * ratio, split.total_sensitivity))
        time, power, torque, sensitivity = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        steps = np.diff(time)
        energy = float(trapezoid(steps, power))
        return StretchEnergy(
            energy,
            energy - self.model.bus.standby * stretch.plan.duration,
            trapezoid(steps, sensitivity),
            float(power.max()),
            time,
            power,
            torque,
            stretch.moving,
        )


def recorded_stretches(cycle: WorkCycle, *, stretch: float = 1.0) -> list[Stretch]:
    """A cycle as it was recorded: each move, and the dwell after it where there is one.

    Args:
        cycle: recorded.
        stretch: factor on the durations of the moves; slack is left out where it is not 1.
    """
    out = []
    for move, rest in zip(cycle.moves, cycle.rests, strict=True):
        qdd = None if move.qdd is None else move.qdd / stretch**2
        out.append(
            Stretch(
                Plan(move.time * stretch, move.q, move.qd / stretch, qdd, cycle.source),
                move.payload,
            )
        )
        waited = rest.duration if stretch == 1.0 else rest.kept
        if waited > SHORTEST_REST:
            out.append(dwelling(rest.q, waited, rest.payload))
    return out


def sampled_stretch(motion: moving.Motion, payload: Payload | None) -> Stretch:
    """A move from rest to rest as it is run."""
    samples = max(2, round(motion.duration / PERIOD) + 1)
    time = np.linspace(0.0, motion.duration, samples)
    return Stretch(Plan(time, *motion.sample(time)), payload)


def dwelling(q: Array, duration: float, payload: Payload | None) -> Stretch:
    """Standstill at joint positions [n], rad, for a duration [s]."""
    points = np.stack([q, q])
    zero = np.zeros_like(points)
    return Stretch(Plan(np.array([0.0, duration]), points, zero, zero), payload, moving=False)
