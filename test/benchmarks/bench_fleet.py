"""A new arm with seconds of work, alone and with the models of other arms (`identify --fleet`).

Fleets of simulated arms that have the same constants (one seed, sessions of their own), and fleets
whose arms differ by up to 12 % in every torque constant. Truth is the simulator's.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from test.plant.recorded_fleet import ARM, record
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.fleet import Fleet
from ur_energy_model.plant.identify_arms import fleet_arm, identify_arms
from ur_energy_model.simulation.parameters import draw_parameters
from ur_energy_model.typing import Array

SEEDS = (7100, 7200, 7300)
ARMS = 5
"""Of each fleet, besides the new one."""


def new_arm(folder: Path, first: int, *, alike: bool) -> tuple[Array, Array, float]:
    """A new arm alone and among others, all of one set of constants where they are alike.

    Returns:
        relative errors and deviations of the torque constants, alone and among others [2, n]
        each; the spread between the arms as found.
    """
    seeds = [first + (0 if alike else k) for k in range(ARMS + 1)]
    bags = [record(folder, f"a{k}", seed, 1 + k) for k, seed in enumerate(seeds[:ARMS])]
    fleet = identify_arms(bags, IdentificationOptions()).fleet
    bag = record(folder, "new", seeds[ARMS], 20, short=True)
    alone = identify([bag], ARM).model
    prior = Fleet([*fleet.arms, fleet_arm("new", alone)]).prior(load_robot(ARM), "new")
    assert prior is not None
    helped = identify([bag], ARM, IdentificationOptions(prior=prior)).model
    true = draw_parameters(load_robot(ARM), seeds[ARMS]).torque_constant
    found = np.array(
        [
            [(joint.torque_constant, joint.std["torque_constant"]) for joint in model.joints]
            for model in (alone, helped)
        ]
    )
    spread = [each.spread for each in fleet.shared() if each.what == "torque_constant"]
    return found[..., 0] / true - 1.0, found[..., 1] / true, float(np.mean(spread))


def main() -> None:
    """Print errors and intervals."""
    for alike in (True, False):
        found = []
        for first in SEEDS:
            with TemporaryDirectory() as name:
                found.append(new_arm(Path(name), first, alike=alike))
        error, deviation, spreads = (np.array(each) for each in zip(*found, strict=True))
        print(
            f"{len(SEEDS)} fleets of {ARMS} arms that {'are alike' if alike else 'differ'}: spread "
            f"found {100 * spreads.mean():.1f} %"
        )
        for k, words in enumerate(("alone", "with the fleet")):
            rms = np.sqrt(np.mean(error[:, k] ** 2))
            covered = np.mean(np.abs(error[:, k]) < CONFIDENCE * deviation[:, k])
            print(
                f"  new arm {words}: torque constants off by {100 * rms:.1f} % (rms), stated "
                f"± {100 * CONFIDENCE * deviation[:, k].mean():.1f} %, which covers {covered:.0%}"
            )
