# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fit of the power model: from motor currents and speeds to the power at the supply.

Normal equations of the bus power are accumulated over any number of recordings; the
structures of power_structures.py are fitted to them with their priors.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ur_energy_model.identification.least_squares import (
    BlockedGram,
    Prior,
    Solution,
    cross_validate,
    prior_alone,
    pseudo_inverse,
    solve,
)
from ur_energy_model.identification.power_structures import (
    CONVERSION_FACTOR,
    EXACT,
    PHYSICAL,
    STANDBY,
    JointPowerEvidence,
    PowerLayout,
    PowerModel,
    PowerPrior,
    Structure,
    added_power_model,
    breaking_away,
    expected_constant,
    physical,
    power_columns,
    power_rows,
    three_coefficients,
    with_meter,
)
from ur_energy_model.model.drives import MOTION_STD, MOTION_TIME, BusModel, square_root
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import BRAKES_RELEASED, ROBOT_MODES
from ur_energy_model.telemetry.samples import Telemetry, time_blocks
from ur_energy_model.typing import Array, Mask


@dataclass(frozen=True)
class PowerFitResult:
    """Result of the power stage.

    Attributes:
        bus: model of the supply.
        winding_resistance: effective winding resistances [n], ohm.
        back_emf_constant: effective back-EMF constants, motor side [n], V s/rad.
        resistance_std: standard deviations of the resistances [n], ohm.
        back_emf_std: standard deviations of the back-EMF constants [n], V s/rad.
        torque_constant: torque constants from currents and bus power together, motor side
            [n], N m/A.
        torque_constant_std: standard deviations of the torque constants [n], N m/A.
        current_delay: delay of the currents behind the speeds [s].
        source: source of resistances and back-EMF constants: "bus_power", "prior", or the
            name of a power model that assumes them.
        comparison: held-out RMSE by structure [W].
        factors: estimate and standard deviation of each parameter, by name.
        coefficients: coefficients of the power columns [4 n + 4].
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


_FLOOR_MARGIN = 3.0
"""Expected power below which the supply may rest [W]: regenerated energy charges the
capacitor of the bus and is used up first, so bus power is then not what the arm uses."""
_DISCHARGE_TIME = 0.3
"""Time in which the surplus energy of the bus capacitor is used up [s]: 10 mF charged to
the voltage at which the braking resistor switches on hold 3 J, a tenth of a second of
standby."""
MOTION_FREEDOM = 4.0
"""Degrees of freedom of MOTION_STD: it weighs as much as the scatter of five blocks of
time."""
MODEL_ERROR = 0.003
"""Relative error of a joint's converted power from what is not modelled (cables,
ripple)."""
_OMITTED = 0.03
"""Power of a moving joint that the model leaves out [W]: on simulated arms at 500 Hz,
relative errors of torque constants times converted power exceed their deviations by 0.00
to 0.05 W (RMS)."""
_SECOND_ORDER = 4000.0
"""Power that is left out because the delays are expanded to first order, per squared
controller cycle [W/s^2]: 0.26 W at 125 Hz. Simulated UR5 and UR10 were 0.0 to 0.3 W wrong."""
_ONE = PowerLayout.standby
"""Column of ones, whose products with the other columns are their sums over the samples."""
_POWER = -1  # column of the measured power, behind the power columns
_COLUMNS = slice(0, _POWER)  # the power columns
_BLOCK = 1.0  # duration of a block of time [s]
_LEAST_SPEED = 0.1  # mean speed of a block of motion, as a share of the fastest block's


@dataclass
class PowerData:
    """What is accumulated of bus power; the codec stores it.

    Attributes:
        gram: Gram matrix of the power columns and the power [blocks, 4 n + 5, 4 n + 5].
        counts: number of samples of each block.
        modes: sum of powers [W] and number of samples by robot mode other than running
            [2].
        rested: time at which the supply last may have rested [s]; None if it never did.
    """

    gram: BlockedGram = field(default_factory=BlockedGram)
    counts: BlockedGram = field(default_factory=BlockedGram)
    modes: dict[str, Array] = field(default_factory=dict)
    rested: float | None = None


class PowerFit:
    """Accumulates bus power and its columns over any number of recordings, and fits them.

    Args:
        robot: the arm, n joints.
        known: prior of the parameters; None for the robot file's.
        data: accumulated earlier, to be continued; None to begin.
    """

    def __init__(
        self,
        robot: RobotDescription,
        known: PowerPrior | None = None,
        data: PowerData | None = None,
    ) -> None:
        self.robot = robot
        self.known = known
        self.data = data or PowerData()
        # Torque constants weight the columns of the delays, and give the power that is
        # expected before the fit: they may not vanish where the robot file has none.
        self._constant = expected_constant(robot)
        prior = physical(robot, self._constant, np.zeros(robot.dof))
        self._expected = prior.basis @ prior.prior.mean

    @property
    def samples(self) -> int:
        """Number of samples with bus power."""
        return int(sum(self.data.counts.blocks)) if len(self.data.counts) else 0

    @property
    def supply_rested(self) -> bool:
        """Whether regeneration was strong enough that the supply may have rested."""
        return self.data.rested is not None

    def accumulate(self, telemetry: Telemetry) -> None:
        """Accumulate a batch; batches without bus power or currents are ignored."""
        rows = power_rows(telemetry)
        if rows is None:
            return
        time = rows.time
        released = np.isin(rows.mode, BRAKES_RELEASED)
        for code in np.unique(rows.mode[~released]).tolist():
            if code in ROBOT_MODES:
                shown = rows.power[rows.mode == code]
                self._add_to_mode(ROBOT_MODES[code], np.array([shown.sum(), len(shown)]))
        columns = power_columns(rows, self.robot.gear_ratio, self._constant)
        supplied = self._supplied(time, columns @ self._expected)
        keep = released & supplied & ~breaking_away(rows)
        data = np.column_stack([columns, rows.power])[keep]
        time = time[keep]
        if not len(time):
            return
        period = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
        for block in time_blocks(time, _BLOCK):
            piece = data[block]
            duration = float(time[block.stop - 1] - time[block.start]) + period
            self.data.gram.accumulate(piece.T @ piece, duration)
            self.data.counts.accumulate(np.asarray(float(len(piece))), duration)

    def _supplied(self, time: Array, expected: Array) -> Mask:
        """Samples whose power comes from the supply alone: it has not rested for a while.

        Args:
            time: times of samples that follow those before [samples], s; a time before
                the last rest begins another recording.
            expected: power before the fit [samples], W.
        """
        rested = self.data.rested
        if rested is None or (len(time) and time[0] < rested):
            rested = -np.inf
        resting = np.where(expected > _FLOOR_MARGIN, -np.inf, time)
        last = np.maximum.accumulate(np.append(rested, resting))
        self.data.rested = float(last[-1]) if np.isfinite(last[-1]) else None
        return np.asarray(time - last[1:] > _DISCHARGE_TIME)

    def conversion_error(self, constant: Array) -> Array:
        """Relative errors of the joints' converted power from what is not modelled [n].

        Args:
            constant: torque constants, motor side [n], N m/A.
        """
        total = self.data.gram.blocks.sum(axis=0)
        samples = max(total[_ONE, _ONE], 1.0)
        squares = np.diag(total)[PowerLayout(self.robot.dof).conversion] / samples
        omitted = float(np.hypot(_OMITTED, _SECOND_ORDER / self.robot.rate**2))
        # Data that show less of a joint leave its conversion to the prior.
        converted = np.hypot(constant * np.sqrt(squares), omitted / CONVERSION_FACTOR[1])
        return np.asarray(np.hypot(MODEL_ERROR, omitted / converted))

    def merge(self, other: PowerFit, standby_shift: float = 0.0) -> None:
        """Include the data of another accumulator, its standby power lower by the shift [W].

        Args:
            other: normal equations of another session or recording.
            standby_shift: difference by which the standby power of `other` is higher [W].
        """
        gram = other.data.gram
        if standby_shift:
            matrix = np.eye(gram.blocks.shape[-1])
            matrix[_ONE, _POWER] = -standby_shift
            gram = gram.transformed(matrix)
        self.data.gram.merge(gram)
        self.data.counts.merge(other.data.counts)
        for name, sums in other.data.modes.items():
            self._add_to_mode(name, sums)

    def _add_to_mode(self, name: str, sums: Array) -> None:
        """Add a sum of powers [W] and a number of samples to the sums of a robot mode [2]."""
        self.data.modes[name] = self.data.modes.get(name, np.zeros(2)) + sums

    def standby_shift(self, result: PowerFitResult) -> float:
        """Mean power of these data that a result does not explain [W]."""
        gram = self.data.gram.blocks.sum(axis=0)
        explained = gram[_ONE, _COLUMNS] @ result.coefficients
        return float((gram[_ONE, _POWER] - explained) / gram[_ONE, _ONE])

    def motion(self, coefficients: Array) -> tuple[float, float]:
        """Sum over the samples in motion of what motors and drivers take [W], and their number.

        Args:
            coefficients: coefficients of the power columns [4 n + 4].
        """
        if not self.samples:
            return 0.0, 0.0
        moving = self._moving_blocks()
        counts = self.data.counts.blocks[moving]
        without_standby = coefficients.copy()
        without_standby[PowerLayout.standby] = 0.0
        taken = self.data.gram.blocks[moving, _ONE, _COLUMNS] @ without_standby
        return float(taken.sum()), float(counts.sum())

    def _moving_blocks(self) -> Mask:
        """Which blocks of time are motion: their mean speed is a share of the fastest block's."""
        drag = PowerLayout(self.robot.dof).drag  # its column is the sum of the speeds
        speeds = self.data.gram.blocks[:, _ONE, drag] / self.data.counts.blocks
        return np.asarray(speeds > _LEAST_SPEED * speeds.max())

    def fit(
        self,
        kind: str,
        torque_constant: Array,
        torque_constant_std: Array | None = None,
        *,
        stated: Mask | None = None,
        meter: JointPowerEvidence | None = None,
    ) -> PowerFitResult:
        """Power model from the data, or from the priors alone without data.

        Args:
            kind: "physical", or the name of a power model that a room adds.
            torque_constant: motor side [n], N m/A.
            torque_constant_std: standard deviations of the torque constants [n], N m/A;
                None if they are exact.
            stated: joints [n] whose constants the controller states; None for none.
            meter: what a meter at the joints shows; used by the physical model.

        Raises:
            InputError: no room adds this power model.
        """
        n = self.robot.dof
        counts = self.data.counts.blocks
        deviation = np.zeros(n) if torque_constant_std is None else torque_constant_std
        added = added_power_model(kind)
        if added is not None and (self.samples or not added.fits_motors):
            structure = added.structure(self.robot, torque_constant)
            return self._result(structure, {}, added.reason, added=added)
        structure = physical(
            self.robot, torque_constant, deviation, self.known, stated=stated, meter=meter
        )
        if not self.samples:
            reason = "no bus power recorded: robot file and typical values"
            return self._result(structure, {}, reason, deviation)
        structure = self._with_evident_drag(structure)
        if meter is not None:
            structure = with_meter(structure, meter)
        compared = {
            "common": structure,
            "three coefficients": three_coefficients(structure),
        }
        rmse = {}
        for name, each in compared.items():
            squares = cross_validate(self._project(each), each.prior, counts)
            rmse[name] = float(np.sqrt(squares.mean()))
        words = ", ".join(f"{name} {value:.3g} W" for name, value in rmse.items())
        return self._result(structure, rmse, f"held-out RMSE: {words}", deviation)

    def _with_evident_drag(self, structure: Structure) -> Structure:
        """The structure with a prior of drag no wider than the data show (empirical Bayes)."""
        drag = structure.names.index("drag")
        prior = structure.prior
        std = prior.std.copy()
        std[drag] = np.inf
        alone = solve(
            self._project(structure), replace(prior, std=std), self.data.counts.blocks
        )
        beyond = max(alone.coefficients[drag], 0.0) - prior.mean[drag]
        evident = max(float(beyond**2 - alone.std[drag] ** 2), EXACT**2)
        std[drag] = min(prior.std[drag], np.sqrt(evident))
        return structure._replace(prior=replace(prior, std=std))

    def _scatter(self, coefficients: Array) -> float:
        """Standard deviation of the mean power of a second of motion that coefficients leave [W].

        It is what exceeds the noise of the samples; MOTION_STD is its prior.

        Args:
            coefficients: coefficients of the power columns [4 n + 4].
        """
        squares = MOTION_FREEDOM * MOTION_STD**2
        freedom = MOTION_FREEDOM
        if self.samples:
            left = np.append(-coefficients, 1.0)  # power less the modelled power
            moving = self._moving_blocks()
            counts = self.data.counts.blocks[moving]
            grams = self.data.gram.blocks[moving]
            means = grams[:, _ONE] @ left / counts
            total = float(np.einsum("i,bij,j->", left, grams, left))
            within = max(total - counts @ means**2, 0.0)
            noise = within / max(float(counts.sum()) - len(means), 1.0)
            # A block contains as many motions as MOTION_TIME fits into it, whose
            # independent errors its mean averages.
            merged = max(self.data.gram.length / MOTION_TIME, 1.0)
            squares += merged * max(float((means**2 - noise / counts).sum()), 0.0)
            freedom += max(len(means) - 1, 0)
        return float(np.sqrt(squares / freedom))

    def _project(self, structure: Structure) -> Array:
        """Gram matrices of the structure's own columns [blocks, p + 1, p + 1]."""
        width, p = structure.basis.shape
        full = np.zeros((width + 1, p + 1))
        full[_COLUMNS, _COLUMNS] = structure.basis
        full[_POWER, _POWER] = 1.0
        return np.asarray(full.T @ self.data.gram.blocks @ full)

    def _result(
        self,
        structure: Structure,
        comparison: dict[str, float],
        reason: str,
        constant_std: Array | None = None,
        added: PowerModel | None = None,
    ) -> PowerFitResult:
        """The result of a structure.

        Args:
            structure: structure of the power.
            comparison: held-out RMSE by structure [W].
            reason: reason for the choice, for the model file.
            constant_std: standard deviations of the torque constants from currents [n],
                N m/A; None for exact ones.
            added: the room's power model that the structure is of; None for the physical
                one.
        """
        solution = self._solution(structure)
        values = solution.coefficients
        layout = PowerLayout(self.robot.dof)
        coefficients = structure.basis @ values
        conversion = coefficients[layout.conversion]
        root = square_root(solution.covariance)
        roots = structure.basis @ root
        deviation = np.linalg.norm(roots, axis=1)
        # What no coefficient explains is an error of each joint's conversion that is
        # independent of the others, its torque constant's included: further rows below the
        # rows of the covariance's square root.
        error = self._conversion_errors(structure, conversion, constant_std, added)
        omitted = np.zeros((layout.joints, layout.width))
        omitted[:, layout.conversion] = np.diag(error * conversion)
        if self.samples:
            omitted = self._not_taken_up(structure, solution, omitted)
        errors = np.concatenate([roots.T, omitted])
        kind = PHYSICAL
        source = "bus_power" if self.samples else "prior"
        of_constants = source
        if added is not None:
            kind = added.name
            if not added.fits_motors:
                of_constants = added.name
        mode_power = {
            name: float(total / count) for name, (total, count) in self.data.modes.items()
        }
        bus = BusModel(
            kind=kind,
            standby=float(max(coefficients[layout.standby], 0.0)),
            driver=coefficients[layout.driver],
            inductance=coefficients[layout.inductance],
            drag=float(coefficients[layout.drag]),
            std={
                "standby": float(deviation[layout.standby]),
                "driver": float(deviation[layout.driver].mean()),
                "motion": self._scatter(coefficients),
            },
            errors=errors[:, layout.bus_errors],
            mode_power=mode_power,
            residual=solution.residual,
            source=source,
            reason=reason,
        )
        spreads = np.sqrt(np.diag(solution.covariance))
        factors = {
            name: (float(value), float(spread))
            for name, value, spread in zip(structure.names, values, spreads, strict=True)
        }
        current_delay, _ = factors.get("current_delay", (0.0, 0.0))
        return PowerFitResult(
            bus=bus,
            winding_resistance=coefficients[layout.copper],
            back_emf_constant=conversion,
            resistance_std=np.linalg.norm(errors[:, layout.copper], axis=0),
            back_emf_std=np.linalg.norm(errors[:, layout.conversion], axis=0),
            torque_constant=structure.base + structure.torque @ values,
            torque_constant_std=np.linalg.norm(structure.torque @ root, axis=1),
            current_delay=current_delay,
            source=of_constants,
            comparison=comparison,
            factors=factors,
            coefficients=coefficients,
        )

    def _solution(self, structure: Structure) -> Solution:
        """Parameters of a structure from the data, or from its prior alone without data."""
        prior = structure.prior
        if self.samples:
            return solve(self._project(structure), prior, self.data.counts.blocks)
        # Only the standby power may have an infinite deviation.
        std = np.minimum(prior.std, STANDBY[1])
        return prior_alone(Prior(prior.mean, std))

    def _conversion_errors(
        self,
        structure: Structure,
        conversion: Array,
        constant_std: Array | None,
        added: PowerModel | None,
    ) -> Array:
        """Relative errors of the joints' converted power that no coefficient explains [n].

        Args:
            structure: structure of the power.
            conversion: converted power over current and motor speed [n], V s/rad.
            constant_std: standard deviations of the torque constants from currents [n],
                N m/A; None for exact ones.
            added: the room's power model; None for the physical one.
        """
        if added is not None and not added.fits_motors:
            error = np.zeros(self.robot.dof)  # assumed constants are taken as exact
        elif added is None and self.samples:
            error = self.conversion_error(conversion)
        else:
            error = np.full(self.robot.dof, MODEL_ERROR)
        if constant_std is None:
            return error
        of_constants = np.where(structure.own, 0.0, constant_std / structure.base)
        return np.asarray(np.hypot(error, of_constants))

    def _not_taken_up(
        self, structure: Structure, solution: Solution, omitted: Array
    ) -> Array:
        """Errors of the joints' conversion that the coefficients do not take up.

        Bus power shows the sum of all joints: of half of the variance all coefficients
        take up a part, of the other half all but the conversions of single joints.

        Args:
            structure: structure of the power.
            solution: solution of its parameters.
            omitted: errors of the power coefficients, a row for each joint [n, width].

        Returns:
            Both halves [2 n, width].
        """
        least = max(solution.residual, 1e-6) ** 2  # power without any noise, too
        weight = solution.effective_samples / (solution.samples * least)
        whole = weight * self.data.gram.blocks.sum(axis=0)[_COLUMNS, _COLUMNS]
        parts = []
        for kept in (np.ones_like(structure.single), ~structure.single):
            basis = structure.basis[:, kept]
            precision = structure.prior.precision[np.ix_(kept, kept)]
            weighted = basis.T @ whole
            bread = pseudo_inverse(weighted @ basis + precision)
            taken = (basis @ bread @ weighted).T
            parts.append(np.sqrt(0.5) * (omitted - omitted @ taken))
        return np.concatenate(parts)
