"""Predicted motion from a cold start to a warm arm, with and without the friction clock.

A simulated arm starts at ambient temperature in each session and works. At some times the motion of
the next minute is predicted from its targets, as a plan is, with the model as identified and with
the friction that learning states at that time; truth is the simulator's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from test.benchmarks.bench_drift import ARM, FIELDS, Session, identified
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.learning.changes import ChangeMonitor
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import record_arm
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array, Mask

SEEDS, OTHER_SEEDS = (6101, 6102, 6103), (6203, 6204)
FIRST_MOTION, BATCH = 20.0, 12
"""Work before a prediction without learning [s], and samples of a batch of it."""
SESSIONS = 4
TARGETS = ("target_q", "target_qd", "target_qdd")
TIMES, WARM = (0, 2, 10), 30
"""Minutes of work at which the next minute is predicted, and one more in the last session.

In all sessions but the first.
"""


class Prediction(NamedTuple):
    """Errors of one predicted minute of work, n joints.

    Attributes:
        energy: of the joints' electrical energy, relative to the whole arm's [n].
        whole: of the electrical energy of all joints, relative.
        current: root mean square error of the currents over that of the currents.
        covered: whether each joint's 95 % interval contains the truth [n].
    """

    energy: Array
    whole: float
    current: float
    covered: Mask


def cold_start(monitor: ChangeMonitor, seed: int, session: int) -> Session:
    """An arm at ambient temperature, its points those of seed and session."""
    return Session(monitor, seed, seed + session, session, warmth=0.0)


def next_minute(work: Session) -> tuple[Telemetry, Array]:
    """The samples of the next minute, and the joints' true electrical energies [n], J."""
    before = work.arm.energies()
    samples = concatenate(work.minute((*FIELDS, *TARGETS)))
    after = work.arm.energies()
    return samples, after.mechanical + after.copper - before.mechanical - before.copper


def predicted(
    model: EnergyModel, samples: Telemetry, temperature: Array, truth: Array
) -> Prediction:
    """A minute of work predicted from its targets at the temperature before it."""
    q, qd, qdd = (samples[name] for name in TARGETS)
    plan = Plan(samples.time - samples.time[0], q, qd, qdd)
    energy = predict_energy(model, plan, temperature=temperature)
    current = model.predict(q, qd, qdd, temperature=temperature, std=False).current
    measured = samples["actual_current"]
    error = energy.electrical - truth
    return Prediction(
        energy=error / truth.sum(),
        whole=float(error.sum() / truth.sum()),
        current=float(np.sqrt(np.square(current - measured).mean() / np.square(measured).mean())),
        covered=np.abs(error) <= CONFIDENCE * energy.electrical_std,
    )


def followed(seed: int) -> Iterator[tuple[int, list[Prediction]]]:
    """Minutes of work, and predictions without and with the clock."""
    model = identified(seed)
    monitor = ChangeMonitor(model)
    for session in range(1, SESSIONS + 1):
        times = (*TIMES, WARM) if session == SESSIONS else TIMES
        work = cold_start(monitor, seed, session)
        first = record_arm(work.arm, 0.1, FIELDS)  # from which learning knows the session
        work.observe(first)
        temperature = first["joint_temperatures"][-1]
        for minute in range(times[-1] + 1):
            friction = monitor.friction_now()
            samples, truth = next_minute(work)
            if session > 1 and minute in times:
                models = model, model.in_session(friction.applied_to(model.session))
                yield minute, [predicted(each, samples, temperature, truth) for each in models]
            temperature = samples["joint_temperatures"][-1]


def without_learning(seed: int) -> list[Prediction]:
    """A minute predicted without and with the friction of the motion before it."""
    model = identified(seed)
    work = cold_start(ChangeMonitor(model), seed, 1)
    calculator, first = EnergyCalculator(model, load_robot(ARM)), record_arm(work.arm, FIRST_MOTION)
    for start in range(0, len(first), BATCH):
        calculator(first.cut(slice(start, start + BATCH)))
    samples, truth = next_minute(work)
    temperature = first["joint_temperatures"][-1]
    models = model, calculator.model_in_session()
    return [predicted(each, samples, temperature, truth) for each in models]


def main() -> None:
    """Print the errors by time, over all arms."""
    found: dict[int, list[list[Prediction]]] = defaultdict(list)
    for seed in SEEDS:
        for minute, both in followed(seed):
            found[minute].append(both)
    print(f"{len(SEEDS)} simulated {ARM}, {SESSIONS} sessions from a cold start each:")
    for minute, pairs in found.items():
        for words, results in zip(("without", "with"), zip(*pairs, strict=True), strict=True):
            whole = np.sqrt(np.mean([each.whole**2 for each in results]))
            joints = np.sqrt(np.mean([np.square(each.energy) for each in results]))
            current = np.mean([each.current for each in results])
            covered = np.mean([each.covered for each in results])
            print(
                f"after {minute:2d} min, {words:7s} clock: energy of motion off by {whole:.1%}, of "
                f"a joint by {joints:.1%} of it (rms); currents by {current:.1%}; 95 % intervals "
                f"of the joints cover {covered:.0%}"
            )
    for seed in OTHER_SEEDS:
        before, after = without_learning(seed)
        print(
            f"seed {seed}, without learning, after {FIRST_MOTION:g} s: energy of motion off by "
            f"{before.whole:.1%} as identified, by {after.whole:.1%} with the first motion"
        )
