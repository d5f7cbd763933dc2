# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Generates docs/formats.md: the keys of every YAML format of the package, with units and ranges.

    python -m tools.formats_page

The tables are those that read and write the files (`ur_energy_model.formats`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from ur_energy_model.files import share_directory
from ur_energy_model.formats import rows
from ur_energy_model.forms import Form
from ur_energy_model.model.capsules import GEOMETRY
from ur_energy_model.model.model_file import MODEL
from ur_energy_model.model.robots import ROBOT
from ur_energy_model.trajectory.fourier import TRAJECTORY

PAGE = "docs/formats.md"
WIDTH = 120
INTRODUCTION = """\
All of these are YAML files that people can read and edit. One strict reader reads them:
either the whole file loads, or one line names file, line and key to correct. An unknown
key, a missing key, a number that is not finite, another unit and an impossible value are
refused; anchors, tags and files beyond 4 MB are, too.

In the tables, `<joint>` stands for a key for each joint. A *value* is `{value: 0.5, unit:
A}`; an *estimate* is a value with its standard deviation and mostly its source, `{value:
0.1, unit: N m/A, std: 0.001, source: current}`. The unit is checked, not converted.
Shapes such as [k, 3n+2] are nested lists; n is the number of joints. The range of an
estimate may be left by chance: by five standard deviations below zero.
"""


class Format(NamedTuple):
    """A format with its heading and an introduction."""

    title: str
    about: str
    form: Form[Any]


FORMATS = (
    Format(
        "Model file",
        "Written by `ur_energy identify`, read by all that has `--model`. Inertia is joint "
        "side; torque constants, friction and motor constants are motor side. "
        "[How it works](how_it_works.md) explains the quantities.",
        MODEL,
    ),
    Format(
        "Robot file",
        "The nominal constants of an arm: `config/robots/`, or your own file with "
        "`--robot` ([Another arm](generic_models.md#another-arm) has an example). A URDF "
        "works, too.",
        ROBOT,
    ),
    Format(
        "Geometry file",
        "Capsules that enclose the links of an arm, for clearance checks: `config/geometry/`, "
        "or your own file with `--geometry`. A robot file has the same keys in its section "
        "`geometry`.",
        GEOMETRY,
    ),
    Format(
        "Trajectory file",
        "A finite Fourier series, q(t) = q0 + sum over the harmonics of a sin(2 pi l t / "
        "period) - b cos(2 pi l t / period), written by `ur_energy excite`. It starts and "
        "ends at rest.",
        TRAJECTORY,
    ),
)


def page() -> str:
    """Text of the page."""
    lines = ["# File formats", "", "<!-- made by python -m tools.formats_page -->", ""]
    for paragraph in INTRODUCTION.split("\n\n"):
        lines += [*wrapped(paragraph), ""]
    for each in FORMATS:
        lines += [f"## {each.title}", "", *wrapped(each.about), ""]
        lines += [*table(each.form), ""]
    return "\n".join(lines[:-1]) + "\n"


def wrapped(paragraph: str) -> list[str]:
    """Lines of a paragraph."""
    return textwrap.wrap(paragraph, WIDTH, break_long_words=False)


def table(form: Form[Any]) -> Iterator[str]:
    """Lines of the table of a format."""
    yield "| key | content | range | needed | meaning |"
    yield "|---|---|---|---|---|"
    for row in rows(form):
        cells = (f"`{row.key}`", row.content, row.limits, row.needed, row.meaning)
        yield f"| {' | '.join(cell.replace('|', ' ') for cell in cells)} |"


def main() -> None:
    """Write the page into the checkout."""
    (share_directory() / PAGE).write_text(page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
