# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Learning while the arm works: what follows from it, friction of now, and changes it reports.

`production`: simulated arms that learning was not tuned on start from the generic model
of their type; the model in use after some work predicts five minutes. `recordings`: the
same of real arms. `following_levels`, `following_sessions`: friction and energy of a
session that has not begun, predicted from those before it. `cold_starts`: the next minute
predicted from its targets, with and without the friction of now. `changes`: false alarms
and detection times, on the simulated arm for hours and on surrogate work
(test/learning/surrogate_work.py) for months.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import NamedTuple

import numpy as np

from test.benchmarks.meters import DATA
from test.identification.exact_arm import write_bag
from test.learning.production import production
from test.learning.surrogate_work import DAY, SurrogateWork
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.energy_summary import EnergySummary, summarise
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter
from ur_energy_model.energy.powers import Method, PowerOptions
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.files import config_file
from ur_energy_model.identification.filtered_motion import MotionStream
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.identification.recording import FIELDS as IDENTIFIED_FIELDS
from ur_energy_model.learning.changes import ChangeMonitor
from ur_energy_model.learning.learner import Learner, first_model
from ur_energy_model.learning.recordings import learn_from_bags
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.next_session import expected_friction
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, gravity_of_mounting
from ur_energy_model.simulation.arm_options import ArmOptions, draw_session
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.trajectory.named_motions import Planner
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array, Mask

ARMS = (
    ("ur5e", 101), ("ur3e", 102), ("ur10e", 103), ("ur16e", 105),
    ("ur5e", 201), ("ur10e", 202), ("ur3e", 203), ("ur16e", 209), ("ur5", 210),
)  # fmt: skip
TIMES = (10.0, 60.0, 300.0, 600.0)
JUDGED = 300.0
"""Production before the prediction, and time predicted [s]."""
RECORDED_TIMES = (0.0, 10.0, 20.0, 30.0, 60.0)
LEAST_REST = 3.0
"""The same of recordings, and the shortest rest that is predicted [s]."""
SHARE = 0.01  # joints with less of the joints' energy are left out of the relative errors
METHODS: tuple[Method, ...] = ("current", "motion")


def predicted(
    model: EnergyModel, samples: Telemetry, method: Method = "current"
) -> EnergySummary:
    """Energies of samples."""
    calculator = EnergyCalculator(
        model, load_robot(model.robot), PowerOptions(method=method)
    )
    meter = EnergyMeter(len(calculator.channels))
    table = calculator(samples)
    assert table is not None
    table.integrate(meter)
    return summarise(calculator, meter, table.bus_measured)


def learn(name: str, seed: int) -> tuple[list[tuple[EnergySummary, Array, float]], float]:
    """Energies after each time beside those of joints and supply, processor time per second."""
    pieces = list(production(name, seed, max(TIMES) + JUDGED))
    robot = load_robot(name)
    learner = Learner(robot, first_model(robot))
    models = list[EnergyModel]()
    busy = 0.0
    ends = np.array([float(piece.samples.time[-1]) - 60.0 for piece in pieces])
    for piece, end in zip(pieces, ends, strict=True):
        start = process_time()
        learner.update(piece.samples)
        learner.attempts()
        busy += process_time() - start
        models += [learner.model] * int(
            len(models) < len(TIMES) and end >= TIMES[len(models)]
        )
    found = []
    for model, after in zip(models, TIMES, strict=True):
        first = int(np.argmax(ends >= after)) + 1
        some = pieces[
            first : int(np.searchsorted(ends, ends[first - 1] + JUDGED, side="right"))
        ]
        truth = np.sum([piece.electrical for piece in some], axis=0)
        samples = concatenate([piece.samples for piece in some])
        found.append((predicted(model, samples), truth, sum(piece.bus for piece in some)))
    return found, busy / float(ends[-1])


def simulated_production() -> None:
    """A line per arm, and the worst of all by time."""
    joints, supplies, inside = (defaultdict[float, list[float]](list) for _ in range(3))
    for name, seed in ARMS:
        found, share = learn(name, seed)
        print(f"{name} {seed}: {100 * share:.1f} % of a core", flush=True)
        for time, (summary, truth, supply) in zip(TIMES, found, strict=True):
            error = summary.electrical - truth
            known = np.abs(truth) > SHARE * np.abs(truth).sum()
            joints[time] += (100.0 * error[known] / np.abs(truth)[known]).tolist()
            supplies[time].append(100.0 * (summary.model / supply - 1.0))
            inside[time] += (
                np.abs(error) <= CONFIDENCE * summary.electrical_std
            ).tolist()
    for time in TIMES:
        rms = np.linalg.norm(joints[time]) / len(joints[time]) ** 0.5
        print(
            f"after {time:3.0f} s: supply within {np.abs(supplies[time]).max():.2f} %, joints "
            f"within {np.abs(joints[time]).max():.1f} % (rms {rms:.1f} %), "
            f"{np.mean(inside[time]):.0%} of them inside their 95 % intervals"
        )


def recordings() -> None:
    """A line per recording of a real arm and time."""
    for file in sorted(DATA.glob("*.csv.gz")):
        name = file.name.partition("_")[0]
        data = read_csv([file], name)
        robot = load_robot(name)
        for time in RECORDED_TIMES if data.has_bus_power else ():
            if data.time[0] + time > data.time[-1] - LEAST_REST:
                break
            end = int(np.searchsorted(data.time, data.time[0] + time))
            learner = Learner(robot, first_model(robot))
            words = []
            for start in range(0, end, 200):
                learner.update(data.cut(slice(start, min(end, start + 200))))
                learner.attempts()
            learner.finish()
            for method in METHODS:
                found = predicted(learner.model, data.cut(slice(end, None)), method)
                if found.bus:
                    error = 100.0 * (found.model / found.bus - 1.0)
                    half = 100.0 * CONFIDENCE * found.model_std / found.bus
                    words.append(f"from {method} {error:+.1f} % (+- {half:.1f})")
            print(
                f"{file.name} after {time:2.0f} s, version {learner.version}: {', '.join(words)}"
            )


# Sessions that have not begun.

FOLLOWING_ARMS = (
    ("ur5e", 884301), ("ur3e", 884302), ("ur10e", 884303), ("ur16e", 884304),
    ("ur5e", 884305), ("ur3e", 884306), ("ur10e", 884307), ("ur16e", 884308),
)  # fmt: skip
WEAR = (1.0, 0.94)
"""Friction of all joints over that of the session before, beside the simulator's own changes."""
BEFORE_IT = (4,)  # sessions before the predicted one
SESSION_SECONDS = 45.0


class Worked(NamedTuple):
    """A session, and the electrical energies of its joints [n], J."""

    samples: Telemetry
    electrical: Array


def worked_session(name: str, seed: int, number: int, wear: float) -> Worked:
    """Moves through random points in session `number` of an arm that wears."""
    robot = load_robot(name)
    planner = Planner(robot)
    motion = planner.chain_through(planner.random_points(100 * seed + number), rest=0.5)
    arm = SimulatedArm(
        robot, motion=motion, seed=seed, options=ArmOptions(session=number)
    )
    for joint in range(robot.dof):
        arm.change_friction(joint, wear**number)
    before = arm.energies()
    samples = record_arm(arm, SESSION_SECONDS, IDENTIFIED_FIELDS)
    after = arm.energies()
    electrical = after.mechanical + after.copper - before.mechanical - before.copper
    stamp = np.rint(1e9 * (samples.time + 86400.0 * number)).astype(np.int64)
    info = replace(samples.info, serial=str(seed))
    return Worked(replace(samples, info=info, stamp=stamp), electrical)


def following_sessions() -> None:
    """Plans of the next session, from models of the sessions before, and the same anchored."""
    for wear in WEAR:
        found = defaultdict[str, list[tuple[float, float, Array]]](list)
        for name, seed in FOLLOWING_ARMS:
            last = BEFORE_IT[-1] + 1
            sessions = [worked_session(name, seed, k, wear) for k in range(1, last + 1)]
            with TemporaryDirectory() as folder:
                bags = [
                    write_bag(Path(folder) / f"session{k}", each.samples)
                    for k, each in enumerate(sessions, 1)
                ]
                for k in BEFORE_IT:
                    learner = Learner(load_robot(name), first_model(load_robot(name)))
                    learn_from_bags(learner, bags[:k])
                    models = {
                        "learned": learner.model,
                        "latest alone": identify(bags[k - 1 : k], name).model,
                        "all together": identify(bags[:k], name).model,
                    }
                    for words, model in models.items():
                        found[words].append(_following(model, sessions[k]))
        arms = f"{len(FOLLOWING_ARMS)} arms, after {BEFORE_IT} sessions"
        print(f"friction times {wear} a session, {arms}:")
        for words, errors in found.items():
            plans, anchored, deviations = (
                np.array(each) for each in zip(*errors, strict=True)
            )
            print(
                f"{words}: plans of the next session off by {np.sqrt(np.mean(plans**2)):.1%} rms, "
                f"from its currents by {np.sqrt(np.mean(anchored**2)):.1%}; 95 % intervals of the "
                f"joints of plans cover {np.mean(np.abs(deviations) < CONFIDENCE):.0%} "
                f"(z {np.sqrt(np.mean(deviations**2)):.2f})",
                flush=True,
            )


def _following(model: EnergyModel, session: Worked) -> tuple[float, float, Array]:
    """Relative errors of the joints' energy as planned and from currents; z of the plan's [n]."""
    samples, truth = session
    q, qd, qdd = (samples[name] for name in TARGETS)
    plan = Plan(samples.time - samples.time[0], q, qd, qdd)
    warmth = samples["joint_temperatures"].mean(axis=0)
    energy = predict_energy(model, plan, temperature=warmth)
    planned = energy.electrical.sum() / truth.sum() - 1.0
    anchored = predicted(model, samples).electrical.sum() / truth.sum() - 1.0
    return (
        float(planned),
        float(anchored),
        (energy.electrical - truth) / energy.electrical_std,
    )


DRAWN_ARMS = 150
FIRST_DRAWN = 995000
MEASURED = 0.015
"""Arms whose friction is drawn without simulating them, and the error of a session's friction."""


def friction_levels(seed: int, sessions: int, *, worn: bool) -> Array:
    """Logarithm of the friction of an arm's joints in sessions from the first on [sessions, n].

    As the simulator draws it, or of an arm that loses 20 to 50 % within five sessions and
    scatters by 3 %.
    """
    numbers = range(1, sessions + 1)
    if not worn:
        return np.log(
            [draw_session(seed, number, 6).friction_scale for number in numbers]
        )
    random = np.random.default_rng(seed)
    scatter = 0.02 * (
        random.standard_normal((sessions, 1)) + random.standard_normal((sessions, 6))
    )
    passed = 1.0 - np.exp(-np.array(numbers)[:, None] / 5.0)
    return np.asarray(scatter + np.log(1.0 - random.uniform(0.2, 0.5, 6) * passed))


def following_levels() -> None:
    """The friction of the next session as expected, beside the last session's and their mean."""
    for worn, sessions in product((False, True), (2, 4, 6)):
        found = []
        for seed in range(FIRST_DRAWN, FIRST_DRAWN + DRAWN_ARMS):
            levels = friction_levels(seed, sessions + 1, worn=worn)
            noise = np.random.default_rng([seed, 1]).standard_normal((sessions, 6))
            measured = levels[:-1] + MEASURED * noise
            mean = measured.mean(axis=0)
            errors = np.full_like(measured, MEASURED)
            expected = expected_friction(measured - mean, errors)
            off = mean + np.log(expected.factor) - levels[-1]
            found.append(
                [off, measured[-1] - levels[-1], mean - levels[-1], off / expected.spread]
            )
        own, last, usual, z = np.sqrt(np.mean(np.square(found), axis=(0, 2)))
        inside = np.mean(np.abs(np.array(found)[:, 3]) < CONFIDENCE)
        arms = "worn" if worn else "simulated"
        print(
            f"{arms} arms, {sessions} sessions: friction of the next one off by {own:.1%} rms, by "
            f"the last {last:.1%}, by the mean {usual:.1%}; 95 % intervals cover {inside:.0%} "
            f"(z {z:.2f})"
        )


# Sessions of the simulated arm.

ARM = "ur5e"
SEED = 21
RATE = 125.0
PIECE = 15.0  # length of the batches of the simulated arm [s]
FIELDS = (
    "actual_q", "actual_qd", "actual_current", "joint_temperatures", "actual_robot_voltage",
    "actual_robot_current", "payload", "payload_cog",
)  # fmt: skip
TARGETS = ("target_q", "target_qd", "target_qdd")


def identified(seed: int = SEED) -> EnergyModel:
    """Model of the arm from half a minute of excitation in session 0."""
    motion = load_trajectory(config_file("excitation", f"{ARM}.yaml"))
    recording = record_arm(SimulatedArm(load_robot(ARM), motion=motion, seed=seed), 35.0)
    with TemporaryDirectory() as folder:
        return identify([write_bag(Path(folder) / "bag", recording)], ARM).model


class Session:
    """An arm that works through random points, and what learning sees of it."""

    def __init__(
        self,
        monitor: ChangeMonitor,
        seed: int,
        points: int,
        session: int,
        **options: float,
    ) -> None:
        robot = replace(load_robot(ARM), rate=RATE)
        planner = Planner(robot)
        motion = planner.chain_through(planner.random_points(points), rest=0.5)
        chosen = replace(ArmOptions(session=session), **options)  # type: ignore[arg-type]
        self.arm = SimulatedArm(robot, motion=motion, seed=seed, options=chosen)
        self.monitor = monitor
        self._offset = DAY * session
        self._stream = MotionStream(robot.dof, 5.0, 1.0 / RATE)
        self._dynamics = monitor.model.dynamics()

    def observe(self, batch: Telemetry) -> None:
        """Show a batch to learning."""
        batch = replace(batch, time=batch.time + self._offset)
        motions = [(part, self._dynamics) for part in self._stream.process(batch)]
        self.monitor.observe(batch, motions)

    def minute(self, fields: tuple[str, ...] = FIELDS) -> Telemetry:
        """The next minute of work, observed."""
        parts = []
        for _ in range(round(60.0 / PIECE)):
            parts.append(record_arm(self.arm, PIECE, fields))
            self.observe(parts[-1])
        return concatenate(parts)


COLD_SEEDS = (6101, 6102, 6103)
COLD_SESSIONS = 4
COLD_MINUTES = (0, 2, 10, 30)
"""Minutes of work at which the next one is predicted, in all sessions but the first, and the
last of them in the last session only."""


def cold_starts() -> None:
    """Errors of predicted minutes from a cold start to a warm arm, without and with the clock."""
    found: dict[tuple[int, str], list[tuple[Array, Mask]]] = defaultdict(list)
    for seed in COLD_SEEDS:
        model = identified(seed)
        monitor = ChangeMonitor(model)
        for session in range(1, COLD_SESSIONS + 1):
            work = Session(monitor, seed, seed + session, session, warmth=0.0)
            # from which learning knows the session
            first = record_arm(work.arm, 0.1, FIELDS)
            work.observe(first)
            temperature = first["joint_temperatures"][-1]
            last = COLD_MINUTES[-1 if session == COLD_SESSIONS else -2]
            for minute in range(last + 1):
                friction = monitor.friction_now()
                before = work.arm.energies()
                samples = work.minute((*FIELDS, *TARGETS))
                after = work.arm.energies()
                truth = (
                    after.mechanical + after.copper - before.mechanical - before.copper
                )
                if session > 1 and minute in COLD_MINUTES:
                    q, qd, qdd = (samples[name] for name in TARGETS)
                    plan = Plan(samples.time - samples.time[0], q, qd, qdd)
                    now = model.in_session(friction.applied_to(model.session))
                    for words, each in (("without", model), ("with", now)):
                        energy = predict_energy(each, plan, temperature=temperature)
                        error = energy.electrical - truth
                        inside = np.abs(error) <= CONFIDENCE * energy.electrical_std
                        found[minute, words].append((error / truth.sum(), inside))
                temperature = samples["joint_temperatures"][-1]
    print(
        f"{len(COLD_SEEDS)} simulated {ARM}, {COLD_SESSIONS} sessions from a cold start each:"
    )
    for (minute, words), results in found.items():
        errors, inside = (np.array(each) for each in zip(*results, strict=True))
        print(
            f"after {minute:2d} min, {words:7s} clock: energy of motion off by "
            f"{np.sqrt(np.mean(errors.sum(axis=1) ** 2)):.1%}, of a joint by "
            f"{np.sqrt(np.mean(errors**2)):.1%} of it (rms); 95 % intervals of the joints cover "
            f"{inside.mean():.0%}"
        )


SESSION_MINUTES = 40
CHANGE_MINUTE = 20
QUIET_SESSIONS = 4
CHANGES: dict[str, Callable[[SimulatedArm], None]] = {
    "friction of wrist 1 times 1.15": lambda arm: arm.change_friction(3, 1.15),
    "payload of 1 kg": lambda arm: arm.carry(Payload(1.0, np.array([0.0, 0.0, 0.08]))),
    "tilt of 5 degrees": lambda arm: arm.tilt(
        gravity_of_mounting(math.radians(5.0), 0.0)
    ),
}


def changes_of_the_simulated_arm() -> None:
    """Quiet sessions, then one for each change."""
    model = identified()
    monitor = ChangeMonitor(model)
    begin = process_time()
    quiet = 0
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


# Surrogate work, since the simulated arm cannot work for years.

FIRST_SEED = 3000
SURROGATES = 8
MONTHS = 6
SESSIONS = 22
MINUTES = 60
"""22 sessions a month; each of the arms works for so many months."""
# changes to detect, and sessions before and after each
TRIALS = 30
BEFORE = 10
AFTER = 8


def false_alarms() -> None:
    """Years of surrogate work with nothing changed."""
    model = first_model(load_robot(ARM))
    begin = process_time()
    count = Counter[str]()
    for seed in range(FIRST_SEED, FIRST_SEED + SURROGATES):
        arm = SurrogateWork(seed)
        monitor = ChangeMonitor(model)
        for number in range(MONTHS * SESSIONS):
            start = number * DAY * 30.0 / SESSIONS
            monitor.start_session(start, 30.0 / SESSIONS if number else 0.0)
            for work in arm.session(number + 1, start, MINUTES):
                monitor.observe_minute(work.minute)
                power = model.bus.standby + work.standby
                monitor.observe_standby(work.minute.time, power, 0.4)
            count.update(change.what for change in monitor.take())
    months = SURROGATES * MONTHS
    print(
        f"surrogate work, {months} months of {SESSIONS} sessions of {MINUTES} min, {SURROGATES} "
        f"arms, running-in included: {sum(count.values()) / months:.2f} false alarms a month "
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
        later = ", ".join(
            f"{np.sum(found[:, 0] < k) / TRIALS:.0%} in {k}" for k in (1, 2, 4, 8)
        )
        print(
            f"15 % change {'between sessions' if overnight else 'within a session'}, {TRIALS} "
            f"trials: found within {later} sessions; in the first one after "
            f"{float(np.median(early)) if early.size else math.nan:.0f} min of motion (median), "
            f"at most {early.max(initial=0.0):.0f}"
        )


def _detected(
    model: EnergyModel, seed: int, *, overnight: bool
) -> tuple[int, float] | None:
    """Sessions and minutes of motion until the change of a joint was reported; None if never."""
    arm = SurrogateWork(seed)
    monitor = ChangeMonitor(model)
    random = np.random.default_rng(seed)
    joint = int(random.integers(6))
    size = float(random.choice([-1.0, 1.0])) * math.log(1.15)
    at = 0 if overnight else int(random.integers(5, 60))
    for number in range(BEFORE + AFTER):
        start = number * DAY
        minutes = 0.0
        monitor.start_session(start, 1.0)
        if overnight and number == BEFORE:
            arm.friction[joint] = size
        for k, work in enumerate(arm.session(number + 1, start, 60 + at)):
            monitor.observe_minute(work.minute)
            changed = number > BEFORE or (number == BEFORE and k >= at)
            minutes += changed
            name = model.joints[joint].name
            reported = [
                each.joint == name and each.size * size > 0 for each in monitor.take()
            ]
            if changed and any(reported):
                return number - BEFORE, minutes
            if not overnight and number == BEFORE and k == at - 1:
                arm.friction[joint] = size
    return None


def main() -> None:
    """Print all figures."""
    recordings()
    simulated_production()
    following_levels()
    following_sessions()
    cold_starts()
    false_alarms()
    detection()
    changes_of_the_simulated_arm()
