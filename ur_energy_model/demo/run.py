"""The complete workflow with the simulated controller and the ROS nodes.

A simulated arm runs trajectory A while the logger records; a model is identified; trajectory B runs
with logger and estimator; then the tables of the paper are printed beside the true values.
"""

from __future__ import annotations

import random
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ur_energy_model.cli.output import ProgressReport, note, progress
from ur_energy_model.demo.processes import Processes
from ur_energy_model.demo.result import evaluate_run, print_result
from ur_energy_model.errors import InputError
from ur_energy_model.files import real_path
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.file.model_file import save_model
from ur_energy_model.nodes.node_command import node_command
from ur_energy_model.telemetry.rtde.connection import PORT as RTDE_PORT
from ur_energy_model.topics_and_services import BUS_POWER, TOTAL_ENERGY, TOTAL_POWER

START_TIMEOUT = 90.0
"""Longest time for a node to start [s]; the simulated arm is compiled on first use."""
MARK = ".ur_energy_demo"
"""File that marks an output folder of the demo, which the demo may replace."""


@dataclass(frozen=True)
class Stage:
    """One run of the simulated arm.

    Attributes:
        motion: name of the trajectory.
        bag: recording of the logger.
        truth: true energies of the simulated arm.
    """

    motion: str
    bag: Path
    truth: Path


@dataclass(frozen=True)
class DemoOptions:
    """Options of the demo.

    Attributes:
        output: output folder.
        robot: robot model of the simulated arm.
        host: loopback address of the simulated arm.
        seconds: duration of each trajectory [s].
        seed: number of the simulated arm; None for a random one.
    """

    output: Path
    robot: str
    host: str
    seconds: float
    seed: int | None


def run_demo(options: DemoOptions) -> int:
    """Run the demo; returns exit code 0.

    Raises:
        UrEnergyError: a part of the demo failed.
    """
    folder = _fresh_folder(options.output)
    seed = random.SystemRandom().randrange(1, 10_000) if options.seed is None else options.seed
    domain = _free_domain()
    model_file = folder / "model.yaml"
    environment = {
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(folder / "logs"),
    }
    note(f"simulated {options.robot} number {seed} on {options.host}, ROS domain {domain}")
    with Processes(folder / "logs", environment) as processes:
        demo = _Demo(options, seed, folder, processes)
        first = demo.record("trajectory_a", "1/4  trajectory A: the logger records")
    with progress("2/4  identification") as report:
        identified = identify([first.bag], options.robot, progress=report)
    save_model(identified.model, model_file)
    note(f"2/4  identified from {first.bag.name}")
    with Processes(folder / "logs", environment) as processes:
        demo = _Demo(options, seed, folder, processes)
        second = demo.record("trajectory_b", "3/4  trajectory B", model_file, domain)
    with progress("4/4  figures and tables"):
        result = evaluate_run(identified.model, second.bag, second.truth, folder)
    print_result(result, demo.live)
    print_files(
        folder,
        [
            (first.bag, "trajectory A as the logger recorded it"),
            (second.bag, "trajectory B, held out from identification"),
            (second.truth, "true energies of the simulated arm"),
            (model_file, "the identified model"),
            (folder / "result.json", "the tables above, as numbers"),
            (folder / "report.html", "the report: open it in a browser"),
            *((figure, "figure") for figure in result.figures),
        ],
    )
    return 0


class _Demo:
    """Stages that need running nodes."""

    def __init__(self, options: DemoOptions, seed: int, folder: Path, processes: Processes) -> None:
        self.options, self.seed, self.folder, self.processes = options, seed, folder, processes
        self.live: dict[str, float] = {}

    def record(
        self, motion: str, title: str, model_file: Path | None = None, domain: int = 0
    ) -> Stage:
        """Run a trajectory with the logger and, given a model, the estimator."""
        host, robot = self.options.host, self.options.robot
        truth = self.folder / f"truth_{motion}.json"
        bags = self.folder / "bags" / motion
        self._start(
            "simulated_robot",
            robot_model=robot,
            host=host,
            motion=motion,
            seed=self.seed,
            truth_file=str(truth),
        )
        with progress(f"{title}: the simulated arm starts"):
            self.processes.wait_until(
                lambda: _accepts(host, RTDE_PORT), "simulated_robot", START_TIMEOUT
            )
        self._start(
            "logger", robot_ip=host, robot_model=robot, record=True, bag_directory=str(bags)
        )
        if model_file is not None:
            self._start("estimator", robot_ip=host, model_file=str(model_file))
        self.processes.wait_until(lambda: bags.is_dir() and any(bags.iterdir()), "logger", 30.0)
        with progress(title) as report:
            if model_file is None:
                self._wait(report, time.sleep, lambda: title)
            else:
                self._watch(report, domain)
        if model_file is not None:
            self.processes.stop("estimator")
        self.processes.stop("logger")
        self.processes.stop("simulated_robot")
        (bag,) = sorted(bags.iterdir())
        note(f"{title}: {bag.name}")
        return Stage(motion, bag, truth)

    def _start(self, node: str, **parameters: Any) -> None:
        self.processes.start(node, node_command(node, parameters))

    def _watch(self, report: ProgressReport, domain: int) -> None:
        """Show the output of the estimator while the trajectory runs."""
        from ur_energy_model.demo.energy_monitor import EnergyMonitor  # needs ROS

        with EnergyMonitor(domain) as monitor:
            self._wait(
                report, monitor.receive, lambda: f"3/4  trajectory B  {_live_power(monitor.latest)}"
            )
            self.live = dict(monitor.latest) | {"messages": float(monitor.messages)}

    def _wait(
        self, report: ProgressReport, pause: Callable[[float], None], text: Callable[[], str]
    ) -> None:
        seconds = self.options.seconds
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < seconds:
            self.processes.check()
            report(elapsed / seconds, text())
            pause(min(0.25, seconds - elapsed + 0.01))


def _live_power(latest: Mapping[str, float]) -> str:
    """Live power and energy as text, from the latest value by topic."""
    if TOTAL_POWER.name not in latest:
        return "the estimator starts"
    bus = latest.get(BUS_POWER.name)
    measured = "" if bus is None else f" (bus {bus:5.1f} W)"
    return (
        f"/energy {latest[TOTAL_POWER.name]:5.1f} W{measured} "
        f"{latest.get(TOTAL_ENERGY.name, 0.0):6.0f} J"
    )


def print_files(folder: Path, files: Sequence[tuple[Path, str]]) -> None:
    """Print the created files and what they are."""
    print(f"in {folder}:")
    for path, what in files:
        print(f"  {path.relative_to(folder)}  {what}")


def _fresh_folder(folder: Path) -> Path:
    """Create an empty folder; one of an earlier demo is replaced, any other is refused."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise InputError(
                folder, "exists and is not from an earlier demo", "name another folder with -o"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("made by ur_energy demo, which may replace this folder\n")
    return real_path(folder)


def _free_domain() -> int:
    """A ROS domain whose discovery port is free on this machine (DDSI-RTPS 9.6.1.1)."""
    domains = list(range(1, 100))
    random.SystemRandom().shuffle(domains)
    for domain in domains:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("", 7400 + 250 * domain))
            except OSError:
                continue
            return domain
    return domains[0]


def _accepts(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=0.5):
            return True
    except OSError:
        return False
