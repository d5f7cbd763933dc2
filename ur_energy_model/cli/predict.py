"""`ur_energy predict`: energy of a planned trajectory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import add_payload_option, with_given_payload
from ur_energy_model.cli.model_option import add_optional_model, chosen_model
from ur_energy_model.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    import argparse


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "predict",
        run,
        summary="predict the energy of a trajectory before the robot moves",
        description="Predict the energy of a planned trajectory, per joint and in total. The CSV "
        "file has a header line with the columns time [s], q_0 ... [rad] and, where known, "
        "qd_0 ... and qdd_0 ... Measured positions (actual_q_0 ...) are smoothed first, with a "
        "warning.",
        examples="ur_energy predict model.yaml trajectory.csv\n"
        "ur_energy predict trajectory.csv --robot ur5e",
    )
    add_optional_model(parser)
    parser.add_argument(
        "trajectory", type=Path, metavar="TRAJECTORY.csv", help="planned motion of the joints"
    )
    add_payload_option(parser, "the model's")
    parser.add_argument(
        "--session",
        type=Path,
        metavar="BAG",
        help="recording of the same day, to take standby power (from standstill) and friction "
        "(from the first seconds of motion) from; without it the interval is wider, to cover "
        "their spread between sessions",
    )
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Predict and print."""
    from ur_energy_model.energy.meter import CONFIDENCE
    from ur_energy_model.energy.prediction import predict_energy
    from ur_energy_model.identification.evaluation import (
        identify_session,
        recorded_setup,
        session_json,
    )
    from ur_energy_model.trajectory.plan import read_plan, smooth_plan

    recordings = [] if options.session is None else [options.session]
    chosen = chosen_model(options.model, options.robot, recordings)
    model = chosen.model
    if chosen.path is None and options.session is not None:
        setup = recorded_setup(model, options.session)
        model = replace(model, setup=setup, setup_source="recorded")
    model = with_given_payload(model, options.payload)
    if options.session is not None:
        model = model.in_session(identify_session(model, options.session))
    plan = read_plan(options.trajectory, [joint.name for joint in model.joints])
    plan, warning = smooth_plan(plan, model.description().max_acceleration)
    if warning is not None:
        note(f"warning: {plan.source}: {warning}")
    energy = predict_energy(model, plan)
    if options.json:
        warnings = [] if warning is None else [warning]
        print_json(
            {
                "model": chosen.entry,
                **energy.as_json(),
                "session": session_json(model.session),
                "warnings": warnings,
            }
        )
        return
    columns = (
        energy.names,
        energy.mechanical,
        energy.electrical,
        CONFIDENCE * energy.electrical_std,
        energy.efficiency,
    )
    print_table(
        f"energy of {options.trajectory}, {energy.duration:.1f} s [J]",
        ["joint", "mechanical", "electrical", "± 95 %", "efficiency"],
        list(zip(*columns, strict=True)),
    )
    note(f"model: {chosen.words}")
    note(
        f"at the supply: {energy.total:.1f} ± {CONFIDENCE * energy.total_std:.1f} J, "
        f"peak {energy.peak_power:.1f} W"
    )
    if options.session is None:
        note("this holds for any session; --session BAG of the same day narrows the interval")
        if chosen.path is None:
            load = "without payload" if options.payload is None else "with this payload"
            note(f"this holds for an arm mounted upright, {load}; --session BAG has its mounting")
