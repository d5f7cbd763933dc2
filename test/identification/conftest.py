# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion of made-up arms whose every constant is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ur_energy_model.identification.filtered_motion import FilteredMotion, MotionStream
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry


def smooth_motion(
    robot: RobotDescription, time: np.ndarray, seed: int, still: tuple[int, ...] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of four sines per joint: positions, velocities, accelerations [samples, n]."""
    random = np.random.default_rng(seed)
    shape = (robot.dof, 4)
    frequency = 2 * np.pi * random.uniform(0.1, 0.5, shape)
    size = random.uniform(0.1, 0.4, shape)
    size[list(still)] = 0.0
    angle = time[:, None, None] * frequency + random.uniform(0, 2 * np.pi, shape)
    return (
        (size * np.sin(angle)).sum(axis=2),
        (size * frequency * np.cos(angle)).sum(axis=2),
        -(size * frequency**2 * np.sin(angle)).sum(axis=2),
    )


def made_up_recording(
    robot: RobotDescription,
    *,
    seconds: float = 40.0,
    rate: float = 100.0,
    setup: Setup | None = None,
    carried: Setup | None = None,
    reflected_inertia: np.ndarray | None = None,
    coulomb: float = 0.0,
    viscous: float = 0.0,
    noise: float = 0.0,
    seed: int = 1,
    still: tuple[int, ...] = (),
    targets: bool = True,
    source: str = "made up",
    **columns: Any,
) -> Telemetry:
    """Recording of an arm with torque constant 0.1 N m/A and friction as asked (joint side).

    `setup` is what the controller computes with, `carried` what the arm really carries;
    `noise` is that of measured torque, joint side [N m].
    """
    setup = (
        Setup(np.array([0.0, 0.0, -robot.controller_gravity])) if setup is None else setup
    )
    time = 60.0 + np.arange(round(seconds * rate)) / rate
    q, qd, qdd = smooth_motion(robot, time, seed, still)
    inertia = robot.reflected_inertia if reflected_inertia is None else reflected_inertia
    own = inertia * qdd
    real = ArmDynamics(robot, setup if carried is None else carried).inverse_dynamics(
        q, qd, qdd
    )
    friction = coulomb * np.tanh(qd / 1e-3) + viscous * qd
    random = np.random.default_rng(seed + 1000)
    torque = real + own + friction + noise * random.standard_normal(q.shape)
    values = {
        "actual_q": q,
        "actual_qd": qd,
        "actual_current": torque / (0.1 * robot.gear_ratio),
        "target_moment": ArmDynamics(robot, setup).inverse_dynamics(q, qd, qdd) + own,
    }
    if targets:
        values |= {"target_q": q, "target_qd": qd, "target_qdd": qdd}
    values |= {
        name: np.broadcast_to(v, (len(time), *np.shape(v))) for name, v in columns.items()
    }
    info = RecordingInfo(source=source, robot=robot.name, rate=rate)
    return Telemetry(time, values, info, find_gaps(time, 1 / rate))


def filtered_motions(
    batches: Iterable[Telemetry], dof: int, cutoff: float, period: float
) -> Iterator[FilteredMotion]:
    """Motions of one recording that comes in batches."""
    stream = MotionStream(dof, cutoff, period)
    for batch in batches:
        if len(batch):
            yield from stream.process(batch)
    yield from stream.finish()
