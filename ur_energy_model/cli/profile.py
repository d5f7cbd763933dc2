# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy profile`: the energy of a program, line by line and node by node."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

from ur_energy_model.cli.arguments import ChosenModel, chosen_model
from ur_energy_model.cli.command_options import ProfileOptions
from ur_energy_model.cli.output import (
    note,
    print_json,
    print_line,
    print_table,
    progress,
    warn,
)
from ur_energy_model.codec import plain
from ur_energy_model.energy.calendar import shift_starts, time_zone
from ur_energy_model.energy.difference import sources_json
from ur_energy_model.energy.profile import UNATTRIBUTED, ProgramProfile, profile_program
from ur_energy_model.energy.program import read_script
from ur_energy_model.energy.versions import compare_programs, sources_words
from ur_energy_model.errors import InputError
from ur_energy_model.files import check_output, check_output_folder, write_text
from ur_energy_model.identification.payload_check import payload_contradictions
from ur_energy_model.report.profile import (
    changes_table,
    part_table,
    profile_page,
    shift_tables,
)
from ur_energy_model.report.render import render
from ur_energy_model.rooms import Given

SHOWN_COLUMNS = 8
"""Columns of the table of nodes in a terminal; the page has more, per cycle and joint."""
BAR = 12
"""Cells of the longest bar in the listing of a script."""
LEAST_SHARE = 0.005
"""Least share of the energy of the program with which a line of the script has a bar."""
WIDEST_LINE = 160
"""Characters of a line of the listing."""


def run(given: Given) -> None:
    """`ur_energy profile`: the energy of a program, also compared with another version.

    Raises:
        UrEnergyError: a recording, a script, the model or an option cannot be used.
    """
    options = given.of(ProfileOptions)
    page = _checked_page(options)
    bags = [options.bag] if options.compare is None else [options.bag, options.compare]
    chosen = chosen_model(options.model, options.robot, bags)
    shifts = () if options.shifts is None else shift_starts(options.shifts)
    zone = time_zone(options.time_zone)
    found = _profile(options.bag, options.script, chosen, options, shifts, zone)
    of_payload = payload_contradictions(chosen.model, options.bag)
    found = replace(found, contradictions=(*of_payload, *found.contradictions))
    changes: list[dict[str, Any]] = []
    words = ""
    content: dict[str, Any] = {"model": chosen.entry, **found.as_json()}
    if options.compare is not None:
        script = options.compare_script or options.script
        other = _profile(options.compare, script, chosen, options, shifts, zone)
        changes = compare_programs(found, other)
        content["compare"] = changes
        content["compare_sources"] = sources_json(found.total_source, other.total_source)
        words = sources_words(found, other)
    if options.output is not None:
        _write_files(options.output, found, content)
    if page is not None:
        write_text(page, render(profile_page(found, changes, options.bag.name, words)))
    if options.json:
        print_json(content)
        return
    warn(content["warnings"])
    _print(found, content, changes)
    if words:
        print_line(words)
    print_line(f"model: {chosen.words}")
    for path in (page, options.output):
        if path is not None:
            note(f"written: {path}")


def _checked_page(options: ProfileOptions) -> Path | None:
    """The HTML page to write; None for no page.

    Raises:
        InputError: an output exists, or a script of another version is stated without its
            recording.
    """
    if options.compare_script is not None and options.compare is None:
        problem = "is of the other recording"
        raise InputError("--compare-script", problem, "add --compare OTHER")
    if options.output is not None:
        check_output_folder(options.output, overwrite=options.overwrite)
    if options.html is not None:
        check_output(options.html, overwrite=options.overwrite)
        return options.html
    return None if options.output is None else options.output / "profile.html"


def _profile(
    bag: Path,
    script: Path | None,
    chosen: ChosenModel,
    options: ProfileOptions,
    shifts: Sequence[int],
    zone: tzinfo,
) -> ProgramProfile:
    """The energy of the program in a recording.

    Args:
        bag: the recording.
        script: script of the program, for the names of nodes; None without one.
        chosen: the model.
        options: options of the command.
        shifts: when the shifts of a day begin, as `shift_starts` returns it.
        zone: time zone in which the shifts begin.

    Raises:
        UrEnergyError: the recording or the script cannot be used.
    """
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


def _write_files(folder: Path, found: ProgramProfile, content: Mapping[str, Any]) -> None:
    """Write profile.json, and profile.folded for viewers of flame graphs.

    A line of profile.folded is a stack, its parts separated by semicolons, and its energy
    [J]. These viewers do not draw negative energies; 0 stands for energy that was fed back.

    Args:
        folder: folder for the files.
        found: the energies of the program.
        content: JSON of the profile.
    """
    write_text(folder / "profile.json", json.dumps(plain(content), indent=1) + "\n")
    lines: list[str] = []
    for stack, energy in found.stacks().items():
        lines.append(f"{';'.join(stack)} {max(energy, 0.0):.3f}")
    write_text(folder / "profile.folded", "\n".join(lines) + "\n")


def _print(
    found: ProgramProfile, content: Mapping[str, Any], changes: list[dict[str, Any]]
) -> None:
    """Print nodes, script and shifts, and the changes to another version of the program.

    Args:
        found: the energies of the program.
        content: JSON of the profile.
        changes: changes to the other version, part by part; empty without a comparison.
    """
    program = found.program or "program"
    title = f"{program}: {found.energy:.1f} J in {found.duration:.1f} s"
    nodes = part_table(title, found, found.nodes())
    if nodes.rows:
        shown_rows = [row[:SHOWN_COLUMNS] for row in nodes.rows]
        print_table(title, nodes.columns[:SHOWN_COLUMNS], shown_rows)
    else:
        print_line(title)
    print_line(f"total: {found.total_source.words(found.explained_share)}")
    rest = content["unattributed"]
    if rest["time"]:
        print_line(f"{rest['energy']:.1f} J in {rest['time']:.1f} s: {UNATTRIBUTED}")
    if found.script is not None:
        _print_script(found, content["lines"])
    tables = [*shift_tables(found)]
    compared = changes_table(changes)
    if compared is not None:
        tables.append(compared)
    for table in tables:
        print_table(table.title, table.columns, table.rows)


def _print_script(profile: ProgramProfile, lines: Sequence[Mapping[str, Any]]) -> None:
    """Print the script, with the energy of each line as a bar.

    Args:
        profile: profile of the program.
        lines: entries of its JSON, one for each line that took energy.
    """
    rows = {row["lines"][0]: row for row in lines}  # by number of the line
    largest_energy = max((row["energy"] for row in rows.values()), default=0.0)
    for number in profile.listed():
        row = rows.get(number)
        joules = ""
        bar = ""
        if row is not None and (row["share"] or 0.0) >= LEAST_SHARE:
            joules = f"{row['energy']:.1f}"
            bar = "█" * round(BAR * row["energy"] / largest_energy)
        line = f"{number:5d} {joules:>9} {bar:<{BAR}} {profile.shown(number)}"
        print_line(line[:WIDEST_LINE])
