"""The optimization of one cycle: its moves on their paths, their limits, and its waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.allocation import Allocation, Allocator
from ur_energy_model.optimization.cycle import Dwell, WorkCycle
from ur_energy_model.optimization.cycle_energy import (
    CycleEnergies,
    Stretch,
    dwelling,
    recorded_stretches,
)
from ur_energy_model.optimization.jerk import with_jerk_limit
from ur_energy_model.optimization.least_energy import EnergyLaws
from ur_energy_model.optimization.motion_limits import TOOL_SPEED_SHARE, PathLimits, reached
from ur_energy_model.optimization.options import OptimizationOptions
from ur_energy_model.optimization.path import JointPath
from ur_energy_model.optimization.path_dynamics import PathDynamics
from ur_energy_model.optimization.time_law import TimeLaw
from ur_energy_model.optimization.time_optimal import fastest_law
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

SAMPLE_PERIOD = 0.002
"""Period of the new time laws [s]: that of an e-Series controller."""


class CycleProblem:
    """One cycle to be optimized.

    Args:
        model: of the arm, in the session of the recording where it is known.
        cycle: as recorded.
        options: what it may become.
        robot: the arm.

    Attributes:
        energies: of cycles of this arm.
        recorded: the cycle as it was run.
        recorded_energies: of its stretches.
        limits: that the new moves keep: the usual ones, where the recording goes beyond them its
            own, except for the tool speed.
        recorded_tool_speed: highest of flange and elbow in the recording [m/s].
    """

    def __init__(
        self,
        model: EnergyModel,
        cycle: WorkCycle,
        options: OptimizationOptions,
        robot: RobotDescription,
    ) -> None:
        self.model, self.cycle, self.options, self.robot = model, cycle, options, robot
        self.energies = CycleEnergies(model, cycle.temperature)
        self.recorded = recorded_stretches(cycle)
        self.recorded_energies = self.energies.of(self.recorded)
        self.limits, self.beyond = self._limits()
        self.arms = [
            PathDynamics(
                model,
                self.energies.dynamics(move.payload),
                JointPath.through(move.time, move.q, move.qd),
                cycle.temperature,
            )
            for move in cycle.moves
        ]

    @cached_property
    def kept(self) -> float:
        """Standstill that must stay [s]."""
        return sum(rest.duration for rest in self.cycle.rests if rest.kept)

    @cached_property
    def fastest_laws(self) -> tuple[TimeLaw, ...]:
        """Of all moves."""
        return tuple(
            with_jerk_limit(fastest_law(arm, self.limits, self.cycle.source), self.limits.jerk)
            for arm in self.arms
        )

    @property
    def shortest(self) -> float:
        """Duration of the time-optimal cycle [s]."""
        return sum(law.duration for law in self.fastest_laws) + self.kept

    def require(self, duration: float) -> None:
        """Check that a cycle time [s] is feasible.

        Raises:
            InputError: it is below the time-optimal one.
        """
        if duration < self.shortest:
            raise InputError(
                self.cycle.source,
                f"a cycle time of {duration:.2f} s is below the time-optimal one of "
                f"{self.shortest:.2f} s within the limits",
                f"ask for at least {np.ceil(100 * self.shortest) / 100:.2f} s",
                field="--cycle-time",
            )

    @cached_property
    def allocator(self) -> Allocator:
        """Of the time over the moves."""
        return self._allocator(min(self._holding))

    def allocate(self, duration: float, waiting: float | None = None) -> Allocation:
        """The moves' laws of least energy for a cycle time [s].

        Args:
            duration: of the cycle [s].
            waiting: power of waiting [W]; None takes that of holding the arm.
        """
        allocator = self.allocator if waiting is None else self._allocator(waiting)
        return allocator.allocate(duration - self.kept)

    def _allocator(self, waiting: float) -> Allocator:
        laws = [EnergyLaws(arm, self.limits) for arm in self.arms]
        return Allocator(laws, waiting, self.fastest_laws, self.limits.jerk)

    def stretches(self, laws: Sequence[TimeLaw], waiting: float = 0.0) -> list[Stretch]:
        """A cycle as it would be run, with time to be waited beyond what is kept [s]."""
        out = []
        for law, move, rest, wait in zip(
            laws, self.cycle.moves, self.cycle.rests, self._waits(waiting), strict=True
        ):
            time, q, qd, qdd = law.sample(SAMPLE_PERIOD)
            out.append(Stretch(Plan(time, q, qd, qdd, self.cycle.source), move.payload))
            if wait > 0.0:
                out.append(dwelling(rest.q, wait, rest.payload))
        return out

    def fastest(self) -> list[Stretch]:
        """The time-optimal cycle as it would be run."""
        return self.stretches(self.fastest_laws)

    def scaled(self, duration: float) -> list[Stretch]:
        """The recorded cycle slowed (or sped up) by speed scaling to a cycle time [s]."""
        moving = sum(move.duration for move in self.cycle.moves)
        return recorded_stretches(self.cycle, stretch=(duration - self.kept) / moving)

    def dwells(self, stretches: Sequence[Stretch]) -> tuple[Dwell, ...]:
        """Standstills of a cycle as it would be run."""
        out, start, rests = [], 0.0, iter(self.cycle.rests)
        for stretch in stretches:
            if stretch.moving:
                rest = next(rests)
            else:
                out.append(replace(rest, start=start, duration=stretch.plan.duration))
            start += stretch.plan.duration
        return tuple(out)

    def notes(self) -> list[str]:
        """What the result rests on, one sentence each."""
        cycle, out = self.cycle, []
        if cycle.slack > 0.0:
            out.append(
                f"{cycle.slack:.2f} s of waiting count as slack, because they are longer than "
                f"{self.options.keep_dwell:g} s; where the arm waits for something, the saving "
                "holds only as far as it may arrive later."
            )
        if self.beyond:
            out.append(
                f"The recording goes beyond the usual limits ({self.beyond}); up to there the new "
                "moves may go too."
            )
        deviation = max(arm.path.deviation for arm in self.arms)
        out.append(f"The new moves keep the recorded path within {1e3 * deviation:.2g} mrad.")
        return out

    def permits(self, stretches: Sequence[Stretch]) -> bool:
        """Whether a cycle as it was recorded, or scaled, keeps the limits."""
        powers = self.energies.of(stretches, std=False)
        return np.isinf(self.limits.jerk) and all(
            self._reached(stretch, energy.torque).within(self.limits)
            for stretch, energy in zip(stretches, powers, strict=True)
            if stretch.moving
        )

    def _limits(self) -> tuple[PathLimits, str]:
        """Limits of the new moves, and where the recording goes beyond the usual ones."""
        usual = PathLimits.of_robot(self.robot)
        if self.options.tool_speed is not None:
            usual = replace(usual, tool_speed=TOOL_SPEED_SHARE * self.options.tool_speed)
        if self.options.jerk is not None:
            usual = replace(usual, jerk=self.options.jerk)
        shown = [
            self._reached(stretch, energy.torque)
            for stretch, energy in zip(self.recorded, self.recorded_energies, strict=True)
            if stretch.moving
        ]
        largest = shown[0].at_least(shown)
        self.recorded_tool_speed = largest.tool_speed
        if self.options.recorded_limits:
            return replace(largest, jerk=usual.jerk), ""
        largest = replace(largest, tool_speed=0.0)
        beyond = [
            name
            for name in ("speed", "acceleration", "torque")
            if (getattr(largest, name) > getattr(usual, name)).any()
        ]
        return usual.at_least([largest]), ", ".join(beyond)

    def _reached(self, stretch: Stretch, torque: Array) -> PathLimits:
        parts = list(stretch.plan.motion())
        q, qd, qdd = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("q", "qd", "qdd")
        )
        return reached(q, qd, qdd, torque, self.energies.dynamics(stretch.payload))

    @cached_property
    def _holding(self) -> list[float]:
        """Power of waiting after each move [W]."""
        out = []
        for rest in self.cycle.rests:
            q = rest.q[None]
            zero = np.zeros_like(q)
            link = self.energies.dynamics(rest.payload).gravity_torque(q)
            powers = self.model.from_link_torque(
                link, zero, zero, temperature=self.cycle.temperature, std=False
            )
            out.append(float(powers.total_power[0]))
        return out

    def _waits(self, extra: float) -> list[float]:
        """Standstill after each move [s]: what is kept, and the rest where it costs least."""
        waits = [rest.duration if rest.kept else 0.0 for rest in self.cycle.rests]
        waits[int(np.argmin(self._holding))] += extra
        return waits
