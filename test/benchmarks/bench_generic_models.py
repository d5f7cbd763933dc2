# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What generic models make of arms not yet identified: errors, and whether intervals cover.

Simulated arms of all nine types, twelve seconds each, half pick and place, half random
points. Where a robot file has no motor constants, those of the simulated arm are drawn
from the spread that the generic model states for them.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from test.benchmarks.meters import DATA
from test.energy.unseen_arms import (
    REAL,
    Trial,
    compared,
    energies,
    record,
    slowly,
    without_bus,
)
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.model.generic import generic_models
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import read_csv

SEEDS = range(2000, 2006)
SECONDS = 12.0
MOTION = PowerOptions(method="motion")
VARIANTS = {
    "currents, standby measured": (PowerOptions(), True),
    "the type's constants": (PowerOptions(), False),
    "currents alone": (PowerOptions(track_standby=False), True),
    "motion, standby measured": (MOTION, True),
    "motion alone": (replace(MOTION, track_standby=False), True),
}
"""Options, and whether torque constants are those that the controller states."""


def main() -> None:
    """Print coverage and widths by variant and kind of arm."""
    real_arms()
    trials: defaultdict[tuple[str, str], list[Trial]] = defaultdict(list)
    for name in generic_models():
        published = np.isfinite(load_robot(name).winding_resistance).all()
        kind = "constants published" if published else "constants assumed"
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as folder:
                telemetry, truth = record(name, seed, SECONDS, Path(folder))
            blind = without_bus(telemetry)
            for variant, summary in (
                ("with bus power", energies(name, telemetry, stated=True)),
                ("with bus power, the type's constants", energies(name, telemetry)),
                (
                    "with bus power, 10 Hz",
                    energies(name, slowly(telemetry, 10.0), stated=True),
                ),
                ("without bus power", energies(name, blind, stated=True)),
                (
                    "from the motion, with bus power",
                    energies(name, telemetry, MOTION, stated=True),
                ),
                ("from the motion alone", energies(name, blind, MOTION, stated=True)),
            ):
                trial = compared(summary, truth)
                trials[variant, kind].append(trial)
                if trial.anchored:
                    trials[f"{variant}, standby measured", kind].append(trial)
    for (variant, kind), found in sorted(trials.items()):
        print(f"{variant}, {kind}, {len(found)} recordings")
        joints = [np.array([t.joints, t.joint_width, t.joint_error]) for t in found]
        supply = [np.array([[t.supply], [t.width], [t.error]]) for t in found]
        for what, values in {"joints": joints, "supply": supply}.items():
            deviations, widths, errors = np.concatenate(values, axis=1)
            covered = 100 * np.mean(np.abs(deviations) < CONFIDENCE)
            low, middle, high = np.percentile(widths, (25, 50, 75))
            print(
                f"    {what}: {covered:.1f} % covered, error {np.sqrt(np.mean(deviations**2)):.2f} "
                f"standard deviations rms; intervals ± {middle:.1f} % (middle half {low:.0f} to "
                f"{high:.0f}), median error {np.median(np.abs(errors)):.1f} %"
            )


def real_arms() -> None:
    """Print errors and intervals of the energy at the supply on recordings of real arms."""
    if not DATA.is_dir():
        print(f"no recordings of real arms at {DATA}")
        return
    print("real arms: error of the energy at the supply and 95 % interval, percent")
    for recording in REAL:
        name = recording.partition("_")[0]
        telemetry = read_csv([DATA / f"{recording}.csv.gz"], name)
        texts = []
        for what, (options, stated) in VARIANTS.items():
            summary = energies(name, telemetry, options, stated=stated)
            assert summary.bus is not None
            error = 100 * (summary.model / summary.bus - 1)
            width = 100 * CONFIDENCE * summary.model_std / summary.bus
            texts.append(f"{what} {error:+.1f} ± {width:.1f}")
        print(f"    {recording}: {'; '.join(texts)}")
