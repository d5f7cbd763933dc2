# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Model and measurement of a recording, filtered alike: the data of METRICS and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.friction_follower import FrictionFollower
from ur_energy_model.identification.dynamics import RecordingDynamics, payload_runs
from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    WIDENING,
    FilteredMotion,
    ParallelFilter,
    usable_runs,
)
from ur_energy_model.identification.recording import Recording
from ur_energy_model.low_pass import low_pass
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.presliding import FrictionDirection
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.telemetry.usable_samples import usable_samples
from ur_energy_model.typing import Array, Mask

_KEPT_EDGES = 8  # length kept of a motion, in edges of the filter


@dataclass(frozen=True)
class Comparison:
    """Model and measurement of a stretch without gaps, filtered alike.

    Attributes:
        motion: wide-band motion of the same samples.
        current_measured: measured currents [samples, n], A.
        current_model: currents of the model [samples, n], A.
        current_std: standard deviation of measured less modelled current [samples, n], A.
        moving: whether the joint moves, well away from standstill [samples, n].
        torque_recorded: target_moment, joint side [samples, n], N m; None where it belongs
            to recorded targets (see `compare_target_torque`) or was not recorded.
        torque_model: the model's torque without friction, joint side [samples, n], N m;
            None where `torque_recorded` is None.
        friction_measured: torque of the measured current less the torque of links and
            inertia, joint side [samples, n], N m.
        friction_model: friction of the model's current, joint side [samples, n], N m.
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


def compare(
    model: EnergyModel,
    recording: Recording,
    setups: RecordingDynamics,
    anchor: FrictionFollower | None = None,
) -> Iterator[Comparison]:
    """Model and measurement of a recording, stretch by stretch.

    Args:
        model: model of the arm.
        recording: recording with its filtered motions.
        setups: mounting and payloads of the recording.
        anchor: calculator of the same model: it follows the session, so that currents have the
            friction that the recording has shown before; None for the model's friction.
    """
    if anchor is not None:  # friction has no error but the anchor's
        known = replace(
            anchor.prior, friction_std=np.zeros(model.dof), moving_seconds=1.0
        )
        model = model.in_session(known)
    inertia = np.array([joint.inertia for joint in model.joints])
    nominal = np.array([joint.reflected_inertia for joint in model.joints])
    scale = np.array([joint.torque_constant * joint.gear_ratio for joint in model.joints])
    direction_of = FrictionDirection(model.presliding)
    window = _FilterWindow(ParallelFilter(recording.cutoff), model.dof)
    for part, link in setups.link_torques(recording):
        load = link + inertia * part.qdd
        warmth = part.known_temperature
        direction = direction_of(part.q, part.qd, part.time)
        predicted, std = model.currents_from_link_torque(
            link, part.qd, part.qdd, temperature=warmth, direction=direction
        )
        if anchor is not None:
            friction, left = anchor.split(part.qd, load, part.current, warmth, direction)
            found, variance = anchor.track(part.time, part.qd, friction, left)
            predicted = part.current - left + found
            std = np.sqrt(std**2 + variance)
        quantities = [part.current, predicted, load]
        is_measured = recording.torque_reference == "actual"
        if is_measured and np.isfinite(part.moment).all():
            quantities.append(_moment_of_motion(part, setups))
            without_friction = link + nominal * part.qdd
            quantities.append(setups.controller_load(part, without_friction))
        filtered = window.add(part, std, quantities)
        if filtered is None:
            continue
        current, modelled, torque, *moments = filtered.quantities
        yield Comparison(
            motion=filtered.motion,
            current_measured=current,
            current_model=modelled,
            current_std=filtered.std,
            moving=filtered.moving,
            torque_recorded=moments[0] if moments else None,
            torque_model=moments[1] if moments else None,
            friction_measured=current * scale - torque,
            friction_model=modelled * scale - torque,
        )


def _moment_of_motion(part: FilteredMotion, setups: RecordingDynamics) -> Array:
    """target_moment of the instants that its motion belongs to [samples, n], N m."""
    _, delay = setups.setup_and_delay(part.payload[0])
    later = part.time + delay
    columns = [np.interp(later, part.time, column) for column in part.moment.T]
    return np.column_stack(columns)


class _Filtered(NamedTuple):
    """Samples of a motion with n joints out of reach of the filter's ends.

    Attributes:
        motion: motion of the samples.
        std: standard deviations of the currents, not filtered [samples, n], A.
        quantities: filtered quantities, each [samples, n].
        moving: whether the joint moves, well away from standstill [samples, n].
    """

    motion: FilteredMotion
    std: Array
    quantities: list[Array]
    moving: Mask


class _FilterWindow:
    """Filters quantities of a motion that comes in parts.

    The filter runs over the end of the part before, too, so that nothing is left out
    between two parts without a gap.

    Args:
        narrow: low-pass filter of the comparison.
        dof: number of joints n.
    """

    def __init__(self, narrow: ParallelFilter, dof: int) -> None:
        self._narrow = narrow
        self._dof = dof
        # The motion that the filter still needs, with its deviations and quantities side by
        # side [samples, columns].
        self._motion: FilteredMotion | None = None
        self._values = np.zeros((0, 0))
        self._begin = 0  # first sample that was not returned

    def add(
        self, part: FilteredMotion, std: Array, quantities: list[Array]
    ) -> _Filtered | None:
        """Samples that a part completes; None where there are none yet.

        Args:
            part: motion that follows those before, with or without a gap.
            std: standard deviations of the currents [samples, n], A.
            quantities: each [samples, n].
        """
        n = self._dof
        values = np.column_stack([std, *quantities])
        motion = self._motion
        if motion is not None and self._continues(motion, part, values):
            motion = motion.followed_by(part)
            values = np.concatenate([self._values, values])
        else:
            motion = part
            self._begin = 0
        self._motion = motion
        self._values = values
        inside = self._narrow.inside(motion)
        rows = slice(max(self._begin, inside.start), inside.stop, inside.step)
        count = len(motion.time[rows])
        if not count:
            return None
        filtered = self._narrow(motion, values[:, n:])[rows]
        found = _Filtered(
            motion=motion.cut(rows),
            std=values[rows, :n],
            quantities=np.split(filtered, len(quantities), axis=1),
            moving=self._narrow.moving(motion, MOVING_SPEED)[rows],
        )
        begin = rows.start + count * rows.step
        keep = max(0, begin - _KEPT_EDGES * inside.start)
        self._motion = motion.cut(slice(keep, None))
        self._values = values[keep:]
        self._begin = begin - keep
        return found

    def _continues(
        self, motion: FilteredMotion, part: FilteredMotion, values: Array
    ) -> bool:
        """Whether a part follows a motion without a gap, with the same columns of values."""
        if values.shape[1] != self._values.shape[1]:
            return False
        longer = motion if len(motion) > 1 else part
        step = float(np.ptp(longer.time[:2]))
        return bool(abs(part.time[0] - motion.time[-1] - step) <= 0.1 * step)


def compare_target_torque(
    model: EnergyModel,
    recording: Recording,
    setups: RecordingDynamics,
    batches: Iterable[Telemetry] | None = None,
) -> Iterator[tuple[Array, Array, Array]]:
    """Model torque of the recorded targets, and target_moment; nothing without targets.

    Args:
        model: model of the arm.
        recording: recording with or without targets.
        setups: mounting and payloads of the recording.
        batches: samples with targets; None for the thinned ones that the recording keeps.

    Returns:
        Time [samples], s, target_moment and model torque [samples, n], N m, joint side,
        batch by batch.
    """
    if recording.torque_reference != "target":
        return
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    for batch in recording.torque_telemetry() if batches is None else batches:
        mass = np.zeros(len(batch))
        center = np.zeros((len(batch), 3))
        if "payload" in batch:
            mass = batch["payload"]
        if "payload_cog" in batch:
            center = batch["payload_cog"]
        payload = np.column_stack([mass, center])
        for rows, controller_payload in payload_runs(payload):
            setup, delay = setups.setup_and_delay(controller_payload)
            qd = batch["target_qd"][rows]
            qdd = batch["target_qdd"][rows]
            q = batch["target_q"][rows] - delay * qd + 0.5 * delay**2 * qdd
            dynamics = ArmDynamics(setups.robot, setup)
            modelled = dynamics.inverse_dynamics(q, qd, qdd) + inertia * qdd
            yield batch.time[rows], batch["target_moment"][rows], modelled


# Every sample of a recording as it was recorded: the data that the papers measure errors
# on. Positions, speeds and currents are not filtered, nothing is thinned, and samples at
# standstill stay. Only the acceleration, which no controller measures, is the low-passed
# derivative of the speed, as in Raviola et al., RAAD 2021, sec. 3.

_NAMES = ("actual_q", "actual_qd", "actual_current")
_OTHERS = (
    "actual_current_as_torque", "actual_robot_voltage", "actual_robot_current", "robot_mode",
    "target_qd", "target_qdd", "payload", "payload_cog",
)  # fmt: skip
_OVERLAP = 2.0  # time on either side that the filter of the acceleration needs [s]
_LONGEST_STEP = 2.5  # steps longer than this many sample periods are gaps
_SHORTEST = 12  # samples that a stretch needs for its acceleration


@dataclass(frozen=True)
class RecordedSamples:
    """Consecutive samples as recorded, joint side.

    Attributes:
        time: controller clock [samples], s.
        q: positions as recorded [samples, n], rad.
        qd: speeds as recorded [samples, n], rad/s.
        qdd: low-passed derivative of qd [samples, n], rad/s^2.
        target_qdd: reference acceleration [samples, n], rad/s^2; NaN where not recorded.
        current: current as recorded [samples, n], A.
        torque: measured torque [samples, n], N m; NaN where not recorded.
        power: power at the supply [samples], W; NaN where not recorded.
        payload: mass and centre set in the controller [samples, 4], kg and m; NaN where
            not recorded.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    target_qdd: Array
    current: Array
    torque: Array
    power: Array
    payload: Array

    def __len__(self) -> int:
        return len(self.time)

    def cut(self, part: slice) -> RecordedSamples:
        """Some of the samples."""
        return RecordedSamples(*(channel[part] for channel in vars(self).values()))


def recorded_motions(bag: str | Path, cutoff: float) -> Iterator[RecordedSamples]:
    """Samples of a bag in stretches without gaps, in constant memory.

    Samples with the brakes engaged, in freedrive or with values that are not finite are
    left out.

    Args:
        bag: folder of a bag, or an .mcap file.
        cutoff: cut-off frequency of the identification's narrow filter [Hz];
            accelerations pass its wide one.

    Raises:
        UrEnergyError: no such bag, damaged, or without motion.
    """
    pending: Telemetry | None = None
    done = -np.inf
    for batch in iterate_bag(bag, (*_NAMES, *_OTHERS)):
        # Where the clock goes back, the controller was restarted.
        if pending is not None and batch.time[0] <= pending.time[-1]:
            yield from _motions(pending, done, np.inf, cutoff)
            pending = None
            done = -np.inf
        window = batch if pending is None else concatenate([pending, batch])
        until = float(window.time[-1]) - _OVERLAP
        yield from _motions(window, done, until, cutoff)
        done = max(done, until)
        start = int(np.searchsorted(window.time, until - _OVERLAP))
        pending = window.cut(slice(start, None))
    if pending is not None:
        yield from _motions(pending, done, np.inf, cutoff)


def _motions(
    part: Telemetry, start: float, stop: float, cutoff: float
) -> Iterator[RecordedSamples]:
    """Stretches of a window of samples.

    Args:
        part: consecutive samples.
        start: time from which on samples are returned [s].
        stop: time before which samples are returned [s].
        cutoff: cut-off frequency of the identification's narrow filter [Hz].
    """
    part = part.distinct()
    if len(part) < _SHORTEST:
        return
    longest = _LONGEST_STEP * float(np.median(np.diff(part.time)))
    for rows in usable_runs(part, usable_samples(part, *_NAMES), longest):
        if rows.stop - rows.start < _SHORTEST:
            continue
        own = part.cut(rows)
        time = own.time
        speed = own["actual_qd"]
        n = speed.shape[1]
        power = own.bus_power
        slope = np.gradient(speed, time, axis=0)
        motion = RecordedSamples(
            time=time,
            q=own["actual_q"],
            qd=speed,
            qdd=low_pass(slope, float(np.median(np.diff(time))), WIDENING * cutoff),
            target_qdd=_columns(own, "target_qdd", n),
            current=own["actual_current"],
            torque=_columns(own, "actual_current_as_torque", n),
            power=np.full(len(time), np.nan) if power is None else power,
            payload=np.hstack(
                [_columns(own, "payload", 1), _columns(own, "payload_cog", 3)]
            ),
        )
        first, last = np.searchsorted(time, (start, stop)).tolist()
        if last > first:
            yield motion.cut(slice(first, last))


def _columns(samples: Telemetry, name: str, width: int) -> Array:
    """Values of a field [samples, width]; NaN where it was not recorded."""
    if name not in samples:
        return np.full((len(samples), width), np.nan)
    return samples[name].reshape(-1, width)
