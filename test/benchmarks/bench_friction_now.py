"""Predicted motion from a cold start to a warm arm, with and without the friction clock.

A simulated arm starts at ambient temperature in each session and works. At some times
the motion of the next minute is predicted from its targets, as a plan is, with the model
as identified and with the friction that learning states at that time; truth is the simulator's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from test.benchmarks.bench_drift import FIELDS, RATE, identified
from test.learning.surrogate_work import DAY
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.identification.filtered_motion import MotionStream
from ur_energy_model.learning.changes import ChangeMonitor
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.named_motions import Planner
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array, Mask

ARM = "ur5e"
SEEDS = (6101, 6102, 6103)
OTHER_SEEDS = (6203, 6204)
FIRST_MOTION, BATCH = 20.0, 12
"""Work before a prediction without learning [s], and samples of a batch of it."""
SESSIONS = 4
TIMES = (0, 2, 10)
"""Minutes of work at which the next minute is predicted, in all sessions but the first."""
WARM = 30
"""The same in the last session."""
PIECE = 15.0
"""Length of the batches [s]."""
COLD = ArmOptions(warmth=0.0)


@dataclass(frozen=True)
class Prediction:
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


class Work:
    """An arm at work in one session, and what learning sees of it."""

    def __init__(self, monitor: ChangeMonitor, seed: int, session: int) -> None:
        robot = replace(load_robot(ARM), rate=RATE)
        planner = Planner(robot)
        motion = planner.chain_through(planner.random_points(seed + session), rest=0.5)
        options = replace(COLD, session=session)
        self.arm = SimulatedArm(robot, motion=motion, seed=seed, options=options)
        self.monitor, self._offset = monitor, DAY * session
        self._stream = MotionStream(robot.dof, 5.0, 1.0 / RATE)
        self._dynamics = monitor.model.dynamics()

    def begin(self) -> Array:
        """The first samples, from which learning knows the session; the joints' temperature [n]."""
        first = record_arm(self.arm, 0.1, FIELDS)
        self.monitor.observe(replace(first, time=first.time + self._offset), [])
        return first["joint_temperatures"][-1]

    def minute(self) -> tuple[Telemetry, Array]:
        """The samples of the next minute, and the joints' true electrical energies [n], J."""
        before, parts = self.arm.energies(), []
        for _ in range(round(60.0 / PIECE)):
            batch = record_arm(self.arm, PIECE, (*FIELDS, "target_q", "target_qd", "target_qdd"))
            parts.append(batch)
            self._learn(batch)
        after = self.arm.energies()
        electrical = after.mechanical + after.copper - before.mechanical - before.copper
        time = np.concatenate([part.time for part in parts])
        columns = {
            name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns
        }
        return Telemetry(time, columns, parts[0].info), electrical

    def _learn(self, batch: Telemetry) -> None:
        batch = replace(batch, time=batch.time + self._offset)
        motions = [(part, self._dynamics) for part in self._stream.process(batch)]
        self.monitor.observe(batch, motions)


def predicted(
    model: EnergyModel, samples: Telemetry, temperature: Array, truth: Array
) -> Prediction:
    """A minute of work predicted from its targets at the temperature before it."""
    q, qd, qdd = (samples[f"target_{name}"] for name in ("q", "qd", "qdd"))
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


def followed(seed: int) -> Iterator[tuple[int, Prediction, Prediction]]:
    """Minutes of work, and predictions without and with the clock."""
    with TemporaryDirectory() as name:
        model = identified(Path(name), seed)
    monitor = ChangeMonitor(model)
    for session in range(1, SESSIONS + 1):
        times = (*TIMES, WARM) if session == SESSIONS else TIMES
        work = Work(monitor, seed, session)
        temperature = work.begin()
        for minute in range(times[-1] + 1):
            friction = monitor.friction_now()
            samples, truth = work.minute()
            if session > 1 and minute in times:
                with_clock = model.in_session(friction.applied_to(model.session))
                both = [
                    predicted(each, samples, temperature, truth) for each in (model, with_clock)
                ]
                yield minute, both[0], both[1]
            temperature = samples["joint_temperatures"][-1]


def without_learning(seed: int) -> tuple[Prediction, Prediction]:
    """A minute predicted without and with the friction of the motion before it."""
    with TemporaryDirectory() as name:
        model = identified(Path(name), seed)
    work, calculator = Work(ChangeMonitor(model), seed, 1), EnergyCalculator(model, load_robot(ARM))
    first = record_arm(work.arm, FIRST_MOTION)
    for start in range(0, len(first), BATCH):
        calculator(first.cut(slice(start, start + BATCH)))
    samples, truth = work.minute()
    temperature = first["joint_temperatures"][-1]
    both = [
        predicted(each, samples, temperature, truth)
        for each in (model, calculator.model_in_session())
    ]
    return both[0], both[1]


def main() -> None:
    """Print the errors by time, over all arms."""
    found: dict[int, list[tuple[Prediction, Prediction]]] = {
        minute: [] for minute in (*TIMES, WARM)
    }
    for seed in SEEDS:
        for minute, *both in followed(seed):
            found[minute].append((both[0], both[1]))
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


if __name__ == "__main__":
    main()
