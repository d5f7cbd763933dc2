"""Fit of the power model: from motor currents and speeds to the power at the supply.

Normal equations of the bus power are accumulated over any number of recordings; the structures of
power_structures.py are fitted to them with their priors. Copper factors per motor size are used
only where they lower the held-out error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ur_energy_model.codec import built, plain
from ur_energy_model.identification.least_squares import BlockedGram, cross_validate, solve
from ur_energy_model.identification.power_structures import (
    PHYSICAL,
    STANDBY,
    PowerLayout,
    PowerPrior,
    Structure,
    breaking_away,
    catalogue,
    common,
    expected_constant,
    free,
    power_columns,
    power_rows,
)
from ur_energy_model.model.drives import BusModel, square_root
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import BRAKES_RELEASED, ROBOT_MODES
from ur_energy_model.telemetry.samples import Telemetry, time_blocks
from ur_energy_model.typing import Array, Mask

# PowerFitResult: what the power stage finds.


@dataclass(frozen=True)
class PowerFitResult:
    """Result of the power stage.

    Attributes:
        bus: model of the supply.
        winding_resistance, back_emf_constant: effective constants [n], ohm and V s/rad.
        resistance_std, back_emf_std: [n].
        torque_constant, torque_constant_std: from currents and bus power together [n], N m/A.
        current_delay: of the currents behind the speeds [s].
        source: of resistances and back-EMF constants: "bus_power", "prior" or "catalogue".
        comparison: held-out RMSE by structure [W].
        factors: estimate and standard deviation of each parameter, by name.
        coefficients: of the power columns [4 n + 3].
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


# RegenerationMask: when the supply may rest because the arm uses energy that it gave back before.
#
# Regenerated energy charges the capacitor of the bus and is used up first; bus power then does not
# tell what the arm needs.

_FLOOR_MARGIN = 3.0
"""Expected power below which the supply may rest [W]."""
_DISCHARGE_TIME = 0.3
"""Time in which the surplus energy of the bus capacitor is used up [s]: 10 mF charged to the
voltage at which the braking resistor switches on hold 3 J, a tenth of a second of standby."""


class RegenerationMask:
    """Follows the expected power of consecutive samples.

    Attributes:
        last: time at which the supply last may have rested [s]; -inf if it never did.
    """

    def __init__(self) -> None:
        self.last = -np.inf

    def supplied(self, time: Array, expected: Array) -> Mask:
        """Samples at which all power comes from the supply [samples].

        Args:
            time: of the samples; a time before `last` begins another recording [samples], s.
            expected: power by what is known before the fit [samples], W.
        """
        if len(time) and time[0] < self.last:
            self.last = -np.inf
        resting = np.where(expected > _FLOOR_MARGIN, -np.inf, time)
        last = np.maximum.accumulate(np.append(self.last, resting))[1:]
        self.last = float(last[-1]) if len(last) else self.last
        return np.asarray(time - last > _DISCHARGE_TIME)


FREE_TERM_GAIN = 0.01
"""Relative reduction of the held-out RMSE that a further term must bring."""
MODEL_ERROR = 0.003
"""Relative error of a joint's converted power from what is not modelled (cables, ripple)."""
_LEFT_OUT = 0.03
"""Power of a moving joint that the model leaves out [W]: on simulated arms at 500 Hz, relative
errors of torque constants times converted power exceed their deviations by 0.00 to 0.05 W (RMS)."""
_SECOND_ORDER = 4000.0
"""The same per squared controller cycle [W/s^2], 0.26 W at 125 Hz: the delays are expanded to first
order. Simulated UR5 and UR10 were 0.0 to 0.3 W wrong."""
_BLOCK = 1.0
"""Duration of a block of time [s]."""


class PowerFit:
    """Accumulates bus power and its columns over any number of recordings, and fits them.

    Args:
        robot: the arm, n joints.
        known: prior of the parameters; None for that of the robot file.
    """

    def __init__(self, robot: RobotDescription, known: PowerPrior | None = None) -> None:
        self.robot, self.known = robot, known
        # Weights of the delays, and of power given back: neither may vanish without a robot file's.
        self._constant = expected_constant(robot)
        prior = common(robot, self._constant, np.zeros(robot.dof))
        self._expected = prior.basis @ prior.prior.mean
        self._gram = BlockedGram()
        self._counts = BlockedGram()
        self._modes: dict[str, Array] = {}
        """By robot mode other than running: sum of powers [W], number of samples."""
        self._rest = RegenerationMask()

    @property
    def samples(self) -> int:
        """Number of samples with bus power."""
        return int(sum(self._counts.blocks)) if len(self._counts) else 0

    @property
    def supply_rested(self) -> bool:
        """Whether regeneration was strong enough that the supply may have rested."""
        return bool(np.isfinite(self._rest.last))

    def accumulate(self, telemetry: Telemetry) -> None:
        """Accumulate a batch; batches without bus power or currents are ignored."""
        rows = power_rows(telemetry)
        if rows is None:
            return
        time, power, mode = rows.time, rows.power, rows.mode
        for code, name in ROBOT_MODES.items():
            shown = power[mode == code]
            if code not in BRAKES_RELEASED and len(shown):
                self._add_to_mode(name, np.array([shown.sum(), len(shown)]))
        columns = power_columns(rows, self.robot.gear_ratio, self._constant)
        expected = columns @ self._expected
        keep = np.isin(mode, BRAKES_RELEASED) & self._rest.supplied(time, expected)
        keep &= ~breaking_away(rows)
        data = np.column_stack([columns, power])[keep]
        time = time[keep]
        if not len(time):
            return
        period = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
        for block in time_blocks(time, _BLOCK):
            piece = data[block]
            duration = float(time[block.stop - 1] - time[block.start]) + period
            self._gram.accumulate(piece.T @ piece, duration)
            self._counts.accumulate(np.asarray(float(len(piece))), duration)

    def conversion_power(self, constant: Array) -> Array:
        """RMS of each joint's converted power with these torque constants [n], W."""
        total = self._gram.blocks.sum(axis=0)
        place = PowerLayout(self.robot.dof).conversion
        squares = np.diag(total)[place] / max(float(total[0, 0]), 1.0)
        return np.asarray(constant * np.sqrt(squares))

    def conversion_error(self, constant: Array) -> Array:
        """Relative errors of the joints' converted power from what is not modelled [n]."""
        left_out = float(np.hypot(_LEFT_OUT, _SECOND_ORDER / self.robot.rate**2))
        converted = np.maximum(self.conversion_power(constant), left_out)
        return np.asarray(np.hypot(MODEL_ERROR, left_out / converted))

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, see `restore`."""
        return {
            "gram": plain(self._gram, arrays=True),
            "counts": plain(self._counts, arrays=True),
            "modes": {name: sums.tolist() for name, sums in self._modes.items()},
            "rested": self._rest.last,
        }

    def restore(self, saved: Mapping[str, Any]) -> PowerFit:
        """Continue with saved data of the same arm."""
        self._gram = built(BlockedGram, saved["gram"])
        self._counts = built(BlockedGram, saved["counts"])
        for name, sums in saved["modes"].items():
            self._modes[name] = np.array(sums, dtype=float)
        self._rest.last = float(saved["rested"])
        return self

    def merge(self, other: PowerFit) -> None:
        """Include the data of another accumulator."""
        self._gram.merge(other._gram)
        self._counts.merge(other._counts)
        for name, sums in other._modes.items():
            self._add_to_mode(name, sums)

    def _add_to_mode(self, name: str, sums: Array) -> None:
        self._modes[name] = self._modes.get(name, np.zeros(2)) + sums

    def standby_shift(self, result: PowerFitResult) -> float:
        """Mean power of these data that a result does not explain [W]."""
        gram = self._gram.blocks.sum(axis=0)
        return float((gram[0, -1] - gram[0, :-1] @ result.coefficients) / gram[0, 0])

    def with_standby_shifted(self, shift: float) -> PowerFit:
        """The same data with standby power lower by `shift` [W]."""
        out = PowerFit(self.robot, self.known)
        out.merge(self)
        matrix = np.eye(self._gram.blocks.shape[-1])
        matrix[0, -1] = -shift
        out._gram = out._gram.transformed(matrix)
        return out

    def fit(
        self, kind: str, torque_constant: Array, torque_constant_std: Array | None = None
    ) -> PowerFitResult:
        """Power model from the data, or from the priors alone without data.

        Args:
            kind: "physical", "ecbot" or "catalogue".
            torque_constant: identified, motor side [n], N m/A.
            torque_constant_std: its standard deviation [n]; exact where None.
        """
        deviation = np.zeros(self.robot.dof) if torque_constant_std is None else torque_constant_std
        if kind == "catalogue":
            reason = "motors of a catalogue (Clochiatti et al. 2024, eq. 23), not fitted"
            return self._result(kind, catalogue(self.robot, torque_constant), {}, reason)
        if kind == "ecbot" and self.samples:
            return self._result("ecbot", free(self.robot.dof), {}, "EcBot's 4n+1 free coefficients")
        structures = {
            name: make(self.robot, torque_constant, deviation, self.known)
            for name, make in PHYSICAL.items()
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
        """Whether the copper loss of no joint is negative."""
        solution = solve(self._project(structure), structure.prior, self._counts.blocks)
        coefficients = structure.basis @ solution.coefficients
        return bool((coefficients[PowerLayout(self.robot.dof).copper] >= 0).all())

    def _project(self, structure: Structure) -> Array:
        """Gram matrices of the structure's own columns [blocks, p + 1, p + 1]."""
        width, p = structure.basis.shape
        full = np.zeros((width + 1, p + 1))
        full[:-1, :-1] = structure.basis
        full[-1, -1] = 1.0
        return np.asarray(full.T @ self._gram.blocks @ full)

    def _result(
        self, kind: str, structure: Structure, comparison: dict[str, float], reason: str
    ) -> PowerFitResult:
        if self.samples:
            solution = solve(self._project(structure), structure.prior, self._counts.blocks)
            values, covariance = solution.coefficients, solution.covariance
            residual, source = solution.residual, "bus_power"
        else:
            std = np.minimum(structure.prior.std, STANDBY[1])  # infinite ones are of standby power
            values, covariance = structure.prior.mean, np.diag(std**2)
            residual, source = float("nan"), "prior"
        root = square_root(covariance)
        roots = structure.basis @ root
        layout = PowerLayout(self.robot.dof)
        coefficients = structure.basis @ values
        deviation = np.linalg.norm(roots, axis=1)
        conversion = coefficients[layout.conversion]
        left_out = np.zeros((layout.joints, layout.width))
        error = np.full(layout.joints, 0.0 if kind == "catalogue" else MODEL_ERROR)
        if kind == "physical" and self.samples:
            error = self.conversion_error(conversion)
        left_out[:, layout.conversion] = np.diag(error * conversion)
        bus = BusModel(
            kind=kind,
            standby=float(max(coefficients[layout.standby], 0.0)),
            driver=coefficients[layout.driver],
            inductance=coefficients[layout.inductance],
            std={
                "standby": float(deviation[layout.standby]),
                "driver": float(deviation[layout.driver].mean()),
            },
            errors=np.concatenate([roots.T, left_out])[:, layout.bus_errors],
            mode_power={name: float(total / count) for name, (total, count) in self._modes.items()},
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
            winding_resistance=coefficients[layout.copper],
            back_emf_constant=conversion,
            resistance_std=deviation[layout.copper],
            back_emf_std=np.hypot(deviation[layout.conversion], error * conversion),
            torque_constant=structure.base + structure.torque @ values,
            torque_constant_std=np.linalg.norm(structure.torque @ root, axis=1),
            current_delay=factors["current_delay"][0] if "current_delay" in factors else 0.0,
            source="catalogue" if kind == "catalogue" else source,
            comparison=comparison,
            factors=factors,
            coefficients=coefficients,
        )
