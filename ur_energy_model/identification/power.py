"""From motor currents to the power at the supply: physical structure, priors, measured bus power.

Heredia et al. (EcBot, eq. 13-21):  P = P_c + sum(R i^2 + k_b w i + driver |i| + L i di/dt).
EcBot fits all 4n + 1 coefficients freely, which overfits short recordings. The physical model
keeps the structure that energy conservation and the robot file give, and lets the data move a few
common factors: standby, copper factor c_R (R = c_R * winding resistance), conversion factor c_M
(k_b = c_M * k_t, 1 by energy conservation) and the driver loss. Each joint's k_b keeps close to
its torque constant, as exactly as that is known; so bus power, which weighs motor speed times
current, also tells torque constants that the motion left uncertain. Copper factors per joint size
enter only where they lower the held-out error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.identification.grams import BlockedGram, Prior, cross_validate, solve
from ur_energy_model.model.energy_model import BusModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.modes import BRAKES_RELEASED, ROBOT_MODES
from ur_energy_model.telemetry.samples import Telemetry

Array = NDArray[np.float64]

STANDBY = (30.0, 10.0)
"""Standby power and its spread over arms where the robot file is silent [W]."""
COPPER_FACTOR = (0.8, 0.5)
"""Copper loss over i^2 times the recorded winding resistance: 1.0 to 1.5 by phase convention and
heat, 0.43 by the catalogue motor constant of S0, 0.3 to 0.75 on recordings of three arms."""
CONVERSION_FACTOR = (1.0, 0.02)
"""Electrical over mechanical power of the motors: energy conservation."""
DRIVER = (0.25, 0.06)
"""Driver loss [W/A]; regressions of recorded power give 0.1 to 0.35, each of them uncertain by
0.15, because i^2 and |i| are much alike."""
FREE_TERM_GAIN = 0.01
"""Held-out RMSE that a further term must save, as a share."""
MODEL_ERROR = 0.01
"""Share of a joint's converted power that the model leaves out (cable losses, warm windings)."""
_SIZE_SPREAD = 0.3
_FLOOR_MARGIN = 3.0


@dataclass(frozen=True)
class PowerFitResult:
    """Result of the power stage.

    Attributes:
        bus: model of the supply.
        winding_resistance, back_emf_constant: effective constants [n], ohm and V s/rad.
        resistance_std, back_emf_std: [n].
        source: "bus_power" or "prior".
        comparison: held-out RMSE by variant [W].
        factors: fitted factor and standard deviation by name.
    """

    bus: BusModel
    winding_resistance: Array
    back_emf_constant: Array
    resistance_std: Array
    back_emf_std: Array
    source: str
    comparison: dict[str, float]
    factors: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class _Variant:
    """A model of the power, linear in its parameters.

    Attributes:
        names: of the parameters.
        basis: [4 n + 1, parameters]: coefficients of (1, i^2, w i, |i|, i di/dt) = basis @ values.
        prior: of the parameters.
    """

    names: tuple[str, ...]
    basis: Array
    prior: Prior


class PowerFit:
    """Accumulates bus power and what it is made of, over any number of recordings.

    Args:
        robot: the arm, n joints.
    """

    def __init__(self, robot: RobotDescription) -> None:
        self.robot = robot
        self._gram = BlockedGram()
        self._counts = BlockedGram()
        self._modes: dict[str, list[float]] = {}

    @property
    def samples(self) -> int:
        """Number of samples with bus power."""
        return int(sum(self._counts.blocks)) if len(self._counts) else 0

    def add(self, telemetry: Telemetry) -> None:
        """Add a batch; batches without bus power or currents are passed over."""
        rows = power_rows(telemetry)
        if rows is None:
            return
        time, qd, current, rate, power, mode = rows
        for code in np.unique(mode[~np.isin(mode, BRAKES_RELEASED)]):
            entry = self._modes.setdefault(ROBOT_MODES.get(int(code), str(int(code))), [0.0, 0.0])
            entry[0] += float(power[mode == code].sum())
            entry[1] += float((mode == code).sum())
        columns = power_columns(qd * self.robot.gear_ratio, current, rate)
        expected = columns @ self._expected()
        keep = np.isin(mode, BRAKES_RELEASED) & (expected > _FLOOR_MARGIN)
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

    def merge(self, other: PowerFit) -> None:
        """Take over what another accumulator has seen."""
        self._gram.merge(other._gram)
        self._counts.merge(other._counts)
        for name, (total, count) in other._modes.items():
            entry = self._modes.setdefault(name, [0.0, 0.0])
            entry[0] += total
            entry[1] += count

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
            return self._result(
                "ecbot", _free(self.robot.dof), {}, "EcBot's 4n+1 free coefficients"
            )
        variants = {
            name: make(self.robot, torque_constant, deviation) for name, make in _VARIANTS.items()
        }
        if not self.samples:
            reason = "no bus power recorded: robot file and typical values"
            return self._result("physical", variants["common"], {}, reason)
        counts = self._counts.blocks
        errors = {
            name: cross_validate(self._project(variant), variant.prior, counts)
            for name, variant in variants.items()
        }
        rmse = {name: float(np.sqrt(values.mean())) for name, values in errors.items()}
        chosen = "common"
        for name in variants:
            gain = errors[chosen] - errors[name]
            scatter = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
            if (
                rmse[name] < rmse[chosen] * (1 - FREE_TERM_GAIN)
                and gain.mean() > scatter
                and self._possible(variants[name])
            ):
                chosen = name
        others = ", ".join(f"{name} {value:.3g} W" for name, value in rmse.items())
        return self._result(
            "physical", variants[chosen], rmse,
            f"copper factors: {chosen}; held-out RMSE {others}",
        )  # fmt: skip

    def _expected(self) -> Array:
        """Coefficients that the robot file leads to expect."""
        constant = np.nan_to_num(self.robot.torque_constant)
        variant = _VARIANTS["common"](self.robot, constant, np.zeros(self.robot.dof))
        return variant.basis @ variant.prior.mean

    def _possible(self, variant: _Variant) -> bool:
        """Whether no joint's copper loss comes out negative."""
        solution = solve(self._project(variant), variant.prior, self._counts.blocks)
        _, copper, *_ = _split(variant.basis @ solution.coefficients, self.robot.dof)
        return bool((copper >= 0).all())

    def _project(self, variant: _Variant) -> Array:
        """Gram matrices of the variant's own columns [blocks, p + 1, p + 1]."""
        p = variant.basis.shape[1]
        full = np.zeros((variant.basis.shape[0] + 1, p + 1))
        full[:-1, :-1] = variant.basis
        full[-1, -1] = 1.0
        return np.asarray(full.T @ self._gram.blocks @ full)

    def _result(
        self, kind: str, variant: _Variant, comparison: dict[str, float], reason: str
    ) -> PowerFitResult:
        n = self.robot.dof
        if self.samples:
            solution = solve(self._project(variant), variant.prior, self._counts.blocks)
            values, covariance, residual = (
                solution.coefficients, solution.covariance, solution.residual,
            )  # fmt: skip
        else:
            values = variant.prior.mean
            covariance, residual = np.diag(variant.prior.std**2), float("nan")
        level, vectors = np.linalg.eigh(covariance)
        roots = variant.basis @ (vectors * np.sqrt(np.clip(level, 0.0, None)))
        coefficients = variant.basis @ values
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
        return PowerFitResult(
            bus=bus,
            winding_resistance=copper,
            back_emf_constant=conversion,
            resistance_std=copper_std,
            back_emf_std=np.hypot(conversion_std, MODEL_ERROR * conversion),
            source=source,
            comparison=comparison,
            factors={
                name: (float(value), float(spread))
                for name, value, spread in zip(variant.names, values, std, strict=True)
            },
        )


def power_columns(motor_speed: Array, current: Array, rate: Array) -> Array:
    """(1, i^2, w i, |i|, i di/dt) [samples, 4 n + 1]."""
    return np.column_stack(
        [
            np.ones(len(current)),
            current**2,
            motor_speed * current,
            np.abs(current),
            current * rate,
        ]
    )


def power_rows(
    telemetry: Telemetry,
) -> tuple[Array, Array, Array, Array, Array, Array] | None:
    """Time, speed, current, its rate, bus power and robot mode of a batch's finite samples.

    None where a column is missing. Without robot_mode the robot counts as running.
    """
    names = ("actual_qd", "actual_current", "actual_robot_voltage", "actual_robot_current")
    if any(name not in telemetry for name in names):
        return None
    telemetry = telemetry.distinct()
    speed, current, voltage, supply = (telemetry[name] for name in names)
    power = voltage * supply
    mode = telemetry["robot_mode"] if "robot_mode" in telemetry else np.full(len(power), 7.0)
    good = np.isfinite(power) & np.isfinite(speed).all(axis=1) & np.isfinite(current).all(axis=1)
    time, current = telemetry.time[good], current[good]
    rate = current_rate(time, current)
    return time, speed[good], current, rate, power[good], mode[good]


def current_rate(time: Array, current: Array) -> Array:
    """dI/dt [samples, n], zero across gaps."""
    if len(time) < 3:
        return np.zeros_like(current)
    rate = np.gradient(current, time, axis=0)
    steps = np.diff(time)
    far = np.concatenate([[False], (steps > 3 * np.median(steps)) | (steps <= 0)])
    rate[far | np.roll(far, -1)] = 0.0
    return np.asarray(rate)


def _split(coefficients: Array, n: int) -> tuple[Array, Array, Array, Array, Array]:
    """Coefficients by kind: standby [1], then i^2, w i, |i|, i di/dt [n] each."""
    standby, rest = coefficients[:1], coefficients[1:].reshape(4, n)
    return standby, rest[0], rest[1], rest[2], rest[3]


def _free(n: int) -> _Variant:
    """EcBot's model: every coefficient by itself, nothing believed beforehand."""
    size = 4 * n + 1
    names = ("standby", *(f"{kind}_{j}" for kind in ("R", "k", "driver", "L") for j in range(n)))
    return _Variant(names, np.eye(size), Prior(np.zeros(size), np.full(size, np.inf)))


def _structured(
    robot: RobotDescription, constant: Array, deviation: Array, groups: list[NDArray[np.intp]]
) -> _Variant:
    """Common factors, torque constants per joint, and copper factors of groups of joints."""
    n = robot.dof
    resistance = np.nan_to_num(robot.winding_resistance)
    constant = np.nan_to_num(constant)
    known = np.isfinite(robot.standby_power)
    parts: list[tuple[str, Array, float, float]] = [
        ("copper", _column(n, 0, resistance), *COPPER_FACTOR),
        ("conversion", _column(n, 1, constant), *CONVERSION_FACTOR),
        ("driver", _column(n, 2, np.ones(n)), *DRIVER),
    ]
    parts.extend(
        (f"k_{j}", _column(n, 1, np.eye(n)[j]), 0.0, float(deviation[j]))
        for j in np.flatnonzero(deviation > 0)
    )
    for k, group in enumerate(groups):
        only = np.zeros(n)
        only[group] = resistance[group]
        parts.append((f"copper_{k}", _column(n, 0, only), 0.0, _SIZE_SPREAD))
    standby = np.eye(4 * n + 1)[0]
    mean = [robot.standby_power if known else STANDBY[0], *(part[2] for part in parts)]
    std = [STANDBY[1], *(part[3] for part in parts)]
    return _Variant(
        ("standby", *(part[0] for part in parts)),
        np.column_stack([standby, *(part[1] for part in parts)]),
        Prior(np.array(mean), np.array(std)),
    )


def _column(n: int, kind: int, values: Array) -> Array:
    """Coefficients [4 n + 1] that are `values` for one kind of column and zero elsewhere."""
    out = np.zeros(4 * n + 1)
    out[1 + kind * n : 1 + (kind + 1) * n] = values
    return out


def _sizes(robot: RobotDescription) -> list[NDArray[np.intp]]:
    """Joints grouped by motor size, that is by winding resistance."""
    resistance = np.nan_to_num(robot.winding_resistance)
    return [np.flatnonzero(resistance == value) for value in np.unique(resistance)]


_VARIANTS: dict[str, Callable[[RobotDescription, Array, Array], _Variant]] = {
    "common": lambda robot, constant, std: _structured(robot, constant, std, []),
    "per size": lambda robot, constant, std: _structured(robot, constant, std, _sizes(robot)),
}
