"""Learning while the arm works: errors of what follows, after some time of work.

Simulated arms that learning was not tuned on start from the generic model of their type and do pick
and place with varied points, rests and payloads; the model in use then predicts five minutes from
measured currents, beside the simulation's truth. Recordings of real arms beside the checkout are
learned from for some seconds, and the rest of them is predicted.
"""

from __future__ import annotations

from time import process_time

import numpy as np

from test.benchmarks.meters import DATA
from test.learning.production import production
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter
from ur_energy_model.energy.powers import Method, PowerOptions
from ur_energy_model.energy.recording_energy import EnergySummary, summarise
from ur_energy_model.learning.learner import Learner, first_model
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import Telemetry, concatenate

ARMS = (
    ("ur5e", 101), ("ur3e", 102), ("ur10e", 103), ("ur16e", 105),
    ("ur5e", 201), ("ur10e", 202), ("ur3e", 203), ("ur16e", 209), ("ur5", 210),
)  # fmt: skip
TIMES, JUDGED = (10.0, 60.0, 300.0, 600.0), 300.0
"""Production before the prediction, and time predicted [s]."""
RECORDED_TIMES, LEAST_REST = (0.0, 10.0, 20.0, 30.0, 60.0), 3.0
"""The same of recordings, and the shortest rest that is predicted [s]."""
SHARE = 0.01
"""Joints with less of the joints' energy are left out of the relative errors."""
METHODS: tuple[Method, ...] = ("current", "motion")


def predicted(model: EnergyModel, samples: Telemetry, method: Method = "current") -> EnergySummary:
    """Energies of samples."""
    calculator = EnergyCalculator(model, load_robot(model.robot), PowerOptions(method=method))
    meter, table = EnergyMeter(len(calculator.channels)), calculator(samples)
    assert table is not None
    table.integrate(meter)
    return summarise(calculator, meter, table.bus_measured)


def learn(name: str, seed: int) -> tuple[list[tuple[EnergySummary, np.ndarray, float]], float]:
    """Energies after each time beside those of joints and supply, processor time per second."""
    pieces = list(production(name, seed, max(TIMES) + JUDGED))
    robot = load_robot(name)
    learner, models, busy = Learner(robot, first_model(robot)), list[EnergyModel](), 0.0
    ends = np.array([float(piece.samples.time[-1]) - 60.0 for piece in pieces])
    for piece, end in zip(pieces, ends, strict=True):
        start = process_time()
        learner.update(piece.samples)
        learner.attempts()
        busy += process_time() - start
        models += [learner.model] * int(len(models) < len(TIMES) and end >= TIMES[len(models)])
    found = []
    for model, after in zip(models, TIMES, strict=True):
        first = int(np.argmax(ends >= after)) + 1
        last = int(np.searchsorted(ends, ends[first - 1] + JUDGED, side="right"))
        some = pieces[first:last]
        truth = np.sum([piece.electrical for piece in some], axis=0)
        samples = concatenate([piece.samples for piece in some])
        found.append((predicted(model, samples), truth, sum(piece.bus for piece in some)))
    return found, busy / float(ends[-1])


def simulated() -> None:
    """A line per arm and time, and the worst of all."""
    joints: dict[float, list[float]] = {time: [] for time in TIMES}
    supplies: dict[float, list[float]] = {time: [] for time in TIMES}
    inside: dict[float, list[bool]] = {time: [] for time in TIMES}
    for name, seed in ARMS:
        found, share = learn(name, seed)
        print(f"{name} {seed}: {100 * share:.1f} % of a core", flush=True)
        for time, (summary, truth, supply) in zip(TIMES, found, strict=True):
            error = summary.electrical - truth
            known = np.abs(truth) > SHARE * np.abs(truth).sum()
            errors = 100.0 * error[known] / np.abs(truth)[known]
            joints[time] += errors.tolist()
            supplies[time].append(100.0 * (summary.supply / supply - 1.0))
            inside[time] += (np.abs(error) <= CONFIDENCE * summary.electrical_std).tolist()
            words = ", ".join(f"{each:+.1f}" for each in errors)
            print(f"  after {time:3.0f} s: supply {supplies[time][-1]:+.2f} %, joints {words} %")
    for time in TIMES:
        rms = np.linalg.norm(joints[time]) / len(joints[time]) ** 0.5
        print(
            f"after {time:3.0f} s: supply within {np.abs(supplies[time]).max():.2f} %, joints "
            f"within {np.abs(joints[time]).max():.1f} % (rms {rms:.1f} %), "
            f"{100 * np.mean(inside[time]):.0f} % of them inside their 95 % intervals"
        )


def recorded() -> None:
    """A line per recording and time."""
    for file in sorted(DATA.glob("*.csv.gz")):
        name = file.name.partition("_")[0]
        data, robot = read_csv([file], name), load_robot(name)
        for time in RECORDED_TIMES if data.has_bus_power else ():
            if data.time[0] + time > data.time[-1] - LEAST_REST:
                break
            end = int(np.searchsorted(data.time, data.time[0] + time))
            learner, words = Learner(robot, first_model(robot)), []
            for start in range(0, end, 200):
                learner.update(data.cut(slice(start, min(end, start + 200))))
                learner.attempts()
            learner.finish()
            for method in METHODS:
                found = predicted(learner.model, data.cut(slice(end, None)), method)
                if found.bus:
                    error = 100.0 * (found.supply / found.bus - 1.0)
                    half = 100.0 * CONFIDENCE * found.supply_std / found.bus
                    words.append(f"from {method} {error:+.1f} % (+- {half:.1f})")
            print(f"{file.name} after {time:2.0f} s, version {learner.version}: {', '.join(words)}")


def main() -> None:
    """Print both."""
    recorded()
    simulated()
