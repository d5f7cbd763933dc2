"""`ur_energy evaluate`: a model compared with recordings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import (
    add_cluster,
    add_payload_option,
    failed_json,
    failed_of,
    payload_given,
    report_failed,
    results_of_bags,
)
from ur_energy_model.cli.output import note, print_json, print_table, warn

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ur_energy_model.identification.evaluation import Metrics
    from ur_energy_model.model.drives import JointModel
    from ur_energy_model.typing import Progress

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
    arguments.add_same_arm(parser)
    add_cluster(parser)
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Compare and print."""
    from ur_energy_model.energy.recording_energy import common_serials
    from ur_energy_model.identification.evaluation import evaluate
    from ur_energy_model.identification.quality import MOTION_WORDS
    from ur_energy_model.model.model_file import load_model

    model, payload = load_model(options.model), payload_given(options.payload)
    work = partial(
        evaluate,
        model,
        payload=payload,
        anchor=not options.no_anchor,
        same_arm=options.same_arm,
    )

    def here(bag: Path, report: Progress) -> Metrics:
        return work(bag, progress=report)

    results = results_of_bags(options, "evaluating", here, work)
    entries = [
        replace(result.value, bag=str(result.bag)).as_json()
        for result in results
        if result.value is not None
    ]
    failed = failed_of(results)
    several = len(results) > 1
    warnings = [
        [f"{entry['bag']}: {line}" if several else line for line in entry["warnings"]]
        for entry in entries
    ]
    if options.json:
        content: dict[str, Any] = {
            "model": str(options.model),
            "robot": model.robot,
            "warnings": list(chain(*warnings)),
            "serials": common_serials([entry["serials"] for entry in entries]),
            "results": entries,
        }
        if several:
            content |= {"total": totals(entries), "failed": failed_json(failed)}
        print_json(content)
    else:
        for entry, lines in zip(entries, warnings, strict=True):
            warn(lines)
            print_metrics(entry, model.joints)
            if entry["motion"] != "unknown":
                note(f"{entry['bag']}: {MOTION_WORDS[entry['motion']]}")
    report_failed(failed, len(results))


def totals(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """METRICS of several recordings together: sums, and RMSE of power weighted by duration."""
    return {
        "recordings": len(entries),
        "samples": sum(entry["samples"] for entry in entries),
        "duration": sum(entry["duration"] for entry in entries),
        **{f"{name}_rmse": _rmse_of_all(entries, name) for name in _POWERS},
    }


def _rmse_of_all(entries: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """RMSE over the recordings that have this power [W]; None if none has it."""
    parts = [
        (entry["duration"], entry[name]["rmse"])
        for entry in entries
        if entry[name] is not None and entry[name]["rmse"] is not None
    ]
    seconds = sum(duration for duration, _ in parts)
    if not seconds:
        return None
    return float((sum(duration * rmse**2 for duration, rmse in parts) / seconds) ** 0.5)


def print_metrics(entry: Mapping[str, Any], joints: Sequence[JointModel]) -> None:
    """METRICS of a model with these joints: torque, current while moving and always, power."""
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
                    [joint.name, row["mean"], row["max"], row["rms"], row["r2"]]
                    for joint, row in zip(joints, entry[key], strict=True)
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
        f"{session['still_seconds']:.1f} s of standstill: friction x {scales} (base to tool); "
        f"standby {session['standby']:.1f} W"
    )
