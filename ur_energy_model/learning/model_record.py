"""ModelRecord: how well a model predicts time that it was not fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.power_options import PowerOptions
from ur_energy_model.identification.regression.filtered_motion import MOVING_SPEED
from ur_energy_model.learning.information import ArmMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.document import document
from ur_energy_model.model.file.model_file import model_from_document
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.runs import run_starts
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

CELL = 1.0
"""Errors are means over cells of this length [s]."""
_LEAST_STILL = 0.5
"""Standstill after which a session's standby counts as measured [s]."""


class ModelRecord:
    """Errors of one model over held-out time.

    Args:
        model: compared with what is measured.
        robot: its arm, n joints.
    """

    def __init__(self, model: EnergyModel, robot: RobotDescription) -> None:
        self.model, self.robot = model, robot
        self.supply: list[float] = []
        """Mean error of the power at the supply in each cell [W]."""
        self.currents: list[Array] = []
        """Mean squared error of the currents of moving joints in each cell [n], A^2; NaN at
        rest."""
        self.bus_energy, self.energy_error = 0.0, 0.0
        self._sums = [0.0, 0.0, 0.0]
        """Time, time at standstill [s], error of the energy at standstill [J]."""
        self._channels: Array | None = None
        self._moving: Array | None = None
        """Integrals of all channels over motion; `_channels` has those over all the time."""
        self._arms: dict[tuple[float, ...], ArmDynamics] = {}

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, see `restored`."""
        return {
            "model": document(self.model),
            "supply": self.supply,
            "currents": np.array(self.currents).reshape(-1, self.robot.dof),
            "sums": [self.bus_energy, self.energy_error, *self._sums],
            "channels": self._channels,
            "moving": self._moving,
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any], robot: RobotDescription) -> ModelRecord:
        """The record that `saved` describes."""
        out = cls(model_from_document(saved["model"], "state"), robot)
        out.supply = list(saved["supply"])
        out.currents = list(np.array(saved["currents"], dtype=float))
        out.bus_energy, out.energy_error, *out._sums = saved["sums"]
        out._channels, out._moving = saved["channels"], saved["moving"]
        return out

    def observe(self, window: Telemetry, motions: list[ArmMotion]) -> None:
        """Compare with a window and its motions."""
        self._observe_supply(window)
        for part in motions:
            self._observe_currents(part)

    @property
    def moving_cells(self) -> Array:
        """Mean squared errors of the currents in cells in which a joint moves [cells, n], A^2."""
        cells = np.array(self.currents).reshape(-1, self.robot.dof)
        return np.asarray(cells[np.isfinite(cells).any(axis=1)])

    @property
    def supply_energy_error(self) -> float | None:
        """Relative error of the energy at the supply with standby tracked.

        None without bus power, and without motion: standstill alone defines the standby power.
        """
        time, still_time, still_error = self._sums
        if self.bus_energy <= 0.0 or time <= still_time:
            return None
        shift = 0.0
        if still_time >= _LEAST_STILL:
            shift = still_error / still_time
        return (self.energy_error - shift * time) / self.bus_energy

    @property
    def joint_intervals(self) -> Array:
        """Half widths of the 95 % intervals of the joints' electrical energies, relative [n].

        Over the motion; at rest there is hardly any energy to relate them to. NaN without motion.
        """
        if self._moving is None:
            return np.full(self.robot.dof, np.nan)
        channels = self._calculator().channels
        energy = np.abs(self._moving[channels.per_joint["electrical_power"]])
        std = channels.deviations(self._moving)[0]
        return np.asarray(CONFIDENCE * std / np.maximum(energy, 1e-9))

    @property
    def supply_interval(self) -> float:
        """Half width of the 95 % interval of the energy at the supply, relative."""
        if self._channels is None or self.bus_energy <= 0.0:
            return float("nan")
        std = self._calculator().channels.deviations(self._channels)[1]
        return CONFIDENCE * std / self.bus_energy

    def _calculator(self) -> EnergyCalculator:
        """Computes powers from measured currents with the model's own standby."""
        options = PowerOptions(method="current", track_standby=False)
        return EnergyCalculator(self.model, self.robot, options)

    def _observe_supply(self, window: Telemetry) -> None:
        calculator = self._calculator()
        table = calculator(window)
        if table is None:
            return
        steps, power = table.steps.bridged, table.power
        energies = steps @ power
        self._channels = energies if self._channels is None else self._channels + energies
        moves = table.states == ArmState.MOVING
        if moves.any():
            moving = steps[moves] @ power[moves]
            self._moving = moving if self._moving is None else self._moving + moving
        if not table.bus_measured:
            return
        arm = calculator.channels.arm
        error = power[:, arm["total"]] - power[:, arm["bus"]]
        live = table.states >= ArmState.STANDSTILL
        weight = np.where(live, steps, 0.0)
        still = table.states == ArmState.STANDSTILL
        self.bus_energy += float(weight @ power[:, arm["bus"]])
        self.energy_error += float(weight @ error)
        self._sums[0] += float(weight.sum())
        self._sums[1] += float(weight[still].sum())
        self._sums[2] += float((weight * error)[still].sum())
        starts = run_starts(np.floor(table.samples.time / CELL))
        time = np.add.reduceat(weight, starts)
        sums = np.add.reduceat(weight * error, starts)
        whole = time > 0.5 * CELL
        self.supply += (sums[whole] / time[whole]).tolist()

    def _observe_currents(self, part: ArmMotion) -> None:
        motion, narrow = part.motion, part.narrow
        inside = narrow.inside(motion)
        time = motion.time[inside]
        if len(time) < 2:
            return
        payload = part.dynamics.setup.payload
        key = (payload.mass, *payload.center_of_mass)
        if key not in self._arms:
            self._arms = {key: self.model.dynamics(setup=Setup(self.model.setup.gravity, payload))}
        link = self._arms[key].inverse_dynamics(motion.q, motion.qd, motion.qdd)
        predicted = self.model.from_link_torque(
            link, motion.qd, motion.qdd, temperature=motion.known_temperature, std=False
        ).current
        error = narrow(motion, predicted - motion.current)[inside]
        moving = narrow.moving(motion, MOVING_SPEED)[inside]
        starts = run_starts(np.floor(time / CELL))
        count = np.add.reduceat(moving.astype(float), starts, axis=0)
        squares = np.add.reduceat(np.square(error) * moving, starts, axis=0)
        mean = np.where(count >= 3, squares / np.maximum(count, 1.0), np.nan)
        self.currents += list(mean)
