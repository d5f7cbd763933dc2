# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What is around the arms: `ur_energy demo`, `simulate`, `layouts` and `completion`."""

from __future__ import annotations

import argparse
import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli.output import note, picked, print_json, print_table, warn
from ur_energy_model.errors import InputError, optional_import
from ur_energy_model.interrupts import on_stop_signal

if TYPE_CHECKING:
    from ur_energy_model.simulation.simulated_controller import SimulatedController


def demo(options: argparse.Namespace) -> None:
    """Run the demo."""
    from ur_energy_model.demo.run import run_demo

    run_demo(options.output, options.robot, options.host, options.seconds, options.seed)


def simulate(options: argparse.Namespace) -> None:
    """Simulate until Ctrl-C, another signal or the end of the duration."""
    server: SimulatedController | None = None

    def stop() -> None:
        if server is None:  # still being set up
            raise SystemExit(0)
        server.stop()

    with on_stop_signal(stop):  # the imports take seconds
        import numpy as np

        from ur_energy_model.files import check_output
        from ur_energy_model.model.robots import check_payload, load_robot
        from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
        from ur_energy_model.simulation.simulated_controller import Simulation
        from ur_energy_model.simulation.supply import truth_files
        from ur_energy_model.telemetry.rtde.connection import PORT as RTDE_PORT

        for truth in () if options.truth is None else truth_files(options.truth):
            check_output(truth, overwrite=options.overwrite)
        for option, payload in (
            ("--payload", options.payload),
            ("--carried", options.carried),
        ):
            if payload is not None:
                warn(check_payload(load_robot(options.robot), payload.mass, option))
        setup = Setup(payload=options.payload or Payload())
        if options.mounting is not None:
            setup = replace(
                setup,
                gravity=gravity_of_mounting(*np.radians((*options.mounting, 0.0)[:2])),
            )
        names = (
            "robot host motion seed ambient speed truth carried controller allow_network"
        )
        arm, server = Simulation(
            **picked(
                options,
                f"{names} session drive_set version=controller_version faults=fault wall",
            ),
            setup=setup,
        ).build(report=note)
        with contextlib.suppress(OSError):  # a higher priority, if permitted
            os.nice(-10)
        server.run(
            options.duration,
            lambda: print(f"ready {options.host}:{RTDE_PORT}", flush=True),
        )
        arm.close()
        note(f"simulated {options.robot}: {server.ticker}")


_ANY_ROBOT = "ur5e"  # every UR arm has its joint names


def layouts(options: argparse.Namespace) -> None:
    """Write the files."""
    from ur_energy_model.files import check_output_folder, write_text
    from ur_energy_model.layouts.files import PURPOSES, ArmTopics, layout_files
    from ur_energy_model.model.robots import load_robot

    robot = load_robot(options.robot or _ANY_ROBOT)
    arm = ArmTopics(tuple(robot.joint_names), options.namespace, options.tf_prefix)
    files = {options.output / name: text for name, text in layout_files(arm).items()}
    check_output_folder(options.output, overwrite=options.overwrite)
    for path, text in files.items():
        write_text(path, text)
    if options.json:
        print_json({"files": list(files), "topic": arm.energies})
    else:
        rows = list(zip(files, PURPOSES.values(), strict=True))
        print_table("Layouts", ("file", "for"), rows)
        note(f"all curves are in {arm.energies}")


def completion(options: argparse.Namespace) -> None:
    """Print the script; refused where shtab is not installed, or too old for this shell."""
    from ur_energy_model.cli.parser import build_parser
    from ur_energy_model.model.friction import LAWS
    from ur_energy_model.model.robots import available_robots
    from ur_energy_model.telemetry.csv.columns import LAYOUTS

    with optional_import():
        import shtab
    if options.shell not in shtab.SUPPORTED_SHELLS:
        problem = f"shtab {shtab.__version__} does not support this shell"
        raise InputError(options.shell, problem, "pip install --upgrade shtab")
    words = {
        "robot": available_robots(),
        "friction": ("auto", *LAWS),
        "layout": tuple(LAYOUTS),
    }
    parser = build_parser()
    (subcommands,) = (
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    for choice in subcommands._choices_actions:
        subparser = subcommands.choices[choice.dest]
        subparser.description = choice.help  # one line, for the menus of zsh and fish
        for action in subparser._actions:
            action.choices = action.choices or words.get(action.dest)
            if (
                action.choices is None
                and action.nargs != 0
                and action.type in (None, Path)
            ):
                action.complete = shtab.FILE
    print(shtab.complete(parser, options.shell))
