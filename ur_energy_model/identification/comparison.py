# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Model and measurement of a recording, filtered alike: the data of METRICS and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

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
from ur_energy_model.model.friction import FrictionDirection
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.telemetry.usable_samples import usable_samples
from ur_energy_model.typing import Array, Mask


@dataclass(frozen=True)
class Comparison:
    """Model and measurement of a stretch without gaps, filtered alike.

    Attributes:
        motion: wide-band motion of the same samples.
        current_measured, current_model: [samples, n], A.
        current_std: standard deviation of measured less modelled current [samples, n], A.
        moving: whether the joint moves, well away from standstill [samples, n].
        torque_recorded, torque_model: target_moment and the model's torque without
            friction, joint side [samples, n], N m; None where target_moment belongs to
            recorded targets (see `compare_target_torque`) or was not recorded.
        friction_measured, friction_model: joint side [samples, n], N m; measured is the
            current's torque less links and inertia.
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
        model: of the arm.
        recording: with its filtered motions.
        setups: mounting and payloads of the recording.
        anchor: of the same model: it follows the session, so that currents have the
            friction that the recording has shown before; None for that of the model.
    """
    if anchor is not None:  # friction has no error but the anchor's
        known = replace(
            anchor.prior, friction_std=np.zeros(model.dof), moving_seconds=1.0
        )
        model = model.in_session(known)
    inertia = np.array([joint.inertia for joint in model.joints])
    nominal = np.array([joint.reflected_inertia for joint in model.joints])
    scale = np.array([joint.torque_constant * joint.gear_ratio for joint in model.joints])
    narrow = ParallelFilter(recording.cutoff)
    n = model.dof
    direction_of = FrictionDirection(model.presliding)
    # A long stretch comes in parts. The filter runs over the end of the part before, too,
    # so that nothing is left out between them: `held` is what it needs of that, and from
    # `begin` on new.
    held: FilteredMotion | None = None
    values = np.zeros((0, 0))
    with_moment = False
    begin = 0
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
        columns = [std, part.current, predicted, load]
        own = recording.torque_reference == "actual" and bool(
            np.isfinite(part.moment).all()
        )
        if own:
            later = part.time + setups.setup_and_delay(part.payload[0])[1]
            moment = [np.interp(later, part.time, column) for column in part.moment.T]
            without = link + nominal * part.qdd
            columns += [np.column_stack(moment), setups.controller_load(part, without)]
        new = np.column_stack(columns)
        goes_on = False  # without a gap
        if held is not None and own == with_moment:
            step = float(np.ptp((held if len(held) > 1 else part).time[:2]))
            goes_on = abs(part.time[0] - held.time[-1] - step) <= 0.1 * step
        if held is not None and goes_on:
            held = held.followed_by(part)
            values = np.concatenate([values, new])
        else:
            held = part
            values = new
            with_moment = own
            begin = 0
        inside = narrow.inside(held)
        rows = slice(max(begin, inside.start), inside.stop, inside.step)
        count = len(held.time[rows])
        if not count:
            continue
        filtered = narrow(held, values[:, n:])[rows]
        current, modelled, torque, *moments = np.split(
            filtered, filtered.shape[1] // n, axis=1
        )
        yield Comparison(
            motion=held.cut(rows),
            current_measured=current,
            current_model=modelled,
            current_std=values[rows, :n],
            moving=narrow.moving(held, MOVING_SPEED)[rows],
            torque_recorded=moments[0] if own else None,
            torque_model=moments[1] if own else None,
            friction_measured=current * scale - torque,
            friction_model=modelled * scale - torque,
        )
        begin = rows.start + count * rows.step
        keep = max(0, begin - 8 * inside.start)
        held = held.cut(slice(keep, None))
        values = values[keep:]
        begin = begin - keep


def compare_target_torque(
    model: EnergyModel,
    recording: Recording,
    setups: RecordingDynamics,
    batches: Iterable[Telemetry] | None = None,
) -> Iterator[tuple[Array, Array, Array]]:
    """Model torque of the recorded targets, and target_moment.

    Args:
        model: of the arm.
        recording: of which nothing comes without targets.
        setups: mounting and payloads of the recording.
        batches: with targets; None for the thinned ones that the recording keeps.

    Returns:
        Time [samples], s, target_moment and model torque [samples, n], N m, joint side,
        batch by batch.
    """
    if recording.torque_reference != "target":
        return
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    for batch in recording.torque_telemetry() if batches is None else batches:
        payload: Array = np.zeros((len(batch), 4))
        if "payload" in batch:
            payload[:, 0] = batch["payload"]
        if "payload_cog" in batch:
            payload[:, 1:] = batch["payload_cog"]
        for rows, controller_payload in payload_runs(payload):
            setup, delay = setups.setup_and_delay(controller_payload)
            q, qd, qdd, moment = (
                batch[name][rows]
                for name in ("target_q", "target_qd", "target_qdd", "target_moment")
            )
            dynamics = ArmDynamics(setups.robot, setup)
            link = dynamics.inverse_dynamics(
                q - delay * qd + 0.5 * delay**2 * qdd, qd, qdd
            )
            yield batch.time[rows], moment, link + inertia * qdd


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
        q, qd: as recorded [samples, n], rad and rad/s.
        qdd: low-passed derivative of qd [samples, n], rad/s^2.
        target_qdd: reference acceleration [samples, n], rad/s^2; NaN where not recorded.
        current: as recorded [samples, n], A.
        torque: measured torque [samples, n], N m; NaN where not recorded.
        power: at the supply [samples], W; NaN where not recorded.
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
        cutoff: of the identification's narrow filter [Hz]; accelerations pass its wide
            one.

    Raises:
        UrEnergyError: no such bag, damaged, or without motion.
    """
    pending: Telemetry | None = None
    done = -np.inf
    for batch in iterate_bag(bag, (*_NAMES, *_OTHERS)):
        # the controller restarted
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
    """Stretches of a window, cut to times from `start` up to but not including `stop`."""
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
        power = own.bus_power

        def column(name: str, width: int, own: Telemetry = own) -> Array:
            values = own[name] if name in own else np.full(len(own) * width, np.nan)
            return values.reshape(-1, width)

        slope = np.gradient(speed, time, axis=0)
        motion = RecordedSamples(
            time=time,
            q=own["actual_q"],
            qd=speed,
            qdd=low_pass(slope, float(np.median(np.diff(time))), WIDENING * cutoff),
            target_qdd=column("target_qdd", speed.shape[1]),
            current=own["actual_current"],
            torque=column("actual_current_as_torque", speed.shape[1]),
            power=np.full(len(time), np.nan) if power is None else power,
            payload=np.hstack([column("payload", 1), column("payload_cog", 3)]),
        )
        first, last = np.searchsorted(time, (start, stop)).tolist()
        if last > first:
            yield motion.cut(slice(first, last))
