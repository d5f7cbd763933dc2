"""What has been learned of an arm so far: sums in constant memory, and the model fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ur_energy_model.identification.assembly import BodyResults, assemble, fit_drives
from ur_energy_model.identification.dynamics.dynamics_stage import inertia_from_torque
from ur_energy_model.identification.dynamics.reflected_inertia import expected_inertia
from ur_energy_model.identification.friction.current_data import CurrentData
from ur_energy_model.identification.friction.current_regression import CurrentRegression
from ur_energy_model.identification.friction.law_selection import WARMTH
from ur_energy_model.identification.friction.unmoved_joint import SHORTEST_MOTION
from ur_energy_model.identification.power.power_fit import PowerFit
from ur_energy_model.identification.power.power_structures import PowerPrior
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.identification.regression.motion_stream import MotionStream
from ur_energy_model.identification.regression.narrow_filter import (
    NarrowFilter,
    choose_cutoff,
    sample_period,
)
from ur_energy_model.learning.rest_fit import RestFit
from ur_energy_model.learning.setup_estimate import SetupEstimate
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.document import document
from ur_energy_model.model.file.model_file import model_from_document
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

_MOST_SESSIONS = 6
_MOST_BLOCKS = 24
"""Blocks of time kept of a session."""


@dataclass(frozen=True)
class ArmMotion:
    """A filtered motion with one payload, and the rigid body that moved.

    Attributes:
        motion: [samples, n].
        dynamics: of links and payload.
        narrow: filter for comparisons of currents.
    """

    motion: FilteredMotion
    dynamics: ArmDynamics
    narrow: NarrowFilter


class ArmInformation:
    """Sums over all sessions of one arm, and what they determine.

    Args:
        robot: the arm, n joints.
        prior: the model that learning started from.
        friction: law name or "auto".
    """

    def __init__(self, robot: RobotDescription, prior: EnergyModel, friction: str) -> None:
        self.robot, self.prior, self.friction = robot, prior, friction
        self.powers: list[PowerFit] = []
        self._known_power = PowerPrior.from_model(prior, robot)
        self.setup = SetupEstimate(robot, prior.setup)
        self.cutoff: float | None = None
        self._inertia = expected_inertia(robot)
        self.currents = CurrentRegression(
            robot, friction, warm=True, inertia=self._inertia, most_blocks=_MOST_BLOCKS, known=prior
        )
        self.rest = RestFit(prior, learned=False)
        self.start_session()

    def start_session(self) -> None:
        """Start another session, with its own standby power and friction level."""
        self.powers.append(PowerFit(self.robot, self._known_power))
        self.currents.start_session()
        self.setup.start_session()
        if len(self.powers) > _MOST_SESSIONS:
            del self.powers[0]
            del self.currents.data.sessions[0]

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, see `restore`."""
        return {
            "powers": [power.saved() for power in self.powers],
            "setup": self.setup.saved(),
            "cutoff": self.cutoff,
            "currents": self.currents.data.saved(),
            "rest": self.rest.saved(),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue with saved sums."""
        self.powers = [
            PowerFit(self.robot, self._known_power).restore(power) for power in saved["powers"]
        ]
        self.setup.restore(saved["setup"])
        self.cutoff = None if saved["cutoff"] is None else float(saved["cutoff"])
        self.currents.data = CurrentData.restored(saved["currents"])
        self.rest = RestFit.restored(saved["rest"])

    def add(self, window: Telemetry) -> list[ArmMotion]:
        """Add a window of usable samples; returns its motions."""
        self.powers[-1].accumulate(window)
        if self.setup.add(window):
            self.currents.data.restart_session()
        motions = []
        for part in self._filtered(window):
            link = part.dynamics.inverse_dynamics(part.motion.q, part.motion.qd, part.motion.qdd)
            load = link + self._inertia.value * part.motion.qdd
            self.currents.accumulate(part.motion, load, part.narrow)
            self.rest.add_motion(part.motion, link, part.narrow)
            motions.append(part)
        if self.powers[-1].supply_rested:
            self.rest.add_supply(window)
        return motions

    @property
    def moving_time(self) -> Array:
        """Motion of each joint [n], s."""
        return self.currents.data.moving_time

    def fit(self) -> EnergyModel | None:
        """The model that all data give; None if no joint has moved yet.

        Currents of the session that were accumulated with another mounting are left out.

        Raises:
            IdentificationError: currents that contradict the torques.
            ModelFileError: values that no arm can have.
        """
        if self.setup.update():
            self.currents.data.restart_session()
        if self.moving_time.max(initial=0.0) < SHORTEST_MOTION:
            return None
        estimate = self.setup.estimate
        inertia = inertia_from_torque(self.robot, estimate)
        joints = self.currents.rebased(inertia, warm=self._warms_up).fit()
        told = self.setup.dynamics(RecordingInfo()).stated(np.full(4, np.nan))
        body = BodyResults(self.robot, estimate, told, inertia)
        results = fit_drives(body, joints, self.powers, "physical")
        found = self.rest.completed(assemble(results, {}))
        # As it will be read from a file, so that a restart changes nothing.
        model = model_from_document(document(found), "learned model")
        self.rest = RestFit(model, learned=True)
        return model

    @property
    def _warms_up(self) -> bool:
        low, high = self.currents.data.temperature.T
        return bool((high - low > WARMTH).any())

    def _filtered(self, window: Telemetry) -> list[ArmMotion]:
        names = ("actual_q", "actual_qd", "actual_current")
        if any(name not in window for name in names):
            return []
        if self.cutoff is None:
            if np.abs(np.nan_to_num(window["actual_qd"])).max() < 0.05:
                return []
            self.cutoff = choose_cutoff(window)
        stream = MotionStream(self.robot.dof, self.cutoff, sample_period(window.time))
        narrow, dynamics = NarrowFilter(self.cutoff), self.setup.dynamics(window.info)
        return [
            ArmMotion(part, arm, narrow)
            for motion in (*stream.process(window), *stream.finish())
            for part, arm in dynamics.parts(motion)
        ]
