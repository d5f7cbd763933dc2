# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measures the accuracy section of docs/simulation/simulated_arm.md: arms judged by truth.

    python -m tools.simulated_arm_page
    python -m tools.simulated_arm_page --check

writes the section, or compares the page with what is measured now; `python -m
test.benchmarks pages` does the latter. No number is edited by hand, and no test uses the
seeds.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.trajectory.named_motions import named_motion

if TYPE_CHECKING:
    from ur_energy_model.simulation.supply import Energies
    from ur_energy_model.typing import Array, Mask

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "simulation" / "simulated_arm.md"
# around the figures in the page
BEGIN = "<!-- accuracy -->\n"
END = "<!-- end of accuracy -->\n"
ROBOT = load_robot("ur5e")
SEEDS = range(990101, 990106)  # of the arms
# duration of trajectory A and of trajectory B [s]
IDENTIFIED = 60.0
JUDGED = 120.0
PREDICTED = PowerOptions(method="motion", track_standby=False)
"""From the motion alone, with the standby power of the recording that was identified."""
RELATIVE_CHANGE = 0.3
LEAST_CHANGE = 0.2
"""Change of a figure of the page from which it no longer holds: relative, and in its own unit."""


@dataclass(frozen=True)
class Trial:
    """Relative errors of one arm, percent; arrays [n]."""

    torque_constant: Array
    electrical: Array
    friction: Array
    all_joints: float
    supply: float  # modelled, without the measured bus power
    predicted: Array
    predicted_supply: float
    inside: Mask  # whether the interval of the electrical energy contains the true one


def main() -> None:
    """Measure, then write the page or compare it."""
    section = figures([trial(seed) for seed in SEEDS])
    if "--check" in sys.argv[1:]:
        check(section)
        return
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    text = before + BEGIN + "\n" + section + "\n" + END + rest.split(END)[1]
    PAGE.write_text(text, encoding="utf-8")


def check(section: str) -> None:
    """Compare the page with a newly measured section.

    Raises:
        SystemExit: a figure of the page no longer holds.
    """
    written = (
        PAGE.read_text(encoding="utf-8")
        .split(BEGIN)[1]
        .split(END)[0]
        .strip()
        .splitlines()
    )
    wrong = [
        f"{PAGE.name} states:\n  {old}\nmeasured:\n  {new}"
        for old, new in zip(written, section.strip().splitlines(), strict=True)
        if not _alike(old, new)
    ]
    if wrong:
        raise SystemExit(
            "\n".join([*wrong, "write it anew: python -m tools.simulated_arm_page"])
        )
    print(f"{PAGE.name}: every figure holds")


def _alike(old: str, new: str) -> bool:
    """Whether the numbers of two lines are about the same."""
    pairs = [
        np.array(re.findall(r"\d+(?:\.\d+)?", line), dtype=float) for line in (old, new)
    ]
    if len(pairs[0]) != len(pairs[1]):
        return False
    limit = np.maximum(RELATIVE_CHANGE * pairs[0], LEAST_CHANGE)
    return bool((np.abs(pairs[1] - pairs[0]) <= limit).all())


def trial(seed: int) -> Trial:
    """Identify one arm from trajectory A and judge the model by the truth of trajectory B."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arm, learned, _ = record(folder, "trajectory_a", seed, IDENTIFIED)
        model = identify([learned], ROBOT.name).model
        _, judged, truth = record(folder, "trajectory_b", seed, JUDGED)
        found = estimate_energy(model, judged)
        predicted = estimate_energy(model, judged, options=PREDICTED)
    true = truth.mechanical + truth.copper
    constants = np.array([joint.torque_constant for joint in model.joints])
    within = np.abs(found.electrical - true) <= CONFIDENCE * found.electrical_std
    return Trial(
        torque_constant=_percent(constants, arm.parameters.torque_constant),
        electrical=_percent(found.electrical, true),
        friction=_percent(found.friction, truth.friction),
        all_joints=float(_percent(found.electrical.sum(), true.sum())),
        supply=float(_percent(found.model, truth.bus)),
        predicted=_percent(predicted.electrical, true),
        predicted_supply=float(_percent(predicted.model, truth.bus)),
        inside=within,
    )


def record(
    folder: Path, motion: str, seed: int, seconds: float
) -> tuple[SimulatedArm, Path, Energies]:
    """The arm after a motion, its bag, and the true energies of the motion."""
    arm = SimulatedArm(ROBOT, motion=named_motion(motion, ROBOT), seed=seed)
    telemetry = record_arm(arm, seconds)
    with BagWriter(folder / motion, telemetry.info, tuple(telemetry.columns)) as bag:
        bag.write(telemetry)
    return arm, folder / motion, arm.energies()


def figures(trials: list[Trial]) -> str:
    """The section with its table."""
    many = len(trials)

    def of(name: str) -> Array:
        return np.array([getattr(each, name) for each in trials])

    def row(title: str, name: str) -> str:
        errors = of(name)
        typical = np.sqrt(np.mean(np.square(errors), axis=0))
        words = ", ".join(f"{value:.1f}" for value in np.atleast_1d(typical))
        return f"| {title} | {words} | {np.abs(errors).max():.1f} |"

    inside = of("inside")
    return "\n".join(
        [
            f"{many} {ROBOT.name.upper().replace('E', 'e')} arms (seeds {SEEDS.start} to "
            f"{SEEDS.stop - 1}), each identified from {IDENTIFIED:.0f} s of trajectory A",
            f"and judged on {JUDGED:.0f} s of trajectory B, by the truth of the arm; written by",
            "`python -m tools.simulated_arm_page`.",
            "",
            "| error | RMS, one value or shoulder_pan_joint to wrist_3_joint [%] | worst [%] |",
            "|---|---|---|",
            row("torque constant", "torque_constant"),
            row("electrical energy of a joint, from measured currents", "electrical"),
            row("friction energy of a joint", "friction"),
            row("electrical energy of all joints", "all_joints"),
            row(
                "energy at the supply, as modelled, standby from its standstill", "supply"
            ),
            row("electrical energy of a joint, from the motion alone", "predicted"),
            row("energy at the supply, from the motion alone", "predicted_supply"),
            "",
            f"{100.0 * inside.mean():.0f} % of the 95 % intervals of the joints' electrical energy "
            "contain the true one.",
        ]
    )


def _percent(found: Array | float, true: Array | float) -> Array:
    """Relative error [%]."""
    return np.asarray(100.0 * (np.asarray(found) / np.asarray(true) - 1.0))


if __name__ == "__main__":
    main()
