# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy profile`: the energy of a program, line by line and node by node."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ur_energy_model.cli.arguments import chosen_model
from ur_energy_model.cli.commands import ProfileOptions
from ur_energy_model.cli.output import (
    note,
    print_json,
    print_line,
    print_table,
    progress,
    warn,
)
from ur_energy_model.codec import plain
from ur_energy_model.energy.difference import sources_json
from ur_energy_model.energy.profile import (
    UNATTRIBUTED,
    ProgramProfile,
    profile_program,
)
from ur_energy_model.energy.program import read_script
from ur_energy_model.energy.versions import compare_programs, sources_words
from ur_energy_model.errors import InputError
from ur_energy_model.files import check_output, check_output_folder, write_text
from ur_energy_model.rooms import Given

# columns of the nodes' table in a terminal; the page has those per cycle and joint
SHOWN = 8
# cells of a bar; least share with which a line is in the listing
BAR = 12
SHARE_SHOWN = 0.005


def run(given: Given) -> None:
    """`ur_energy profile`: the energy of a program, beside that of another version of it.

    Raises:
        UrEnergyError: a recording, a script, the model or an option cannot be used.
    """
    options = given.of(ProfileOptions)
    if options.compare_script is not None and options.compare is None:
        raise InputError(
            "--compare-script", "is of the other recording", "add --compare OTHER"
        )
    page = options.html
    if page is None and options.output is not None:
        page = options.output / "profile.html"
    if options.output is not None:
        check_output_folder(options.output, overwrite=options.overwrite)
    if options.html is not None:
        check_output(options.html, overwrite=options.overwrite)
    bags = [options.bag] if options.compare is None else [options.bag, options.compare]
    chosen = chosen_model(options.model, options.robot, bags)

    from ur_energy_model.energy.calendar import shift_starts, time_zone
    from ur_energy_model.identification.payload_check import payload_contradictions

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
    doubted = payload_contradictions(chosen.model, options.bag)
    found = replace(found, contradictions=(*doubted, *found.contradictions))
    changes: list[dict[str, Any]] = []
    words = ""
    content: dict[str, Any] = {"model": chosen.entry, **found.as_json()}
    if options.compare is not None:
        other = profile(options.compare, options.compare_script or options.script)
        changes = compare_programs(found, other)
        content["compare"] = changes
        content["compare_sources"] = sources_json(found.total_source, other.total_source)
        words = sources_words(found, other)
    if options.output is not None:
        write_text(
            options.output / "profile.json", json.dumps(plain(content), indent=1) + "\n"
        )
        stacks = (f"{';'.join(k)} {max(v, 0.0):.3f}" for k, v in found.stacks().items())
        write_text(options.output / "profile.folded", "\n".join(stacks) + "\n")
    if page is not None:
        from ur_energy_model.report.page import render
        from ur_energy_model.report.profile import profile_page

        write_text(page, render(profile_page(found, changes, options.bag.name, words)))
    if options.json:
        print_json(content)
        return
    warn(content["warnings"])
    from ur_energy_model.report.profile import changes_table, part_table, shift_tables

    title = (
        f"{found.program or 'program'}: {found.energy:.1f} J in {found.duration:.1f} s"
    )
    nodes = part_table(title, found, found.nodes())
    rest = content["unattributed"]
    if nodes.rows:
        print_table(title, nodes.columns[:SHOWN], [row[:SHOWN] for row in nodes.rows])
    else:
        print_line(title)
    print_line(f"total: {found.total_source.words(found.explained_share)}")
    if rest["time"]:
        print_line(f"{rest['energy']:.1f} J in {rest['time']:.1f} s: {UNATTRIBUTED}")
    if found.script is not None:
        _listing(found, content)
    compared = changes_table(changes)
    for table in (*shift_tables(found), *([] if compared is None else [compared])):
        print_table(table.title, table.columns, table.rows)
    if words:
        print_line(words)
    print_line(f"model: {chosen.words}")
    for path in (page, options.output):
        if path is not None:
            note(f"written: {path}")


def _listing(profile: ProgramProfile, content: dict[str, Any]) -> None:
    """The script, with what each line took as a bar."""
    rows = {row["lines"][0]: row for row in content["lines"]}
    most = max((row["energy"] for row in rows.values()), default=0.0)
    for number in profile.listed():
        row = rows.get(number)
        joules = ""
        bar = ""
        if row is not None and (row["share"] or 0.0) >= SHARE_SHOWN:
            joules = f"{row['energy']:.1f}"
            bar = "█" * round(BAR * row["energy"] / most)
        print_line(f"{number:5d} {joules:>9} {bar:<{BAR}} {profile.shown(number)}"[:160])
