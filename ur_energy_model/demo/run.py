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
from ur_energy_model.energy.recording_energy import EnergySummary, estimate_energy
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
# longest time a child may take to end after SIGINT before it is killed [s]
STOP_TIMEOUT = 10.0
MARK = ".ur_energy_demo"
"""File that marks an output folder of the demo, which the demo may replace."""
Report: TypeAlias = Callable[..., None]
TOPICS = tuple(
    topic.name for topic in (TOTAL_POWER, TOTAL_ENERGY, MODEL_POWER, MODEL_ENERGY)
)


def run_demo(
    output: Path, robot: str, host: str, seconds: float, seed: int | None
) -> None:
    """Run the demo with trajectories of some seconds; a seed of None is a random one.

    Raises:
        UrEnergyError: a part of the demo failed.
    """
    folder = _fresh_folder(output)
    seed = random.SystemRandom().randrange(1, 10_000) if seed is None else seed
    domain = _free_domain()
    model_file = folder / "model.yaml"
    environment = {
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(folder / "logs"),
    }
    note(f"simulated {robot} number {seed} on {host}, ROS domain {domain}")

    def record(
        motion: str,
        title: str,
        watch: Callable[[Processes, Report], None],
        model: str = "",
    ) -> tuple[Path, Path]:
        """Run a trajectory with the logger and, given a model, the estimator; bag and truth."""
        truth = folder / f"truth_{motion}.json"
        bags = folder / "bags" / motion
        with Processes(folder / "logs", environment) as processes:

            def start(node: str, **parameters: Any) -> None:
                processes.start(node, node_command(node, parameters))

            arm = {"host": host, "motion": motion, "seed": seed, "truth_file": str(truth)}
            start("simulated_robot", robot_model=robot, **arm)
            with progress(f"{title}: the simulated arm starts"):
                processes.wait_until(
                    lambda: _accepts(host, RTDE_PORT), "simulated_robot", START_TIMEOUT
                )
            start(
                "logger",
                robot_ip=host,
                robot_model=robot,
                bag_directory=str(bags),
                record=True,
            )
            if model:
                start("estimator", robot_ip=host, model_file=model)
            processes.wait_until(
                lambda: bags.is_dir() and any(bags.iterdir()), "logger", 30.0
            )
            with progress(title) as report:
                watch(processes, report)
            for node in (*(["estimator"] if model else []), "logger", "simulated_robot"):
                processes.stop(node)
        (bag,) = bags.iterdir()
        note(f"{title}: {bag.name}")
        return bag, truth

    def wait(
        processes: Processes,
        report: Report,
        pause: Callable[[float], None] = time.sleep,
        text: Callable[[], str] = lambda: "1/4  trajectory A: the logger records",
    ) -> None:
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < seconds:
            processes.check()
            report(elapsed / seconds, text())
            pause(min(0.25, seconds - elapsed + 0.01))

    first, _ = record("trajectory_a", "1/4  trajectory A: the logger records", wait)
    with progress("2/4  identification") as report:
        identified = identify([first], robot, progress=report)
    save_model(identified.model, model_file)
    note(f"2/4  identified from {first.name}")
    with closing(EnergyMonitor(domain)) as live:
        watch = partial(
            wait, pause=live.receive, text=lambda: f"3/4  trajectory B  {live.text()}"
        )
        second, truth = record(
            "trajectory_b", "3/4  trajectory B", watch, str(model_file)
        )
    with progress("4/4  figures and tables"):
        energy, known, metrics, figures, recording = evaluate_run(
            identified.model, second, truth, folder
        )
    print_tables(energy, known, metrics, recording.duration)
    note(
        "the model was fitted to trajectory A alone; the tables are those of Clochiatti et al. 2024"
    )
    note(f"samples lost by the logger: {recording.lost}")
    if TOTAL_ENERGY.name in live.latest:
        model = live.latest.get(MODEL_ENERGY.name, float("nan"))
        note(
            f"live {TOTAL_ENERGY.absolute_name}, measured, ended at "
            f"{live.latest[TOTAL_ENERGY.name]:.0f} J, {MODEL_ENERGY.absolute_name} at "
            f"{model:.0f} J ({live.messages} messages received)"
        )
    print(f"in {folder}:")
    for path, what in (
        (first, "trajectory A as the logger recorded it"),
        (second, "trajectory B, held out from identification"),
        (truth, "true energies of the simulated arm"),
        (model_file, "the identified model"),
        (folder / "result.json", "the tables above, as numbers"),
        (folder / "report.html", "the report: open it in a browser"),
        *((figure, "figure") for figure in figures),
    ):
        print(f"  {path.relative_to(folder)}  {what}")


def evaluate_run(
    model: EnergyModel, bag: Path, truth_file: Path, folder: Path
) -> tuple[EnergySummary, dict[str, Any], Metrics, Sequence[Path], Telemetry]:
    """Evaluate the model on a held-out recording; write figures, numbers and the report.

    Returns estimated and true energies, accuracy, figure files, and the recording.
    """
    recording = read_bag(bag)
    truth = true_energy(truth_file, float(recording.time[0]), float(recording.time[-1]))
    energy = estimate_energy(model, bag)
    metrics = evaluate(model, bag)
    charts = recording_charts(analyse(model, bag), true_energy=truth["electrical_energy"])
    figures = [path for chart in charts for path in save_chart(chart, folder / "figures")]
    content = {"estimate": energy.as_json(), "truth": truth, "metrics": metrics.as_json()}
    write_text(folder / "result.json", json.dumps(plain(content), indent=1) + "\n")
    write_text(folder / "report.html", render(report_page(make_report(model, [bag]))))
    return energy, truth, metrics, tuple(figures), recording


def print_tables(
    energy: EnergySummary, truth: Mapping[str, Any], metrics: Metrics, seconds: float
) -> None:
    """Print energies (Table VIII), torque (Table V) and current (Table VII) errors."""

    def percent(value: float | None, true: float) -> str | None:
        return (
            None
            if value is None or not np.isfinite(true)
            else f"{100 * (value / true - 1):+.2f}"
        )

    mechanical = truth["mechanical_energy"]
    electrical = truth["electrical_energy"]
    columns = (energy.mechanical, mechanical, energy.electrical, electrical)
    rows: list[Any] = list(zip(energy.names, *columns, strict=True))
    rows.append(("whole arm", *(column.sum() for column in columns)))
    print_table(
        f"Energy over {seconds:.1f} s of trajectory B [J] (Table VIII)",
        ["joint", "E mech", "true", "E elec", "true", "error %", "efficiency"],
        [
            [
                name,
                *(round(float(value), 1) for value in (mech, true_mech, elec, true)),
                percent(elec, true),
                f"{mech / elec:.3f}" if elec > 0 else None,
            ]
            for name, mech, true_mech, elec, true in rows
        ],
    )
    bus = truth["bus_energy"]
    print_table(
        "Energy at the supply, standby included [J]",
        ["whole arm", "energy", "error %"],
        [
            ["true", bus, None],
            ["measured, voltage x current", energy.bus, percent(energy.bus, bus)],
            ["model", energy.model, percent(energy.model, bus)],
        ],
    )
    for title, entries in (
        ("Torque error, trajectory B [N m] (Table V)", metrics.torque),
        ("Current error, trajectory B [A] (Table VII)", metrics.current),
    ):
        if entries is not None:
            keys = ("mean", "max", "rms")
            pairs = zip(energy.names, entries, strict=True)
            table = [
                [name, *(entry[key] for key in keys), r2_words(entry)]
                for name, entry in pairs
            ]
            print_table(title, ["joint", "mean", "max", "RMS", "R2"], table)
    if metrics.power is not None:
        power = metrics.power
        note(
            f"bus power: RMSE {power['rmse']:.2f} W ({power['rmse_percent']:.1f} % of range), "
            f"energy error {power['energy_error_percent']:+.2f} %"
        )


def true_energy(truth_file: Path, start: float, end: float) -> dict[str, Any]:
    """True energies between two controller times [s], from what the simulated arm wrote [J].

    `mechanical_energy` and `electrical_energy` of the joints at the motor [n], and
    `bus_energy` that the supply delivers to the whole arm, standby included.
    """
    arrays = truth_file.with_name(
        json.loads(truth_file.read_text(encoding="utf-8"))["arrays"]
    )
    with np.load(arrays) as rows:
        time = rows["timestamp"]

        def between(name: str) -> Array:
            columns = rows[name].reshape(len(time), -1).T
            return np.array(
                [np.diff(np.interp([start, end], time, each))[0] for each in columns]
            )

        joints = {
            name: between(name) for name in ("mechanical_energy", "electrical_energy")
        }
        return {**joints, "bus_energy": float(between("bus_energy")[0])}


class EnergyMonitor:
    """Receives the whole-arm topics of the estimator in a ROS context of its own."""

    def __init__(self, domain: int) -> None:
        self.latest: dict[str, float] = {}  # by topic [W, J]
        self.messages = 0
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node("ur_energy_demo", context=self._context)
        for topic in TOPICS:
            self._node.create_subscription(Float64, topic, partial(self._keep, topic), 10)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)

    def _keep(self, topic: str, message: Float64) -> None:
        self.latest[topic], self.messages = message.data, self.messages + 1

    def receive(self, seconds: float) -> None:
        """Receive messages for a time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left)

    def text(self) -> str:
        """Live power and energy."""
        if TOTAL_POWER.name not in self.latest:
            return "the estimator starts"
        model = self.latest.get(MODEL_POWER.name)
        modelled = "" if model is None else f" (model {model:5.1f} W)"
        energy = self.latest.get(TOTAL_ENERGY.name, 0.0)
        return f"/energy {self.latest[TOTAL_POWER.name]:5.1f} W{modelled} {energy:6.0f} J"

    def close(self) -> None:
        """Leave ROS."""
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)


class Processes:
    """Context manager that ends its child processes, last started first.

    They also end when this process is killed: in an orderly way, or after `STOP_TIMEOUT`.
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
        """Raise an error if a child has ended."""
        for name, child in self._children.items():
            if child.poll() is not None:
                raise self._error(name, f"ended with exit code {child.returncode}")

    def _error(self, name: str, problem: str) -> UrEnergyError:
        return UrEnergyError(f"{name} {problem}; its output is in {self.log(name)}")

    def wait_until(self, ready: Callable[[], bool], name: str, timeout: float) -> None:
        """Wait until a child is ready; an error if that takes longer, or a child has ended."""
        end = time.monotonic() + timeout
        while not ready():
            self.check()
            if time.monotonic() > end:
                raise self._error(name, f"was not ready within {timeout:g} s")
            time.sleep(0.05)

    def stop(self, name: str) -> int:
        """End one child with SIGINT, as Ctrl-C does, and return its exit code."""
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
    """Create an empty folder; one of an earlier demo is replaced, any other is refused."""
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
    try:
        with socket.create_connection((host, port), timeout=0.5):
            return True
    except OSError:
        return False
