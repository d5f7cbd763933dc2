# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measured power of each joint: the voltage at the joints as a power meter.

The drop of voltage along the cable (model/cable.py) depends on how much current each
joint takes, and the current at the supply is the sum. With the power that a model
computes from the measured currents of joint i, losses p_i and converted power c_i, each
divided by the joint's voltage,

    bus current     = constant + sum_i (f_i p_i + g_i c_i)
    V_bus - V_j     = constant_j + sum_i (R_1 + ... + R_min(i, j)) (f_i p_i + g_i c_i).

The factors f and g are measured over modelled power. Their prior is so wide that the
model gives the form of the power over time and not its size. Constants are free, so that
only changes of the power count. Factors and resistances R are fitted together: nonlinear
least squares (Gauss and Newton) on sums of products of block means, with the residuals'
covariance between the channels as found. All joints share the noise of the bus voltage
and the power that no joint explains.

Standard deviations allow for correlated residuals (Newey and West, Econometrica 55,
1987).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import chdtrc

from ur_energy_model.energy.meter import StepRule
from ur_energy_model.energy.motor_powers import MeasuredMotion, MeasuredPowers
from ur_energy_model.energy.powers import MEASURED_FIELDS
from ur_energy_model.identification.cable_fit import (
    BUS,
    DROPS,
    BlockSums,
    CableFit,
    CableLayout,
    factors_without_bus,
    fit_cable,
)
from ur_energy_model.identification.power_structures import (
    STANDSTILL_SPEED,
    JointPowerEvidence,
    PowerRows,
    breaking_away,
)
from ur_energy_model.model.cable import Cable, typical_cable
from ur_energy_model.model.drives import Drives
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.robot_modes import BRAKES_RELEASED, RUNNING
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

if TYPE_CHECKING:
    from ur_energy_model.identification.recording import SessionData

JOINT_VOLTAGE = "actual_joint_voltage"
METER_FIELDS = (*MEASURED_FIELDS, JOINT_VOLTAGE)
"""Fields that the meter reads."""

METER_ERROR = 0.015
"""Error of a measured joint energy that residuals do not show, as a share of the energy into and
out of the joint: gain errors of the voltages (up to 0.26 V of 48 V), a delay of a cycle between
currents and voltages, the form of the modelled power. Twelve simulated arms have 0.5 to 3 %."""

BLOCKS = (0.1, 0.5, 2.0)
"""Durations of block means [s]. The shortest blocks are used unless the voltages change more
slowly."""
_PERIODS = 4.0  # least duration of blocks, in periods of slowly sampled voltages
_SLOW = 1.5  # period of slowly sampled voltages over the period of the samples, at least
_AVERAGED = 0.8
"""Voltages count as averaged where the drop per current in short blocks is below this share of the
drop per current in longer blocks."""
_LATE = 0.05  # least relative error of voltages that are sampled slowly or averaged
_LEAST_BLOCKS = 40  # least number of blocks of a fit
_NOMINAL_VOLTAGE = 48.0  # nominal voltage of the robot bus [V]
_LEAST_MOTION = 3.0  # least time in motion [s]
_LEAST_POWER = 0.5  # least standard deviation of the modelled power of all joints [W]
_IMPLAUSIBLE = 0.15
"""Share of the bus voltage above which a drop is a fault of the reading."""
_LARGEST = 1e3  # currents, voltages and speeds beyond it are damaged [A, V, rad/s]
_FLOOR = 3.0  # modelled power below which the bus capacitor may feed the arm [W]
_DISCHARGE = 0.3  # time after which the capacitor does not feed the arm any more [s]
_MOST_MISFIT = 8.0
"""Misfit above which the voltages of a short recording do not belong to a chain; recordings
of four arms have 1 to 2.5."""
_MISFIT_OF_BLOCK = 0.015
"""Largest misfit per block of a long recording, where any deviation from a chain becomes
significant with time. Recordings of four arms have 0.005 per block, joints in a wrong order 0.017
to 0.022."""
_SHARP = 0.1
"""The power fit uses joint voltages if they show the converted power of the best known joint with a
relative deviation below this value. With larger deviations, the fit made held-out bus power of real
arms worse as often as better."""
_AGREEMENT = 0.05
"""The power fit uses joint voltages if the probability of their deviations from the model is below
this value. Otherwise the model may be more exact than the meter, as where the controller states
the torque constants: joint energies of ten simulated arms, identified from 20 s, have RMS errors
of 1.3 % without the meter and 1.5 % with it, but 3.8 and 1.6 % without stated constants (twelve
arms)."""
_LEAST_PRECISION = 1e-6
"""Least precision of a factor: drops may not show some joints at all."""
_NEGATIVE = 3.0  # largest number of deviations by which a resistance may be negative


class JointEnergy(NamedTuple):
    """Energy that one joint takes from the cable while the arm moves: motor and drive [J].

    Attributes:
        joint: name of the joint.
        modelled: energy by the model [J].
        modelled_std: standard deviation of `modelled` [J].
        measured: energy by the voltage of the joint [J].
        measured_std: standard deviation of `measured` [J].
    """

    joint: str
    modelled: float
    modelled_std: float
    measured: float
    measured_std: float

    def as_json(self) -> dict[str, Any]:
        """Entry of METRICS."""
        size = abs(self.modelled)
        return {
            "joint": self.joint,
            "modelled_J": self.modelled,
            "modelled_std_J": self.modelled_std,
            "measured_J": self.measured,
            "measured_std_J": self.measured_std,
            "ratio": self.measured / self.modelled if size > 0 else None,
            "ratio_std": self.measured_std / size if size > 0 else None,
        }


@dataclass(frozen=True)
class JointPowerMeasurement:
    """What joint voltages show of an arm with n joints.

    Attributes:
        cable: resistances as fitted.
        joints: energy of each joint, from base to tool.
        factors: measured over modelled losses and converted power of each joint [2 n], in
            this order.
        covariance: covariance of the factors [2 n, 2 n].
        residual: RMS of the bus current [A] and of the drops to each joint [V], [1 + n].
        misfit: see `CableFit`.
        note: why the meter is less exact than usual, one line; None if it is as usual.
    """

    cable: Cable
    joints: tuple[JointEnergy, ...]
    factors: Array
    covariance: Array
    residual: Array
    misfit: float
    note: str | None


class NotMeasured(NamedTuple):
    """Why joint voltages show nothing of an arm.

    Attributes:
        reason: reason in one line.
    """

    reason: str


class _FittedCable(NamedTuple):
    """The cable as fitted to block means.

    Attributes:
        fit: resistances of the cable, and factors of the joints' powers.
        sums: the block means that it was fitted to.
        note: why these blocks are longer than the shortest ones, one line; None where
            they are the shortest.
    """

    fit: CableFit
    sums: BlockSums
    note: str | None


class JointMeter:
    """Accumulates recordings of one arm, whose powers a model computes from measured currents.

    Memory does not grow with the length of the recordings.

    Args:
        model: model of the arm.
        cable: prior of its cable; None for the typical cable of the generation.
    """

    def __init__(self, model: EnergyModel, cable: Cable | None = None) -> None:
        n = model.dof
        self._model = model
        self._drives = Drives(model.joints, model.bus, model.session)
        if cable is None:
            cable = typical_cable(n, model.description().generation)
        self._cable = cable
        self._layout = CableLayout(n)
        channels = self._layout.channels
        self._sums = [BlockSums(duration, channels) for duration in BLOCKS]
        # Integrals over the time in motion, with the motor current i [A] and the motor speed
        # w [rad/s] of each joint.
        self._square = np.zeros(n)  # integral of i^2 [A^2 s]
        self._product = np.zeros(n)  # integral of w i [A rad]
        self._size = np.zeros(n)  # integral of |i| [A s]
        self._way = np.zeros(n)  # integral of |w| [rad]
        self._gross = np.zeros(n)  # energy into and out of each joint in motion [J]
        # Variance of the energies, since power is not known between samples [n], J^2.
        self._sampling = np.zeros(n)
        self._moving = 0.0  # time in motion [s]
        self._has_voltage = False  # whether joint voltages were recorded
        self._has_bus = False  # whether the bus current was recorded
        self._bus_changes = 0  # number of samples at which the bus voltage changed
        self._joint_changes = 0  # number of these at which a joint voltage changed, too
        self._time = 0.0  # time of the samples at which the bus voltage changed [s]
        self.start_recording()

    def start_recording(self) -> None:
        """Start another recording of the arm."""
        for sums in self._sums:
            sums.finish_recording()
        self._powers = MeasuredPowers(self._model)
        self._gaps = StepRule()
        self._rested = -np.inf
        self._last_voltages: Array | None = None

    def accumulate(self, telemetry: Telemetry) -> None:
        """Accumulate consecutive samples."""
        self._has_voltage |= JOINT_VOLTAGE in telemetry
        self._has_bus |= "actual_robot_current" in telemetry
        rows = _meter_rows(telemetry)
        if rows is None or not len(rows.power.time):
            return
        power = rows.power
        steps = self._gaps(power.time).bridged
        motion = self._powers.motion(steps, power.qd, power.current)
        losses, converted = self._parts(motion)
        moving = np.asarray((np.abs(power.qd) > STANDSTILL_SPEED).any(axis=1))
        speed = self._drives.gear_ratio * motion.qd
        weight = steps * moving
        self._square += weight @ motion.current**2
        self._product += weight @ (speed * motion.current)
        self._size += weight @ np.abs(motion.current)
        self._way += weight @ np.abs(speed)
        self._gross += weight @ np.abs(losses + converted)
        changes = np.diff(losses + converted, axis=0)
        between = steps[1:] * moving[1:]
        self._sampling += np.square(between) @ np.square(changes) / 12.0
        self._moving += float(steps[moving].sum())
        self._count_changes(rows, steps)
        demand = (losses + converted).sum(axis=1) + self._model.session.standby
        usable = self._fed_by_supply(power.time, demand) & ~breaking_away(power)
        drop = rows.bus_voltage[:, None] - rows.voltage
        values = np.column_stack(
            [losses / rows.voltage, converted / rows.voltage, rows.bus_current, drop]
        )
        for sums in self._sums:
            sums.add(power.time[usable], values[usable])

    def _parts(self, motion: MeasuredMotion) -> tuple[Array, Array]:
        """Losses and converted power of each joint with its drive [samples, n], W."""
        drives = self._drives
        bus = self._model.bus
        speed = drives.gear_ratio * motion.qd
        losses = drives.winding_resistance * motion.current**2
        losses = losses + bus.driver * np.abs(motion.current) + bus.drag * np.abs(speed)
        return losses, drives.back_emf_constant * speed * motion.current

    def _fed_by_supply(self, time: Array, demand: Array) -> Mask:
        """Samples whose power comes from the supply and not from the bus capacitor [samples]."""
        if time[0] < self._rested:
            self._rested = -np.inf
        resting = np.where(demand > _FLOOR, -np.inf, time)
        last = np.maximum.accumulate(np.append(self._rested, resting))
        self._rested = float(last[-1])
        return np.asarray(time - last[1:] > _DISCHARGE)

    def _count_changes(self, rows: _MeterRows, steps: Array) -> None:
        """Count the samples at which voltages of bus and joints differ from the sample before."""
        # The bus first, then the joints.
        now = np.column_stack([rows.bus_voltage, rows.voltage])
        before = now[:1] if self._last_voltages is None else self._last_voltages
        changed = np.diff(np.concatenate([before, now]), axis=0) != 0
        self._last_voltages = now[-1:]
        bus_changed = changed[:, BUS]
        joint_changed = changed[:, DROPS].any(axis=1)
        self._bus_changes += int(bus_changed.sum())
        self._joint_changes += int((bus_changed & joint_changed).sum())
        self._time += float(steps[bus_changed].sum())

    def result(self) -> JointPowerMeasurement | NotMeasured:
        """Cable and joint energies of all recordings so far, or why there are none."""
        fitted = self._fit()
        if isinstance(fitted, NotMeasured):
            return fitted
        error = METER_ERROR
        if fitted.note is not None:
            error = float(np.hypot(METER_ERROR, self._late(fitted.sums)))
        fit = fitted.fit
        resistance = self._layout.resistance
        factors = self._layout.factors
        return JointPowerMeasurement(
            cable=Cable(fit.values[resistance], fit.std[resistance]),
            joints=self._energies(fit, error),
            factors=fit.values[factors],
            covariance=fit.covariance[factors, factors],
            residual=fit.residual,
            misfit=fit.misfit,
            note=fitted.note,
        )

    def evidence(self) -> JointPowerEvidence | None:
        """Converted power of the joints by the voltage drops, for the fit of bus power.

        None where the drops do not show this power exactly enough, or agree with the model.
        """
        fitted = self._fit()
        if isinstance(fitted, NotMeasured) or fitted.note is not None:
            return None
        factors, precision = factors_without_bus(fitted.sums, self._cable, fitted.fit)
        n = self._model.dof
        of_drops = np.linalg.inv(precision + _LEAST_PRECISION * np.eye(n))
        covariance = of_drops + METER_ERROR**2 * np.eye(n)
        sharpest = np.sqrt(np.diag(covariance)).min()
        if not sharpest < _SHARP:
            return None
        shown = np.linalg.inv(covariance)
        deviation = factors - 1.0
        # Probability of deviations at least as large if the model were exact.
        if chdtrc(n, deviation @ shown @ deviation) > _AGREEMENT:
            return None
        scale = self._drives.back_emf_constant
        return JointPowerEvidence(factors * scale, shown / np.outer(scale, scale))

    def _fit(self) -> _FittedCable | NotMeasured:
        """The chain of the cable fitted to all recordings so far, or why it is not."""
        for sums in self._sums:
            sums.finish_recording()
        reason = self._unusable()
        if reason is not None:
            return NotMeasured(reason)
        sharp, note = self._sharp_enough()
        if sharp is None:
            return NotMeasured(note or "")
        fit = fit_cable(sharp, self._cable)
        names = [joint.name for joint in self._model.joints]
        resistance = fit.values[self._layout.resistance]
        deviations = resistance / fit.std[self._layout.resistance]
        worst = int(np.argmin(deviations))
        if deviations[worst] < -_NEGATIVE:
            return NotMeasured(
                f"the cable to {names[worst]} has a negative resistance "
                f"({resistance[worst]:.3f} ohm): the joint voltages are not those of a chain"
            )
        if not fit.misfit < max(_MOST_MISFIT, _MISFIT_OF_BLOCK * sharp.count):
            return NotMeasured(
                "the drops of the joint voltages are not those of a chain (misfit "
                f"{fit.misfit:.0f}, most at {names[fit.worst]})"
            )
        return _FittedCable(fit, sharp, note)

    def _unusable(self) -> str | None:
        """Why the recordings cannot show the power of joints; None if they may."""
        if not self._has_voltage:
            return f"no {JOINT_VOLTAGE} recorded"
        if not self._has_bus:
            return "no bus power recorded"
        if not self._sums[0].count:
            return (
                "no samples with joint voltages, currents and bus power, brakes released"
            )
        if self._moving < _LEAST_MOTION:
            return f"{self._moving:.1f} s of motion, {_LEAST_MOTION:.0f} s are needed"
        covariance = self._sums[0].covariance(0)
        if not (np.diag(covariance)[self._layout.drops] > 0).all():
            return "joint voltages are constant"
        powers = self._layout.powers
        variance = float(covariance[powers, powers].sum())
        spread = _NOMINAL_VOLTAGE * np.sqrt(max(variance, 0.0))
        if spread < _LEAST_POWER:
            return f"the power of the joints changes by {spread:.1f} W only"
        return None

    def _sharp_enough(self) -> tuple[BlockSums | None, str | None]:
        """The shortest block means that joint voltages follow, and a note on longer blocks.

        Returns:
            Block means; None where the recordings have too few blocks. A line: why the
            blocks are longer than the shortest ones, or why there are too few; None for the
            shortest blocks.
        """
        period = self._time / max(self._bus_changes, 1)
        updates = self._time / max(self._joint_changes, 1)
        slow = updates > _SLOW * period
        least = _PERIODS * updates if slow else 0.0
        found: BlockSums | None = None
        words = f"joint voltages are sampled every {updates:.2g} s"
        for place, sums in enumerate(self._sums):
            if sums.duration < least:
                continue
            found = sums
            longer = self._sums[min(place + 1, len(self._sums) - 1)]
            if longer.count < _LEAST_BLOCKS:
                break
            if self._slope(sums) > _AVERAGED * self._slope(longer):
                break
            words = "joint voltages follow the current slowly or are averaged"
        if found is None or found.count < _LEAST_BLOCKS:
            seconds = 0 if found is None else found.count * found.duration
            why = f"{words}, " if slow else ""
            return None, f"{why}{seconds:.0f} s of usable samples are too few"
        note = f"{words}: means over {found.duration:g} s"
        return found, None if found is self._sums[0] else note

    def _late(self, sums: BlockSums) -> float:
        """Share of a block's power by which voltages that are sampled slowly may be wrong."""
        updates = self._time / max(self._joint_changes, 1)
        return max(0.5 * updates / sums.duration, _LATE)

    def _slope(self, sums: BlockSums) -> float:
        """Mean drop of voltage over the bus current [ohm]."""
        covariance = sums.covariance(0)
        bus = self._layout.bus
        together = covariance[bus, self._layout.drops].mean()
        return float(together / max(covariance[bus, bus], 1e-12))

    def _energies(self, fit: CableFit, error: float) -> tuple[JointEnergy, ...]:
        """Modelled and measured energy of every joint while the arm moves.

        Args:
            fit: fit of the cable.
            error: relative error of the meter that no residual shows.
        """
        n = self._model.dof
        drives = self._drives
        bus = self._model.bus
        losses = drives.winding_resistance * self._square
        losses = losses + bus.driver * self._size + bus.drag * self._way
        converted = drives.back_emf_constant * self._product
        errors = drives.resistance_errors * self._square
        errors = errors + drives.back_emf_errors * self._product
        errors = errors + drives.driver_errors * self._size
        errors = errors + drives.drag_errors * self._way
        found = []
        for j, joint in enumerate(self._model.joints):
            weights = np.zeros(3 * n)
            weights[self._layout.loss_factors][j] = losses[j]
            weights[self._layout.converted_factors][j] = converted[j]
            measured = float(weights @ fit.values)
            variance = float(weights @ fit.covariance @ weights)
            of_meter = error * float(self._gross[j])
            measured_variance = variance + of_meter**2 + float(self._sampling[j])
            found.append(
                JointEnergy(
                    joint=joint.name,
                    modelled=float(losses[j] + converted[j]),
                    modelled_std=float(np.linalg.norm(errors[:, j])),
                    measured=measured,
                    measured_std=float(np.sqrt(measured_variance)),
                )
            )
        return tuple(found)


class _MeterRows(NamedTuple):
    """Samples with finite and plausible values while the brakes are released.

    Attributes:
        power: the samples in the form that the power model uses.
        bus_voltage: voltage of the robot bus [samples], V.
        bus_current: current of the robot bus [samples], A.
        voltage: voltage of the joints [samples, n], V.
    """

    power: PowerRows
    bus_voltage: Array
    bus_current: Array
    voltage: Array


def _meter_rows(telemetry: Telemetry) -> _MeterRows | None:
    """The samples that the meter can use; None where a field is missing."""
    names = (
        "actual_qd",
        "actual_current",
        "actual_robot_voltage",
        "actual_robot_current",
    )
    if any(name not in telemetry for name in (*names, JOINT_VOLTAGE)):
        return None
    telemetry = telemetry.distinct()
    qd = telemetry["actual_qd"]
    current = telemetry["actual_current"]
    bus_voltage = telemetry["actual_robot_voltage"]
    bus_current = telemetry["actual_robot_current"]
    voltage = telemetry[JOINT_VOLTAGE]
    if voltage.shape != qd.shape:
        return None
    mode = np.full(len(qd), float(RUNNING))
    if "robot_mode" in telemetry:
        mode = telemetry["robot_mode"]
    good = np.isfinite(bus_voltage) & np.isfinite(bus_current) & (bus_voltage > 0)
    good &= np.abs(bus_current) < _LARGEST
    for values in (qd, current, voltage):
        good &= (np.abs(values) < _LARGEST).all(axis=1)  # False for NaN
    drop = np.abs(bus_voltage[:, None] - voltage)
    good &= (drop < _IMPLAUSIBLE * bus_voltage[:, None]).all(axis=1)
    good &= np.isin(mode, BRAKES_RELEASED)
    power = PowerRows(
        telemetry.time[good],
        qd[good],
        current[good],
        (bus_voltage * bus_current)[good],
        mode[good],
    )
    return _MeterRows(power, bus_voltage[good], bus_current[good], voltage[good])


# Recordings.


def meter_of(
    model: EnergyModel, recordings: Iterable[SessionData], cable: Cable | None = None
) -> JointMeter:
    """A meter that has accumulated recordings of one arm.

    Args:
        model: model of the arm.
        recordings: recordings with joint voltages; others show nothing.
        cable: prior of its cable; None for the typical cable of the generation.
    """
    meter = JointMeter(model, cable)
    for recording in recordings:
        meter.start_recording()
        for part in _samples(recording):
            meter.accumulate(part)
    return meter


def _samples(recording: SessionData) -> Iterable[Telemetry]:
    """Samples that a recording keeps, or all samples of its bag where it keeps none."""
    if recording.kept is None:
        return iterate_bag(recording.path, METER_FIELDS)
    return recording.samples_kept


def joint_power(
    model: EnergyModel, recording: SessionData, cable: Cable | None = None
) -> list[dict[str, Any]]:
    """Entry `joint_power` of METRICS: modelled and measured energy of each joint.

    Args:
        model: model of the arm.
        recording: recording with joint voltages; without them the entries have a reason.
        cable: what is known of the arm's cable from other recordings.
    """
    found = meter_of(model, [recording], cable).result()
    entries: list[dict[str, Any]] = []
    if isinstance(found, NotMeasured):
        figures = ("modelled_J", "modelled_std_J", "measured_J", "measured_std_J")
        nothing = dict.fromkeys((*figures, "ratio", "ratio_std"))
        for model_joint in model.joints:
            name = model_joint.name
            entries.append({"joint": name, **nothing, "reason": found.reason})
        return entries
    for joint in found.joints:
        entry = joint.as_json()
        if found.note is not None:
            entry["note"] = found.note
        entries.append(entry)
    return entries


def with_cable(model: EnergyModel, meter: JointMeter) -> EnergyModel:
    """The model with the cable of its arm, where the joint voltages show it.

    Args:
        model: model of the arm.
        meter: meter with recordings of this arm.
    """
    found = meter.result()
    if isinstance(found, NotMeasured):
        return model
    return replace(model, cable=found.cable)
