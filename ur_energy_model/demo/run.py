# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The complete workflow with the simulated controller and the ROS nodes.

A simulated arm runs trajectory A while the logger records; a model is identified;
trajectory B runs with logger and estimator; then the tables of the paper are printed
beside the true values.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from std_msgs.msg import Float64

from ur_energy_model.cli.output import note, print_table, progress
from ur_energy_model.codec import plain
from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.files import real_path, write_text
from ur_energy_model.identification.evaluation import Metrics, evaluate, r2_words
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.interrupts import postponed
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.launch_files import node_command
from ur_energy_model.processes import start_command
from ur_energy_model.report.analysis import analyse
from ur_energy_model.report.figures import save_chart
from ur_energy_model.report.page import render
from ur_energy_model.report.recording_charts import recording_charts
from ur_energy_model.report.report import make_report, report_page
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.rtde.connection import PORT as RTDE_PORT
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.topics_and_services import (
    MODEL_ENERGY,
    MODEL_POWER,
    TOTAL_ENERGY,
    TOTAL_POWER,
)
from ur_energy_model.typing import Array, Self

START_TIMEOUT = 90.0
"""Longest time for a node to start [s]; the simulated arm is compiled on first use."""
RECORDING_TIMEOUT = 30.0  # longest time until the logger records [s]
STOP_TIMEOUT = 10.0
"""Longest time for a child to end after SIGINT, before it is killed [s]."""
MARK = ".ur_energy_demo"
"""File that marks an output folder of the demo, which the demo may replace."""
Report: TypeAlias = Callable[..., None]
TOPICS = tuple(
    topic.name for topic in (TOTAL_POWER, TOTAL_ENERGY, MODEL_POWER, MODEL_ENERGY)
)


@dataclass(frozen=True)
class DemoCell:
    """Where the demo runs: a simulated arm, its ROS domain, and the folder of its files.

    Attributes:
        folder: of all files.
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
        """Processes for the nodes, which see each other only, and log into the folder."""
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
        bag: as the logger recorded it.
        truth: JSON file of the simulated arm with its true energies.
    """

    bag: Path
    truth: Path


def run_demo(
    output: Path, robot: str, host: str, seconds: float, seed: int | None
) -> None:
    """Record, identify, estimate live, and print the paper's tables with the truth.

    Args:
        output: folder for all files; one of an earlier demo is replaced.
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
        cell: where.
        motion: name of the trajectory.
        title: for the terminal.
        watch: called once the logger records; the nodes end when it returns.
        model: file of the estimator's model; None for no estimator.
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
    """Let nodes work for some time, and show the progress four times a second.

    Args:
        seconds: the time [s].
        processes: of the nodes.
        report: takes the progress.
        pause: waits for a time [s].
        text: returns what is shown.

    Raises:
        UrEnergyError: one of them has ended.
    """
    start = time.monotonic()
    elapsed = 0.0
    while elapsed < seconds:
        processes.check()
        report(elapsed / seconds, text())
        pause(min(0.25, seconds - elapsed + 0.01))
        elapsed = time.monotonic() - start


# Results.


@dataclass(frozen=True)
class Evaluated:
    """A model on a held-out recording of the simulated arm.

    Attributes:
        energy: as estimated from the recording.
        truth: as the simulated arm states them, see `true_energy`.
        metrics: errors of torque, current and power.
        figures: files of the charts.
        recording: its samples.
    """

    energy: EnergySummary
    truth: dict[str, Any]
    metrics: Metrics
    figures: tuple[Path, ...]
    recording: Telemetry


def evaluate_run(
    model: EnergyModel, bag: Path, truth_file: Path, folder: Path
) -> Evaluated:
    """Evaluate a model on a held-out recording; write figures, numbers and the report.

    Args:
        model: identified from another recording.
        bag: the recording.
        truth_file: of the simulated arm, for the same motion.
        folder: for figures/, result.json and report.html.
    """
    recording = read_bag(bag)
    truth = true_energy(truth_file, float(recording.time[0]), float(recording.time[-1]))
    energy = estimate_energy(model, bag)
    metrics = evaluate(model, bag)
    charts = recording_charts(analyse(model, bag), true_energy=truth["electrical_energy"])
    figures: list[Path] = []
    for chart in charts:
        figures += save_chart(chart, folder / "figures")
    content = {"estimate": energy.as_json(), "truth": truth, "metrics": metrics.as_json()}
    write_text(folder / "result.json", json.dumps(plain(content), indent=1) + "\n")
    write_text(folder / "report.html", render(report_page(make_report(model, [bag]))))
    return Evaluated(energy, truth, metrics, tuple(figures), recording)


def print_tables(evaluated: Evaluated) -> None:
    """Print energies (Table VIII), torque (Table V) and current (Table VII) errors.

    They have the form of the tables of Clochiatti et al. 2024, with the true values
    beside the estimated ones.
    """
    _print_energies(evaluated)
    names = evaluated.energy.names
    metrics = evaluated.metrics
    torque = "Torque error, trajectory B [N m] (Table V)"
    current = "Current error, trajectory B [A] (Table VII)"
    _print_errors(torque, names, metrics.torque)
    _print_errors(current, names, metrics.current)
    power = metrics.power
    if power is not None:
        note(
            f"bus power: RMSE {power['rmse']:.2f} W ({power['rmse_percent']:.1f} % of range), "
            f"energy error {power['energy_error_percent']:+.2f} %"
        )


def _print_energies(evaluated: Evaluated) -> None:
    """Print the energies of the joints at the motors, and the energy at the supply."""
    energy = evaluated.energy
    truth = evaluated.truth
    columns = (
        energy.mechanical,
        truth["mechanical_energy"],
        energy.electrical,
        truth["electrical_energy"],
    )
    table: list[list[Any]] = []
    for name, *values in zip(energy.names, *columns, strict=True):
        table.append(_energy_row(name, *values))
    table.append(_energy_row("whole arm", *[column.sum() for column in columns]))
    print_table(
        f"Energy over {evaluated.recording.duration:.1f} s of trajectory B [J] (Table VIII)",
        ["joint", "E mech", "true", "E elec", "true", "error %", "efficiency"],
        table,
    )
    bus = truth["bus_energy"]
    print_table(
        "Energy at the supply, standby included [J]",
        ["whole arm", "energy", "error %"],
        [
            ["true", bus, None],
            ["measured, voltage x current", energy.bus, _percent(energy.bus, bus)],
            ["model", energy.model, _percent(energy.model, bus)],
        ],
    )


def _energy_row(
    name: str,
    mechanical: float,
    true_mechanical: float,
    electrical: float,
    true_electrical: float,
) -> list[Any]:
    """A row of the table of energies [J], with the error [%] and the efficiency."""
    efficiency = None
    if electrical > 0:
        efficiency = f"{mechanical / electrical:.3f}"
    return [
        name,
        round(float(mechanical), 1),
        round(float(true_mechanical), 1),
        round(float(electrical), 1),
        round(float(true_electrical), 1),
        _percent(electrical, true_electrical),
        efficiency,
    ]


def _print_errors(
    title: str, names: Sequence[str], entries: Sequence[Mapping[str, Any]] | None
) -> None:
    """Print the errors of each joint, if they are known."""
    if entries is None:
        return
    table: list[list[Any]] = []
    for name, entry in zip(names, entries, strict=True):
        table.append([name, entry["mean"], entry["max"], entry["rms"], r2_words(entry)])
    print_table(title, ["joint", "mean", "max", "RMS", "R2"], table)


def _percent(value: float | None, true: float) -> str | None:
    """Error of a value in percent of the true one; None where one is unknown."""
    if value is None or not np.isfinite(true):
        return None
    return f"{100 * (value / true - 1):+.2f}"


def true_energy(truth_file: Path, start: float, end: float) -> dict[str, Any]:
    """True energies of a simulated arm over a time.

    Args:
        truth_file: JSON file that the simulated arm wrote; it names a file of arrays.
        start: controller time at which the time begins [s].
        end: controller time at which it ends [s].

    Returns:
        `mechanical_energy` and `electrical_energy` of the joints at the motor [n], and
        `bus_energy` that the supply delivers to the whole arm, standby included; all in
        J.
    """
    content = json.loads(truth_file.read_text(encoding="utf-8"))
    with np.load(truth_file.with_name(content["arrays"])) as rows:
        time = rows["timestamp"]

        def between(name: str) -> Array:
            """Increase of each counter of an array from `start` to `end` [J]."""
            counters = rows[name].reshape(len(time), -1).T
            gains: list[float] = []
            for counter in counters:
                first, last = np.interp([start, end], time, counter)
                gains.append(last - first)
            return np.array(gains)

        (bus,) = between("bus_energy")
        return {
            "mechanical_energy": between("mechanical_energy"),
            "electrical_energy": between("electrical_energy"),
            "bus_energy": float(bus),
        }


class EnergyMonitor:
    """Receives the whole-arm topics of the estimator in a ROS context of its own.

    Args:
        domain: number of the ROS domain.

    Attributes:
        latest: newest value by topic [W, J].
        messages: how many were received.
    """

    def __init__(self, domain: int) -> None:
        self.latest: dict[str, float] = {}
        self.messages = 0
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node("ur_energy_demo", context=self._context)
        for topic in TOPICS:
            self._node.create_subscription(Float64, topic, partial(self._keep, topic), 10)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)

    def _keep(self, topic: str, message: Float64) -> None:
        """Keep the value of a message."""
        self.latest[topic] = message.data
        self.messages += 1

    def receive(self, seconds: float) -> None:
        """Receive messages for a time [s]."""
        end = time.monotonic() + seconds
        left = seconds
        while left > 0:
            self._executor.spin_once(timeout_sec=left)
            left = end - time.monotonic()

    def text(self) -> str:
        """Live power and energy, for one line of the terminal."""
        if TOTAL_POWER.name not in self.latest:
            return "the estimator starts"
        model = self.latest.get(MODEL_POWER.name)
        modelled = "" if model is None else f" (model {model:5.1f} W)"
        energy = self.latest.get(TOTAL_ENERGY.name, 0.0)
        return f"/energy {self.latest[TOTAL_POWER.name]:5.1f} W{modelled} {energy:6.0f} J"

    def note_end(self) -> None:
        """Write a line about the final energies, if the estimator has published any."""
        if TOTAL_ENERGY.name not in self.latest:
            return
        model = self.latest.get(MODEL_ENERGY.name, float("nan"))
        note(
            f"live {TOTAL_ENERGY.absolute_name}, measured, ended at "
            f"{self.latest[TOTAL_ENERGY.name]:.0f} J, {MODEL_ENERGY.absolute_name} at "
            f"{model:.0f} J ({self.messages} messages received)"
        )

    def close(self) -> None:
        """Leave ROS."""
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)


class Processes:
    """Context manager that ends its child processes, last started first.

    They also end when this process is killed: by themselves, or after STOP_TIMEOUT.

    Args:
        logs: folder for the output of each child.
        environment: variables that are added to the environment of this process.
    """

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        self._logs = logs
        self._environment = {**os.environ, **environment}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a console script of this package, or any command, in a new session.

        In a new session, Ctrl-C of the terminal does not reach the child; this process
        decides the order in which the children end.
        """
        script = Path(sysconfig.get_path("scripts")) / command[0]
        program = str(script) if script.is_file() else command[0]
        self._logs.mkdir(parents=True, exist_ok=True)
        # An interrupt before the child has its place in the table would leave it behind.
        with postponed(), self.log(name).open("ab") as log:
            self._children[name] = start_command(
                [program, *command[1:]],
                grace=STOP_TIMEOUT,
                environment=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def log(self, name: str) -> Path:
        """Log file of a child."""
        return self._logs / f"{name}.log"

    def check(self) -> None:
        """Check that all children are there.

        Raises:
            UrEnergyError: one has ended; the message names its log.
        """
        for name, child in self._children.items():
            if child.poll() is not None:
                raise self._error(name, f"ended with exit code {child.returncode}")

    def _error(self, name: str, problem: str) -> UrEnergyError:
        """The error about a child, with its log."""
        return UrEnergyError(f"{name} {problem}; its output is in {self.log(name)}")

    def wait_until(self, ready: Callable[[], bool], name: str, timeout: float) -> None:
        """Wait until a child is ready.

        Args:
            ready: whether it is.
            name: of the child.
            timeout: longest time to wait [s].

        Raises:
            UrEnergyError: it takes longer, or a child has ended.
        """
        end = time.monotonic() + timeout
        while not ready():
            self.check()
            if time.monotonic() > end:
                raise self._error(name, f"was not ready within {timeout:g} s")
            time.sleep(0.05)

    def stop(self, name: str) -> int:
        """End one child with SIGINT, as Ctrl-C does, and return its exit code.

        A child that does not end within STOP_TIMEOUT is killed with all that it started.
        """
        child = self._children.pop(name)
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        return child.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all children; another request to end waits meanwhile."""
        with postponed():
            for name in reversed(list(self._children)):
                self.stop(name)


def _fresh_folder(folder: Path) -> Path:
    """Create an empty folder; one of an earlier demo is replaced.

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
    """A ROS domain whose discovery port is free on this machine (DDSI-RTPS 9.6.1.1)."""
    domains = random.SystemRandom().sample(range(1, 100), 99)
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
