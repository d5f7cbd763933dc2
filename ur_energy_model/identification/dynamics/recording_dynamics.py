"""Arm dynamics of one recording, with the setup that belongs to each payload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.identification.dynamics.dynamics_estimate import DynamicsEstimate
from ur_energy_model.identification.dynamics.stated_setup import (
    StatedSetup,
    payload_runs,
    payload_told,
    stated_for,
)
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.typing import Array

_SAME_PAYLOAD = 2e-3
"""Payloads that differ by less are the same [kg and m]."""


@dataclass(frozen=True)
class RecordingDynamics:
    """Arm dynamics of one recording, with the setup that belongs to each payload.

    Attributes:
        robot: the arm.
        info: of the recording.
        estimate: setups estimated from target_moment, None without.
        configured: mounting and payload as stated by the user.
        fallback: setup of other recordings of the same arm, for values this one lacks.
        carried: payload actually on the flange, if the controller was told another one:
            target_moment contains the told payload, the currents the carried one.
    """

    robot: RobotDescription
    info: RecordingInfo
    estimate: DynamicsEstimate | None
    configured: Setup | None
    fallback: Setup | None = None
    carried: Payload | None = None

    def alone(self) -> RecordingDynamics:
        """The same without the setups of other recordings."""
        if self.estimate is None:
            return self
        own = tuple(e for e in self.estimate.recordings if e.source == self.info.source)
        return replace(self, estimate=replace(self.estimate, recordings=own))

    def parts(self, motion: FilteredMotion) -> Iterator[tuple[FilteredMotion, ArmDynamics]]:
        """Parts of a motion with one payload each, and the dynamics that belong to it."""
        for rows, told in payload_runs(motion.payload):
            yield motion.cut(rows), ArmDynamics(self.robot, self.actual_setup(told))

    def actual_setup(self, told: Array) -> Setup:
        """Setup with the carried payload; `told` is the one told to the controller [4]."""
        setup = self.setup_and_delay(told)[0]
        return setup if self.carried is None else replace(setup, payload=self.carried)

    def controller_load(self, motion: FilteredMotion, load: Array) -> Array:
        """Load as the controller computes it [samples, n], N m, joint side.

        Args:
            motion: with one payload.
            load: with the carried payload.
        """
        if self.carried is None:
            return load
        setup = self.setup_and_delay(motion.payload[0])[0]
        motions = motion.q, motion.qd, motion.qdd
        carried = ArmDynamics(self.robot, replace(setup, payload=self.carried))
        told = ArmDynamics(self.robot, setup)
        difference = told.inverse_dynamics(*motions) - carried.inverse_dynamics(*motions)
        return np.asarray(load + difference)

    def delay(self, motion: FilteredMotion) -> float:
        """Delay of target_moment behind the measured motion [s]."""
        return self.setup_and_delay(motion.payload[0])[1]

    def setup_and_delay(self, told: Array) -> tuple[Setup, float]:
        """Setup and torque delay [s] for a payload told to the controller [4], NaN without."""
        source = self.info.source
        entries = (
            []
            if self.estimate is None
            else [e for e in self.estimate.recordings if e.source == source]
        )
        if not entries:
            return self.stated(told).setup, 0.0
        known, told = bool(np.isfinite(told[0])), np.nan_to_num(told)

        def distance(index: int) -> tuple[float, int]:
            payload = entries[index].stated.setup.payload
            stated = np.array([payload.mass, *payload.center_of_mass])
            return float(np.abs(stated - told).max()), -entries[index].samples

        nearest = min(range(len(entries)), key=distance)
        if known and distance(nearest)[0] > _SAME_PAYLOAD:  # none was estimated with this payload
            return self.stated(told).setup, entries[nearest].delay
        return entries[nearest].setup, entries[nearest].delay

    def stated(self, told: Array) -> StatedSetup:
        """Stated setup for a payload told to the controller [4]."""
        payload = payload_told(told)
        return stated_for(self.info, payload, self.robot, self.configured, self.fallback)
