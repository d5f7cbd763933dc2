# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The complete workflow with the simulated controller and the ROS nodes.

A simulated arm runs trajectory A while the logger records; a model is identified;
trajectory B runs with logger and estimator; then the tables of Clochiatti et al. 2024 are
printed with the true values beside the estimated ones.
"""

from __future__ import annotations

import random
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ur_energy_model.cli.output import note, progress
from ur_energy_model.demo.processes import EnergyMonitor, Processes
from ur_energy_model.demo.results import evaluate_run, print_tables
from ur_energy_model.errors import InputError
from ur_energy_model.files import real_path
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.launch_files import node_command
from ur_energy_model.telemetry.rtde.connection import PORT as RTDE_PORT

START_TIMEOUT = 90.0
"""Longest time for a node to start [s]; the simulated arm is compiled on first use."""
RECORDING_TIMEOUT = 30.0  # longest time until the logger records [s]
SHOW_EVERY = 0.25  # time between two lines of progress [s]
DOMAINS = range(1, 100)  # numbers of ROS domains of which the demo takes one
MARK = ".ur_energy_demo"
"""File that marks an output folder of the demo, which the demo may replace."""
Report: TypeAlias = Callable[[float, str], None]
"""Shows the finished fraction of a stage, and a text."""


@dataclass(frozen=True)
class DemoCell:
    """Where the demo runs: a simulated arm, its ROS domain, and the folder of its files.

    Attributes:
        folder: folder of all files of the demo.
        robot: name of the arm, such as "ur5e".
        host: loopback address of its controller.
        seed: number of the arm; arms of different numbers differ in all true parameters.
        seconds: length of each trajectory [s].
        domain: number of the ROS domain.
    """

    folder: Path
    robot: str
    host: str
    seed: int
    seconds: float
    domain: int

    def processes(self) -> Processes:
        """The processes of the nodes, not started yet.

        The nodes communicate only with each other: in a ROS domain of the demo, on this
        machine. The logs of the nodes are in the folder.
        """
        environment = {
            "ROS_DOMAIN_ID": str(self.domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(self.folder / "logs"),
        }
        return Processes(self.folder / "logs", environment)


@dataclass(frozen=True)
class Recorded:
    """A trajectory that the simulated arm has run.

    Attributes:
        bag: recording of the logger.
        truth: JSON file that the simulated arm wrote, with its true energies.
    """

    bag: Path
    truth: Path


def run_demo(
    output: Path, robot: str, host: str, seconds: float, seed: int | None
) -> None:
    """Record, identify, estimate live, and print the paper's tables with the truth.

    Args:
        output: folder for all files; the folder of an earlier demo is replaced.
        robot: name of the arm.
        host: loopback address for the simulated controller.
        seconds: length of both trajectories [s].
        seed: number of the arm; None for a random one.

    Raises:
        InputError: the folder exists and is not from an earlier demo.
        UrEnergyError: a node failed, or did not start in time.
    """
    if seed is None:
        seed = random.SystemRandom().randrange(1, 10_000)
    folder = _fresh_folder(output)
    cell = DemoCell(folder, robot, host, seed, seconds, _free_domain())
    note(f"simulated {robot} number {seed} on {host}, ROS domain {cell.domain}")
    model_file = folder / "model.yaml"
    first = record_trajectory_a(cell)
    with progress("2/4  identification") as report:
        identified = identify([first.bag], robot, progress=report)
    save_model(identified.model, model_file)
    note(f"2/4  identified from {first.bag.name}")
    with closing(EnergyMonitor(cell.domain)) as live:
        second = record_trajectory_b(cell, model_file, live)
    with progress("4/4  figures and tables"):
        evaluated = evaluate_run(identified.model, second.bag, second.truth, folder)
    print_tables(evaluated)
    note(
        "the model was fitted to trajectory A alone; the tables are those of Clochiatti et al. 2024"
    )
    note(f"samples lost by the logger: {evaluated.recording.lost}")
    live.note_end()
    print(f"in {folder}:")
    for path, what in (
        (first.bag, "trajectory A as the logger recorded it"),
        (second.bag, "trajectory B, held out from identification"),
        (second.truth, "true energies of the simulated arm"),
        (model_file, "the identified model"),
        (folder / "result.json", "the tables above, as numbers"),
        (folder / "report.html", "the report: open it in a browser"),
        *((figure, "figure") for figure in evaluated.figures),
    ):
        print(f"  {path.relative_to(folder)}  {what}")


# Trajectories.


def record_trajectory_a(cell: DemoCell) -> Recorded:
    """Run trajectory A, from which the model is identified, with the logger."""
    title = "1/4  trajectory A: the logger records"

    def watch(processes: Processes, report: Report) -> None:
        """Wait for the length of the trajectory."""
        _wait(cell.seconds, processes, report, time.sleep, lambda: title)

    return _record(cell, "trajectory_a", title, watch, None)


def record_trajectory_b(cell: DemoCell, model: Path, live: EnergyMonitor) -> Recorded:
    """Run trajectory B with logger and estimator, and show the live energy meanwhile."""
    title = "3/4  trajectory B"

    def watch(processes: Processes, report: Report) -> None:
        """Show the live energy for the length of the trajectory."""

        def text() -> str:
            """The title with power and energy now."""
            return f"{title}  {live.text()}"

        _wait(cell.seconds, processes, report, live.receive, text)

    return _record(cell, "trajectory_b", title, watch, model)


def _record(
    cell: DemoCell,
    motion: str,
    title: str,
    watch: Callable[[Processes, Report], None],
    model: Path | None,
) -> Recorded:
    """Run a trajectory with the logger and, given a model, the estimator.

    Args:
        cell: cell in which the nodes run.
        motion: name of the trajectory.
        title: heading in the terminal.
        watch: called once the logger records; the nodes end when it returns.
        model: file of the estimator's model; None for no estimator.

    Raises:
        UrEnergyError: a node failed, or did not start in time.
    """
    truth = cell.folder / f"truth_{motion}.json"
    bags = cell.folder / "bags" / motion
    with cell.processes() as processes:

        def start(node: str, **parameters: Any) -> None:
            """Start a node with parameters."""
            processes.start(node, node_command(node, parameters))

        start(
            "simulated_robot",
            robot_model=cell.robot,
            host=cell.host,
            motion=motion,
            seed=cell.seed,
            truth_file=str(truth),
        )
        with progress(f"{title}: the simulated arm starts"):
            processes.wait_until(
                lambda: _accepts(cell.host, RTDE_PORT), "simulated_robot", START_TIMEOUT
            )
        start(
            "logger",
            robot_ip=cell.host,
            robot_model=cell.robot,
            bag_directory=str(bags),
            record=True,
        )
        if model is not None:
            start("estimator", robot_ip=cell.host, model_file=str(model))
        processes.wait_until(
            lambda: bags.is_dir() and any(bags.iterdir()), "logger", RECORDING_TIMEOUT
        )
        with progress(title) as report:
            watch(processes, report)
        if model is not None:
            processes.stop("estimator")
        processes.stop("logger")
        processes.stop("simulated_robot")
    (bag,) = bags.iterdir()
    note(f"{title}: {bag.name}")
    return Recorded(bag, truth)


def _wait(
    seconds: float,
    processes: Processes,
    report: Report,
    pause: Callable[[float], object],
    text: Callable[[], str],
) -> None:
    """Let nodes work for some time, and show the progress every SHOW_EVERY.

    Args:
        seconds: the time [s].
        processes: processes of the nodes.
        report: takes the progress.
        pause: waits for a time [s].
        text: returns what is shown.

    Raises:
        UrEnergyError: one of the nodes has ended.
    """
    start = time.monotonic()
    elapsed = 0.0
    while elapsed < seconds:
        processes.check()
        report(elapsed / seconds, text())
        left = seconds - elapsed
        pause(
            min(SHOW_EVERY, left + 0.01)
        )  # a little longer, so that one pause is the last
        elapsed = time.monotonic() - start


def _fresh_folder(folder: Path) -> Path:
    """Create an empty folder; the folder of an earlier demo is replaced.

    Raises:
        InputError: the folder has other files.
    """
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise InputError(
                folder,
                "exists and is not from an earlier demo",
                "name another folder with -o",
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("made by ur_energy demo, which may replace this folder\n")
    return real_path(folder)


def _free_domain() -> int:
    """Number of a ROS domain whose discovery port is free on this machine.

    The port is 7400 + 250 times the number (DDSI-RTPS, 9.6.1.1). If no port is free, the
    domain is a random one.
    """
    domains = random.SystemRandom().sample(DOMAINS, len(DOMAINS))
    for domain in domains:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
            probe.bind(("", 7400 + 250 * domain))
            return domain
    return domains[0]


def _accepts(host: str, port: int) -> bool:
    """Whether a server accepts connections."""
    try:
        with socket.create_connection((host, port), timeout=0.5):
            return True
    except OSError:
        return False
