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
    """Print what can be done for less energy on stdout.

    Commands stay in one line, so that they can be copied; sentences are wrapped at WIDTH.

    Args:
        advice: what can be done, ranked.
        tariff: tariff by which savings are stated.
        named: whether each line has the name of its recording, where there are several.
    """
    for line in advice.text_lines(tariff, named=named):
        text = line.lstrip(" ")
        if text.startswith("$ "):
            print_line(line)
            continue
        indent = " " * (len(line) - len(text))
        hanging = indent
        if text[:1].isdigit():  # a number of the list, such as "1. "
            hanging += "   "
        for part in textwrap.wrap(
            text,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        ):
            print_line(part)
