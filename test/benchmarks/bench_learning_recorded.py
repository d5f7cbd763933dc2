"""Learning on recordings of real arms: energy at the supply of the rest, after some seconds.

The first seconds of each recording with bus power beside the checkout are learned from, starting
with the generic model of its arm type. The model in use then predicts the rest of the recording,
from measured currents and from the motion alone.
"""

from __future__ import annotations

import numpy as np

from test.conftest import SHARED
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter
from ur_energy_model.energy.powers import Method, PowerOptions
from ur_energy_model.energy.recording_energy import EnergySummary, summarise
from ur_energy_model.learning.learner import Learner, first_model
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import Telemetry

TIMES = (0.0, 10.0, 20.0, 30.0, 60.0)
LEAST_REST = 3.0
"""Shortest rest that is predicted [s]."""
BATCH = 200


def energies(model: EnergyModel, samples: Telemetry, method: Method) -> EnergySummary:
    calculator = EnergyCalculator(model, load_robot(model.robot), PowerOptions(method=method))
    meter = EnergyMeter(len(calculator.channels))
    table = calculator(samples)
    assert table is not None
    meter.integrate_table(table)
    return summarise(calculator, meter, table.bus_measured)


def main() -> None:
    """Print a line per recording and time."""
    files = sorted((SHARED / "data").glob("*.csv.gz"))
    if not files:
        print(f"no recordings at {SHARED / 'data'}")
    for file in files:
        name = file.name.partition("_")[0]
        data = read_csv([file], name)
        if not data.has_bus_power:
            continue
        robot = load_robot(name)
        print(f"{file.name.removesuffix('.csv.gz')}:")
        for time in TIMES:
            if data.time[0] + time > data.time[-1] - LEAST_REST:
                break
            end = int(np.searchsorted(data.time, data.time[0] + time))
            learner = Learner(robot, first_model(robot))
            for start in range(0, end, BATCH):
                learner.update(data.cut(slice(start, min(end, start + BATCH))))
                learner.attempts()
            learner.finish()
            words = []
            methods: tuple[Method, ...] = ("current", "motion")
            for method in methods:
                found = energies(learner.model, data.cut(slice(end, None)), method)
                if found.bus:
                    error = 100.0 * (found.supply / found.bus - 1.0)
                    half = 100.0 * CONFIDENCE * found.supply_std / found.bus
                    words.append(f"from {method} {error:+.1f} % (+- {half:.1f})")
            print(f"  after {time:2.0f} s, version {learner.version}: {', '.join(words)}")


if __name__ == "__main__":
    main()
