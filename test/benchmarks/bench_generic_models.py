"""What generic models make of arms not yet identified: errors, and whether intervals cover.

Simulated arms of all nine types, twelve seconds each, half pick and place, half random points.
Where a robot file has no motor constants, those of the simulated arm are drawn from the spread that
the generic model states for them.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from test.energy.unseen_arms import REAL, Trial, compared, energies, record, slowly, without_bus
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.model.generic import generic_models
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import read_csv

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
SEEDS = range(2000, 2006)
SECONDS = 12.0
MOTION = PowerOptions(method="motion")


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
                ("with bus power", energies(name, telemetry)),
                ("with bus power, 10 Hz", energies(name, slowly(telemetry, 10.0))),
                ("without bus power", energies(name, blind)),
                ("from the motion, with bus power", energies(name, telemetry, MOTION)),
                ("from the motion alone", energies(name, blind, MOTION)),
            ):
                trial = compared(summary, truth)
                trials[variant, kind].append(trial)
                if trial.anchored:
                    trials[f"{variant}, standby measured", kind].append(trial)
    for (variant, kind), found in sorted(trials.items()):
        print(f"{variant}, {kind}, {len(found)} recordings")
        joints = np.concatenate([trial.joints for trial in found])
        supply = np.array([trial.supply for trial in found])
        widths = np.concatenate([trial.joint_width for trial in found])
        errors = np.concatenate([trial.joint_error for trial in found])
        whole = np.array([trial.error for trial in found])
        line("joints", joints, widths, errors)
        line("supply", supply, np.array([trial.width for trial in found]), whole)


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
        for what, options in (
            ("currents, standby measured", PowerOptions()),
            ("currents alone", PowerOptions(track_standby=False)),
            ("motion, standby measured", MOTION),
            ("motion alone", replace(MOTION, track_standby=False)),
        ):
            summary = energies(name, telemetry, options)
            assert summary.bus is not None
            error = 100 * (summary.supply / summary.bus - 1)
            width = 100 * CONFIDENCE * summary.supply_std / summary.bus
            texts.append(f"{what} {error:+.1f} ± {width:.1f}")
        print(f"    {recording}: {'; '.join(texts)}")


def line(what: str, deviations: np.ndarray, widths: np.ndarray, errors: np.ndarray) -> None:
    """Print coverage, widths and errors of some energies."""
    covered = 100 * np.mean(np.abs(deviations) < CONFIDENCE)
    rms = np.sqrt(np.mean(deviations**2))
    low, middle, high = np.percentile(widths, (25, 50, 75))
    print(
        f"    {what}: {covered:.1f} % covered, error {rms:.2f} standard deviations rms; intervals "
        f"± {middle:.1f} % (middle half {low:.0f} to {high:.0f}), median error "
        f"{np.median(np.abs(errors)):.1f} %"
    )


if __name__ == "__main__":
    main()
