# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Writes docs/accuracy.md from recordings of real arms.

    python -m tools.accuracy_page FOLDER

FOLDER holds the CSV recordings that the page names; they are not part of the repository.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.report.analysis import analyse
from ur_energy_model.report.figures import save_chart
from ur_energy_model.report.recording_charts import bus_chart, current_chart
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.csv.reader import read_csv

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS = Path(__file__).resolve().parents[1] / "docs"


@dataclass(frozen=True)
class Case:
    """One identification from a recording of a real arm.

    Attributes:
        title: arm and motion.
        robot: name of the arm.
        fitted, judged: recordings; the same one if the arm has only one.
        source: repository that published them.
    """

    title: str
    robot: str
    fitted: str
    judged: str
    source: str


CASES = (
    Case("UR10e, another motion", "ur10e", "ur10e_excitation_50s", "ur10e_point_to_point_57s",
         "shamilmamedov/dynamic_calibration"),
    Case("UR10e, another excitation", "ur10e", "ur10e_excitation_50s",
         "ur10e_excitation_unloaded_56s", "shamilmamedov/dynamic_calibration"),
    Case("UR5e, tilted by 45 degrees, with payload", "ur5e", "ur5e_pick_place_50hz_24s",
         "ur5e_pick_place_50hz_24s", "INTO-CPS-Association/DTaaS-examples"),
    Case("UR5e, one streamed move", "ur5e", "ur5e_streamed_move_500hz_6s",
         "ur5e_streamed_move_500hz_6s", "philipmarschner/dmp_project"),
    Case("UR3e, with payload, 25 Hz", "ur3e", "ur3e_moves_payload_1.07kg_25hz_36s",
         "ur3e_moves_payload_1.07kg_25hz_36s", "ubc-systopia/dsn-2022-rad-artifact"),
)  # fmt: skip

METERED = (
    *CASES[2:],
    Case("UR5e, tilted by 45 degrees, another day, 10 Hz", "ur5e", "ur5e_pick_place_50hz_24s",
         "ur5e_other_day_10hz_21s", "INTO-CPS-Association/DigitalTwins_RoboSim"),
    Case("UR5e, a third arm, 125 Hz", "ur5e", "ur5e_pick_place_50hz_24s",
         "ur5e_other_arm_125hz_11s", "UthiraS/rtde-2.8"),
)  # fmt: skip
"""Cases whose judged recording has the voltages at the joints; the third arm's is too short to
identify that arm."""

EVERY = tuple(dict.fromkeys((*CASES, *METERED)))
SOURCES = {case.judged: case.source for case in EVERY} | {
    case.fitted: case.source for case in CASES
}
SAME_ARM = ("ur5e_pick_place_50hz_24s", "ur5e_other_day_10hz_21s")
"""Recordings of one arm."""

PAGE = """# How accurate it is

Accuracy on recordings of real arms. `tools/accuracy_page.py` writes this page from public
recordings (see [Sources](#sources)) that are not part of the repository; no number is edited by
hand.

**Held out** means that the model was not fitted to the recording, and that its path is not one of
the fitted ones. If there is only one public recording of an arm, the model is evaluated on the
recording it was fitted to, and the table reports it. These rows show whether the structure of the
model fits, not whether it predicts.

## Torque, current and power

R² is given as minimum and median over the joints. R² of the current is of the
samples in which the joint moves.

{metrics}

The noise of the measured bus power is 1.4 to 1.6 W. The energy error on a fitted recording is small
by construction, since the standby power is fitted too. The streamed move lasts six seconds, and its
currents are mostly friction near standstill: torque and power are accurate, currents are not.

![Current of a UR10e, measured and estimated, on the held-out motion](images/accuracy_current.png)

![Power of a UR5e, measured and modelled](images/accuracy_power.png)

## Joint power, measured

Energy that each motor takes with its drive while the arm moves, in joules with 95 % intervals:
measured by the [voltages at the joints](how_it_works.md#power-of-each-joint-measured), and modelled
from measured currents, by the generic model of the type and by the identified one, which was fitted
to the same recording or to one of another day or arm. Measured energies do not depend on the size
of the modelled ones: a joint that takes twice as much is measured so. Joints that hardly move or
that the arm's motion does not separate have wide intervals.

{joint_power}

## Comparison with other methods

`python -m test.benchmarks peers` fits each recording, and each
[session](simulation/simulated_arm.md#the-arm) of simulated arms, in turn and evaluates the model
on the others of arms of that type. The other methods are ordinary least squares: *least squares*
predicts each joint's current from its acceleration, speed, tanh of the speed, the torque of the
nominal links and a constant; *six terms* is the [null
model](how_it_works.md#what-changes-from-day-to-day) of currents; *base parameters* (by figaroh if
it is installed) uses the regressor of the whole arm; *three coefficients* predicts power from 1,
sum R i² and sum k_t N q̇ i; *EcBot* has its own regressions of current and of power (4n+1
coefficients); *one parameter* (Petrichenko et al. 2024, arXiv 2411.03194, eq. 7) predicts power
from the motion alone, without currents: τ·q̇ plus a constant plus τ·τ times one R/k_t² for all
joints, neither negative, where τ is the torque of links and payload without friction. They use the
mounting, the payload and the filters that this package has estimated.

Energy at the supply is the sum of the modelled parts, not the measured total. Every method takes
the standby power of the evaluated session from its bus power: the other methods as the mean over
the standstill, this package by its filter of the session, which uses motion, too. Motion energy is
the energy above the standstill power of each method.

{peers}

## Inertia, mounting and payload

Identified reflected inertia of motor and gear, compared with the published constants of the
controller; mounting and payload as estimated from the recording.

{constants}

## Sources

{sources}
"""


def main() -> None:
    """Identify, evaluate, compare, draw and write the page."""
    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        bags = {
            recording: import_bag(folder, recording, case.robot, Path(name))
            for case in EVERY
            for recording in (case.fitted, case.judged)
        }
        results = {case: identify([bags[case.fitted]], case.robot) for case in CASES}
        metrics = {
            case: evaluate(results[case].model, bags[case.judged]).as_json()
            for case in CASES
        }
        metered = metered_rows(results, bags)
        draw(results, bags)
    page = PAGE.format(
        metrics=table(
            (
                "",
                "judged on",
                "torque R²",
                "current R²",
                "power RMSE [W]",
                "energy error [%]",
            ),
            [metrics_row(case, metrics[case]) for case in CASES],
        ),
        joint_power=table(
            (
                "",
                "joint",
                "measured",
                "generic model",
                "identified model",
                "identified on",
            ),
            metered,
        ),
        peers=beside_others(),
        constants=table(
            (
                "",
                "reflected inertia [kg m²]",
                "off by at most [%]",
                "gravity [m/s²]",
                "payload [kg]",
            ),
            [constants_row(case, results[case]) for case in CASES if case != CASES[1]],
        ),
        sources="\n".join(
            f"- `{recording}`: {source} on GitHub"
            for recording, source in sorted(SOURCES.items())
        ),
    )
    (DOCS / "accuracy.md").write_text(page, encoding="utf-8")


def beside_others() -> str:
    """Summary of the benchmark against other methods; takes some minutes."""
    command = [sys.executable, "-m", "test.benchmarks", "peers"]
    done = subprocess.run(
        command, cwd=DOCS.parent, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.partition("\n")[2].strip()  # without the benchmark's name


def import_bag(folder: Path, recording: str, robot: str, bags: Path) -> Path:
    """Path of the recording as a bag, which is made if it does not exist."""
    path = bags / recording
    if not path.exists():
        telemetry = read_csv([folder / f"{recording}.csv.gz"], robot)
        with BagWriter(
            path, telemetry.info, tuple(telemetry.columns), name=recording
        ) as bag:
            bag.write(telemetry)
    return path


def draw(results: Mapping[Case, Identification], bags: Mapping[str, Path]) -> None:
    """Draw the figures of held-out currents and of bus power."""
    ur10e = CASES[0]
    ur5e = CASES[2]
    current = current_chart(analyse(results[ur10e].model, bags[ur10e.judged]))
    power = bus_chart(analyse(results[ur5e].model, bags[ur5e.judged]))
    save_chart(current, DOCS / "images", name="accuracy_current")
    assert power is not None
    save_chart(power, DOCS / "images", name="accuracy_power")


def metrics_row(case: Case, metrics: Mapping[str, Any]) -> tuple[str, ...]:
    power = metrics["power"]
    return (
        case.title,
        "the fitted recording" if metrics["motion"] == "fitted" else metrics["motion"],
        share(metrics["torque"]),
        share(metrics["current"]),
        "not recorded" if power is None else f"{power['rmse']:.2f}",
        "" if power is None else f"{power['energy_error_percent']:+.2f}",
    )


def metered_rows(
    results: Mapping[Case, Identification], bags: Mapping[str, Path]
) -> list[tuple[str, ...]]:
    """Measured and modelled energy of each joint of the recordings with joint voltages."""
    models = {case.fitted: result.model for case, result in results.items()}
    rows = []
    for case in METERED:
        own = evaluate(models[case.fitted], bags[case.judged]).joint_power
        generic = evaluate(generic_model(case.robot), bags[case.judged]).joint_power
        same = "another day" if case.judged in SAME_ARM else "another arm"
        same = "the recording" if case.fitted == case.judged else same
        for j, (row, of_type) in enumerate(zip(own, generic, strict=True)):
            measured = row.get("reason") or joules(
                row["measured_J"], row["measured_std_J"]
            )
            modelled = [
                "" if each["modelled_J"] is None
                else joules(each["modelled_J"], each["modelled_std_J"])
                for each in (of_type, row)
            ]  # fmt: skip
            first = (case.title, same) if j == 0 else ("", "")
            rows.append((first[0], row["joint"], measured, *modelled, first[1]))
    return rows


def joules(energy: float, std: float) -> str:
    """Energy with its 95 % interval [J]."""
    half = CONFIDENCE * std
    digits = 0 if half >= 10 else 1
    return f"{energy:.{digits}f} ± {half:.{digits}f}".replace("-", "−")


def share(entries: list[dict[str, Any]] | None) -> str:
    """Minimum and median R² of the joints."""
    values = [entry["r2"] for entry in entries or () if entry["r2"] is not None]
    return f"{min(values):.4f}, {np.median(values):.4f}" if values else ""


def constants_row(case: Case, result: Identification) -> tuple[str, ...]:
    model = result.model
    found = np.array([joint.reflected_inertia for joint in model.joints])
    known = load_robot(case.robot).reflected_inertia
    return (
        case.title.split(",")[0] + f" ({case.fitted.split('_')[1]})",
        ", ".join(f"{value:.3g}" for value in found),
        f"{100 * np.abs(found / known - 1).max():.1f}",
        ", ".join(f"{value:.2f}" for value in model.setup.gravity.round(2) + 0.0),
        f"{model.setup.payload.mass:.2f}",
    )


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
