"""Motion and torque of an arm that measures its torque, and their processing as in Machines 2024.

Sec. 5.3 there: averaged over the periods, smoothed without phase, acceleration by central
differences of the speed, least squares on the base parameters with friction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ur_energy_model.experiment.limits import PeriodicMotion, RepeatedMotion
from ur_energy_model.identification.base_parameters import FullRegressor, Regrouping
from ur_energy_model.low_pass import low_pass
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.papers.protocol import ProtocolRun, Row
from ur_energy_model.report.chart import Line, LineChart, Panel
from ur_energy_model.trajectory.motions import Sinusoids
from ur_energy_model.typing import Array

CUTOFF = 10.0
"""Of the smoothing [Hz]; the motion has components up to 0.5 Hz."""
_THINNING = 10
"""One of so many samples enters the least squares."""


@dataclass(frozen=True)
class Noise:
    """Errors of a measurement, standard deviations; n joints.

    Attributes:
        position: rad.
        speed: rad/s.
        torque: [n], N m.
    """

    position: float
    speed: float
    torque: Array


@dataclass(frozen=True)
class JointFriction:
    """Coulomb and viscous friction, joint side.

    Attributes:
        coulomb: [n], N m.
        viscous: [n], N m s/rad.
    """

    coulomb: Array
    viscous: Array

    def torque(self, qd: Array) -> Array:
        """At speeds [samples, n], rad/s; joint side, N m."""
        return np.asarray(self.coulomb * np.sign(qd) + self.viscous * qd)


@dataclass(frozen=True)
class MeasuredRun:
    """Samples of one arm with n joints.

    Attributes:
        time: evenly sampled [samples], s.
        q, qd, qdd: [samples, n], rad, rad/s, rad/s^2.
        torque: joint side [samples, n], N m.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    torque: Array

    @property
    def period(self) -> float:
        """Step of the samples [s]."""
        return float(self.time[1] - self.time[0])


def simulate(
    dynamics: ArmDynamics,
    motion: PeriodicMotion,
    *,
    friction: JointFriction | None = None,
    noise: Noise | None = None,
    seed: int = 0,
) -> MeasuredRun:
    """An arm that follows a motion exactly, as joint drives do in a multibody simulation.

    Args:
        dynamics: the arm in its setup.
        motion: sampled at the rate of the arm, all repetitions.
        friction: None for none.
        noise: of the measurement, None for none.
        seed: of the noise.
    """
    rate = dynamics.robot.rate
    time = np.arange(round(motion.duration * rate)) / rate
    q, qd, qdd = motion.sample(time)
    torque = dynamics.inverse_dynamics(q, qd, qdd)
    if friction is not None:
        torque = torque + friction.torque(qd)
    if noise is not None:
        random = np.random.default_rng([seed, 595])
        q = q + noise.position * random.standard_normal(q.shape)
        qd = qd + noise.speed * random.standard_normal(q.shape)
        torque = torque + noise.torque * random.standard_normal(q.shape)
    return MeasuredRun(time, q, qd, qdd, torque)


def processed(run: MeasuredRun, repetitions: int, cutoff: float = CUTOFF) -> MeasuredRun:
    """One period: the average of all, smoothed, with acceleration by central differences.

    Args:
        run: whole repetitions of a periodic motion.
        repetitions: their number.
        cutoff: of the zero-phase filter [Hz].
    """
    samples = len(run.time) // repetitions
    kept = slice(0, samples * repetitions)

    def smooth(values: Array) -> Array:
        mean = values[kept].reshape(repetitions, samples, -1).mean(axis=0)
        # The motion is periodic, so it goes on at either end.
        around = low_pass(np.concatenate([mean] * 3), run.period, cutoff)
        return around[samples : 2 * samples]

    qd = smooth(run.qd)
    qdd = (np.roll(qd, -1, axis=0) - np.roll(qd, 1, axis=0)) / (2 * run.period)
    return MeasuredRun(run.time[:samples], smooth(run.q), qd, qdd, smooth(run.torque))


def least_squares(run: MeasuredRun, regressor: FullRegressor, regrouping: Regrouping) -> Array:
    """Base parameters [rank] by ordinary least squares (eq. 17)."""
    part = slice(None, None, _THINNING)
    columns = regressor(run.q[part], run.qd[part], run.qdd[part])[:, :, regrouping.base]
    flat = columns.reshape(-1, regrouping.rank)
    return np.asarray(np.linalg.lstsq(flat, run.torque[part].ravel(), rcond=None)[0])


def predict(
    run: MeasuredRun, regressor: FullRegressor, regrouping: Regrouping, values: Array
) -> Array:
    """Torque [samples, n], N m, of a motion by base parameters [rank]."""
    parts = np.array_split(np.arange(len(run.time)), max(1, len(run.time) // 1000))
    return np.concatenate(
        [
            regressor(run.q[part], run.qd[part], run.qdd[part])[:, :, regrouping.base] @ values
            for part in parts
        ]
    )


# Load check of Machines 2024, sec. 5.2: the torque coefficient of joint 3 from a known load.
#
# With and without load the forearm swings through the horizontal twice. There the load's torque is
# its weight times its lever; the difference of the drive's torque values, times torque coefficient
# and gear ratio, should be the same.

JOINT = 2
_WINDOW = 0.05
"""Averaged before and after the horizontal [s]."""
_SWING = 0.5
"""Amplitude of the forearm about the horizontal [rad]."""
_PERIOD = 10.0
_NOISE = 3.0
"""Standard deviation of one torque value [drive units], assumed."""
_COEFFICIENT_ERROR = 0.03
"""Largest error of the coefficient in the drive's software, relative."""


@dataclass(frozen=True)
class Swing:
    """Torque values of the drive over two cycles.

    Attributes:
        run: simulated motion and torque.
        values: of joint 3 [samples], drive units.
        crossings: instants at the horizontal [4], indices.
    """

    run: MeasuredRun
    values: Array
    crossings: tuple[int, ...]

    def at_horizontal(self) -> list[float]:
        """Mean values within the window about each crossing."""
        half = round(_WINDOW / self.run.period)
        return [float(self.values[k - half : k + half + 1].mean()) for k in self.crossings]


def check_load(session: ProtocolRun, published: Mapping[str, Any]) -> list[Row]:
    """Rows of Tables 6 and 7, and pictures of Figs. 9 and 10."""
    random = np.random.default_rng([session.seed, 213])
    given = published["torque_coefficients"][JOINT]
    ratio = float(session.robot.gear_ratio[JOINT])
    true = given * (1 + random.uniform(-_COEFFICIENT_ERROR, _COEFFICIENT_ERROR))
    swings = {
        mass: _swing(session, published, mass, 1 / (true * ratio), random)
        for mass in (0.0, published["load_mass"])
    }
    unloaded, loaded = swings[0.0], swings[published["load_mass"]]
    # Cycles of the loaded run against cycles of the unloaded one, at both crossings: eight.
    differences = [
        abs(loaded.at_horizontal()[2 * i + side] - unloaded.at_horizontal()[2 * k + side])
        for i, k, side in product(range(2), range(2), range(2))
    ]
    applied = float(
        published["load_mass"] * session.robot.controller_gravity * published["load_arm"]
    )
    mean = float(np.mean(differences))
    estimated = mean * given * ratio
    _draw(session, unloaded, loaded)
    place, how = "Section 5.2", "mean difference times torque coefficient times gear ratio"
    return [
        Row(
            "differences between load and no load [drive units]",
            published["load_differences"],
            differences,
            "Table 7",
            "50 ms about the horizontal, two cycles each, loaded minus unloaded",
            ("arm", "data"),
        ),
        Row("their mean", float(np.mean(published["load_differences"])), mean, "Table 7",
            "mean of the eight", ("arm", "data"), 0.1),
        Row("torque of the load [N m]", published["payload_torque_applied"], applied, place,
            "15.5 kg at 1.405 m from the axis", (), 1e-3),
        Row("torque of the load, estimated [N m]", published["payload_torque_estimated"], estimated,
            place, how, ("arm", "data"), 0.05),
        Row("estimated over applied", published["payload_torque_estimated"]
            / published["payload_torque_applied"], estimated / applied, place, how,
            ("arm", "data"), 0.05),
        Row("torque coefficient, calibrated with the load [N m per unit]", given,
            applied / (mean * ratio), "Table 6",
            f"applied torque over mean difference and ratio; the simulated drive has {true:.5f}",
            ("arm", "data"), 0.05),
    ]  # fmt: skip


def _swing(
    session: ProtocolRun, published: Mapping[str, Any], mass: float, scale: float, random: Any
) -> Swing:
    """Four passages of the horizontal by the forearm with a mass [kg] at the paper's distance."""
    robot = session.robot
    level = _horizontal(ArmDynamics(robot))
    amplitude, frequency = np.zeros(robot.dof), np.full(robot.dof, 1 / _PERIOD)
    amplitude[JOINT] = _SWING
    motion = RepeatedMotion(
        robot.name, Sinusoids(level, amplitude, frequency, 2.5 * _PERIOD, fade_time=1.0)
    )
    gravity = np.array([0.0, 0.0, -robot.controller_gravity])
    flange = _lever(ArmDynamics(robot), level)
    centre = np.array([0.0, 0.0, published["load_arm"] - flange])
    dynamics = ArmDynamics(robot, Setup(gravity=gravity, payload=Payload(mass, centre)))
    friction = JointFriction(np.array(published["coulomb"]), np.array(published["viscous"]))
    run = simulate(dynamics, motion, friction=friction)
    values = run.torque[:, JOINT] * scale + _NOISE * random.standard_normal(len(run.time))
    angle = run.q[:, JOINT] - level[JOINT]
    edge = round(0.25 * _PERIOD / run.period)
    inside = slice(edge, len(angle) - edge)
    crossings = np.flatnonzero(np.diff(angle[inside] > 0)) + edge
    return Swing(run, values, tuple(int(k) for k in crossings))


def _horizontal(dynamics: ArmDynamics) -> Array:
    """Joint positions [n], rad, with a horizontal forearm and a wrist in line with it."""
    q = np.zeros(dynamics.dof)
    quarter = np.pi / 2

    def height(angle: float) -> float:
        q[JOINT] = angle
        return float(_forearm(dynamics, q)[2])

    # Of the form a cos q + b sin q; its root.
    q[JOINT] = np.arctan2(-height(0.0), height(quarter))

    def along(angle: float) -> float:
        q[4] = angle
        forearm = _forearm(dynamics, q)
        return float(dynamics.frames(q[None])[0][0, -1, :3, 2] @ forearm)

    # Of the same form; its maximum.
    straight = np.arctan2(along(quarter), along(0.0))
    q[4] = straight
    return q


def _forearm(dynamics: ArmDynamics, q: Array) -> Array:
    """From the axis of joint 3 to the flange [3], m, base frame."""
    links, joints = dynamics.frames(q[None])
    return np.asarray(links[0, -1, :3, 3] - joints[0, JOINT, :3, 3])


def _lever(dynamics: ArmDynamics, q: Array) -> float:
    """Distance of the flange from the axis of joint 3 [m]."""
    return float(np.linalg.norm(_forearm(dynamics, q)))


def _draw(session: ProtocolRun, unloaded: Swing, loaded: Swing) -> None:
    time = unloaded.run.time
    motion = (
        Panel("", (Line("angle", time, unloaded.run.q[:, JOINT], joint=JOINT),), y_label="rad"),
        Panel("", (Line("speed", time, unloaded.run.qd[:, JOINT], joint=JOINT),), y_label="rad/s"),
    )
    values = tuple(
        Line(label, time, swing.values, joint=joint)
        for joint, (label, swing) in enumerate((("no load", unloaded), ("load", loaded)))
    )
    for key, title, place, panels in (
        ("s4_swing", "Angle and speed of joint 3 in the load check", "Fig. 9", motion),
        ("s4_load", "Torque values of joint 3", "Fig. 10", (Panel("", values, y_label="units"),)),
    ):
        chart = LineChart(
            key=key,
            title=title,
            caption="",
            x_label="time [s]",
            y_label="",
            panels=panels,
            columns=1,
        )
        session.picture(chart, place)
