"""Options for the cost and CO2 of energy."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments

if TYPE_CHECKING:
    from ur_energy_model.report.tariff import Tariff


def add_tariff_options(energy: argparse._ArgumentGroup) -> None:
    """`--tariff`, `--currency`, `--co2` and `--supply-efficiency`."""
    energy.add_argument(
        "--tariff",
        type=arguments.number(float, -1e6, 1e6),
        metavar="PRICE",
        help="price per kWh (default: no cost)",
    )
    energy.add_argument(
        "--currency", default="EUR", metavar="NAME", help="of the price (default: %(default)s)"
    )
    energy.add_argument(
        "--co2",
        type=arguments.number(float, 0, 1e6),
        metavar="KG",
        help="kg of CO2 per kWh (default: no emission)",
    )
    arguments.add_number(
        energy,
        "--supply-efficiency",
        1.0,
        "SHARE",
        "share of the wall power that reaches the robot bus",
    )


def tariff_given(options: argparse.Namespace) -> Tariff:
    """The tariff that the options describe.

    Raises:
        InputError: a supply efficiency that is no share.
    """
    from ur_energy_model.report.tariff import Tariff

    return Tariff(options.tariff, options.currency, options.co2, options.supply_efficiency)
