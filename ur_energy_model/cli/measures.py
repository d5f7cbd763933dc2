# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What can be done for less energy, at the end of a command's results."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ur_energy_model.cli.output import WIDTH, print_line

if TYPE_CHECKING:
    from ur_energy_model.energy.advice import Advice
    from ur_energy_model.energy.tariff import Tariff


def print_measures(advice: Advice, tariff: Tariff, *, named: bool = False) -> None:
    """Print what can be done on stdout; commands stay in one line, so that they can be copied.

    `named`: with the name of each recording, where there are several.
    """
    for line in advice.text_lines(tariff, named=named):
        text = line.lstrip(" ")
        indent = " " * (len(line) - len(text))
        if text.startswith("$ "):
            print_line(line)
            continue
        hanging = indent + "   " if text[:1].isdigit() else indent
        for part in textwrap.wrap(
            text,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        ):
            print_line(part)
