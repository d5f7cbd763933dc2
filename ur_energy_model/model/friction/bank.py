"""FrictionBank: the friction of all joints, evaluated on arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ur_energy_model.model.friction.law import Friction, FrictionLaw
from ur_energy_model.model.friction.terms import LOAD, LOAD_ASYMMETRY, SMOOTHING, OperatingPoint
from ur_energy_model.typing import Array


class FrictionBank:
    """The friction of n joints; joints with the same law are evaluated together.

    Args:
        frictions: of the joints, in order.
        gear_ratio: motor turns per joint turn [n].
    """

    def __init__(self, frictions: Sequence[Friction], gear_ratio: Array) -> None:
        self.dof = len(frictions)
        self._ratio = gear_ratio
        self._groups: list[_Group] = []
        for law in dict.fromkeys(friction.law.name for friction in frictions):
            joints = [j for j, friction in enumerate(frictions) if friction.law.name == law]
            self._groups.append(
                _Group.from_frictions(joints, [frictions[j] for j in joints], gear_ratio)
            )

    def torque(
        self,
        speed: Array,
        load: Array,
        temperature: Array | None = None,
        direction: Array | None = None,
    ) -> Array:
        """Motor-side friction torque [samples, n], N m; positive against positive speed.

        Args:
            speed: joint side [samples, n], rad/s.
            load: joint torque without friction [samples, n], N m.
            temperature: [n] or [samples, n], degC; None stands for the middle of the fitted range.
            direction: see `OperatingPoint` [samples, n].
        """
        out = np.empty_like(speed)
        for group in self._groups:
            point = group.point(speed, load, temperature, direction)
            out[:, group.columns] = group.torque(point, range(len(group.law.terms)))
        return out

    def torque_within(
        self, speed: Array, motor_torque: Array, temperature: Array | None = None
    ) -> Array:
        """Friction's part of a known motor torque, motor side [samples, n], N m.

        Args:
            speed: joint side [samples, n], rad/s.
            motor_torque: load and friction together, motor side [samples, n], N m.
            temperature: as for `torque`.
        """
        out = np.empty_like(speed)
        whole = motor_torque * self._ratio  # its sign is the power flow's, which some laws need
        for group in self._groups:
            point = group.point(speed, whole, temperature, None)
            friction = group.torque(point, group.free)
            if group.load is not None:
                # The rest of the torque is load (1 + asymmetry) + share sign(speed) |load|.
                own, (share, asymmetry) = motor_torque[:, group.columns], group.load
                rest = own - friction
                forward = np.tanh(point.speed / SMOOTHING) * np.sign(rest)
                friction = own - rest / (1.0 + asymmetry + share * forward)
            out[:, group.columns] = friction
        return out

    def regressors(
        self,
        speed: Array,
        load: Array,
        temperature: Array | None = None,
        direction: Array | None = None,
    ) -> list[Array]:
        """Motor-side friction torque per unit parameter [samples, parameters] of each joint."""
        out: list[Array] = [np.empty(0)] * self.dof
        for group in self._groups:
            terms = group.regressor(speed, load, temperature, direction)
            for k, joint in enumerate(group.joints):
                out[joint] = terms[:, k]
        return out


@dataclass(frozen=True)
class _Group:
    """Joints with the same law."""

    joints: list[int]
    law: FrictionLaw
    values: Array
    shape: dict[str, Array]
    gear_ratio: Array
    temperature_model: Array | None
    low: Array
    high: Array

    @cached_property
    def columns(self) -> slice | list[int]:
        """Columns of the joints; a slice, which copies nothing, for consecutive ones."""
        first, last = self.joints[0], self.joints[-1]
        return slice(first, last + 1) if self.joints == [*range(first, last + 1)] else self.joints

    @cached_property
    def free(self) -> list[int]:
        """Numbers of the parameters that do not depend on the load."""
        names = enumerate(self.law.parameters)
        return [k for k, name in names if name not in (LOAD, LOAD_ASYMMETRY)]

    @cached_property
    def load(self) -> tuple[Array, Array] | None:
        """Values of LOAD and LOAD_ASYMMETRY [joints of the group]; None if the law has neither."""
        if len(self.free) == len(self.law.parameters):
            return None
        return self.parameter(LOAD), self.parameter(LOAD_ASYMMETRY)

    @classmethod
    def from_frictions(
        cls, joints: list[int], frictions: Sequence[Friction], gear_ratio: Array
    ) -> _Group:
        law = frictions[0].law
        models = [friction.temperature_model for friction in frictions]
        ranges = [friction.temperature_range or (-np.inf, np.inf) for friction in frictions]
        return cls(
            joints=joints,
            law=law,
            values=np.array([friction.values for friction in frictions]),
            shape={
                name: np.array([friction.all_shape[name] for friction in frictions])
                for name in law.shape
            },
            gear_ratio=gear_ratio[joints],
            temperature_model=None if None in models else np.array(models).T,
            low=np.array([low for low, _ in ranges]),
            high=np.array([high for _, high in ranges]),
        )

    def regressor(
        self, speed: Array, load: Array, temperature: Array | None, direction: Array | None
    ) -> Array:
        """Terms [samples, joints of the group, parameters]."""
        return self.law.regressor(self.point(speed, load, temperature, direction), self.shape)

    def point(
        self, speed: Array, load: Array, temperature: Array | None, direction: Array | None
    ) -> OperatingPoint:
        """Operating points of the group's joints."""
        return OperatingPoint(
            speed[:, self.columns],
            load[:, self.columns],
            self.gear_ratio,
            self._temperature(temperature) if self.law.uses_temperature else None,
            self.temperature_model,
            None if direction is None else direction[:, self.columns],
        )

    def torque(self, point: OperatingPoint, numbers: Iterable[int]) -> Array:
        """Sum of the terms with these numbers [samples, joints of the group], N m."""
        terms, out = tuple(self.law.terms.values()), np.zeros_like(point.speed)
        for k in numbers:
            out += terms[k].function(point, self.shape) * self.values[:, k]
        return out

    def parameter(self, name: str) -> Array:
        """Values of a parameter [joints of the group]; zeros if the law does not have it."""
        names = self.law.parameters
        return self.values[:, names.index(name)] if name in names else np.zeros(len(self.joints))

    def _temperature(self, temperature: Array | None) -> Array | None:
        """Temperatures clipped to the fitted range; its middle, if any, replaces unknown ones."""
        bounded = np.isfinite(self.low).all() and np.isfinite(self.high).all()
        middle = (self.low + self.high) / 2 if bounded else None
        if temperature is None:
            return middle
        known = np.asarray(temperature, dtype=float)[..., self.joints]
        if middle is not None:
            known = np.where(np.isnan(known), middle, known)
        return np.asarray(np.clip(known, self.low, self.high))
