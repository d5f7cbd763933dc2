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
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.trajectory.named_motions import Planner

ARM, SEED, RATE = "ur5e", 21, 125.0
SESSION_MINUTES, CHANGE_MINUTE = 40, 20
QUIET_SESSIONS = 4
FIELDS = (
    "actual_q", "actual_qd", "actual_current", "joint_temperatures", "actual_robot_voltage",
    "actual_robot_current", "payload", "payload_cog",
)  # fmt: skip
FIRST_SEED, ARMS, MONTHS, SESSIONS, MINUTES = 3000, 8, 6, 22, 60
"""Surrogate work: 22 sessions a month; each of the arms works for so many months."""
TRIALS = 30

Injection = Callable[[SimulatedArm], None]


def identified(folder: Path, seed: int = SEED) -> EnergyModel:
    """Model of the arm from half a minute of excitation in session 0."""
    motion = load_trajectory(config_file("excitation", f"{ARM}.yaml"))
    recording = record_arm(SimulatedArm(load_robot(ARM), motion=motion, seed=seed), 35.0)
    writer = BagWriter(folder / "bag", recording.info, tuple(recording.columns))
    writer.write(recording)
    writer.close()
    return identify([folder / "bag"], ARM).model


def work(
    monitor: ChangeMonitor, session: int, program: int, inject: Injection | None = None
) -> list[tuple[float, Change]]:
    """A session of the simulated arm; minutes since the injection, and changes."""
    robot = replace(load_robot(ARM), rate=RATE)
    planner = Planner(robot)
    motion = planner.chain_through(planner.random_points(program), rest=0.5)
    arm = SimulatedArm(robot, motion=motion, seed=SEED, options=ArmOptions(session=session))
    stream = MotionStream(robot.dof, 5.0, 1.0 / RATE)
    dynamics, offset = monitor.model.dynamics(), DAY * session
    found = []
    for minute in range(SESSION_MINUTES):
        if minute == CHANGE_MINUTE and inject is not None:
            inject(arm)
        for _ in range(4):
            batch = record_arm(arm, 15.0, FIELDS)
            batch = replace(batch, time=batch.time + offset)
            motions = [(part, dynamics) for part in stream.process(batch)]
            monitor.observe(batch, motions)
        found += [(minute + 1.0 - CHANGE_MINUTE, change) for change in monitor.take()]
    return found


def simulated_arm() -> None:
    """Quiet sessions, then one for each change."""
    changes: dict[str, Injection] = {
        "friction of wrist 1 times 1.15": lambda arm: arm.change_friction(3, 1.15),
        "payload of 1 kg": lambda arm: arm.carry(Payload(1.0, np.array([0.0, 0.0, 0.08]))),
        "tilt of 5 degrees": lambda arm: arm.tilt(gravity_of_mounting(math.radians(5.0), 0.0)),
    }
    with TemporaryDirectory() as name:
        model = identified(Path(name))
    monitor, begin = ChangeMonitor(model), process_time()
    quiet: list[Change] = []
    for session in range(1, QUIET_SESSIONS + 1):
        quiet += [change for _, change in work(monitor, session, 5 + session // 3)]
    print(
        f"simulated {ARM}, {QUIET_SESSIONS} sessions of {SESSION_MINUTES} min, unchanged: "
        f"{len(quiet)} alarms ({process_time() - begin:.0f} s of processor time)"
    )
    state = monitor.saved()
    for number, (words, inject) in enumerate(changes.items(), QUIET_SESSIONS + 1):
        monitor = ChangeMonitor(model)
        monitor.restore(state)
        for minutes, change in work(monitor, number, 6, inject):
            print(f"{words}: after {minutes:.0f} min: {change.words}")


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
        times: list[float] = []
        sessions: list[int] = []
        for trial in range(TRIALS):
            found = _detected(model, FIRST_SEED + 500 + trial, overnight=overnight)
            if found is not None:
                sessions.append(found[0])
                times.append(found[1])
        early = np.array(times)[np.array(sessions) == 0]
        later = ", ".join(f"{np.mean(np.array(sessions) < k) * len(sessions) / TRIALS:.0%} in {k}"
                          for k in (1, 2, 4, 8))  # fmt: skip
        median = float(np.median(early)) if early.size else math.nan
        print(
            f"15 % change {'between sessions' if overnight else 'within a session'}, {TRIALS} "
            f"trials: found within {later} sessions; in the first one after {median:.0f} min of "
            f"motion (median), at most {early.max(initial=0.0):.0f}"
        )


def _detected(model: EnergyModel, seed: int, *, overnight: bool) -> tuple[int, float] | None:
    """Sessions and minutes of motion until the change of a joint was reported; None if never."""
    arm, monitor = SurrogateWork(seed), ChangeMonitor(model)
    random = np.random.default_rng(seed)
    joint, before = int(random.integers(6)), 10
    sign = float(random.choice([-1.0, 1.0]))
    at = 0 if overnight else int(random.integers(5, 60))
    for number in range(before + 8):
        start = number * DAY
        monitor.start_session(start, 1.0)
        minutes = 0.0
        if overnight and number == before:
            arm.friction[joint] = sign * math.log(1.15)
        for k, work in enumerate(arm.session(number + 1, start, 60 + at)):
            monitor.observe_minute(work.minute)
            changed = number > before or (number == before and k >= at)
            minutes += changed
            for change in monitor.take():
                own = change.joint == model.joints[joint].name
                if changed and own and change.size * sign > 0:
                    return number - before, minutes
            if not overnight and number == before and k == at - 1:
                arm.friction[joint] = sign * math.log(1.15)
    return None


def main() -> None:
    """Print the figures."""
    false_alarms()
    detection()
    simulated_arm()
