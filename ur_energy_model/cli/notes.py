# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Notes at the end of the help of some commands: lists of what the package includes.

They are made when the help is printed, because the modules that have them are slow to
import.
"""

from __future__ import annotations

from ur_energy_model.cli.output import defined


def friction_laws() -> str:
    """The friction laws that `ur_energy identify --friction` takes."""
    from ur_energy_model.model.friction import LAWS

    laws = {name: law.description for name, law in LAWS.items()}
    return defined("friction laws (your own ones with --friction-laws)", laws)


def csv_layouts() -> str:
    """The known orders of columns that `ur_energy import --layout` takes."""
    from ur_energy_model.telemetry.csv.columns import LAYOUTS

    return defined("layouts", {name: layout.source for name, layout in LAYOUTS.items()})
