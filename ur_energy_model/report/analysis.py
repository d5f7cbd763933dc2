# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Analysis: a recording compared with the model, as arrays for the figures of a report.

Torques are joint side, like target_moment. METRICS are computed from the same
samples (`identification.comparison`), so figures and tables are consistent. Equations
of powers and energies: Clochiatti et al., Robotica 2024 (eq. 19-26) and Heredia et al.,
EcBot (eq. 13-21).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.friction_follower import FrictionFollower
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter, bridged_steps
from ur_energy_model.energy.powers import MEASURED_FIELDS
from ur_energy_model.energy.recording_energy import energy_at
from ur_energy_model.errors import RecordingError
from ur_energy_model.files import real_path
from ur_energy_model.identification.comparison import (
    Comparison,
    compare,
    compare_target_torque,
)
from ur_energy_model.identification.dynamics import RecordingDynamics
from ur_energy_model.identification.evaluation import read_for_comparison
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.visited_path import Motion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload
from ur_energy_model.report.chart import Timeline
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import checked_clock
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate
from ur_energy_model.typing import Array, Indices, Mask

CHUNK = 20_000
"""Number of samples processed at a time, which bounds the memory of the sensitivities."""
DRAWN_SECONDS = 1200.0  # longest part of a recording that figures over time show [s]
FOCUS_SECONDS = 30.0
"""Length of the part that the page shows first if a recording is three times as long [s]."""
PATH_POINTS = 2000  # approximate number of points of the flange's path


@dataclass(frozen=True)
class Powers(Timeline):
    """Powers [W] of n samples and energies [J] of a recording; half widths of 95 % intervals.

    Motors, drivers, standby, regeneration and what is unexplained sum to the total, which
    is measured where bus power is.

    Attributes:
        electrical: electrical power of the motors [n, joints], W.
        mechanical: mechanical power at the shafts, friction included [n, joints], W.
        electrical_half_width: half width of the interval of `electrical` [n,
            joints], W.
        driver: power of the motor drivers of the whole arm [n], W.
        standby: power of the arm at rest without motors [n], W.
        regeneration: what the supply cannot take back [n], W.
        unexplained: total less model, 0 where the total is modelled [n], W.
        model: sum of the modelled parts [n], W.
        model_half_width: half width of the interval of `model` [n], W.
        total: power of the whole arm at the supply [n], W.
        measured: whether the total is measured [n].
        energy: integral of each joint's electrical power since the start [n, joints], J.
        total_energy: integral of the total since the start [n], J.
        electrical_energy: integral of `electrical` over the whole recording [joints], J.
        mechanical_energy: integral of `mechanical` [joints], J.
        driver_energy: integral of `driver` over the whole recording [J].
        standby_energy: integral of `standby` [J].
        regeneration_energy: integral of `regeneration` [J].
        unexplained_energy: integral of `unexplained` [J].
        energy_half_width: half width of the intervals of `electrical_energy`
            [joints], J.
        total_energy_half_width: half width of the interval of the total's
            energy [J].
        duration: time that energy was integrated over, without gaps [s].
    """

    electrical: Array
    mechanical: Array
    electrical_half_width: Array
    driver: Array
    standby: Array
    regeneration: Array
    unexplained: Array
    model: Array
    model_half_width: Array
    total: Array
    measured: Mask
    energy: Array
    total_energy: Array
    electrical_energy: Array
    mechanical_energy: Array
    driver_energy: float
    standby_energy: float
    regeneration_energy: float
    unexplained_energy: float
    energy_half_width: Array
    total_energy_half_width: float
    duration: float


class _PowerChunk(NamedTuple):
    """Powers of some consecutive samples of a recording; m samples.

    Attributes:
        time: times of the samples [m], s.
        steps: steps to the samples, 0 behind gaps [m], s.
        power: powers of the channels [m, channels], W.
        joint_std: standard deviations of the electrical powers of the joints [m, joints],
            W.
        model_std: standard deviation of the sum of the modelled parts [m], W.
        energy: integrals since the start, of the electrical powers of the joints and of the
            total [m, joints + 1], J.
    """

    time: Array
    steps: Array
    power: Array
    joint_std: Array
    model_std: Array
    energy: Array


def recording_powers(model: EnergyModel, telemetry: Telemetry) -> Powers:
    """Powers and energies of a recording, computed as by `estimate_energy`.

    Args:
        model: model of the arm.
        telemetry: all samples that are shown, with the fields of the calculator.

    Raises:
        RecordingError: no sample can be used.
    """
    calculator = EnergyCalculator(model, load_robot(model.robot))
    channels = calculator.channels
    electrical = channels.per_joint["electrical_power"]
    mechanical = channels.per_joint["mechanical_power"]
    arm = channels.arm
    meter = EnergyMeter(len(channels))
    pieces = list(_power_chunks(calculator, telemetry, meter))
    if not pieces:
        source = telemetry.info.source
        raise RecordingError(
            source, "contains no sample with finite values", "record again"
        )
    whole = _PowerChunk(*map(np.concatenate, zip(*pieces, strict=True)))
    power = whole.power
    net = meter.reading.net
    energy_std, total_energy_std = channels.deviations(net)
    return Powers(
        time=whole.time - whole.time[0],
        breaks=np.flatnonzero(whole.steps[1:] == 0.0) + 1,
        electrical=power[:, electrical],
        mechanical=power[:, mechanical],
        electrical_half_width=CONFIDENCE * whole.joint_std,
        driver=power[:, arm["driver"]],
        standby=power[:, arm["standby"]],
        regeneration=power[:, arm["regeneration"]],
        unexplained=power[:, arm["unexplained"]],
        model=power[:, arm["model"]],
        model_half_width=CONFIDENCE * whole.model_std,
        total=power[:, arm["total"]],
        measured=power[:, arm["measured"]] > 0.0,
        energy=whole.energy[:, :-1],
        total_energy=whole.energy[:, -1],
        electrical_energy=net[electrical],
        mechanical_energy=net[mechanical],
        driver_energy=float(net[arm["driver"]]),
        standby_energy=float(net[arm["standby"]]),
        regeneration_energy=float(net[arm["regeneration"]]),
        unexplained_energy=float(net[arm["unexplained"]]),
        energy_half_width=CONFIDENCE * energy_std,
        total_energy_half_width=CONFIDENCE * total_energy_std,
        duration=meter.reading.accounted,
    )


def _power_chunks(
    calculator: EnergyCalculator, telemetry: Telemetry, meter: EnergyMeter
) -> Iterator[_PowerChunk]:
    """Powers of a recording in chunks of CHUNK samples.

    Args:
        calculator: calculator of the powers.
        telemetry: all samples that are shown.
        meter: counts the energies of all chunks so far.

    Yields:
        Powers of the samples that can be used.
    """
    channels = calculator.channels
    electrical = channels.per_joint["electrical_power"]
    shown = [*range(electrical.start, electrical.stop), channels.arm["total"]]
    chunks = [telemetry.cut(slice(k, k + CHUNK)) for k in range(0, len(telemetry), CHUNK)]
    calculator.follow_session(chunks)
    for chunk in chunks:
        table = calculator(chunk)
        if table is None:
            continue
        table.integrate(meter)
        power = table.power
        steps = table.steps.bridged
        end = meter.reading.net
        yield _PowerChunk(
            time=table.samples.time,
            steps=steps,
            power=power[:, : channels.state_energy].copy(),
            joint_std=channels.deviations_of_joints(power),
            model_std=channels.deviations_of_model(power, over=steps),
            energy=np.column_stack(
                [energy_at(steps, power[:, k], end[k]) for k in shown]
            ),
        )


def gap_indices(time: Array) -> Indices:
    """Where a recording is interrupted.

    Args:
        time: times of the samples, ascending [samples], s.

    Returns:
        Indices of the samples after a gap [gaps].
    """
    return np.flatnonzero(bridged_steps(time)[1:] == 0.0) + 1


@dataclass(frozen=True)
class TorqueComparison(Timeline):
    """The controller's and the model's torque [m, joints]; joint side, N m.

    Attributes:
        recorded: target_moment.
        modelled: torque of links, payload and motor inertia.
    """

    recorded: Array
    modelled: Array


@dataclass(frozen=True)
class CurrentComparison(Timeline):
    """Measured currents and those that the model predicts from the motion alone, and friction.

    Arrays are [m, joints]; torques are joint side.

    Attributes:
        q: filtered joint positions [rad].
        qd: filtered joint speeds [rad/s].
        qdd: filtered joint accelerations [rad/s^2].
        measured: filtered actual_current [A].
        modelled: the model's current along the filtered motion [A].
        friction_measured: torque of the measured current, minus links, payload and motor
            inertia [N m].
        friction_modelled: friction torque of the model [N m].
        moving: whether the joint moves, well away from standstill.
        temperature: temperatures of the joints [degC], NaN where not recorded.
        cutoff: cut-off frequency of the low-pass filter [Hz].
    """

    q: Array
    qd: Array
    qdd: Array
    measured: Array
    modelled: Array
    friction_measured: Array
    friction_modelled: Array
    moving: Mask
    temperature: Array
    cutoff: float


@dataclass(frozen=True)
class Analysis:
    """One recording compared with the model, as arrays for the figures.

    Attributes:
        label: short name of the recording in headings and legends.
        motion: relation to the recordings that the model was fitted to.
        info: origin of the recording.
        joint_names: names of the joints from base to tool.
        flange: path of the flange in the base frame, at some samples of `current` [k, 3], m.
        flange_time: times of these samples [k], s.
        flange_speed: speed of the tool centre point of a controller without tool [k],
            m/s.
        torque: compared torques; None if target_moment was not recorded.
        current: compared currents, friction and temperatures.
        powers: powers and energies.
        cut: whether the recording is longer than what is shown.
    """

    label: str
    motion: Motion
    info: RecordingInfo
    joint_names: tuple[str, ...]
    flange: Array
    flange_time: Array
    flange_speed: Array
    torque: TorqueComparison | None
    current: CurrentComparison
    powers: Powers
    cut: bool

    @property
    def focus(self) -> tuple[float, float] | None:
        """Part of a long recording with the most energy, which the page shows first.

        Returns:
            Start and end [s]; None for a recording that is short enough to be seen at once.
        """
        time = self.powers.time
        energy = self.powers.total_energy
        if time[-1] < 3 * FOCUS_SECONDS:
            return None
        starts = np.arange(0.0, time[-1] - FOCUS_SECONDS, FOCUS_SECONDS / 4)
        before = np.interp(starts, time, energy)
        gains = np.interp(starts + FOCUS_SECONDS, time, energy) - before
        start = float(starts[np.argmax(gains)])
        return start, start + FOCUS_SECONDS


def analyse(
    model: EnergyModel,
    bag: str | Path,
    *,
    label: str | None = None,
    motion: Motion = "unknown",
    payload: Payload | None = None,
) -> Analysis:
    """Compare a recording with a model whose friction is anchored on the first seconds of motion.

    Args:
        model: model of the arm.
        bag: the recording, of which at most `DRAWN_SECONDS` are used.
        label: short name; None for the name of the bag.
        motion: relation to the recordings that the model was fitted to.
        payload: the actual one; None estimates mounting and payload from the bag.

    Raises:
        UrEnergyError: invalid input, with source and remedy.
    """
    telemetry, is_cut = _drawn_samples(Path(bag))
    start = float(telemetry.time[0])
    recording, setups = read_for_comparison(model, bag, payload=payload)
    with recording:
        compared = compare(model, recording, setups, FrictionFollower(model))
        parts = [part for part in compared if part.motion.time[0] < start + DRAWN_SECONDS]
        if not parts:
            problem = "has no second in which the robot runs without interruption"
            raise RecordingError(bag, problem, "record while it moves, brakes released")
        current = _current_comparison(parts, start, recording.cutoff)
        torque = _torque_comparison(model, recording, setups, parts, start)
        payload_setting = np.nan_to_num(parts[0].motion.payload[0])
        setup, _ = setups.setup_and_delay(payload_setting)
        dynamics = ArmDynamics(setups.robot, setup)
    every = slice(None, None, max(1, len(current.q) // PATH_POINTS))
    speed = dynamics.flange_speed(current.q[every], current.qd[every])
    return Analysis(
        label=label or real_path(bag).name,
        motion=motion,
        info=telemetry.info,
        joint_names=tuple(joint.name for joint in model.joints),
        flange=dynamics.flange_pose(current.q[every])[:, :3, 3],
        flange_time=current.time[every],
        flange_speed=np.linalg.norm(speed, axis=1),
        torque=torque,
        current=current,
        powers=recording_powers(model, telemetry),
        cut=is_cut,
    )


def _drawn_samples(bag: Path) -> tuple[Telemetry, bool]:
    """Samples of a bag that figures show, and whether the recording is longer."""
    batches = []
    covered = 0.0
    for batch in checked_clock(iterate_bag(bag, MEASURED_FIELDS), bag):
        batches.append(batch)
        covered += batch.duration
        if covered > DRAWN_SECONDS:
            break
    telemetry = concatenate(batches).distinct()
    late = np.flatnonzero(telemetry.time - telemetry.time[0] > DRAWN_SECONDS)
    if not late.size:
        return telemetry, False
    return telemetry.cut(slice(0, int(late[0]))), True


def _current_comparison(
    parts: Sequence[Comparison], start: float, cutoff: float
) -> CurrentComparison:
    """Measured and modelled currents of all parts, as far as figures show them.

    Args:
        parts: stretches of the recording, at least one.
        start: time of the first sample of the recording [s].
        cutoff: cut-off frequency of the low-pass filter [Hz].
    """
    whole = np.concatenate([part.motion.time for part in parts])
    shown = whole - start <= DRAWN_SECONDS
    time = whole[shown] - start
    return CurrentComparison(
        time=time,
        breaks=gap_indices(time),
        q=np.concatenate([part.motion.q for part in parts])[shown],
        qd=np.concatenate([part.motion.qd for part in parts])[shown],
        qdd=np.concatenate([part.motion.qdd for part in parts])[shown],
        measured=np.concatenate([part.current_measured for part in parts])[shown],
        modelled=np.concatenate([part.current_model for part in parts])[shown],
        friction_measured=np.concatenate([part.friction_measured for part in parts])[
            shown
        ],
        friction_modelled=np.concatenate([part.friction_model for part in parts])[shown],
        moving=np.concatenate([part.moving for part in parts])[shown],
        temperature=np.concatenate([part.motion.temperature for part in parts])[shown],
        cutoff=cutoff,
    )


def _torque_comparison(
    model: EnergyModel,
    recording: Recording,
    setups: RecordingDynamics,
    parts: Sequence[Comparison],
    start: float,
) -> TorqueComparison | None:
    """Torques of controller and model, as far as figures show them; None without target_moment.

    They are along the target motion if it was recorded, else along the measured motion.

    Args:
        model: model of the arm.
        recording: recording as it was read.
        setups: mounting and payloads of the recording.
        parts: stretches of the recording.
        start: time of the first sample of the recording [s].
    """
    rows = list(compare_target_torque(model, recording, setups))
    if not rows:
        rows = [
            (part.motion.time, part.torque_recorded, part.torque_model)
            for part in parts
            if part.torque_recorded is not None and part.torque_model is not None
        ]
    if not rows:
        return None
    times, recorded, modelled = zip(*rows, strict=True)
    whole = np.concatenate(times)
    shown = whole - start <= DRAWN_SECONDS
    time = whole[shown] - start
    return TorqueComparison(
        time=time,
        breaks=gap_indices(time),
        recorded=np.concatenate(recorded)[shown],
        modelled=np.concatenate(modelled)[shown],
    )
