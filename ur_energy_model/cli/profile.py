"""`ur_energy profile`: the energy of a program, line by line and node by node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli.arguments import chosen_model
from ur_energy_model.cli.output import note, print_json, print_line, print_objects, progress
from ur_energy_model.codec import plain
from ur_energy_model.energy.profile import (
    UNATTRIBUTED,
    ProgramProfile,
    compare_programs,
    profile_program,
)
from ur_energy_model.energy.program import Script, read_script
from ur_energy_model.errors import InputError
from ur_energy_model.files import check_target, write_text

if TYPE_CHECKING:
    import argparse

BAR, SHARE_SHOWN = 12, 0.005  # cells of a bar; least share with which a line is in the listing


def run(options: argparse.Namespace) -> None:
    """`ur_energy profile`."""
    if options.compare_script is not None and options.compare is None:
        raise InputError("--compare-script", "is of the other recording", "add --compare OTHER")
    page: Path | None = options.html
    if page is None and options.output is not None:
        page = options.output / "profile.html"
    for target in (page, options.output and options.output / "profile.json"):
        if target is not None:
            check_target(target)
    bags = [options.bag] if options.compare is None else [options.bag, options.compare]
    chosen = chosen_model(options.model, options.robot, bags)

    from ur_energy_model.plant.database import shift_starts, time_zone

    shifts = () if options.shifts is None else shift_starts(options.shifts)
    zone = time_zone(options.time_zone)

    def profile(bag: Path, script: Path | None) -> ProgramProfile:
        read = None if script is None else read_script(script)
        with progress(f"profile of {bag.name}") as report:
            return profile_program(
                chosen.model,
                bag,
                read,
                shifts=shifts,
                zone=zone,
                same_arm=options.same_arm,
                progress=report,
            )

    found = profile(options.bag, options.script)
    changes: list[dict[str, Any]] = []
    content: dict[str, Any] = {"model": chosen.entry, **found.as_json()}
    if options.compare is not None:
        other = profile(options.compare, options.compare_script or options.script)
        changes = compare_programs(found, other)
        content["compare"] = changes
    if options.output is not None:
        write_text(options.output / "profile.json", json.dumps(plain(content), indent=1) + "\n")
        stacks = (f"{';'.join(k)} {max(v, 0.0):.3f}" for k, v in found.stacks().items())
        write_text(options.output / "profile.folded", "\n".join(stacks) + "\n")
    if page is not None:
        from ur_energy_model.report.page import render
        from ur_energy_model.report.profile import profile_page

        write_text(page, render(profile_page(found, changes, options.bag.name)))
    if options.json:
        print_json(content)
        return
    _show(content)
    if found.script is not None:
        _listing(found.script, content)
    for shift in content["shifts"]:
        print_objects(
            f"shift from {shift['begin']}: {shift['energy']:.1f} J",
            sorted(shift["parts"], key=lambda row: -row["energy"]),
            {"node": "name", "times": "executions", "time [s]": "seconds", "energy [J]": "energy"},
        )
    if changes:
        print_objects(
            f"{options.compare} beside it, energy per cycle [J]",
            [{**each, "changed": "; ".join(each["text"][:3])} for each in changes],
            {
                "node": "label",
                "before": "energy",
                "after": "other",
                "difference": "difference",
                "± 95 %": _half_width,
                "in the script": "changed",
            },
        )
    note(f"model: {chosen.words}")
    for path in (page, options.output):
        if path is not None:
            note(f"written: {path}")


def _half_width(row: dict[str, Any]) -> float:
    low, high = row["interval"]
    return float(high - low) / 2.0


def _show(content: dict[str, Any]) -> None:
    """The table of nodes, the dearest first, and what belongs to none."""
    rest, total = content["unattributed"], content["energy"]
    print_objects(
        f"{content['program'] or 'program'}: {total:.1f} J in {content['duration']:.1f} s",
        sorted(content["nodes"], key=lambda row: -row["energy"]),
        {
            "node": lambda row: row["label"] or "-",
            "lines": lambda row: "-".join(map(str, dict.fromkeys(row["lines"]))),
            "times": "executions",
            "time [s]": "time",
            "energy [J]": "energy",
            "± 95 %": _half_width,
            "mean [W]": "mean_power",
            "peak [W]": "peak_power",
            "share [%]": lambda row: None if row["share"] is None else 100.0 * row["share"],
        },
    )
    if rest["time"]:
        note(f"{rest['energy']:.1f} J in {rest['time']:.1f} s: {UNATTRIBUTED}")


def _listing(script: Script, content: dict[str, Any]) -> None:
    """The script, with what each line took as a bar."""
    rows = {row["lines"][0]: row for row in content["lines"]}
    most = max((row["energy"] for row in rows.values()), default=0.0)
    for number, text in enumerate(script.text[1:], 1):
        row = rows.get(number)
        joules, bar = "", ""
        if row is not None and (row["share"] or 0.0) >= SHARE_SHOWN:
            joules, bar = f"{row['energy']:.1f}", "█" * round(BAR * row["energy"] / most)
        print_line(f"{number:5d} {joules:>9} {bar:<{BAR}} {text}"[:160])
