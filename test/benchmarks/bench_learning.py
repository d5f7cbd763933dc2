"""Learning while the arm works: errors of the next five minutes after some time of production.

Simulated arms that learning was not tuned on start from the generic model of their type and do pick
and place with varied points, rests and payloads. At some times the model in use predicts the five
minutes that follow: the energy at the supply and each joint's electrical energy from measured
currents, beside the simulation's truth.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import numpy as np

from test.learning.production import Piece, production
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter
from ur_energy_model.energy.recording_energy import EnergySummary, summarise
from ur_energy_model.learning.learner import Learner, first_model
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.writer import BagWriter

ARMS = (
    ("ur5e", 101), ("ur3e", 102), ("ur10e", 103), ("ur16e", 105),
    ("ur5e", 201), ("ur10e", 202), ("ur3e", 203), ("ur16e", 209), ("ur5", 210),
)  # fmt: skip
TIMES = (10.0, 60.0, 300.0, 600.0)
"""Production before the prediction [s]."""
JUDGED = 300.0
"""Time predicted [s]."""
SHARE = 0.01
"""Joints with less of the joints' energy are left out of the relative errors."""


@dataclass
class Prediction:
    """A model beside the truth over the next minutes.

    Attributes:
        after: production before it [s].
        model: in use then.
        joints: true electrical energies so far [n], J; supply: at the supply, J.
    """

    after: float
    model: EnergyModel
    joints: np.ndarray = field(default_factory=lambda: np.zeros(0))
    supply: float = 0.0

    def __post_init__(self) -> None:
        self._calculator = EnergyCalculator(self.model, load_robot(self.model.robot))
        self._meter = EnergyMeter(len(self._calculator.channels))
        self.joints = np.zeros(self.model.dof)

    def observe(self, piece: Piece) -> None:
        table = self._calculator(piece.samples)
        if table is not None:
            self._meter.integrate_table(table)
        self.joints = self.joints + piece.electrical
        self.supply += piece.bus

    @property
    def summary(self) -> EnergySummary:
        return summarise(self._calculator, self._meter, True)


def learn(robot_name: str, seed: int) -> tuple[list[Prediction], float, float]:
    """Predictions of one arm, processor time of learning per second, size of the state [MB]."""
    robot = load_robot(robot_name)
    learner = Learner(robot, first_model(robot))
    predictions: list[Prediction] = []
    now, busy = 0.0, 0.0
    for piece in production(robot_name, seed, max(TIMES) + JUDGED):
        for prediction in predictions:
            if now - prediction.after < JUDGED:
                prediction.observe(piece)
        start = process_time()
        learner.update(piece.samples)
        learner.attempts()
        busy += process_time() - start
        now = float(piece.samples.time[-1]) - 60.0
        if len(predictions) < len(TIMES) and now >= TIMES[len(predictions)]:
            predictions.append(Prediction(now, learner.model))
    return predictions, busy / now, len(learner.state()) / 1e6


def main() -> None:
    """Print a line per arm and time, and the worst of all."""
    errors: dict[float, list[float]] = {time: [] for time in TIMES}
    worst: dict[float, float] = dict.fromkeys(TIMES, 0.0)
    joint_errors: dict[float, list[float]] = {time: [] for time in TIMES}
    supply_errors: dict[float, list[float]] = {time: [] for time in TIMES}
    for name, seed in ARMS:
        predictions, share, size = learn(name, seed)
        print(f"{name} {seed}: {100 * share:.1f} % of a core, state {size:.1f} MB", flush=True)
        for time, prediction in zip(TIMES, predictions, strict=True):
            summary, truth = prediction.summary, prediction.joints
            supply = 100.0 * (summary.supply / prediction.supply - 1.0)
            known = np.abs(truth) > SHARE * np.abs(truth).sum()
            joints = 100.0 * (summary.electrical - truth) / np.where(known, np.abs(truth), np.inf)
            half = CONFIDENCE * summary.electrical_std
            errors[time] += joints[known].tolist()
            worst[time] = max(worst[time], abs(supply))
            joint_errors[time] += ((summary.electrical - truth) / summary.electrical_std).tolist()
            supply_errors[time].append((summary.supply - prediction.supply) / summary.supply_std)
            width = ", ".join(f"{100 * h / abs(t):.0f}" for h, t in zip(half, truth, strict=True))
            print(
                f"  after {time:3.0f} s: supply {supply:+.2f} %, joints "
                f"{', '.join(f'{value:+.1f}' for value in joints)} % (+- {width})"
            )
    for time in TIMES:
        rms = float(np.sqrt(np.mean(np.square(errors[time]))))
        print(
            f"after {time:3.0f} s: supply within {worst[time]:.2f} %, joints within "
            f"{np.abs(errors[time]).max():.1f} % (rms {rms:.1f} %); intervals of the joints "
            f"{coverage(joint_errors[time])}, of the supply {coverage(supply_errors[time])}"
        )
    memory()


def coverage(errors: list[float]) -> str:
    """Share of errors inside the 95 % interval, and their rms, of errors in standard deviations."""
    inside = np.mean(np.abs(errors) <= CONFIDENCE)
    return f"hold {100 * inside:.0f} % (rms {np.sqrt(np.mean(np.square(errors))):.2f})"


def memory() -> None:
    """Peak memory of `ur_energy learn` on a bag of five minutes."""
    with tempfile.TemporaryDirectory() as folder:
        bag = Path(folder) / "production"
        pieces = production("ur5e", 107, 300.0)
        first = next(pieces).samples
        writer = BagWriter(bag, first.info, tuple(first.columns))
        writer.write(first)
        for piece in pieces:
            writer.write(piece.samples)
        writer.close()
        command = [sys.executable, "-m", "ur_energy_model.cli.main", "learn", str(bag)]
        command += ["--robot", "ur5e", "-o", str(Path(folder) / "model.yaml"), "--json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"ur_energy learn, bag reading and picture included: {peak:.0f} MB")


if __name__ == "__main__":
    main()
