"""The whole way once, with the simulated controller and the ROS nodes.

A simulated UR5e runs trajectory A while the logger records; identification fits; trajectory B runs
while logger and estimator are on; then what the paper tabulates is printed beside the truth.
"""

from __future__ import annotations

import random
import shutil
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli.output import ProgressReport, note, progress
from ur_energy_model.errors import InputError
from ur_energy_model.model.file.model_file import save_model
from ur_energy_model.nodes.topics_and_services import BUS_POWER, TOTAL_ENERGY, TOTAL_POWER

if TYPE_CHECKING:
    from ur_energy_model.demo.energy_monitor import EnergyMonitor
    from ur_energy_model.demo.processes import Processes

RTDE_PORT = 30004
START_TIMEOUT = 90.0
"""Longest time for a node to start [s]; the simulated arm compiles itself once, on first use."""
MARK = ".ur_energy_demo"
"""File by which the demo knows an output folder of its own, and may replace it."""


@dataclass(frozen=True)
class Stage:
    """One run of the simulated arm.

    Attributes:
        motion: its trajectory.
        bag: what the logger recorded.
        truth: what the simulated arm says of itself.
    """

    motion: str
    bag: Path
    truth: Path


@dataclass(frozen=True)
class DemoOptions:
    """What a demo runs with.

    Attributes:
        output: folder for everything that is made.
        robot: robot description of the simulated arm.
        host: loopback address of the simulated arm.
        seconds: length of each trajectory [s].
        seed: which arm; another one every time where it is None.
    """

    output: Path
    robot: str
    host: str
    seconds: float
    seed: int | None


def run_demo(options: DemoOptions) -> int:
    """Run the demo; the exit code is 0 when every part of it worked."""
    from ur_energy_model.demo.processes import Processes
    from ur_energy_model.demo.result import evaluate_run, print_result
    from ur_energy_model.identification.pipeline import identify

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
            (second.bag, "trajectory B, which the model was not fitted to"),
            (second.truth, "what the simulated arm says of itself"),
            (model_file, "the identified model"),
            (folder / "result.json", "the tables above, as numbers"),
            (folder / "report.html", "the report: open it in a browser"),
            *((figure, "figure") for figure in result.figures),
        ],
    )
    return 0


class _Demo:
    """The stages that need running nodes."""

    def __init__(self, options: DemoOptions, seed: int, folder: Path, processes: Processes) -> None:
        self.options, self.seed, self.folder, self.processes = options, seed, folder, processes
        self.live: dict[str, float] = {}

    def record(
        self, motion: str, title: str, model_file: Path | None = None, domain: int = 0
    ) -> Stage:
        """Run a trajectory with the logger, and with the estimator where there is a model."""
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
        from ur_energy_model.nodes.node_command import node_command

        self.processes.start(node, node_command(node, parameters))

    def _watch(self, report: ProgressReport, domain: int) -> None:
        """Show what the estimator publishes while the trajectory runs."""
        from ur_energy_model.demo.energy_monitor import EnergyMonitor

        with EnergyMonitor(domain) as monitor:
            self._wait(report, monitor.spin, lambda: f"3/4  trajectory B  {_line(monitor)}")
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


def _line(monitor: EnergyMonitor) -> str:
    latest = monitor.latest
    if TOTAL_POWER.name not in latest:
        return "the estimator starts"
    bus = latest.get(BUS_POWER.name)
    beside = "" if bus is None else f" (bus {bus:5.1f} W)"
    return (
        f"/energy {latest[TOTAL_POWER.name]:5.1f} W{beside} "
        f"{latest.get(TOTAL_ENERGY.name, 0.0):6.0f} J"
    )


def print_files(folder: Path, files: Sequence[tuple[Path, str]]) -> None:
    """The last lines: every file that was made, and what it is."""
    print(f"in {folder}:")
    for path, what in files:
        print(f"  {path.relative_to(folder)}  {what}")


def _fresh_folder(folder: Path) -> Path:
    """An empty folder; what an earlier demo left there goes, anything else stays."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise InputError(
                folder, "exists and is not from an earlier demo", "name another folder with -o"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("made by ur_energy demo, which may replace this folder\n")
    return folder.resolve()


def _free_domain() -> int:
    """A ROS domain whose discovery port nobody uses on this machine (DDSI-RTPS 9.6.1.1)."""
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
