"""`ur_energy history health`: friction, torque constants and standby power over days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.history import add_store
from ur_energy_model.cli.history_options import store_given
from ur_energy_model.cli.output import note, print_json, print_line, print_table, progress, warn

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.plant.plant_health import ArmHealth


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand of `history`."""
    parser = arguments.add_command(
        subparsers,
        "health",
        run,
        summary="friction, torque constants and standby power over days",
        description="Follow the friction and the torque constant of each joint and the standby "
        "power of each arm over days, at equal temperature. Changes that are larger than their "
        "uncertainty are given in words.",
        examples="ur_energy history health plant\n"
        "ur_energy history health s3://plant/history --json",
    )
    add_store(parser)
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Read, follow and print."""
    from ur_energy_model.plant.plant_health import plant_health

    store = store_given(options)
    with progress("following the arms") as report:
        arms, warnings = plant_health(store.address, progress=report)
    warn(warnings)
    changes = [change for arm in arms for change in arm.changes]
    if options.json:
        print_json(
            {
                "arms": [arm.as_json() for arm in arms],
                "changes": [change.as_json() for change in changes],
                "warnings": list(warnings),
            }
        )
        return
    for arm in arms:
        _print_levels(arm)
    for change in changes:
        low, high = change.interval
        factor, unit = (1.0, "W") if change.what == "standby power" else (100.0, "%")
        digits = 1 if unit == "W" else 0
        print_line(
            f"{change.words} (95 % interval {factor * low:+.{digits}f} to "
            f"{factor * high:+.{digits}f} {unit})"
        )
    quiet = sum(not arm.changes for arm in arms)
    note(f"{quiet} of {len(arms)} arms without a change that is larger than its uncertainty")


def _print_levels(arm: ArmHealth) -> None:
    rows = []
    for entry in arm.as_json()["levels"]:
        low, high = entry["interval"]
        rows.append(
            [
                "whole arm" if entry["joint"] is None else entry["joint"],
                entry["what"],
                f"{entry['value']:.4g}",
                f"{(high - low) / 2:.2g}",
                entry["unit"],
                "-" if entry["temperature"] is None else f"{entry['temperature']:.0f}",
                len(entry["days"]),
            ]
        )
    print_table(
        f"{arm.arm} ({arm.robot}): levels now, at equal temperature",
        ["joint", "what", "level", "± 95 %", "unit", "degC", "days"],
        rows,
    )
