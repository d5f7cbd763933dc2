# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The page of a program's profile: nodes, flame graph, and the script with joules by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.profile import UNATTRIBUTED, ProgramProfile, Row
from ur_energy_model.report.page import (
    Cell,
    Markup,
    Page,
    PageSection,
    Table,
    Tile,
    duration_text,
    energy_text,
    items,
    with_interval,
)
from ur_energy_model.report.render import escape

_ROW = 24  # height of a row of the flame graph [CSS pixels]
_LONGEST = 26  # letters of the name of a part in a table
_PARTS = {
    "driver_energy": "drivers",
    "standby_energy": "standby",
    "regeneration_energy": "regeneration",
    "unexplained_energy": "unexplained",
}
"""Parts of the energy of a row beside its joints, with their names in a table."""
_NARROWEST = 5e-4  # share of the width from which on a part of the flame graph is drawn


def profile_page(
    profile: ProgramProfile, changes: Sequence[Row], recording: str, compared: str = ""
) -> Page:
    """The page of a profile.

    Args:
        profile: energies by node and line.
        changes: what changed beside another version of the program; may be empty.
        recording: name of the recording as shown.
        compared: what is compared with the other version, in words.
    """
    nodes = profile.nodes()
    rest = profile.unattributed()
    source = profile.total_source.words(profile.explained_share)
    note = ""
    if rest["time"]:
        note = f"Rest: {energy_text(rest['energy'])}; {UNATTRIBUTED}."
    listing: Table | Markup = (
        part_table("Lines", profile, profile.lines())
        if profile.script is None
        else _listing(profile)
    )
    node_table = items(part_table("Nodes", profile, nodes))
    flames = items(_flames(profile.stacks()))
    shifts = items(*shift_tables(profile))
    changed = items(changes_table(changes))
    return Page(
        title=f"Energy of {profile.program or 'a program'}, line by line",
        subtitle=f"Recording: {recording}. Energy at the supply, standby included: {source}.",
        verdict=None,
        tiles=_tiles(profile, nodes),
        joint_names=(),
        recordings=(),
        sections=(
            PageSection("nodes", "Nodes", note, node_table),
            PageSection("flames", "Node, subprogram, line", "", flames),
            PageSection("lines", "The program", "", items(listing)),
            PageSection("shifts", "By shift", "", shifts),
            PageSection("changes", "Beside the other recording", compared, changed),
        ),
    )


def _tiles(profile: ProgramProfile, nodes: Sequence[Row]) -> list[Tile]:
    """Key figures: energy, number of nodes, energy of a cycle, and the dearest node."""
    took = f"in {duration_text(profile.duration)}, {profile.total_source.words()}"
    tiles = [
        Tile(energy_text(profile.energy), took),
        Tile(str(len(nodes)), "nodes, and lines outside of them"),
    ]
    cycles = profile.counted.cycles
    if cycles:
        mean = sum(cycle.sum() for cycle in cycles) / len(cycles)
        tiles.append(Tile(energy_text(mean), f"per cycle, mean of {len(cycles)}"))
    if nodes:
        dearest = max(nodes, key=itemgetter("energy"))
        tiles.append(Tile(_name(profile, dearest), "takes most"))
    return tiles


def _name(profile: ProgramProfile, row: Row) -> str:
    """Name of a part of the program: its label, or the text of its first line."""
    return row["label"] or profile.line_text(row["lines"][0])


def _cut(name: str) -> str:
    """A name of bounded length: the whole line is in the listing of the program."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1].rstrip()}…"


def part_table(title: str, profile: ProgramProfile, parts: Sequence[Row]) -> Table:
    """Lines or nodes of a program, the dearest first.

    Args:
        title: heading.
        profile: energy profile that the parts belong to.
        parts: rows of `ProgramProfile.lines` or `ProgramProfile.nodes`.
    """
    rows: list[tuple[Cell, ...]] = []
    for row in sorted(parts, key=itemgetter("energy"), reverse=True):
        first_and_last = dict.fromkeys(row["lines"])
        rows.append(
            (
                _cut(_name(profile, row)),
                with_interval(row["energy"], row["energy_std"]),
                None if row["share"] is None else 100.0 * row["share"],
                "–".join(map(str, first_and_last)),
                str(row["executions"]),
                row["time"],
                row["mean_power"],
                row["peak_power"],
                row["energy_per_cycle"],
                *row["joints"].values(),
                *[row[name] for name in _PARTS],
            )
        )
    consumers = [*profile.counted.channels.joints, *_PARTS.values()]
    columns = (
        "node",
        "energy [J]",
        "share [%]",
        "lines",
        "times",
        "time [s]",
        "mean [W]",
        "peak [W]",
        "per cycle [J]",
        *[f"{name} [J]" for name in consumers],
    )
    note = "Energy is that of joints, drivers, standby, regeneration and what is unexplained."
    return Table(title, columns, rows, note)


def changes_table(changes: Sequence[Row]) -> Table | None:
    """What changed in each node between two versions of the program.

    Args:
        changes: a row for each node with energies [J] and their difference.

    Returns:
        The table; None without any change.
    """
    if not changes:
        return None
    rows: list[tuple[Cell, ...]] = []
    for change in changes:
        std = np.ptp(change["interval"]) / (2.0 * CONFIDENCE)
        difference = with_interval(change["difference"], std)
        text = "; ".join(change["text"])
        rows.append(
            (change["label"], change["energy"], change["other"], difference, text)
        )
    columns = ("node", "before [J]", "after [J]", "difference [J]", "in the script")
    note = (
        "Per cycle, or in all where no cycles were found. Intervals are those of the scatter of "
        "the cycles, which fewer than two of them do not show; what standby power and friction of "
        "two days differ by is not in them."
    )
    return Table("Two versions of the program", columns, rows, note)


def shift_tables(profile: ProgramProfile) -> Iterator[Table]:
    """What each shift spent on every part of the program, the dearest first."""
    for shift in profile.as_json()["shifts"]:
        parts = sorted(shift["parts"], key=itemgetter("energy"), reverse=True)
        rows = [
            (each["name"], each["energy"], str(each["executions"]), each["seconds"])
            for each in parts
        ]
        title = f"shift from {shift['begin']}: {shift['energy']:.1f} J"
        yield Table(title, ("node", "energy [J]", "times", "time [s]"), rows)


def _listing(profile: ProgramProfile) -> Markup:
    """The script; the bar of a line is its energy over the energy of the dearest line."""
    energies = {row["lines"][0]: row["energy"] for row in profile.lines()}
    most = max(energies.values(), default=1.0)
    rows = []
    for number in profile.listed():
        joules = energies.get(number, 0.0)
        bar = f'<meter min="0" max="{most:.6g}" value="{max(joules, 0.0):.6g}"></meter>'
        cells = (
            f"<td>{joules:.1f} J</td><td>{bar}</td>" if joules else "<td></td><td></td>"
        )
        code = escape(profile.shown(number)).replace(" ", "&nbsp;")
        rows.append(f"<tr><td>{number}</td>{cells}<td><code>{code}</code></td></tr>")
    body = f"<tbody>{''.join(rows)}</tbody>"
    table = f'<div class="scroll"><table class="listing">{body}</table></div>'
    return Markup("Script", table)


def _flames(stacks: Mapping[tuple[str, ...], float]) -> Markup | None:
    """The flame graph: rows lead from the node through subprograms to the line.

    Widths are energies. Places are shares of the width, so that letters keep their size
    whatever the screen; each part is a separate drawing, which cuts what does not fit. A
    narrow screen shows a part of the graph, to be scrolled.

    Args:
        stacks: energies by names from the node to the line [J].

    Returns:
        The graph; None without energy.
    """
    positive = {names: max(joules, 0.0) for names, joules in stacks.items()}
    total = sum(positive.values())
    if total <= 0.0:
        return None
    height = _ROW * max(map(len, stacks))
    drawn = "".join(_flame_parts(positive, total, depth=0, left=0.0))
    graph = f'<svg class="flames" width="100%" height="{height}">{drawn}</svg>'
    return Markup(
        "Energy by node, subprogram and line", f'<div class="scroll">{graph}</div>'
    )


def _flame_parts(
    stacks: Mapping[tuple[str, ...], float], total: float, *, depth: int, left: float
) -> Iterator[str]:
    """The parts of a flame graph below one part, as SVG.

    Args:
        stacks: energies by names from this row on [J].
        total: energy that the whole width shows [J].
        depth: row, from 0 at the top.
        left: place of the first part, as a share of the width.
    """
    groups: dict[str, dict[tuple[str, ...], float]] = {}
    for names, joules in stacks.items():
        if names:
            groups.setdefault(names[0], {})[names[1:]] = joules
    for number, (name, inner) in enumerate(groups.items()):
        joules = sum(inner.values())
        width = joules / total
        if width >= _NARROWEST:
            title = escape(f"{name}: {joules:.1f} J, {100.0 * width:.1f} %")
            place = (
                f'x="{100.0 * left:.3f}%" y="{_ROW * depth}" width="{100.0 * width:.3f}%"'
            )
            yield (
                f'<svg {place} height="{_ROW - 1}"><title>{title}</title>'
                f'<rect width="100%" height="100%" class="flame{number % 3}"/>'
                f'<text x="4" y="{_ROW - 8}">{escape(name)}</text></svg>'
            )
            yield from _flame_parts(inner, total, depth=depth + 1, left=left)
        left += width
