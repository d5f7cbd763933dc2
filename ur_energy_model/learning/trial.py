# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A candidate model beside the model in use, over time that neither was fitted to.

`ModelRecord` records the errors of a model, `verdict` decides by the records of two models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.friction_follower import FrictionFollower
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import ArmState, PowerOptions
from ur_energy_model.identification.filtered_motion import MOVING_SPEED
from ur_energy_model.learning.information import ArmMotion
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import document, model_from_document
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry, run_starts
from ur_energy_model.typing import Array

LEAST_CELLS = 4  # fewest cells on which a decision rests
LEAST_GAIN = 0.01
"""Relative reduction of the squared error below which a model counts as no better."""
CERTAINTY = 0.95  # confidence of the one-sided test
_GROUP = 5  # neighbouring cells that are taken together, as their errors may correlate
LEAST_NARROWING = 0.1
"""Relative reduction of the joints' intervals for which a model that predicts as well is taken."""
LEAST_ERROR = 0.002  # relative error of the energy at the supply that any model may have


def verdict(present: ModelRecord, candidate: ModelRecord) -> tuple[bool, str]:
    """Whether a candidate replaces the model in use, by time that neither was fitted to.

    A candidate that predicts better is taken, if the difference is larger than its
    uncertainty. A candidate that predicts as well is taken for narrower intervals, as long
    as they still contain what was measured.

    Args:
        present: errors of the model in use.
        candidate: errors of the model that may replace it, in the same cells.

    Returns:
        Whether to take the candidate, and why in one clause.
    """
    old_currents, new_currents = _current_losses(present, candidate)
    losses = {
        "power at the supply": (present.supply_losses, candidate.supply_losses),
        "currents": (old_currents, new_currents),
    }
    better: list[str] = []
    worse: list[str] = []
    as_well = len(old_currents) >= LEAST_CELLS
    for what, (old, new) in losses.items():
        sign = better_or_worse(old, new)
        if sign > 0:
            better.append(what)
        elif sign < 0:
            worse.append(what)
        # To predict as well, the mean error must not be larger, certain or not.
        if len(old) and new.mean() > (1.0 + LEAST_GAIN) * old.mean():
            as_well = False
    if worse:
        return False, f"predicts the {worse[0]} worse"
    if better:
        return True, f"predicts the {better[0]} better"
    wide = present.joint_intervals.mean()
    narrow = candidate.joint_intervals.mean()
    error = candidate.supply_energy_error
    covered = error is None or abs(error) <= max(candidate.supply_interval, LEAST_ERROR)
    if as_well and narrow < (1.0 - LEAST_NARROWING) * wide and covered:
        return True, "predicts as well, with narrower intervals"
    return False, "no better than the model in use"


def _current_losses(present: ModelRecord, candidate: ModelRecord) -> tuple[Array, Array]:
    """Squared errors of the currents of two models, comparable between joints.

    Returns:
        Losses of the present model and of the candidate [cells]: sums over the joints of
        squared errors relative to the joint's mean squared error by the present model.
    """
    before = present.moving_cells
    after = candidate.moving_cells
    known = np.isfinite(before)
    counts = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, before, 0.0).sum(axis=0) / counts
    scale = np.where(mean > 0, mean, 1.0)
    return np.nansum(before / scale, axis=1), np.nansum(after / scale, axis=1)


def better_or_worse(before: Array, after: Array) -> int:
    """Whether losses of a second model are smaller or larger, by a paired t test.

    Neighbouring cells may resemble each other: the standard error is computed from single
    cells and from groups of five, and the larger one is used.

    Args:
        before: losses of the first model [cells].
        after: losses of the second one in the same cells [cells].

    Returns:
        1 if the losses of the second model are smaller, -1 if they are larger, 0 if neither
        is certain.
    """
    difference = before - after
    count = len(difference)
    if count < LEAST_CELLS:
        return 0
    error = _standard_error(difference)
    groups = count // _GROUP
    if groups >= LEAST_CELLS:
        means = difference[: _GROUP * groups].reshape(groups, _GROUP).mean(axis=1)
        error = max(error, _standard_error(means))
        count = groups
    gain = float(difference.mean())
    limit = float(stdtrit(count - 1, CERTAINTY)) * error
    certain = abs(gain) > max(limit, LEAST_GAIN * float(before.mean()))
    return int(np.sign(gain)) if certain else 0


def _standard_error(values: Array) -> float:
    """Standard error of the mean of independent values [k]."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


CELL = 1.0  # errors are means over cells of this length [s]
_LEAST_SAMPLES = 3
"""Moving samples of a joint in a cell from which its current is compared."""
_LEAST_STILL = 0.5  # standstill after which a session's standby counts as measured [s]


@dataclass
class SupplySums:
    """Sums over the samples with measured bus power and released brakes.

    Attributes:
        energy: measured energy at the supply [J].
        error: modelled energy less measured energy [J].
        seconds: time [s].
        still_seconds: time at standstill [s].
        still_error: error of the energy at standstill [J].
    """

    energy: float = 0.0
    error: float = 0.0
    seconds: float = 0.0
    still_seconds: float = 0.0
    still_error: float = 0.0


class ModelRecord:
    """Prediction errors of a model of an arm with n joints over time that it was not fitted to.

    As in the estimator, friction and standby power of the session are those that the
    session has shown so far.

    Args:
        model: model of the arm.
        robot: description of the arm.

    Attributes:
        supply: mean error of the power at the supply in each cell [W].
        currents: mean squared error of the currents of moving joints in each cell [n],
            A^2; NaN at rest.
    """

    def __init__(self, model: EnergyModel, robot: RobotDescription) -> None:
        self.model = model
        self.robot = robot
        self.supply: list[float] = []
        self.currents: list[Array] = []
        self._sums = SupplySums()
        self._channels: Array | None = None
        """Integrals of all channels over all time [channels], J; None before any sample."""
        self._moving: Array | None = None
        """Integrals of all channels over motion [channels], J; None before any motion."""
        self.start_session()

    def start_session(self) -> None:
        """Begin another session: friction and standby power of the session are unknown."""
        self._anchor = FrictionFollower(self.model)

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, for `restored`."""
        return {
            "model": document(self.model),
            "supply": self.supply,
            "currents": np.array(self.currents).reshape(-1, self.robot.dof),
            "sums": list(astuple(self._sums)),
            "channels": self._channels,
            "moving": self._moving,
            "anchor": self._anchor.saved(),
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any], robot: RobotDescription) -> ModelRecord:
        """A record that continues.

        Args:
            saved: what `saved` gave.
            robot: description of the arm.

        Raises:
            ModelFileError: the saved model is damaged.
            KeyError, TypeError: other saved values are damaged.
        """
        record = cls(model_from_document(saved["model"], "state"), robot)
        record.supply = saved["supply"]
        record.currents = list(saved["currents"])
        record._sums = SupplySums(*saved["sums"])
        record._channels = saved["channels"]
        record._moving = saved["moving"]
        record._anchor.restore(saved["anchor"])
        return record

    @property
    def moving_cells(self) -> Array:
        """Mean squared errors of the currents in cells in which a joint moves [cells, n], A^2."""
        cells = np.array(self.currents).reshape(-1, self.robot.dof)
        return np.asarray(cells[np.isfinite(cells).any(axis=1)])

    @property
    def supply_losses(self) -> Array:
        """Squared errors of the power at the supply with standby tracked [cells], W^2."""
        return np.square(np.array(self.supply) - self._shift)

    @property
    def _shift(self) -> float:
        """Mean error of the power at standstill [W]; 0 before it is known."""
        sums = self._sums
        if sums.still_seconds < _LEAST_STILL:
            return 0.0
        return sums.still_error / sums.still_seconds

    @property
    def supply_energy_error(self) -> float | None:
        """Relative error of the energy at the supply with standby tracked.

        None without bus power, and without motion: standstill alone defines the standby
        power.
        """
        sums = self._sums
        if sums.energy <= 0.0 or sums.seconds <= sums.still_seconds:
            return None
        return (sums.error - self._shift * sums.seconds) / sums.energy

    @property
    def joint_intervals(self) -> Array:
        """Half widths of the 95 % intervals of the joints' electrical energies, relative [n].

        They are intervals over the motion, as there is hardly any energy at rest; NaN
        without motion.
        """
        if self._moving is None:
            return np.full(self.robot.dof, np.nan)
        channels = self._calculator().channels
        energy = np.abs(self._moving[channels.per_joint["electrical_power"]])
        std = channels.deviations(self._moving)[0]
        return np.asarray(CONFIDENCE * std / np.maximum(energy, 1e-9))

    @property
    def supply_interval(self) -> float:
        """Half width of the 95 % interval of the energy at the supply, relative.

        It is defined where bus power was measured; infinite before any sample.
        """
        if self._channels is None:
            return float("inf")
        std = float(self._calculator().channels.deviations_of_model(self._channels))
        return CONFIDENCE * std / self._sums.energy

    def _calculator(self) -> EnergyCalculator:
        """A calculator of powers from measured currents, with the model's own standby power."""
        options = PowerOptions(method="current", track_standby=False)
        return EnergyCalculator(self.model, self.robot, options)

    def observe(self, window: Telemetry, motions: list[ArmMotion]) -> None:
        """Compare the model's predictions with samples that follow the previous ones.

        Args:
            window: usable samples, a cell of the power at the supply.
            motions: motions of the window, each a cell of the currents.
        """
        for part in motions:
            self._observe_currents(part)
        calculator = self._calculator()
        table = calculator(window)
        if table is None:
            return
        steps = table.steps.bridged
        power = table.power
        energies = steps @ power
        moves = table.states == ArmState.MOVING
        self._channels = energies if self._channels is None else self._channels + energies
        if moves.any():
            moving = steps[moves] @ power[moves]
            self._moving = moving if self._moving is None else self._moving + moving
        if not table.bus_measured:
            return
        bus = power[:, calculator.channels.arm["bus"]]
        error = power[:, calculator.channels.arm["model"]] - bus
        weight = np.where(table.states >= ArmState.STANDSTILL, steps, 0.0)
        still = weight * (table.states == ArmState.STANDSTILL)
        sums = self._sums
        sums.energy += float(weight @ bus)
        sums.error += float(weight @ error)
        sums.seconds += float(weight.sum())
        sums.still_seconds += float(still.sum())
        sums.still_error += float(still @ error)
        starts = run_starts(np.floor(table.samples.time / CELL))
        time = np.add.reduceat(weight, starts)
        errors = np.add.reduceat(weight * error, starts)
        usable = time > 0.5 * CELL
        self.supply += (errors[usable] / time[usable]).tolist()

    def _observe_currents(self, part: ArmMotion) -> None:
        """Add the errors of the currents in a motion, with the friction of the session."""
        motion = part.motion
        narrow = part.narrow
        inside = narrow.inside(motion)
        time = motion.time[inside]
        if len(time) < 2:
            return
        link = part.dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)
        split = self._anchor.split
        current = motion.current
        load = link + split.inertia * motion.qdd
        friction, left = split(motion.qd, load, current, motion.known_temperature)
        known, _ = self._anchor.track(motion.time, motion.qd, friction, left)
        error = narrow(motion, known - left)[inside]
        moving = narrow.moving(motion, MOVING_SPEED)[inside]
        starts = run_starts(np.floor(time / CELL))
        count = np.add.reduceat(moving.astype(float), starts, axis=0)
        squares = np.add.reduceat(np.square(error) * moving, starts, axis=0)
        means = squares / np.maximum(count, 1.0)
        self.currents += list(np.where(count >= _LEAST_SAMPLES, means, np.nan))
