"""From motor currents to the power at the supply: structure, priors, measured bus power.

Bus power is accumulated over any number of recordings; the structures of power_structure.py are
fitted to it with their priors. Copper factors per motor size enter only where they lower the
held-out error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.power.columns import breaking_away, power_columns, power_rows
from ur_energy_model.identification.power.structure import PHYSICAL, Structure, common, free
from ur_energy_model.identification.regression.blocked_gram import (
    BlockedGram,
    cross_validate,
    solve,
)
from ur_energy_model.model.bus_model import BusModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.modes import BRAKES_RELEASED, ROBOT_MODES
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

FREE_TERM_GAIN = 0.01
"""Held-out RMSE that a further term must save, as a share."""
MODEL_ERROR = 0.003
"""Share of a joint's converted power that the model leaves out (cables, ripple between samples)."""
_FLOOR_MARGIN = 3.0
"""Expected power below which the supply may rest [W]."""
_USED_UP = 0.3
"""Time in which the bus capacitor's surplus is used up again [s]: 10 mF from the voltage at which
braking resistors switch in are 3 J, a tenth of a second of standby."""


@dataclass(frozen=True)
class PowerFitResult:
    """Result of the power stage.

    Attributes:
        bus: model of the supply.
        winding_resistance, back_emf_constant: effective constants [n], ohm and V s/rad.
        resistance_std, back_emf_std: [n].
        torque_constant, torque_constant_std: as currents and bus power tell them [n], N m/A.
        current_delay: of the currents behind the speeds [s].
        source: "bus_power" or "prior".
        comparison: held-out RMSE by structure [W].
        factors: fitted parameter and standard deviation by name.
        coefficients: of the columns of power_columns.py [4 n + 3].
    """

    bus: BusModel
    winding_resistance: Array
    back_emf_constant: Array
    resistance_std: Array
    back_emf_std: Array
    torque_constant: Array
    torque_constant_std: Array
    current_delay: float
    source: str
    comparison: dict[str, float]
    factors: dict[str, tuple[float, float]]
    coefficients: Array


class PowerFit:
    """Accumulates bus power and what it is made of, over any number of recordings.

    Args:
        robot: the arm, n joints.
    """

    def __init__(self, robot: RobotDescription) -> None:
        self.robot = robot
        self._constant = np.nan_to_num(robot.torque_constant)
        self._expected = _expected(robot, self._constant)
        self._gram = BlockedGram()
        self._counts = BlockedGram()
        self._modes: dict[str, list[float]] = {}
        self._rested = -np.inf

    @property
    def samples(self) -> int:
        """Number of samples with bus power."""
        return int(sum(self._counts.blocks)) if len(self._counts) else 0

    @property
    def rests(self) -> bool:
        """Whether drives gave back so much that the supply may have rested."""
        return bool(np.isfinite(self._rested))

    def add(self, telemetry: Telemetry) -> None:
        """Add a batch; batches without bus power or currents are passed over."""
        rows = power_rows(telemetry)
        if rows is None:
            return
        time, power, mode = rows.time, rows.power, rows.mode
        for code in np.unique(mode[~np.isin(mode, BRAKES_RELEASED)]):
            entry = self._modes.setdefault(ROBOT_MODES.get(int(code), str(int(code))), [0.0, 0.0])
            entry[0] += float(power[mode == code].sum())
            entry[1] += float((mode == code).sum())
        columns = power_columns(rows, self.robot.gear_ratio, self._constant)
        expected = columns @ self._expected
        keep = np.isin(mode, BRAKES_RELEASED) & self._supplied(time, expected)
        keep &= ~breaking_away(rows)
        data = np.column_stack([columns, power])[keep]
        time = time[keep]
        if not len(time):
            return
        edges = np.flatnonzero(np.diff(np.floor(time))) + 1
        for part in np.split(np.arange(len(time)), edges):
            piece = data[part[0] : part[-1] + 1]
            duration = float(time[part[-1]] - time[part[0]]) + float(
                np.median(np.diff(time)) if len(time) > 1 else 0.0
            )
            self._gram.add(piece.T @ piece, duration)
            self._counts.add(np.asarray(float(len(part))), duration)

    def _supplied(self, time: Array, expected: Array) -> Mask:
        """Samples at which the supply gives all the power [samples].

        It cannot take any back; what the drives give back is kept and used up first.
        """
        if len(time) and time[0] < self._rested:  # another recording
            self._rested = -np.inf
        resting = np.where(expected > _FLOOR_MARGIN, -np.inf, time)
        last = np.maximum.accumulate(np.append(self._rested, resting))[1:]
        self._rested = float(last[-1]) if len(last) else self._rested
        return time - last > _USED_UP

    def merge(self, other: PowerFit) -> None:
        """Take over what another accumulator has seen."""
        self._gram.merge(other._gram)
        self._counts.merge(other._counts)
        for name, (total, count) in other._modes.items():
            entry = self._modes.setdefault(name, [0.0, 0.0])
            entry[0] += total
            entry[1] += count

    def standby_shift(self, result: PowerFitResult) -> float:
        """Mean power that a result leaves unexplained here [W]."""
        gram = self._gram.blocks.sum(axis=0)
        return float((gram[0, -1] - gram[0, :-1] @ result.coefficients) / gram[0, 0])

    def with_standby_shifted(self, shift: float) -> PowerFit:
        """What would have been accumulated with so much less standby power [W]."""
        out = PowerFit(self.robot)
        out.merge(self)
        matrix = np.eye(self._gram.blocks.shape[-1])
        matrix[0, -1] = -shift
        out._gram = out._gram.transformed(matrix)
        return out

    def fit(
        self, kind: str, torque_constant: Array, torque_constant_std: Array | None = None
    ) -> PowerFitResult:
        """Power model from the data, or from the priors alone where there are none.

        Args:
            kind: "physical" or "ecbot".
            torque_constant: identified, motor side [n], N m/A.
            torque_constant_std: its standard deviation [n]; exact where None.
        """
        deviation = np.zeros(self.robot.dof) if torque_constant_std is None else torque_constant_std
        if kind == "ecbot" and self.samples:
            return self._result("ecbot", free(self.robot.dof), {}, "EcBot's 4n+1 free coefficients")
        structures = {
            name: make(self.robot, torque_constant, deviation) for name, make in PHYSICAL.items()
        }
        if not self.samples:
            reason = "no bus power recorded: robot file and typical values"
            return self._result("physical", structures["common"], {}, reason)
        counts = self._counts.blocks
        errors = {
            name: cross_validate(self._project(structure), structure.prior, counts)
            for name, structure in structures.items()
        }
        rmse = {name: float(np.sqrt(values.mean())) for name, values in errors.items()}
        chosen = "common"
        for name in structures:
            gain = errors[chosen] - errors[name]
            scatter = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
            if (
                rmse[name] < rmse[chosen] * (1 - FREE_TERM_GAIN)
                and gain.mean() > scatter
                and self._possible(structures[name])
            ):
                chosen = name
        others = ", ".join(f"{name} {value:.3g} W" for name, value in rmse.items())
        return self._result(
            "physical",
            structures[chosen],
            rmse,
            f"copper factors: {chosen}; held-out RMSE {others}",
        )

    def _possible(self, structure: Structure) -> bool:
        """Whether no joint's copper loss comes out negative."""
        solution = solve(self._project(structure), structure.prior, self._counts.blocks)
        _, copper, *_ = _split(structure.basis @ solution.coefficients, self.robot.dof)
        return bool((copper >= 0).all())

    def _project(self, structure: Structure) -> Array:
        """Gram matrices of the structure's own columns [blocks, p + 1, p + 1]."""
        p = structure.basis.shape[1]
        full = np.zeros((structure.basis.shape[0] + 1, p + 1))
        full[:-1, :-1] = structure.basis
        full[-1, -1] = 1.0
        return np.asarray(full.T @ self._gram.blocks @ full)

    def _result(
        self, kind: str, structure: Structure, comparison: dict[str, float], reason: str
    ) -> PowerFitResult:
        n = self.robot.dof
        if self.samples:
            solution = solve(self._project(structure), structure.prior, self._counts.blocks)
            values, covariance, residual = (
                solution.coefficients,
                solution.covariance,
                solution.residual,
            )
        else:
            values = structure.prior.mean
            covariance, residual = np.diag(structure.prior.std**2), float("nan")
        level, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.clip(level, 0.0, None))
        roots = structure.basis @ root
        coefficients = structure.basis @ values
        deviation = np.linalg.norm(roots, axis=1)
        standby, copper, conversion, driver, inductance = _split(coefficients, n)
        left_out = np.zeros((n, 3 * n + 1))
        left_out[np.arange(n), 1 + n + np.arange(n)] = MODEL_ERROR * conversion
        _, copper_std, conversion_std, driver_std, _ = _split(deviation, n)
        source = "bus_power" if self.samples else "prior"
        bus = BusModel(
            kind=kind,
            standby=float(max(standby[0], 0.0)),
            driver=driver,
            inductance=inductance,
            std={"standby": float(deviation[0]), "driver": float(driver_std.mean())},
            errors=np.concatenate([roots[: 3 * n + 1].T, left_out]),
            mode_power={
                name: total / count for name, (total, count) in self._modes.items() if count
            },
            residual=residual,
            source=source,
            reason=reason,
        )
        std = np.sqrt(np.diag(covariance))
        factors = {
            name: (float(value), float(spread))
            for name, value, spread in zip(structure.names, values, std, strict=True)
        }
        return PowerFitResult(
            bus=bus,
            winding_resistance=copper,
            back_emf_constant=conversion,
            resistance_std=copper_std,
            back_emf_std=np.hypot(conversion_std, MODEL_ERROR * conversion),
            torque_constant=structure.base + structure.torque @ values,
            torque_constant_std=np.linalg.norm(structure.torque @ root, axis=1),
            current_delay=factors["current_delay"][0] if "current_delay" in factors else 0.0,
            source=source,
            comparison=comparison,
            factors=factors,
            coefficients=coefficients,
        )


def _expected(robot: RobotDescription, constant: Array) -> Array:
    """Coefficients [4 n + 3] that the robot file leads to expect."""
    structure = common(robot, constant, np.zeros(robot.dof))
    return structure.basis @ structure.prior.mean


def _split(coefficients: Array, n: int) -> tuple[Array, Array, Array, Array, Array]:
    """Coefficients by kind: standby [1], then i^2, w i, |i|, i di/dt [n] each."""
    standby, rest = coefficients[:1], coefficients[1 : 1 + 4 * n].reshape(4, n)
    return standby, rest[0], rest[1], rest[2], rest[3]
