"""The energy that a planned trajectory will take, before the robot moves."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.gaps import bridged_steps
from ur_energy_model.energy.meter import efficiency, integrate
from ur_energy_model.energy.supply import SupplyStore
from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription

Array = NDArray[np.float64]

SAMPLE_PERIOD = 0.008
"""Of the powers that are integrated [s]."""


@dataclass(frozen=True)
class Plan:
    """A planned joint trajectory: positions at times, derivatives where they are known.

    Attributes:
        time: increasing [k], k >= 2, s.
        q: joint positions [k, n], rad.
        qd: joint velocities [k, n], rad/s, or None.
        qdd: joint accelerations [k, n], rad/s^2, or None.
        source: where it came from, for error messages.
    """

    time: Array
    q: Array
    qd: Array | None = None
    qdd: Array | None = None
    source: str = "trajectory"

    def __post_init__(self) -> None:
        parts = [self.time, self.q, *(part for part in (self.qd, self.qdd) if part is not None)]
        if len(self.time) < 2:
            raise InputError(self.source, "has fewer than two points", "give a whole trajectory")
        if not all(np.isfinite(part).all() for part in parts):
            raise InputError(
                self.source, "holds values that are not finite", "mend or remove those points"
            )
        if (np.diff(self.time) <= 0).any():
            place = int(np.flatnonzero(np.diff(self.time) <= 0)[0]) + 1
            raise InputError(
                self.source, f"time does not increase at point {place}", "sort the points by time"
            )

    @property
    def duration(self) -> float:
        """From the first to the last point [s]."""
        return float(self.time[-1] - self.time[0])

    def sampled(self, period: float = SAMPLE_PERIOD) -> tuple[Array, Array, Array, Array]:
        """Time from the start [m], positions, velocities and accelerations [m, n].

        Quintic between points with accelerations, cubic between points with velocities; a cubic
        spline that starts and ends at rest through points with positions alone.
        """
        from scipy.interpolate import BPoly, CubicHermiteSpline, CubicSpline  # slow to import

        knots = self.time - self.time[0]
        time = np.linspace(0.0, knots[-1], max(2, int(np.ceil(knots[-1] / period)) + 1))
        if self.qd is None:
            curve = CubicSpline(knots, self.q, bc_type="clamped")
        elif self.qdd is None:
            curve = CubicHermiteSpline(knots, self.q, self.qd)
        else:
            curve = BPoly.from_derivatives(knots, np.stack([self.q, self.qd, self.qdd], axis=1))
        return time, curve(time), curve.derivative(1)(time), curve.derivative(2)(time)


@dataclass(frozen=True)
class PlanEnergy:
    """What a planned trajectory will take; joint quantities [n].

    Attributes:
        names: joint names.
        duration: of the motion [s].
        mechanical, electrical: energies [J].
        electrical_std: standard deviations from the model's parameters [J].
        total, total_std: whole arm, standby and drivers included [J].
        peak_power: largest total power [W].
    """

    names: tuple[str, ...]
    duration: float
    mechanical: Array
    electrical: Array
    electrical_std: Array
    total: float
    total_std: float
    peak_power: float

    @property
    def efficiency(self) -> Array:
        """Mechanical over electrical energy [n], NaN where no electrical energy is taken."""
        return efficiency(self.mechanical, self.electrical)


def predict_energy(
    model: EnergyModel,
    plan: Plan,
    *,
    dynamics: ArmDynamics | None = None,
    temperature: Array | None = None,
    speed_scaling: float = 1.0,
) -> PlanEnergy:
    """Energy of a planned trajectory.

    Args:
        model: of the arm, in the session at hand (`EnergyModel.in_session`) or in any.
        plan: the trajectory.
        dynamics: of the arm in its setup; that of the model where it is None.
        temperature: of the joints [n], degC.
        speed_scaling: of the controller; the motion takes 1 / speed_scaling times as long.

    Raises:
        InputError: the plan has another number of joints or goes beyond their limits, or
            speed_scaling is not positive.
    """
    if plan.q.shape[1] != model.dof:
        raise InputError(
            plan.source,
            f"has {plan.q.shape[1]} joints, the model {model.dof}",
            "give a trajectory of this robot",
        )
    if not speed_scaling > 0:
        raise InputError(plan.source, "the robot's speed scaling is zero", "raise the speed slider")
    time, q, qd, qdd = plan.sampled()
    _check_limits(plan.source, model.description() if dynamics is None else dynamics.robot, q, qd)
    time = time / speed_scaling
    split = model.predict(
        q, qd * speed_scaling, qdd * speed_scaling**2, dynamics=dynamics, temperature=temperature
    )
    steps = bridged_steps(time, np.inf)
    total = SupplyStore(model.bus.storage, model.bus.floor)(steps, split.demand)
    n, samples = model.dof, len(time)
    powers = np.column_stack(
        [
            split.mechanical_power,
            split.electrical_power,
            total,
            split.sensitivity.reshape(samples, -1),
            split.total_sensitivity,
        ]
    )
    energy = integrate(time, powers, gap_limit=np.inf).net
    errors = split.sensitivity.shape[-1]
    ends = np.cumsum([n, n, 1, n * errors])
    mechanical, electrical, whole, each, all_errors = np.split(energy, ends)
    return PlanEnergy(
        names=tuple(joint.name for joint in model.joints),
        duration=float(time[-1]),
        mechanical=mechanical,
        electrical=electrical,
        electrical_std=np.linalg.norm(each.reshape(n, errors), axis=1),
        total=float(whole[0]),
        total_std=float(np.linalg.norm(all_errors)),
        peak_power=float(total.max()),
    )


SPEED_TOLERANCE = 1.05
"""Speeds may exceed the limit by this factor between points: curves through them overshoot."""


def _check_limits(source: str, robot: RobotDescription, q: Array, qd: Array) -> None:
    """Refuse what the arm cannot do, such as positions in degrees; q, qd [samples, n], rad."""
    reach, speed = np.abs(q).max(axis=0), np.abs(qd).max(axis=0)
    for j, name in enumerate(robot.joint_names):
        if reach[j] > robot.max_position[j]:
            raise InputError(
                source,
                f"reaches {reach[j]:.4g} rad, and the joint's range ends at "
                f"{robot.max_position[j]:.4g}",
                "give positions in radians",
                field=name,
            )
        if speed[j] > SPEED_TOLERANCE * robot.max_velocity[j]:
            raise InputError(
                source,
                f"needs {speed[j]:.4g} rad/s, and the joint has {robot.max_velocity[j]:.4g}",
                "give the motion more time",
                field=name,
            )


_TIME_NAMES = ("time", "t", "timestamp", "time_from_start")


def read_plan(path: str | Path, joint_names: Sequence[str]) -> Plan:
    """A trajectory from a CSV file with a header line.

    Columns: `time` [s]; positions as `q_0` ... [rad] (also `target_q_0`, `actual_q_0` or the
    joint's name); where known, velocities `qd_0` ... [rad/s] and accelerations `qdd_0` ...
    [rad/s^2] (also `target_qd_0`, `target_qdd_0`). Other columns are ignored.

    Raises:
        InputError: names the column or line to mend.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, f"cannot be read ({error})", "check the path") from error
    rows = [row for row in rows if row]
    if not rows:
        raise InputError(path, "is empty", "give a header line and one line a point")
    header = {name.strip(): i for i, name in enumerate(rows[0])}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise InputError(
                path,
                f"line {number} has {len(row)} columns, the header {len(rows[0])}",
                "mend that line",
            )
    time = next((name for name in _TIME_NAMES if name in header), None)
    if time is None:
        raise InputError(path, "is missing", "name the time column 'time'", field="time")
    read = _Columns(path, header, rows[1:])
    n = len(joint_names)
    q = read.joints(("q", "target_q", "actual_q"), n) or (
        list(joint_names) if all(name in header for name in joint_names) else None
    )
    if q is None:
        raise InputError(
            path, "is missing", f"name the positions q_0 to q_{n - 1} or by joint", field="q_0"
        )
    qd, qdd = read.joints(("qd", "target_qd"), n), read.joints(("qdd", "target_qdd"), n)
    return Plan(
        time=read.values([time])[:, 0],
        q=read.values(q),
        qd=None if qd is None else read.values(qd),
        qdd=None if qd is None or qdd is None else read.values(qdd),
        source=str(path),
    )


@dataclass(frozen=True)
class _Columns:
    path: str | Path
    header: Mapping[str, int]
    rows: list[list[str]]

    def joints(self, stems: Sequence[str], n: int) -> list[str] | None:
        """Names of the columns of the first stem that has all n."""
        for stem in stems:
            names = [f"{stem}_{i}" for i in range(n)]
            if all(name in self.header for name in names):
                return names
        return None

    def values(self, names: Sequence[str]) -> Array:
        """Columns as numbers [rows, names]."""
        out = np.empty((len(self.rows), len(names)))
        for j, name in enumerate(names):
            texts = [row[self.header[name]] for row in self.rows]
            try:
                out[:, j] = [float(text) for text in texts]
            except ValueError as error:
                raise InputError(
                    self.path,
                    f"holds something that is not a number ({error})",
                    "mend that line",
                    field=name,
                ) from error
        return out
