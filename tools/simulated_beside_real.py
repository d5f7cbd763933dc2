# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Draws docs/simulation/simulated_beside_real.png: a simulated UR5e beside two real ones.

    python -m tools.simulated_beside_real FOLDER

FOLDER holds the recordings `ur5e_streamed_move_500hz_6s` and `ur5e_pick_place_50hz_24s`,
which are not part of this repository. The simulated arm follows the targets of each
recording, with the mounting and payload of the recording. It is arm number 0 of its type
and not fitted to the recordings.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
from ur_energy_model.report.palette import THEMES
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.motions import Sampled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ur_energy_model.typing import Array, Mask

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE = DOCS / "simulation" / "simulated_beside_real.png"
THEME = THEMES["light"]
NAMES = load_robot("ur5e").joint_names
REAL = THEME.data
SIMULATED = THEME.joints[0]
SETUPS = {
    "ur5e_streamed_move_500hz_6s": Setup(
        payload=Payload(0.1, np.array([0.001, -0.001, 0.053]))
    ),
    "ur5e_pick_place_50hz_24s": Setup(
        gravity_of_mounting(np.pi / 4, np.pi), Payload(1.48, np.array([0.0, 0.0, 0.153]))
    ),
}
"""Mounting and payload of each recording, from RTDE and target_moment."""


def both(folder: Path, name: str) -> tuple[Telemetry, Telemetry]:
    """A recording, and the simulated arm on its targets at the same instants."""
    real = read_csv([folder / f"{name}.csv.gz"], "ur5e").distinct()
    motion = Sampled(real.time, real["target_q"], real["target_qd"], real["target_qdd"])
    arm = SimulatedArm(load_robot("ur5e"), motion=motion, setup=SETUPS[name])
    simulated = record_arm(arm, motion.duration + arm.rate**-1)
    nearest = np.rint((real.time - real.time[0]) * arm.rate).astype(int)
    nearest = np.clip(nearest, 0, len(simulated) - 1)
    columns = {key: values[nearest] for key, values in simulated.columns.items()}
    return real, Telemetry(real.time, columns, simulated.info)


def power(telemetry: Telemetry) -> Array:
    """Bus power [samples], W."""
    return telemetry["actual_robot_voltage"] * telemetry["actual_robot_current"]


def settled(telemetry: Telemetry) -> Mask:
    """Samples at rest for 25 samples around them [samples]."""
    still = np.abs(telemetry["target_qd"]).max(axis=1) < 1e-6
    return np.asarray(np.convolve(still, np.ones(25), "same") > 24.5)


def white_noise(values: Array, where: Mask) -> Array:
    """Robust standard deviation of white noise on columns, from differences of neighbours."""
    steps = np.diff(values, axis=0)[where[1:] & where[:-1]]
    return np.asarray(np.median(np.abs(steps), axis=0) / 0.6745 / np.sqrt(2))


def draw_moment(axes: Axes, real: Telemetry, simulated: Telemetry, joint: int) -> None:
    """Target moment over motor current: a line at rest, a friction loop in motion."""
    for telemetry, colour, label in (
        (real, REAL, "real"),
        (simulated, SIMULATED, "simulated"),
    ):
        axes.plot(
            telemetry["actual_current"][:, joint],
            telemetry["target_moment"][:, joint],
            ".",
            ms=2.5,
            color=colour,
            label=label,
            alpha=0.7,
        )
    axes.set_xlabel(f"actual_current of {NAMES[joint]} [A]")
    axes.set_ylabel("target_moment [N m]")


def draw_current_noise(axes: Axes, pair: tuple[Telemetry, Telemetry]) -> None:
    """Noise of the motor currents at rest and in motion, by joint."""
    joints = np.arange(6)
    for k, (telemetry, colour) in enumerate(zip(pair, (REAL, SIMULATED), strict=True)):
        current = telemetry["actual_current"]
        rest = white_noise(current, settled(telemetry))
        moving = np.zeros(6)
        for j in joints:
            moves = np.abs(telemetry["target_qd"][:, j]) > 0.05
            if moves.sum() > 20:
                moving[j] = white_noise(current[:, j], moves)
        place = joints + 1 + 0.36 * (k - 0.5)
        axes.bar(place, moving, 0.34, color=colour, alpha=0.45)
        axes.bar(place, rest, 0.34, color=colour)
    names = [name.replace("_", "_\n") for name in NAMES]
    axes.set_xticks(joints + 1, names, fontsize=6)
    axes.set_xlabel("solid: at rest, light: in motion")
    axes.set_ylabel("noise of actual_current [A]")


def draw_power_noise(axes: Axes, pair: tuple[Telemetry, Telemetry]) -> None:
    """Distribution of the bus power at rest about its running mean."""
    for telemetry, colour in zip(pair, (REAL, SIMULATED), strict=True):
        rest = settled(telemetry)
        values = power(telemetry)
        mean = np.convolve(values, np.ones(15) / 15, "same")
        deviation = (values - mean)[rest]
        axes.hist(
            deviation,
            bins=np.linspace(-6, 6, 41).tolist(),
            density=True,
            histtype="step",
            lw=1.5,
            color=colour,
            label=f"{values[rest].mean():.1f} W, noise {white_noise(values, rest):.2f} W",
        )
    axes.set_xlabel("bus power at rest about its mean [W]")
    axes.legend(frameon=False, fontsize=7)


def draw_error(axes: Axes, pair: tuple[Telemetry, Telemetry]) -> None:
    """Distribution of the position errors of the joints."""
    for telemetry, colour in zip(pair, (REAL, SIMULATED), strict=True):
        error = np.abs(telemetry["actual_q"] - telemetry["target_q"])
        moving = np.abs(telemetry["target_qd"]).max(axis=1) > 0.05
        for part, style in ((error[moving], "-"), (error[settled(telemetry)], ":")):
            values = np.sort(part.ravel()) * 1e3
            axes.plot(values, np.linspace(0, 1, len(values)), style, color=colour, lw=1.3)
    axes.set_xscale("symlog", linthresh=0.02)
    axes.set_xlim(0, 6)
    axes.set_xlabel("|actual_q - target_q| [mrad] (dotted: at rest)")
    axes.set_ylabel("share of samples below")


def draw_time(
    axes: Axes, real: Telemetry, series: tuple[Array, Array], label: str
) -> None:
    """Two curves over time."""
    for values, colour in zip(series, (REAL, SIMULATED), strict=True):
        axes.plot(real.time - real.time[0], values, color=colour, lw=0.8)
    axes.set_xlabel("time [s]")
    axes.set_ylabel(label)


def draw(folder: Path) -> Figure:
    """The figure, with two rows of axes per recording."""
    plt.rcParams.update(
        {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}
    )
    figure, grid = plt.subplots(4, 3, figsize=(12, 13.5), layout="constrained")
    titles = (
        "UR5e, 500 Hz, streamed move, 0.1 kg",
        "UR5e, 50 Hz, pick and place, 45° mounting",
    )
    for row, (name, title) in enumerate(zip(SETUPS, titles, strict=True)):
        real, simulated = both(folder, name)
        pair = (real, simulated)
        top = grid[2 * row]
        bottom = grid[2 * row + 1]
        draw_moment(top[0], real, simulated, joint=2)
        top[0].set_title(title, loc="left", fontweight="bold")
        top[0].legend(frameon=False)
        draw_current_noise(top[1], pair)
        draw_power_noise(top[2], pair)
        draw_time(bottom[0], real, (power(real), power(simulated)), "bus power [W]")
        currents = real["actual_current"][:, 0], simulated["actual_current"][:, 0]
        draw_time(bottom[1], real, currents, f"actual_current of {NAMES[0]} [A]")
        draw_error(bottom[2], pair)
    figure.suptitle(
        "A simulated UR5e (blue, arm number 0, not fitted) beside two real ones (grey), "
        "sent through the same targets"
    )
    return figure


if __name__ == "__main__":
    draw(Path(sys.argv[1])).savefig(PICTURE, dpi=110)
