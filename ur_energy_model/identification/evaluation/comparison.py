"""Model beside measurement, through identification's own filters: what METRICS and figures show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.identification.dynamics.setup_data import StatedSetup, payload_told, stated_for
from ur_energy_model.identification.dynamics.setup_estimation import SetupEstimate
from ur_energy_model.identification.friction.current_fit import MOVING_SPEED
from ur_energy_model.identification.friction.standstill import DirectionMemory
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.regression.signals import FilteredMotion, NarrowFilter
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.typing import Array, Mask


@dataclass(frozen=True)
class Setups:
    """Setups of one recording, by the payload that the controller was told of.

    Attributes:
        robot: the arm.
        info: of the recording.
        estimate: setups estimated from target_moment, None without.
        configured: mounting and payload as the user states them.
        fallback: setup of other recordings of the same arm, for what this one does not say.
        carried: payload that was really there, where the controller was told of another one; its
            torques contain what it was told, the currents what was there.
    """

    robot: RobotDescription
    info: RecordingInfo
    estimate: SetupEstimate | None
    configured: Setup | None
    fallback: Setup | None = None
    carried: Payload | None = None

    def parts(self, motion: FilteredMotion) -> Iterator[tuple[FilteredMotion, ArmDynamics]]:
        """Parts of a motion with one payload each, and the dynamics that belong to it."""
        for rows, told in _constant(motion.payload):
            yield motion.cut(rows), ArmDynamics(self.robot, self.there(told))

    def there(self, told: Array) -> Setup:
        """Setup that was really there beside a payload told to the controller [4]."""
        setup = self.of(told)[0]
        return setup if self.carried is None else replace(setup, payload=self.carried)

    def told_load(self, motion: FilteredMotion, load: Array) -> Array:
        """What the controller takes for the load [samples, n], N m, joint side.

        Args:
            motion: with one payload.
            load: with the payload that is there.
        """
        if self.carried is None:
            return load
        setup = self.of(motion.payload[0])[0]
        motions = motion.q, motion.qd, motion.qdd
        there = ArmDynamics(self.robot, replace(setup, payload=self.carried))
        told = ArmDynamics(self.robot, setup)
        return np.asarray(load + told.inverse_dynamics(*motions) - there.inverse_dynamics(*motions))

    def delay(self, motion: FilteredMotion) -> float:
        """Delay of target_moment behind the measured motion [s]."""
        return self.of(motion.payload[0])[1]

    def of(self, told: Array) -> tuple[Setup, float]:
        """Setup and torque delay [s] that belong to a payload told to the controller [4].

        NaN where no payload was recorded.
        """
        source = self.info.source
        entries = (
            []
            if self.estimate is None
            else [e for e in self.estimate.recordings if e.source == source]
        )
        if not entries:
            return self.stated(told).setup, 0.0
        told = np.nan_to_num(told)

        def distance(index: int) -> tuple[float, int]:
            payload = entries[index].stated.setup.payload
            stated = np.array([payload.mass, *payload.center_of_mass])
            return float(np.abs(stated - told).max()), -entries[index].samples

        nearest = min(range(len(entries)), key=distance)
        return entries[nearest].setup, entries[nearest].delay

    def stated(self, told: Array) -> StatedSetup:
        """What is stated of the setup beside a payload told to the controller [4]."""
        payload = payload_told(told)
        return stated_for(self.info, payload, self.robot, self.configured, self.fallback)


@dataclass(frozen=True)
class Comparison:
    """An uninterrupted stretch of a recording beside the model, both filtered alike.

    Attributes:
        motion: wide-band motion of the same samples.
        current_measured, current_model: [samples, n], A.
        current_std: standard deviation of measured less modelled current [samples, n], A.
        moving: [samples, n], True where the joint moves clear of standstill.
        torque_recorded, torque_model: target_moment and the model's frictionless torque, joint
            side [samples, n], N m; None where the torque belongs to recorded targets (see
            `compare_target_torque`) or was not recorded.
        friction_measured, friction_model: joint side [samples, n], N m; the measured one is what
            current, links and inertia leave.
    """

    motion: FilteredMotion
    current_measured: Array
    current_model: Array
    current_std: Array
    moving: Mask
    torque_recorded: Array | None
    torque_model: Array | None
    friction_measured: Array
    friction_model: Array


def compare(model: EnergyModel, recording: Recording, setups: Setups) -> Iterator[Comparison]:
    """The model beside a recording, stretch by stretch."""
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    scale = np.array([joint.torque_constant * joint.gear_ratio for joint in model.joints])
    narrow = NarrowFilter(recording.cutoff)
    memory = DirectionMemory(np.array([joint.friction.presliding for joint in model.joints]))
    for motion in recording.motions():
        for part, dynamics in setups.parts(motion):
            inside = narrow.inside(part)
            if not len(part.time[inside]):
                continue
            link = dynamics.inverse_dynamics(part.q, part.qd, part.qdd)
            load = link + inertia * part.qdd
            temperature = part.temperature if np.isfinite(part.temperature).all() else None
            predicted = model.from_link_torque(
                link, part.qd, part.qdd, temperature=temperature, direction=memory(part)
            )
            moment = np.zeros_like(load)
            told = setups.told_load(part, load)
            own = recording.torque_reference == "actual" and bool(np.isfinite(part.moment).all())
            if own:
                moment = _shifted(part.time, part.moment, setups.delay(part))
            both = np.column_stack([part.current, predicted.current, load, moment, told])
            current, modelled, load, moment, told = np.split(narrow(part, both)[inside], 5, axis=1)
            yield Comparison(
                motion=part.cut(inside),
                current_measured=current,
                current_model=modelled,
                current_std=predicted.current_std[inside],
                moving=narrow.moving(part, MOVING_SPEED)[inside],
                torque_recorded=moment if own else None,
                torque_model=told if own else None,
                friction_measured=current * scale - load,
                friction_model=modelled * scale - load,
            )


def compare_target_torque(
    model: EnergyModel, recording: Recording, setups: Setups
) -> Iterator[tuple[Array, Array, Array]]:
    """Time [samples], target_moment and the model's torque for the recorded targets [samples, n].

    Nothing where the recording has no targets.
    """
    if recording.torque_reference != "target":
        return
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    for batch in recording.torque_telemetry():
        payload: Array = np.zeros((len(batch), 4))
        if "payload" in batch:
            payload[:, 0] = batch["payload"]
        if "payload_cog" in batch:
            payload[:, 1:] = batch["payload_cog"]
        for rows, told in _constant(payload):
            setup, delay = setups.of(told)
            q, qd, qdd, moment = (
                batch[name][rows]
                for name in ("target_q", "target_qd", "target_qdd", "target_moment")
            )
            dynamics = ArmDynamics(setups.robot, setup)
            link = dynamics.inverse_dynamics(q - delay * qd + 0.5 * delay**2 * qdd, qd, qdd)
            yield batch.time[rows], moment, link + inertia * qdd


def _constant(payload: Array) -> Iterator[tuple[slice, Array]]:
    """Stretches of one payload told to the controller: rows, and that payload [4]."""
    told = np.round(payload, 4)
    changes = np.flatnonzero((np.diff(np.nan_to_num(told), axis=0) != 0).any(axis=1)) + 1
    for start, stop in zip([0, *changes], [*changes, len(told)], strict=True):
        yield slice(int(start), int(stop)), told[start]


def _shifted(time: Array, values: Array, delay: float) -> Array:
    """Columns [samples, n] as they are `delay` seconds later."""
    later = time + delay
    return np.stack([np.interp(later, time, column) for column in values.T], axis=1)
