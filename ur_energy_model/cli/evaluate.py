"""`ur_energy evaluate`: a model compared with recordings."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.output import note, print_json, print_table, progress
from ur_energy_model.cli.payload_option import add_payload_option, payload_given

_POWERS = {"power": "from measured currents", "power_from_motion": "from the motion alone"}
"""METRICS keys of power with what it is computed from."""
_POWER_KEYS = ("rmse", "rmse_low", "rmse_high", "rmse_percent", "r2", "energy_error_percent")


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "evaluate",
        run,
        summary="compare a model with recordings",
        description="Compare the torque, current and power of a model with recordings.",
        examples="ur_energy evaluate model.yaml task --json",
    )
    arguments.add_model(parser)
    arguments.add_bags(parser, "recordings to compare with")
    parser.add_argument(
        "--no-anchor",
        action="store_true",
        help="use the model's standby power and friction, without adapting them to the "
        "recording's standstill and first seconds of motion",
    )
    add_payload_option(parser, "the controller's setting, from target_moment")
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Compare and print."""
    from ur_energy_model.identification.evaluation.evaluation import evaluate
    from ur_energy_model.model.file.model_file import load_model

    model, payload = load_model(options.model), payload_given(options.payload)
    anchor = not options.no_anchor
    with progress("evaluating") as report:
        results = [
            evaluate(model, bag, payload=payload, anchor=anchor, progress=report).as_json()
            for bag in options.bags
        ]
    if options.json:
        print_json({"model": str(options.model), "robot": model.robot, "results": results})
    else:
        for entry in results:
            print_metrics(entry)


def print_metrics(entry: Mapping[str, Any]) -> None:
    """METRICS as tables: torque, current while moving and at all times, power."""
    bag = entry["bag"]
    for key, title in (
        ("torque", "torque error [N m]"),
        ("current", "current error while moving [A]"),
        ("current_all", "current error, standstill included [A]"),
    ):
        if entry[key] is not None:
            print_table(
                f"{bag}: {title}",
                ["joint", "mean", "max", "rms", "R2"],
                [
                    [str(j), row["mean"], row["max"], row["rms"], row["r2"]]
                    for j, row in enumerate(entry[key])
                ],
            )
    if entry.get("session") is not None:
        note(f"{bag}: {_session_line(entry['session'])}")
    rows = [
        [how, *(power[key] for key in _POWER_KEYS)]
        for name, how in _POWERS.items()
        if (power := entry.get(name)) is not None
    ]
    if rows:
        print_table(
            f"{bag}: power at the supply",
            ["", "RMSE [W]", "from", "to (95 %)", "RMSE [%]", "R2", "energy error [%]"],
            rows,
        )


def _session_line(session: Mapping[str, Any]) -> str:
    """What is known about a recording's session."""
    if not session["anchored"]:
        return "standby power and friction are the model's"
    scales = ", ".join(f"{scale:.2f}" for scale in session["friction_scale"])
    return (
        f"adapted to {session['moving_seconds']:.1f} s of motion and "
        f"{session['still_seconds']:.1f} s of standstill: friction x {scales}; "
        f"standby {session['standby']:.1f} W"
    )
