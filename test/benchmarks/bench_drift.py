"""False alarms and detection times of the changes that learning reports.

The simulated arm works for hours with nothing changed, then with more friction, an undeclared
payload and mounting. It cannot work for years, so surrogate work (test/learning/surrogate_work.py)
does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from test.identification.exact_arm import write_bag
from test.learning.surrogate_work import DAY, SurrogateWork
from ur_energy_model.files import config_file
from ur_energy_model.identification.filtered_motion import MotionStream
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.learning.changes import ChangeMonitor
from ur_energy_model.learning.history import Change
from ur_energy_model.learning.learner import first_model
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, gravity_of_mounting
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.trajectory.named_motions import Planner

ARM, SEED, RATE = "ur5e", 21, 125.0
PIECE = 15.0
"""Length of the batches of the simulated arm [s]."""
SESSION_MINUTES, CHANGE_MINUTE, QUIET_SESSIONS = 40, 20, 4
FIELDS = (
    "actual_q", "actual_qd", "actual_current", "joint_temperatures", "actual_robot_voltage",
    "actual_robot_current", "payload", "payload_cog",
)  # fmt: skip
FIRST_SEED, ARMS, MONTHS, SESSIONS, MINUTES = 3000, 8, 6, 22, 60
"""Surrogate work: 22 sessions a month; each of the arms works for so many months."""
TRIALS, BEFORE, AFTER = 30, 10, 8
"""Changes to detect, and sessions before and after each."""
CHANGES: dict[str, Callable[[SimulatedArm], None]] = {
    "friction of wrist 1 times 1.15": lambda arm: arm.change_friction(3, 1.15),
    "payload of 1 kg": lambda arm: arm.carry(Payload(1.0, np.array([0.0, 0.0, 0.08]))),
    "tilt of 5 degrees": lambda arm: arm.tilt(gravity_of_mounting(math.radians(5.0), 0.0)),
}


def identified(seed: int = SEED) -> EnergyModel:
    """Model of the arm from half a minute of excitation in session 0."""
    motion = load_trajectory(config_file("excitation", f"{ARM}.yaml"))
    recording = record_arm(SimulatedArm(load_robot(ARM), motion=motion, seed=seed), 35.0)
    with TemporaryDirectory() as folder:
        return identify([write_bag(Path(folder) / "bag", recording)], ARM).model


class Session:
    """An arm that works through random points, and what learning sees of it."""

    def __init__(
        self, monitor: ChangeMonitor, seed: int, points: int, session: int, **options: float
    ) -> None:
        robot = replace(load_robot(ARM), rate=RATE)
        planner = Planner(robot)
        motion = planner.chain_through(planner.random_points(points), rest=0.5)
        chosen = replace(ArmOptions(session=session), **options)  # type: ignore[arg-type]
        self.arm = SimulatedArm(robot, motion=motion, seed=seed, options=chosen)
        self.monitor, self._offset = monitor, DAY * session
        self._stream = MotionStream(robot.dof, 5.0, 1.0 / RATE)
        self._dynamics = monitor.model.dynamics()

    def observe(self, batch: Telemetry) -> None:
        """Show a batch to learning."""
        batch = replace(batch, time=batch.time + self._offset)
        motions = [(part, self._dynamics) for part in self._stream.process(batch)]
        self.monitor.observe(batch, motions)

    def minute(self, fields: tuple[str, ...] = FIELDS) -> list[Telemetry]:
        """The batches of the next minute of work, observed."""
        parts = []
        for _ in range(round(60.0 / PIECE)):
            parts.append(record_arm(self.arm, PIECE, fields))
            self.observe(parts[-1])
        return parts


def simulated_arm() -> None:
    """Quiet sessions, then one for each change."""
    model = identified()
    monitor, begin, quiet = ChangeMonitor(model), process_time(), 0
    for number in range(1, QUIET_SESSIONS + 1):
        session = Session(monitor, SEED, 5 + number // 3, number)
        for _ in range(SESSION_MINUTES):
            session.minute()
        quiet += len(monitor.take())
    print(
        f"simulated {ARM}, {QUIET_SESSIONS} sessions of {SESSION_MINUTES} min, unchanged: "
        f"{quiet} alarms ({process_time() - begin:.0f} s of processor time)"
    )
    state = monitor.saved()
    for number, (words, inject) in enumerate(CHANGES.items(), QUIET_SESSIONS + 1):
        monitor = ChangeMonitor(model)
        monitor.restore(state)
        session = Session(monitor, SEED, 6, number)
        for minute in range(SESSION_MINUTES):
            if minute == CHANGE_MINUTE:
                inject(session.arm)
            session.minute()
            for change in monitor.take():
                print(f"{words}: after {minute + 1 - CHANGE_MINUTE} min: {change.words}")


def false_alarms() -> None:
    """Years of surrogate work with nothing changed."""
    model, begin, count = first_model(load_robot(ARM)), process_time(), Counter[str]()
    for seed in range(FIRST_SEED, FIRST_SEED + ARMS):
        arm, monitor = SurrogateWork(seed), ChangeMonitor(model)
        for number in range(MONTHS * SESSIONS):
            start = number * DAY * 30.0 / SESSIONS
            monitor.start_session(start, 30.0 / SESSIONS if number else 0.0)
            for work in arm.session(number + 1, start, MINUTES):
                monitor.observe_minute(work.minute)
                power = model.bus.standby + work.standby
                monitor.observe_standby(work.minute.time, power, 0.4)
            count.update(change.what for change in monitor.take())
    months = ARMS * MONTHS
    print(
        f"surrogate work, {months} months of {SESSIONS} sessions of {MINUTES} min, {ARMS} arms, "
        f"running-in included: {sum(count.values()) / months:.2f} false alarms a month "
        f"{dict(count)} ({process_time() - begin:.0f} s)"
    )


def detection() -> None:
    """Friction of one joint 15 % up or down, within a session or between two."""
    model = first_model(load_robot(ARM))
    for overnight in (False, True):
        seeds = range(FIRST_SEED + 500, FIRST_SEED + 500 + TRIALS)
        trials = [_detected(model, seed, overnight=overnight) for seed in seeds]
        found = np.array([each for each in trials if each is not None]).reshape(-1, 2)
        early = found[found[:, 0] == 0, 1]
        later = ", ".join(f"{np.sum(found[:, 0] < k) / TRIALS:.0%} in {k}" for k in (1, 2, 4, 8))
        print(
            f"15 % change {'between sessions' if overnight else 'within a session'}, {TRIALS} "
            f"trials: found within {later} sessions; in the first one after "
            f"{float(np.median(early)) if early.size else math.nan:.0f} min of motion (median), "
            f"at most {early.max(initial=0.0):.0f}"
        )


def _detected(model: EnergyModel, seed: int, *, overnight: bool) -> tuple[int, float] | None:
    """Sessions and minutes of motion until the change of a joint was reported; None if never."""
    arm, monitor = SurrogateWork(seed), ChangeMonitor(model)
    random = np.random.default_rng(seed)
    joint, size = int(random.integers(6)), float(random.choice([-1.0, 1.0])) * math.log(1.15)
    at = 0 if overnight else int(random.integers(5, 60))

    def reported(change: Change) -> bool:
        return change.joint == model.joints[joint].name and change.size * size > 0

    for number in range(BEFORE + AFTER):
        start, minutes = number * DAY, 0.0
        monitor.start_session(start, 1.0)
        if overnight and number == BEFORE:
            arm.friction[joint] = size
        for k, work in enumerate(arm.session(number + 1, start, 60 + at)):
            monitor.observe_minute(work.minute)
            changed = number > BEFORE or (number == BEFORE and k >= at)
            minutes += changed
            if any(map(reported, monitor.take())) and changed:
                return number - BEFORE, minutes
            if not overnight and number == BEFORE and k == at - 1:
                arm.friction[joint] = size
    return None


def main() -> None:
    """Print the figures."""
    false_alarms()
    detection()
    simulated_arm()
