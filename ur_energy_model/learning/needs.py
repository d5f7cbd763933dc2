# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What ordinary work has not shown yet, and how uncertain that leaves the energy.

Uncertainties are shares of the energy of a reference work: point-to-point moves through
the whole workspace at the speeds of test programs (`trajectory_a` of the simulator). They
combine the uncertainty of the identified parameters with the uncertainty of a friction law beyond
the speeds it was fitted to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.motor_powers import MeasuredPowers
from ur_energy_model.energy.powers import ArmState, arm_states
from ur_energy_model.identification.filtered_motion import merged_ranges
from ur_energy_model.model.drive_errors import LOAD_COEFFICIENT
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.needs import Need
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.named_motions import named_motion
from ur_energy_model.typing import Array

SPEED_EDGES = np.array(
    [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.4, 1.8, 2.2, 2.7, 3.3, 4.0, 5.0, 7.0]
)
"""Bounds of the counted speed ranges [rad/s], about even in their effect on friction."""
_WARM_SPEED = 0.05
"""Joint speed above which a temperature counts as one in motion [rad/s]."""
_LONGEST_STEP = 0.5
"""Time that a sample counts for at most [s]: the rest of a gap shows nothing."""


class Coverage:
    """What work has shown of an arm, in constant memory.

    Args:
        joints: number of joints n.

    Attributes:
        speed_seconds: time of motion in each range between SPEED_EDGES [n, ranges], s.
        temperature: lowest and highest temperature of each joint in motion [n, 2], degC;
            NaN where it is unknown.
        bus_seconds: time with measured bus power [s].
        still_seconds: time with measured bus power and standstill, brakes released [s].
    """

    def __init__(self, joints: int) -> None:
        self.speed_seconds = np.zeros((joints, len(SPEED_EDGES) - 1))
        self.temperature = np.full((joints, 2), np.nan)
        self.bus_seconds = 0.0
        self.still_seconds = 0.0

    def observe(self, window: Telemetry) -> None:
        """Use samples that follow the samples of the last call.

        Args:
            window: samples; a sample with an unknown speed of a joint is left out.
        """
        if "actual_qd" not in window or len(window) < 2:
            return
        speed = np.abs(window["actual_qd"])
        steps = np.clip(np.diff(window.time, prepend=window.time[:1]), 0.0, _LONGEST_STEP)
        # A speed below the first edge has the place 0, above the last edge the place
        # len(SPEED_EDGES); neither is counted.
        places = np.digitize(np.nan_to_num(speed), SPEED_EDGES)
        for joint, of_joint in enumerate(places.T):
            seconds = np.bincount(of_joint, steps, len(SPEED_EDGES) + 1)
            self.speed_seconds[joint] += seconds[1:-1]
        if "joint_temperatures" in window:
            moving = speed > _WARM_SPEED
            shown = np.where(moving, window["joint_temperatures"], np.nan)
            ranges = np.stack([np.fmin.reduce(shown), np.fmax.reduce(shown)], axis=1)
            self.temperature = merged_ranges(self.temperature, ranges)
        bus = window.bus_power
        if bus is not None:
            known = np.isfinite(bus)
            still = arm_states(window, window["actual_qd"]) == ArmState.STANDSTILL
            self.bus_seconds += float(steps[known].sum())
            self.still_seconds += float(steps[known & still].sum())

    def saved(self) -> dict[str, Array]:
        """The arrays by which `restore` continues: attributes, and both times as `seconds`."""
        seconds = np.array([self.bus_seconds, self.still_seconds])
        return {**vars(self), "seconds": seconds}

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue from saved arrays.

        Args:
            saved: arrays that `saved` returned.
        """
        self.speed_seconds = np.array(saved["speed_seconds"])
        self.temperature = np.array(saved["temperature"])
        bus, still = np.asarray(saved["seconds"], float).tolist()
        self.bus_seconds = bus
        self.still_seconds = still


REFERENCE_WORK = "trajectory_a"
SHOWN_SECONDS = 2.0  # motion in a range of speeds after which it counts as shown [s]
LEAST_SHARE = 0.3  # smallest share of the energy that is listed [%]
MOST = 5  # longest list
_EXTRAPOLATION = 0.17
"""Relative error of friction per doubling of the speed beyond the fitted ones: Coulomb and viscous
friction fitted below 0.5 rad/s to a UR5e's factory calibration is 46 % too high at 3.2
rad/s."""
_SLOPE = 0.01
"""Relative change of friction with temperature that the model may lack [1/K]."""
_COLD = 10.0  # temperature of a cold start below the shown ones [K]
_WARM_RANGE = 6.0  # range of temperatures that shows their effect [K]
_EVEN_LOAD = 0.2
"""Share of gravity in the range of a joint's load from which changing loads are listed."""
_MOSTLY_CONSTANT = 0.5
"""Share of the uncertainty by parameters above which the torque constant leaves it open."""
_RATE = 50.0  # samples of the reference work per second [Hz]
_SLOW = 0.2  # speed below which every joint should have moved [rad/s]
_SLOWEST_NEEDED = 0.05  # slow end of the range that is asked for otherwise [rad/s]


@dataclass(frozen=True)
class ReferenceWork:
    """Reference work of an arm with n joints, by one model, with k samples.

    Attributes:
        energy: energy of the whole arm at the supply [J].
        seconds: duration [s].
        speed: absolute joint speeds [k, n], rad/s.
        cost: change of the energy by the current of each joint in each sample [k, n], J/A.
        load: torque of links, payload and rotor inertia, motor side [k, n], N m.
        gravity: torque of links and payload at rest, motor side [k, n], N m.
        terms: regressors of the friction of each joint, motor side [n][k, p], N m.
        friction: current of the friction [k, n], A.
    """

    energy: float
    seconds: float
    speed: Array
    cost: Array
    load: Array
    gravity: Array
    terms: list[Array]
    friction: Array

    def percent(self, deviation: float) -> float:
        """Half width of the 95 % interval [%] of a standard deviation of the energy [J]."""
        return float(100.0 * CONFIDENCE * deviation / self.energy)


def reference_work(
    model: EnergyModel, robot: RobotDescription | None = None
) -> ReferenceWork:
    """The reference work, which takes long to compute and depends on the model alone.

    Args:
        model: model of the arm.
        robot: description of the arm; None loads the one that the model names.
    """
    robot = model.description(robot)
    motion = named_motion(REFERENCE_WORK, robot, model.setup)
    time = np.arange(0.0, motion.duration, 1.0 / _RATE)
    q, qd, qdd = motion.sample(time)
    dynamics = model.dynamics(robot=robot)
    ratio, constant, resistance, back_emf, inertia = np.array([
        (
            joint.gear_ratio, joint.torque_constant, joint.winding_resistance,
            joint.back_emf_constant, joint.reflected_inertia,
        )
        for joint in model.joints
    ]).T  # fmt: skip
    load = dynamics.inverse_dynamics(q, qd, qdd) + inertia * qdd
    bank = FrictionBank([joint.friction for joint in model.joints], ratio)
    friction = bank.torque(qd, load) / constant
    current = load / (ratio * constant) + friction
    formula = MeasuredPowers(model)
    steps = np.full(len(time), 1.0 / _RATE)
    demand = model.bus.standby + formula.powers(formula.motion(steps, qd, current)).demand
    return ReferenceWork(
        energy=float(np.maximum(demand, model.bus.floor).sum()) / _RATE,
        seconds=len(time) / _RATE,
        speed=np.abs(qd),
        cost=(2.0 * resistance * current + back_emf * ratio * qd) / _RATE,
        load=load / ratio,
        gravity=dynamics.gravity_torque(q) / ratio,
        terms=bank.regressors(qd, load),
        friction=friction,
    )


def needs(
    model: EnergyModel, coverage: Coverage, work: ReferenceWork | None = None
) -> tuple[Need, ...]:
    """Work that would make the energies of the arm more certain, the most useful first.

    Args:
        model: model of the arm.
        coverage: work that the model was learned from.
        work: the reference work by this model; None computes it for the arm that the
            model names.

    Returns:
        At most `MOST` needs, each with at least `LEAST_SHARE` of the energy.
    """
    work = reference_work(model) if work is None else work
    found = [_of_joint(j, model, coverage, work) for j in range(model.dof)]
    if coverage.still_seconds < SHOWN_SECONDS:
        share = work.percent(model.session.standby_std * work.seconds)
        what = "standstill"
        lacks = f"the arm has not stood still for {SHOWN_SECONDS:g} s"
        if coverage.bus_seconds < SHOWN_SECONDS:
            what = "bus_power"
            lacks = "bus power was not measured"
        words = f"{lacks}: standby power leaves {share:.1f} % of the energy open"
        found.append(Need(None, what, None, share, words))
    found += _temperature_needs(model, coverage, work)
    large = [need for need in found if need.energy_share_percent >= LEAST_SHARE]
    large.sort(key=lambda need: -need.energy_share_percent)
    return tuple(large[:MOST])


def _temperature_needs(
    model: EnergyModel, coverage: Coverage, work: ReferenceWork
) -> list[Need]:
    """The need of other temperatures, as a list of one need.

    The list is empty if each joint has shown a range of temperatures, or has a friction law
    whose temperature terms were fitted over such a range.
    """
    low, high = coverage.temperature.T
    unknown: list[int] = []  # joints whose friction at other temperatures is not known
    for j, joint in enumerate(model.joints):
        lowest, highest = joint.friction.temperature_range or (0.0, 0.0)
        fitted = highest - lowest >= _WARM_RANGE
        modelled = joint.friction.law.uses_temperature and fitted
        if high[j] - low[j] < _WARM_RANGE and not modelled:
            unknown.append(j)
    if not unknown:
        return []
    friction = float(np.abs(work.cost * work.friction)[:, unknown].sum())
    share = work.percent(_SLOPE * _COLD * friction)
    degrees = float(np.mean(low[unknown] + high[unknown])) / 2
    words = (
        f"the arm has worked at about {degrees:.0f} degC only: a start {_COLD:g} degrees "
        f"colder leaves {share:.1f} % of the energy open"
    )
    return [Need(None, "temperature", None, share, words)]


def next_needed(found: tuple[Need, ...]) -> str:
    """The most useful need in words; "nothing" without any need."""
    return found[0].words if found else "nothing"


def _extrapolation_std(j: int, work: ReferenceWork, fastest: float) -> float:
    """Standard deviation of the energy by friction of joint j at speeds not shown yet [J].

    The error of the friction law grows with each doubling of the speed beyond `fastest`,
    the largest speed that was shown [rad/s].
    """
    shown_speed = max(fastest, SPEED_EDGES[0])
    doublings = np.log2(np.maximum(work.speed[:, j], shown_speed) / shown_speed)
    current_error = _EXTRAPOLATION * doublings * np.abs(work.friction[:, j])
    return float((np.abs(work.cost[:, j]) * current_error).sum())


def _shown_speeds(seconds: Array) -> tuple[float, float]:
    """Slowest and fastest speed that a joint has shown [rad/s].

    Args:
        seconds: time of motion in each range between SPEED_EDGES [ranges], s.

    Returns:
        The bounds of the ranges; the first edge and 0 for a joint that has hardly moved.
    """
    shown = np.flatnonzero(seconds >= SHOWN_SECONDS)
    if not shown.size:
        return float(SPEED_EDGES[0]), 0.0
    return float(SPEED_EDGES[shown[0]]), float(SPEED_EDGES[shown[-1] + 1])


def _of_joint(
    j: int, model: EnergyModel, coverage: Coverage, work: ReferenceWork
) -> Need:
    """What a joint has not shown yet: speeds, else loads or accelerations.

    Speeds are needed where the joint has hardly moved or not at fast or slow speeds, and
    where friction, not the torque constant, leaves most of the energy open.

    Args:
        j: index of the joint, from 0.
        model: model of the arm.
        coverage: motion that the arm has shown.
        work: reference work, whose energy the uncertainty is a share of.
    """
    joint = model.joints[j]
    cost = work.cost[:, j]
    load = work.load[:, j]
    slowest, fastest = _shown_speeds(coverage.speed_seconds[j])
    top = float(work.speed[:, j].max())
    # Lower bound of the range of speeds to which the top speed of the work belongs.
    below_top = SPEED_EDGES[max(int(np.searchsorted(SPEED_EDGES, top)) - 1, 0)]
    # Standard deviations of the energy [J]: by all parameters of the current, and by the
    # torque constant alone.
    regressors = np.column_stack([load, work.terms[j]])
    by_parameters = float(np.linalg.norm(cost @ regressors @ joint.current_root))
    coefficient_std = float(np.linalg.norm(joint.current_root[LOAD_COEFFICIENT]))
    by_constant = abs(float(cost @ load)) * coefficient_std
    by_extrapolation = _extrapolation_std(j, work, fastest)
    share = work.percent(float(np.hypot(by_parameters, by_extrapolation)))
    speeds: tuple[float, float] | None = (slowest, top)
    what = "speed"
    if fastest == 0.0:
        lacks = "has hardly moved: what is not known of it"
    elif fastest < below_top:
        lacks = f"has not moved faster than {fastest:g} rad/s: its friction"
        speeds = (fastest, top)
    elif slowest > _SLOW:
        lacks = f"has not moved slower than {slowest:g} rad/s: its friction"
        speeds = (_SLOWEST_NEEDED, slowest)
    elif by_constant <= _MOSTLY_CONSTANT * by_parameters:
        lacks = "has moved too little: its friction"
    else:
        speeds = None
        range_of_gravity = float(np.ptp(work.gravity[:, j]))
        if range_of_gravity > _EVEN_LOAD * float(np.ptp(load)):
            what = "load"
            lacks = "has been loaded too evenly: its torque constant"
        else:
            what = "acceleration"
            lacks = "has been accelerated too little: its torque constant"
    words = f"{joint.name} {lacks} leaves {share:.1f} % of the energy open"
    return Need(j, what, speeds, share, words)
